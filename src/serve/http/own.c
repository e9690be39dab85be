/* SPDX-License-Identifier: BSD-3-Clause */
/* http-own: the routes that every API has: the client's own name and role, the table of routes, and the tokens. */
#include "serve/http/impl.h"
#include "serve/http/json.h"
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

typedef void own_run(struct http *h, const struct http_request *q, struct http_reply *ret);

/* ---- access */

static void add_routes(json_t *list, const struct http_routes *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct http_route *r = http_route_at(t, i);

		json_array_append_new(list,
			json_pack("{s:s, s:s, s:b, s:s}", "method", r->method, "path", r->path,
				"name", r->name > 0, "role", policy_role_name(r->role)));
	}
}

static void get_access(struct http *h, const struct http_request *q, struct http_reply *ret)
{
	json_t *list = json_array();

	add_routes(list, &http_own_routes);
	add_routes(list, &h->routes);
	http_json_give(ret, 200,
		json_pack("{s:s, s:s, s:s, s:o}", "name", q->who->name, "by", q->who->by, "role",
			policy_role_name(q->who->role), "routes", list));
}

/* ---- tokens */

static void fail(struct http_reply *ret, int code, const struct weir_err *err)
{
	unsigned status = code == -EINVAL   ? 400
			  : code == -ENOENT ? 404
			  : code == -EEXIST ? 409
					    : 500;

	http_json_fail(ret, status, err->text);
}

/* Return the file, or NULL and the answer. */
static const char *file_of(struct http *h, struct http_reply *ret)
{
	const char *file = access_tokens_file(h->access);

	if (!file)
		http_json_fail(ret, 409,
			"there is no file for tokens: the policy needs access: {tokens: FILE}, or "
			"a "
			"state folder");
	return file;
}

static void get_tokens(struct http *h, const struct http_request *q, struct http_reply *ret)
{
	const char *file = file_of(h, ret);
	json_t *list = json_array();
	struct tokens_list l;
	struct weir_err err;
	int rc = file ? tokens_read(file, &l, &err) : 0;

	if (!file || rc < 0) {
		if (file)
			fail(ret, rc, &err);
		json_decref(list);
		return;
	}
	for (size_t i = 0; i < l.n; i++) {
		const struct tokens_entry *e = &l.all[i];

		json_array_append_new(
			list, json_pack("{s:s, s:s, s:I, s:o}", "name", e->name, "role",
				      policy_role_name(e->role), "made", (json_int_t)e->made, "end",
				      e->end ? json_integer((json_int_t)e->end) : json_null()));
	}
	tokens_list_free(&l);
	http_json_give(ret, 200, json_pack("{s:o}", "tokens", list));
}

static const char *name_of(const struct http_request *q)
{
	return q->path + strlen(q->route->path);
}

/* By hand: jansson leaves copies in memory. The texts have no characters that JSON escapes. */
static void give_token(
	struct http_reply *ret, const char *name, const char *role, int64_t end, const char *secret)
{
	char at[24] = "null";
	size_t room = 200 + TOKENS_NAME + TOKENS_SECRET;

	if (end)
		snprintf(at, sizeof(at), "%lld", (long long)end);
	ret->status = 500;
	ret->body = calloc(1, room);
	if (!ret->body)
		return;
	ret->length = (size_t)snprintf(ret->body, room,
		"{\n \"name\": \"%s\",\n \"role\": \"%s\",\n \"end\": %s,\n \"token\": \"%s\"\n}",
		name, role, at, secret);
	ret->status = 200;
	ret->type = HTTP_JSON;
	ret->secret = true;
}

static void put_token(struct http *h, const struct http_request *q, struct http_reply *ret)
{
	const char *file = file_of(h, ret), *role = http_query(q, "role"),
		   *span = http_query(q, "for");
	char secret[TOKENS_SECRET];
	struct weir_err err;
	weir_time t = 0;
	int64_t end = 0;
	int rc = role ? policy_role_read(role) : -EINVAL;

	if (!file)
		return;
	if (rc < 0) {
		http_json_fail(ret, 400, "role: must be read, operate or admin");
		return;
	}
	if (span && (weir_units_time(span, &t, &err) < 0 || t <= 0)) {
		http_json_fail(ret, 400, "for: must be a time, such as 30d");
		return;
	}
	if (t)
		end = time(NULL) + t / WEIR_SEC + (t % WEIR_SEC > 0);
	rc = tokens_add(file, name_of(q), (enum policy_role)rc, end, secret, &err);
	if (rc < 0) {
		fail(ret, rc, &err);
		return;
	}
	give_token(ret, name_of(q), role, end, secret);
	sodium_memzero(secret, sizeof(secret));
}

static void delete_token(struct http *h, const struct http_request *q, struct http_reply *ret)
{
	const char *file = file_of(h, ret);
	struct weir_err err;
	int rc = file ? tokens_remove(file, name_of(q), &err) : 0;

	if (file && rc < 0)
		fail(ret, rc, &err);
	else if (file)
		http_json_give(ret, 200, json_pack("{s:s}", "removed", name_of(q)));
}

/* ---- the table */

static const struct own {
	struct http_route is;
	own_run *run;
} own[] = {
	{{"GET", "/v1/access", 0, POLICY_ROLE_READ, HTTP_NO_KEYS}, get_access},
	{{"GET", "/v1/tokens", 0, POLICY_ROLE_ADMIN, HTTP_NO_KEYS}, get_tokens},
	{{"PUT", "/v1/tokens/", 64, POLICY_ROLE_ADMIN, HTTP_KEYS("role", "for")}, put_token},
	{{"DELETE", "/v1/tokens/", 64, POLICY_ROLE_ADMIN, HTTP_NO_KEYS}, delete_token},
};
const struct http_routes http_own_routes = HTTP_ROUTES(own);

bool http_own_run(struct http *h, const struct http_request *q, struct http_reply *ret)
{
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (q->route == &own[i].is) {
			if (http_route_ready(q, ret))
				own[i].run(h, q, ret);
			return true;
		}
	return false;
}
