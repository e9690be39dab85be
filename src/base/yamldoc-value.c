/* SPDX-License-Identifier: BSD-3-Clause */
/* yamldoc-value: read scalars as typed values. */
#include "base/yamldoc.h"

#include <errno.h>
#include <strings.h>

/* Return the text of a value that must be a scalar; `what` names the expected kind in messages. */
static int need_text(yamldoc_node n, const char *what, const char **ret, struct weir_err *err)
{
	enum yamldoc_kind kind = yamldoc_kind(n);

	if (kind == YAMLDOC_NONE)
		return -ENOENT;
	if (kind != YAMLDOC_SCALAR)
		return yamldoc_error(
			n, err, "must be %s, not a %s", what, kind == YAMLDOC_MAP ? "map" : "list");
	*ret = yamldoc_text(n);
	return 0;
}

int yamldoc_as_string(yamldoc_node n, const char **ret, struct weir_err *err)
{
	return need_text(n, "text", ret, err);
}

/* The getters of quantities are alike except for the quantity. */
#define AS_QUANTITY(name, type, what)                                                              \
	int yamldoc_as_##name(yamldoc_node n, type *ret, struct weir_err *err)                     \
	{                                                                                          \
		const char *text = NULL;                                                           \
		struct weir_err why;                                                               \
		int r = need_text(n, what, &text, err);                                            \
		if (r == 0 && weir_units_##name(text, ret, &why) < 0)                              \
			r = yamldoc_error(n, err, "%s", why.text);                                 \
		return r;                                                                          \
	}

AS_QUANTITY(count, double, "a number")
AS_QUANTITY(time, weir_time, "a time")
AS_QUANTITY(size, uint64_t, "a size")
AS_QUANTITY(rate, struct weir_rate, "a rate")

int yamldoc_string(yamldoc_node map, const char *key, const char **ret, struct weir_err *err)
{
	return yamldoc_as_string(yamldoc_get(map, key), ret, err);
}

int yamldoc_count(yamldoc_node map, const char *key, double *ret, struct weir_err *err)
{
	return yamldoc_as_count(yamldoc_get(map, key), ret, err);
}

int yamldoc_time(yamldoc_node map, const char *key, weir_time *ret, struct weir_err *err)
{
	return yamldoc_as_time(yamldoc_get(map, key), ret, err);
}

int yamldoc_size_of(yamldoc_node map, const char *key, uint64_t *ret_bytes, struct weir_err *err)
{
	return yamldoc_as_size(yamldoc_get(map, key), ret_bytes, err);
}

int yamldoc_rate(yamldoc_node map, const char *key, struct weir_rate *ret, struct weir_err *err)
{
	return yamldoc_as_rate(yamldoc_get(map, key), ret, err);
}

int yamldoc_bool(yamldoc_node map, const char *key, bool *ret, struct weir_err *err)
{
	static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
	yamldoc_node n = yamldoc_get(map, key);
	const char *text = NULL;

	int r = need_text(n, "true or false", &text, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(text, words[i]) == 0) {
			*ret = i % 2;
			return 0;
		}
	return yamldoc_error(n, err, "\"%.60s\": must be true or false", text);
}

int yamldoc_int(yamldoc_node map, const char *key, int64_t lo, int64_t hi, int64_t *ret,
	struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, key);
	struct weir_err why;
	const char *text = NULL;
	int64_t value;

	int r = need_text(n, "a whole number", &text, err);
	if (r < 0)
		return r;
	if (weir_units_int(text, &value, &why) < 0)
		return yamldoc_error(n, err, "%s", why.text);
	if (value < lo)
		return yamldoc_error(
			n, err, "\"%.60s\": must be at least %lld", text, (long long)lo);
	if (value > hi)
		return yamldoc_error(
			n, err, "\"%.60s\": must be at most %lld", text, (long long)hi);
	*ret = value;
	return 0;
}
