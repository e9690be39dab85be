/* SPDX-License-Identifier: BSD-3-Clause */
/* name: the options in the names of back ends. Parsed at open, never on the hot path. */
#include "serve/back/name.h"
#include <errno.h>
#include <string.h>

#define MOST_VALUE 64 /* bytes of a value: longer than any number with its unit */

static int unknown_option(const char *key, const struct field *fields, struct weir_err *err)
{
	const char *keys[FIELDS_MOST + 1], *near;

	field_keys(fields, keys);
	near = weir_err_near(key, keys);
	if (near)
		return weir_err_set(
			err, -EINVAL, "unknown option '%s' (did you mean '%s'?)", key, near);
	return weir_err_set(err, -EINVAL, "unknown option '%s'", key);
}

/* Parse "key=value" or "flag", NUL-terminated; modifies the text. */
static int read_option(
	char *text, const struct field *fields, void *to, uint64_t *seen, struct weir_err *err)
{
	char *value = strchr(text, '=');
	struct weir_err why;
	int i, r;

	if (value)
		*value++ = '\0';
	i = field_find(fields, text);
	if (i < 0)
		return unknown_option(text, fields, err);
	if (*seen & UINT64_C(1) << i)
		return weir_err_set(err, -EINVAL, "option '%s' is given twice", text);
	if (!value && fields[i].type != FIELD_FLAG)
		return weir_err_set(err, -EINVAL, "option '%s' needs a value: %s=…", text, text);
	r = field_read(&fields[i], value ? value : "yes", to, &why);
	if (r)
		return weir_err_set(err, r, "%s: %s", text, why.text);
	*seen |= UINT64_C(1) << i;
	return 0;
}

int back_options(const char *text, size_t len, char separator, const struct field *fields, void *to,
	uint64_t *ret_seen, struct weir_err *err)
{
	uint64_t seen = 0;

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, separator, len - at);
		size_t n = end ? (size_t)(end - text) - at : len - at;
		char option[MOST_VALUE * 2];
		int r;

		if (n >= sizeof(option))
			return weir_err_set(
				err, -EINVAL, "an option is too long: %.*s…", 40, text + at);
		memcpy(option, text + at, n);
		option[n] = '\0';
		r = n ? read_option(option, fields, to, &seen, err) : 0;
		if (r)
			return r;
		at += n + 1;
	}
	if (ret_seen)
		*ret_seen = seen;
	return 0;
}

const char *back_query(const char *rest)
{
	const char *mark = strrchr(rest, '?');

	return mark ? mark : rest + strlen(rest);
}
