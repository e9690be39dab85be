/* SPDX-License-Identifier: BSD-3-Clause */
/* name: the options in the names of back ends. Parsed at open, never on the hot path. */
#include "serve/back/name.h"
#include <weir/units.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define MOST_OPTIONS 64 /* of one table: bits of *ret_seen */
#define MOST_VALUE   64 /* bytes of a value: longer than any number with its unit */

static int read_flag(const char *value, bool *ret, struct weir_err *err)
{
	static const char *const words[] = {"yes", "true", "on", "1", "no", "false", "off", "0"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value, words[i]) == 0) {
			*ret = i < 4;
			return 0;
		}
	}
	return weir_err_set(err, -EINVAL, "'%s' is neither yes nor no", value);
}

static int read_word(const char *value, const char *const *words, int *ret, struct weir_err *err)
{
	const char *near;

	for (int i = 0; words[i]; i++) {
		if (strcmp(value, words[i]) == 0) {
			*ret = i;
			return 0;
		}
	}
	near = weir_err_near(value, words);
	return near ? weir_err_set(err, -EINVAL, "unknown '%s' (did you mean '%s'?)", value, near)
		    : weir_err_set(err, -EINVAL, "unknown '%s' (use '%s', for example)", value,
			      words[0]);
}

static int read_whole(const char *value, uint32_t *ret, struct weir_err *err)
{
	int64_t whole;
	int r = weir_units_int(value, &whole, err);

	if (r)
		return r;
	if (whole < 0 || whole > UINT32_MAX)
		return weir_err_set(
			err, -EINVAL, "'%s' is not between 0 and %u", value, UINT32_MAX);
	*ret = (uint32_t)whole;
	return 0;
}

static int read_size32(const char *value, uint32_t *ret, struct weir_err *err)
{
	uint64_t bytes;
	int r = weir_units_size(value, &bytes, err);

	if (r)
		return r;
	if (bytes > UINT32_MAX)
		return weir_err_set(err, -EINVAL, "'%s' is more than 4 GiB", value);
	*ret = (uint32_t)bytes;
	return 0;
}

static int read_rate(const char *value, enum back_type type, double *ret, struct weir_err *err)
{
	struct weir_rate rate;
	int r;

	if (type == BACK_IOPS && weir_units_count(value, ret, NULL) == 0)
		return 0;
	r = weir_units_rate(value, &rate, err);
	if (r)
		return r;
	if (rate.unit != (type == BACK_IOPS ? WEIR_UNIT_REQUESTS : WEIR_UNIT_BYTES))
		return weir_err_set(err, -EINVAL, "'%s' is not in %s", value,
			type == BACK_IOPS ? "iops" : "bytes per second");
	*ret = rate.per_second;
	return 0;
}

static int read_value(const struct back_field *f, const char *value, void *to, struct weir_err *err)
{
	switch (f->type) {
	case BACK_TIME:
		return weir_units_time(value, to, err);
	case BACK_SIZE:
		return weir_units_size(value, to, err);
	case BACK_SIZE32:
		return read_size32(value, to, err);
	case BACK_WHOLE:
		return read_whole(value, to, err);
	case BACK_REAL:
		return weir_units_count(value, to, err);
	case BACK_BYTES_RATE:
	case BACK_IOPS:
		return read_rate(value, f->type, to, err);
	case BACK_FLAG:
		return read_flag(value, to, err);
	default:
		return read_word(value, f->words, to, err);
	}
}

static int unknown_option(const char *key, const struct back_field *fields, struct weir_err *err)
{
	const char *keys[MOST_OPTIONS + 1], *near;
	size_t n = 0;

	while (fields[n].key && n < MOST_OPTIONS) {
		keys[n] = fields[n].key;
		n++;
	}
	keys[n] = NULL;
	near = weir_err_near(key, keys);
	if (near)
		return weir_err_set(
			err, -EINVAL, "unknown option '%s' (did you mean '%s'?)", key, near);
	return weir_err_set(err, -EINVAL, "unknown option '%s'", key);
}

/* Parse "key=value" or "flag", NUL-terminated; modifies the text. */
static int read_option(
	char *text, const struct back_field *fields, void *to, uint64_t *seen, struct weir_err *err)
{
	char *value = strchr(text, '=');
	struct weir_err why;
	size_t i = 0;
	int r;

	if (value)
		*value++ = '\0';
	while (fields[i].key && strcmp(fields[i].key, text) != 0)
		i++;
	if (!fields[i].key)
		return unknown_option(text, fields, err);
	if (*seen & UINT64_C(1) << i)
		return weir_err_set(err, -EINVAL, "option '%s' is given twice", text);
	if (!value && fields[i].type != BACK_FLAG)
		return weir_err_set(err, -EINVAL, "option '%s' needs a value: %s=…", text, text);
	r = read_value(&fields[i], value ? value : "yes", (char *)to + fields[i].offset, &why);
	if (r)
		return weir_err_set(err, r, "%s: %s", text, why.text);
	*seen |= UINT64_C(1) << i;
	return 0;
}

int back_options(const char *text, size_t len, char separator, const struct back_field *fields,
	void *to, uint64_t *ret_seen, struct weir_err *err)
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
