/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-read: read and check members of JSON objects; messages have the path of the member. */
#include "cli/alloc.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int alloc_fail(const struct alloc_at *at, const char *key, const char *fmt, ...)
{
	char what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	return weir_err_set(at->err, -EINVAL, "%s%s%s%s%s", at->path, *at->path && *key ? "." : "",
		key, *at->path || *key ? ": " : "", what);
}

int alloc_keys(const struct alloc_at *at, const char *const *keys)
{
	const char *key;
	json_t *value;

	if (!json_is_object(at->object))
		return alloc_fail(at, "", "must be an object");
	json_object_foreach(at->object, key, value)
	{
		const char *near = weir_err_near(key, keys);

		if (!near)
			return alloc_fail(at, key, "unknown");
		if (strcmp(near, key) != 0)
			return alloc_fail(at, key, "unknown (did you mean '%s'?)", near);
	}
	return 0;
}

int alloc_number(const struct alloc_at *at, const char *key, struct alloc_range range, double *ret)
{
	json_t *value = json_object_get(at->object, key);
	double x;

	if (!value || json_is_null(value))
		return -ENOENT;
	if (!json_is_number(value))
		return alloc_fail(at, key, "must be a number");
	x = json_number_value(value);
	if (range.above && !(x > range.least))
		return alloc_fail(at, key, "must be > %g", range.least);
	if (!(x >= range.least))
		return alloc_fail(at, key, "must be at least %g", range.least);
	if (!(x <= range.most))
		return alloc_fail(at, key, "must be at most %g", range.most);
	*ret = x;
	return 0;
}

int alloc_absent_ok(int r)
{
	return r == -ENOENT ? 0 : r;
}

int alloc_whole(const struct alloc_at *at, const char *key, struct alloc_range range, int64_t *ret)
{
	double x = 0;
	int r = alloc_number(at, key, range, &x);

	if (r)
		return r;
	if (x != floor(x))
		return alloc_fail(at, key, "must be a whole number");
	*ret = (int64_t)x;
	/* As a double it may have been rounded into the range. */
	if (json_is_integer(json_object_get(at->object, key)) &&
		json_integer_value(json_object_get(at->object, key)) != *ret)
		return alloc_fail(at, key, "must be at most %g", range.most);
	return 0;
}

int alloc_need(const struct alloc_at *at, const char *key, struct alloc_range range, double *ret)
{
	int r = alloc_number(at, key, range, ret);

	return r == -ENOENT ? alloc_fail(at, key, "is missing") : r;
}

int alloc_flag(const struct alloc_at *at, const char *key, bool *ret)
{
	json_t *value = json_object_get(at->object, key);

	if (!value || json_is_null(value))
		return -ENOENT;
	if (!json_is_boolean(value))
		return alloc_fail(at, key, "must be true or false");
	*ret = json_is_true(value);
	return 0;
}

int alloc_name(const struct alloc_at *at, const char **ret)
{
	json_t *value = json_object_get(at->object, "name");

	if (!value || json_is_null(value))
		return alloc_fail(at, "name", "is missing");
	if (!json_is_string(value) || json_string_length(value) == 0)
		return alloc_fail(at, "name", "must be a non-empty text");
	*ret = json_string_value(value);
	return 0;
}

int alloc_list(const struct alloc_at *at, const char *key, json_t **ret)
{
	json_t *value = json_object_get(at->object, key);

	if (!value || json_is_null(value))
		return alloc_fail(at, key, "is missing");
	if (!json_is_array(value))
		return alloc_fail(at, key, "must be a list");
	*ret = value;
	return 0;
}

static int check_unique(const struct alloc_at *at, const char *key, json_t *list)
{
	json_t *seen = json_object(), *item;
	size_t i;
	int r = seen ? 0 : -ENOMEM;

	json_array_foreach(list, i, item)
	{
		const char *name = json_string_value(json_object_get(item, "name"));
		char path[64];

		if (r || !name)
			break;
		if (json_object_get(seen, name)) {
			snprintf(path, sizeof(path), "%s[%zu].name", key, i);
			r = alloc_fail(at, path, "'%s' is used twice", name);
		} else if (json_object_set_new(seen, name, json_true())) {
			r = -ENOMEM;
		}
	}
	json_decref(seen);
	return r;
}

int alloc_each(
	const struct alloc_at *top, const char *key, json_t *list, alloc_read *read, void *arg)
{
	char path[300];
	json_t *item;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && (item = json_array_get(list, i)); i++) {
		struct alloc_at at = {path, item, top->err};

		snprintf(path, sizeof(path), "%s[%zu]", key, i);
		r = read(&at, arg, i);
	}
	return r ? r : check_unique(top, key, list);
}
