/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the routes. All on the main thread; long work is answered later (api_keep).
 *
 * A reply is JSON, except for /metrics and /healthz; an error is {"error": "…"} with 400 (invalid
 * request), 404, 405, 409 (not now), 413 or 500.
 */
#include "base/no-memory.h"
#include "serve/api/api-impl.h"
#include "serve/gateway/ledger.h"
#include "serve/page/page.h"
#include "serve/snapshot/version.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX   512 /* bytes of a key of `set` */
#define VALUE_MAX 512

/* ---- replies */

/* Return the HTTP status for a negative errno. */
void api_fail(struct http_reply *ret, int code, const struct weir_err *err)
{
	unsigned status = code == -EINVAL || code == -EEXIST || code == -EACCES ? 400
			  : code == -ENOENT                                     ? 404
			  : code == -EBUSY                                      ? 409
										: 500;

	http_json_fail(ret, status, err->text[0] ? err->text : strerror(-code));
}

static json_t *note_json(const struct gateway_note *n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n->n; i++)
		json_array_append_new(list, json_string(n->lines[i]));
	return list;
}

bool api_flag(const struct http_request *q, const char *key)
{
	const char *value = http_query(q, key);

	return value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

/* ---- look */

static void get_health(struct api *a, struct http_request *q, struct http_reply *ret)
{
	ret->body = strdup("ok\n");
	ret->length = 3;
	ret->status = ret->body ? 200 : 500;
}

static void get_ledger(struct api *a, struct http_request *q, struct http_reply *ret)
{
	json_t *j;

	if (gateway_ledger(a->gateway, &j) == 0)
		http_json_give(ret, 200, j);
}

/* ---- the policy */

struct waiting {
	struct gateway *gateway;
	struct api_call *call;
	api_changed *give;
	char *name;
};

static void changed(void *arg, int rc, const struct gateway_note *note, const struct weir_err *err)
{
	struct waiting *w = arg;
	struct http_reply r = {0};

	if (rc == -ESHUTDOWN)
		http_json_fail(&r, 503, "the gateway ends");
	else if (rc < 0)
		api_fail(&r, rc, err);
	else
		http_json_give(&r, 200, w->give(w->gateway, w->name, note));
	api_answer(w->call, &r);
	free(w->name);
	free(w);
}

void api_change(struct api *a, struct http_request *q, struct gateway_change *c, const char *name,
	api_changed *give)
{
	struct waiting *w = c ? calloc(1, sizeof(*w)) : NULL;

	if (!w || !(w->name = strdup(name))) {
		gateway_change_free(c);
		free(w);
		return;
	}
	w->gateway = a->gateway;
	w->call = api_keep(q);
	w->give = give;
	gateway_change_start(a->gateway, c, changed, w);
}

static json_t *give_version(struct gateway *g, const char *name, const struct gateway_note *note)
{
	return json_pack("{s:o, s:o}", "version", json_integer((json_int_t)gateway_version(g)),
		"notes", note_json(note));
}

static void change(struct api *a, struct http_request *q, struct gateway_change *c)
{
	api_change(a, q, c, "", give_version);
}

static void put_policy(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *name = http_query(q, "name"), *tenants = http_query(q, "tenants");
	struct weir_err err;
	int64_t n = 0;
	size_t length = q->length;
	char *text;

	if (a->member) {
		api_put_policy_member(a, q, ret);
		return;
	}
	if (tenants &&
		(weir_units_int(tenants, &n, &err) < 0 || n < 0 || (size_t)n >= length + !n)) {
		http_json_fail(ret, 400,
			"tenants: must be the length of the tenants' file at the end of the body");
		return;
	}
	text = http_take_body(q);
	if (!text)
		text = calloc(1, 1);
	change(a, q,
		text ? gateway_change_apply(text, length, (size_t)n,
			       name && *name ? name : "policy", api_flag(q, "keep"),
			       api_flag(q, "dry"))
		     : NULL);
}

/* ---- the plan */

static void put_plan(struct api *a, struct http_request *q, struct http_reply *ret)
{
	size_t length = q->length;
	char *text = http_take_body(q);

	if (!text)
		http_json_fail(ret, 400, "the body must be a plan, as weir plan --out writes it");
	else
		change(a, q, gateway_change_plan(text, length, api_flag(q, "dry")));
}

static void delete_plan(struct api *a, struct http_request *q, struct http_reply *ret)
{
	change(a, q, gateway_change_plan(NULL, 0, false));
}

static void get_plan(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const struct gateway_version *v = gateway_in_force(a->gateway);
	const struct gateway_plan *p = v->plan;
	json_t *j;
	char *head;
	int len;

	if (!p) {
		http_json_fail(ret, 404, "no plan is in force");
		return;
	}
	j = json_pack("{s:I, s:f, s:o}", "number", (json_int_t)p->number, "applied", p->applied,
		"untrue", note_json(&v->untrue));
	head = j ? json_dumps(j, JSON_REAL_PRECISION(13)) : NULL;
	json_decref(j);
	if (!head)
		return; /* 500 */
	len = asprintf(&ret->body, "%.*s, \"plan\": %s}\n", (int)strlen(head) - 1, head, p->text);
	free(head);
	if (len < 0) {
		ret->body = NULL;
		return;
	}
	ret->length = (size_t)len;
	ret->type = HTTP_JSON;
	ret->status = 200;
}

/* ---- set */

static void put_set(struct api *a, struct http_request *q, struct http_reply *ret)
{
	char value[VALUE_MAX];
	size_t n = q->length;

	if (a->member || http_query(q, "for")) {
		if (a->member)
			api_set_member(a, q, ret);
		else
			http_json_fail(ret, 400, "for: only a member of a cluster knows ends");
		return;
	}
	while (n && strchr(" \t\r\n", q->body[n - 1]))
		n--;
	if (n == 0 || n >= sizeof(value) || memchr(q->body, 0, n)) {
		http_json_fail(ret, 400, "the body must be the value, such as: 5k iops");
		return;
	}
	memcpy(value, q->body, n);
	value[n] = 0;
	change(a, q, gateway_change_set(q->path + strlen("/v1/set/"), value));
}

static void delete_set(struct api *a, struct http_request *q, struct http_reply *ret)
{
	if (a->member)
		api_set_member(a, q, ret);
	else
		change(a, q, gateway_change_set(q->path + strlen("/v1/set/"), NULL));
}

/* ---- bypass */

static void get_bypass(struct api *a, struct http_request *q, struct http_reply *ret)
{
	json_t *list = json_array();
	const char *name;

	for (size_t i = 0; (name = gateway_bypassed(a->gateway, i)); i++)
		json_array_append_new(list, json_string(name));
	http_json_give(ret, 200, json_pack("{s:o}", "bypassed", list));
}

static void bypass(struct api *a, struct http_request *q, bool on, struct http_reply *ret)
{
	const char *resource = q->path + strlen("/v1/bypass/");
	struct weir_err err = {""};
	uint32_t released;
	int r = gateway_bypass(a->gateway, resource, on, &released, &err);

	if (r < 0)
		api_fail(ret, r, &err);
	else
		http_json_give(ret, 200,
			json_pack("{s:s, s:b, s:I}", "resource", resource, "bypassed", on,
				"released", (json_int_t)released));
}

static void put_bypass(struct api *a, struct http_request *q, struct http_reply *ret)
{
	bypass(a, q, true, ret);
}

static void delete_bypass(struct api *a, struct http_request *q, struct http_reply *ret)
{
	bypass(a, q, false, ret);
}

/* ---- routes */

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_KEYS   ((const char *const[]){NULL})

static const struct route {
	const char *method, *path;
	bool prefix; /* more follows */
	api_run *run;
	const char *const *keys; /* of its query; NULL: any */
} routes[] = {
	{"GET", "/healthz", false, get_health, NULL},
	{"GET", "/metrics", false, api_get_metrics, KEYS("tenant", "active", "limit", "after")},
	{"GET", "/v1/status", false, api_get_status,
		KEYS("tenant", "active", "limit", "after", "histograms", "brief")},
	{"GET", "/v1/clients", false, api_get_clients, KEYS("tenant")},
	{"GET", "/v1/history", false, api_get_history, KEYS("tenant", "resource", "span")},
	{"GET", "/v1/ledger", false, get_ledger, NO_KEYS},
	{"GET", "/v1/policy", false, api_get_policy, KEYS("show")},
	{"PUT", "/v1/policy", false, put_policy,
		KEYS("keep", "dry", "name", "tenants", "user", "message", "base")},
	{"GET", "/v1/plan", false, get_plan, NO_KEYS},
	{"PUT", "/v1/plan", false, put_plan, KEYS("dry")},
	{"DELETE", "/v1/plan", false, delete_plan, NO_KEYS},
	{"PUT", "/v1/set/", true, put_set, KEYS("user", "message", "for")},
	{"DELETE", "/v1/set/", true, delete_set, KEYS("user", "message")},
	{"GET", "/v1/bypass", false, get_bypass, NO_KEYS},
	{"PUT", "/v1/bypass/", true, put_bypass, NO_KEYS},
	{"DELETE", "/v1/bypass/", true, delete_bypass, NO_KEYS},
	{"GET", "/v1/volumes", false, api_get_volumes, NO_KEYS},
	{"GET", "/v1/volumes/", true, api_get_volume, NO_KEYS},
	{"PUT", "/v1/volumes/", true, api_put_volume, NO_KEYS},
	{"PATCH", "/v1/volumes/", true, api_patch_volume, NO_KEYS},
	{"DELETE", "/v1/volumes/", true, api_delete_volume, KEYS("force", "keep")},
	{"GET", "/v1/record", false, api_get_record, NO_KEYS},
	{"POST", "/v1/record", false, api_post_record,
		KEYS("file", "requests", "duration", "while")},
	{"DELETE", "/v1/record", false, api_delete_record, NO_KEYS},
	{"POST", "/v1/plan", false, api_post_plan, NO_KEYS},
	{"POST", "/v1/plan/admit", false, api_post_admit, NO_KEYS},
};
#define ROUTES (sizeof(routes) / sizeof(*routes))

static bool leads(const struct route *r, const char *path)
{
	size_t n = strlen(r->path);

	return r->prefix ? strncmp(r->path, path, n) == 0 && path[n] && strlen(path + n) < KEY_MAX
			 : strcmp(r->path, path) == 0;
}

/* Return the methods that a path has, for 405; one string for each path that has any. */
static const char *allowed(const char *path)
{
	static const char *const sets[][2] = {{"/v1/policy", "GET, PUT"},
		{"/v1/plan", "GET, PUT, POST, DELETE"}, {"/v1/record", "GET, POST, DELETE"},
		{"/v1/set/", "PUT, DELETE"}, {"/v1/bypass/", "PUT, DELETE"},
		{"/v1/volumes/", "GET, PUT, PATCH, DELETE"}};

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strncmp(path, sets[i][0], strlen(sets[i][0])) == 0)
			return sets[i][1];
	return "GET";
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

/* Run the route, unless the query has an unknown key: a misspelt ?dry=1 must not put a policy in
 * force. */
static void run_route(
	const struct route *r, struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *unknown = r->keys ? http_query_unknown(q, r->keys) : NULL;
	const char *near = unknown ? weir_err_near(unknown, r->keys) : NULL;
	const char *flag = unknown || !r->keys ? NULL : bad_flag(q);
	struct weir_err err;

	if (!unknown && !flag) {
		r->run(a, q, ret);
		return;
	}
	if (flag) {
		weir_err_set(&err, -EINVAL, "%s: must be 0 or 1", flag);
		http_json_fail(ret, 400, err.text);
		return;
	}
	weir_err_set(&err, -EINVAL, "no key '%s' here%s%s%s", unknown,
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	http_json_fail(ret, 400, err.text);
}

/* No route leads to the path. */
static void refuse_path(const char *path, struct http_reply *ret)
{
	static const char volumes[] = "/v1/volumes/";
	bool empty = strcmp(path, volumes) == 0;

	if (strncmp(path, volumes, strlen(volumes)) != 0)
		http_json_fail(ret, 404, "no such path");
	else
		http_json_fail(
			ret, 400, empty ? "the name is empty" : "the name has more than 255 bytes");
}

void api_route(struct api *a, struct http_request *q, struct http_reply *ret)
{
	bool there = false;

	for (size_t i = 0; i < ROUTES; i++) {
		bool head = strcmp(q->method, "HEAD") == 0 && strcmp(routes[i].method, "GET") == 0;
		if (!leads(&routes[i], q->path))
			continue;
		there = true;
		if (strcmp(routes[i].method, q->method) == 0 || head) {
			run_route(&routes[i], a, q, ret);
			return;
		}
	}
	if (!there) {
		refuse_path(q->path, ret);
		return;
	}
	http_json_fail(ret, 405, "method not allowed");
	ret->allow = allowed(q->path);
}

/* ---- start and end */

/* Start at the default address, if none is configured. */
static int start_default(struct api *a, struct http_config *c, struct weir_err *err)
{
	char address[HTTP_SOCKET_MAX];
	const char *list[] = {address};
	int r = http_socket(true, address);

	if (r < 0)
		return weir_err_set(err, r, "no folder for its socket; set WEIR_SOCKET");
	c->addresses = list;
	c->n_addresses = 1;
	r = http_new(a->loop, c, &a->http, err);
	if (r == 0)
		log_event(LOG_LEVEL_INFO, "api", "address", address, NULL);
	return r;
}

static void api_free(struct api *a)
{
	api_record_stop(a);
	api_history_stop(a);
	http_free(a->http);
	if (a->loop)
		loop_free(a->loop);
	free(a);
}

static int start_api(struct api *a, const struct api_options *o, struct weir_err *err)
{
	struct http_config c = {.addresses = o->addresses,
		.n_addresses = o->n_addresses,
		.sockets = o->sockets,
		.n_sockets = o->n_sockets,
		.token_file = o->token_file,
		.mode = o->mode,
		.crowd = &a->crowd,
		.files = page_files,
		.n_files = page_n_files,
		.handler = api_handle,
		.arg = a};
	int r = 0;

	if (api_record_start(a, o->recordings) < 0 || api_history_start(a, o->state) < 0 ||
		loop_new(&a->loop) < 0)
		return no_memory(err);
	if (o->n_addresses || o->n_sockets)
		r = http_new(a->loop, &c, &a->http, err);
	else
		r = start_default(a, &c, err);
	if (r < 0)
		return r;
	r = api_calls_start(a);
	return r < 0 ? weir_err_set(err, r, "cannot start a thread: %s", strerror(-r)) : 0;
}

int api_start(
	struct gateway *g, const struct api_options *o, struct api **ret_api, struct weir_err *err)
{
	struct api *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return no_memory(err);
	a->gateway = g;
	a->member = o->member;
	r = start_api(a, o, err);
	if (r < 0) {
		api_free(a);
		a = NULL;
	}
	/* If no API is configured, the gateway serves even if the default one cannot be started. */
	if (r < 0 && !o->n_addresses && !o->n_sockets && !o->token_file && !o->mode)
		log_event(LOG_LEVEL_WARNING, "no-api", "why", err->text, NULL);
	else if (r < 0)
		return r;
	*ret_api = a;
	return 0;
}

void api_stop(struct api *a)
{
	struct gateway *g = a ? a->gateway : NULL;

	if (!a)
		return;
	api_looks_stop(a);
	api_calls_stop(a);
	api_plans_stop(a);
	http_free(a->http);
	a->http = NULL;
	gateway_drain(g); /* ends the looks that were being sent */
	api_free(a);
}
