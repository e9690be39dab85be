/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/http/route.h"
#include "serve/http/json.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct http_route *http_route_at(const struct http_routes *t, size_t i)
{
	return (const void *)((const char *)t->rows + i * t->size);
}

static bool begins(const struct http_route *r, const char *path)
{
	return r->name && strncmp(r->path, path, strlen(r->path)) == 0;
}

bool http_route_leads(const struct http_route *r, const char *path)
{
	size_t n = begins(r, path) ? strlen(path + strlen(r->path)) : 0;

	return r->name ? n && n <= r->name : strcmp(r->path, path) == 0;
}

const struct http_route *http_route_find(
	const struct http_routes *t, const char *method, const char *path)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;

	for (size_t i = 0; i < t->n; i++) {
		const struct http_route *r = http_route_at(t, i);

		if (strcmp(r->method, wanted) == 0 && http_route_leads(r, path))
			return r;
	}
	return NULL;
}

void http_route_methods(const struct http_routes *t, const char *path, char list[HTTP_METHOD_MAX])
{
	for (size_t i = 0; i < t->n; i++) {
		const struct http_route *r = http_route_at(t, i);
		size_t n = strlen(list);

		if (http_route_leads(r, path))
			snprintf(list + n, HTTP_METHOD_MAX - n, "%s%s", n ? ", " : "", r->method);
	}
}

int http_route_misnamed(const struct http_routes *t, const char *path, struct weir_err *err)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct http_route *r = http_route_at(t, i);

		if (begins(r, path))
			return path[strlen(r->path)]
				       ? weir_err_set(err, -EINVAL,
						 "the name has more than %u bytes", r->name)
				       : weir_err_set(err, -EINVAL, "the name is empty");
	}
	return 0;
}

/* Return the key of a flag whose value is not a flag's; or NULL. */
static const char *bad_flag(const struct http_request *q)
{
	static const char *const flags[] = {
		"active", "brief", "dry", "force", "histograms", "keep"};
	static const char *const values[] = {"", "0", "1", "false", "true", "auto"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		const char *value = http_query(q, flags[i]);
		size_t k = 0,
		       n = sizeof(values) / sizeof(*values) - (i > 0); /* auto: of the first */

		while (value && k < n && strcmp(value, values[k]) != 0)
			k++;
		if (value && k == n)
			return flags[i];
	}
	return NULL;
}

bool http_route_ready(const struct http_request *q, struct http_reply *ret)
{
	const char *const *keys = q->route->keys;
	const char *unknown = keys ? http_query_unknown(q, keys) : NULL;
	const char *near = unknown ? weir_err_near(unknown, keys) : NULL;
	const char *flag = unknown || !keys ? NULL : bad_flag(q);
	struct weir_err err;

	if (flag)
		weir_err_set(&err, -EINVAL, "%s: must be 0 or 1", flag);
	else if (unknown)
		weir_err_set(&err, -EINVAL, "no key '%s' here%s%s%s", unknown,
			near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	else
		return true;
	http_json_fail(ret, 400, err.text);
	return false;
}
