/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: the routes. All on the main thread; long work is answered later (api_keep).
 *
 * A reply is JSON, except for /metrics and /healthz; an error is {"error": "…"} with 400 (invalid
 * request), 401, 403, 404, 405, 409 (not now), 413, 429 or 500.
 */
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/api/api-impl.h"
#include "serve/gateway/ledger.h"
#include "serve/page/page.h"
#include "serve/snapshot/version.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* The methods and paths of a gateway, and the roles that they need; serve/http/own.c has those of every API. Planning changes
 * nothing, but takes the machine's time. */
static const struct route {
	struct http_route is;
	api_run *run;
} routes[] = {
	{{"GET", "/healthz", 0, POLICY_ROLE_NONE, NULL}, get_health},
	{{"GET", "/metrics", 0, POLICY_ROLE_READ, HTTP_KEYS("tenant", "active", "limit", "after")},
		api_get_metrics},
	{{"GET", "/v1/status", 0, POLICY_ROLE_READ,
		 HTTP_KEYS("tenant", "active", "limit", "after", "histograms", "brief")},
		api_get_status},
	{{"GET", "/v1/clients", 0, POLICY_ROLE_READ, HTTP_KEYS("tenant")}, api_get_clients},
	{{"GET", "/v1/history", 0, POLICY_ROLE_READ, HTTP_KEYS("tenant", "resource", "span")},
		api_get_history},
	{{"GET", "/v1/ledger", 0, POLICY_ROLE_READ, HTTP_NO_KEYS}, get_ledger},
	{{"GET", "/v1/policy", 0, POLICY_ROLE_READ, HTTP_KEYS("show")}, api_get_policy},
	{{"PUT", "/v1/policy", 0, POLICY_ROLE_ADMIN,
		 HTTP_KEYS("keep", "dry", "name", "tenants", "user", "message", "base")},
		put_policy},
	{{"GET", "/v1/versions", 0, POLICY_ROLE_READ, HTTP_KEYS("number")}, api_get_versions},
	{{"GET", "/v1/plan", 0, POLICY_ROLE_READ, HTTP_NO_KEYS}, get_plan},
	{{"PUT", "/v1/plan", 0, POLICY_ROLE_ADMIN, HTTP_KEYS("dry")}, put_plan},
	{{"DELETE", "/v1/plan", 0, POLICY_ROLE_ADMIN, HTTP_NO_KEYS}, delete_plan},
	{{"PUT", "/v1/set/", 511, POLICY_ROLE_OPERATE, HTTP_KEYS("user", "message", "for")},
		put_set},
	{{"DELETE", "/v1/set/", 511, POLICY_ROLE_OPERATE, HTTP_KEYS("user", "message")},
		delete_set},
	{{"GET", "/v1/bypass", 0, POLICY_ROLE_READ, HTTP_NO_KEYS}, get_bypass},
	{{"PUT", "/v1/bypass/", 255, POLICY_ROLE_OPERATE, HTTP_NO_KEYS}, put_bypass},
	{{"DELETE", "/v1/bypass/", 255, POLICY_ROLE_OPERATE, HTTP_NO_KEYS}, delete_bypass},
	{{"GET", "/v1/volumes", 0, POLICY_ROLE_READ, HTTP_NO_KEYS}, api_get_volumes},
	{{"GET", "/v1/volumes/", 255, POLICY_ROLE_READ, HTTP_NO_KEYS}, api_get_volume},
	{{"PUT", "/v1/volumes/", 255, POLICY_ROLE_OPERATE, HTTP_NO_KEYS}, api_put_volume},
	{{"PATCH", "/v1/volumes/", 255, POLICY_ROLE_OPERATE, HTTP_NO_KEYS}, api_patch_volume},
	{{"DELETE", "/v1/volumes/", 255, POLICY_ROLE_OPERATE, HTTP_KEYS("force", "keep")},
		api_delete_volume},
	{{"GET", "/v1/record", 0, POLICY_ROLE_READ, HTTP_NO_KEYS}, api_get_record},
	{{"POST", "/v1/record", 0, POLICY_ROLE_OPERATE,
		 HTTP_KEYS("file", "requests", "duration", "while")},
		api_post_record},
	{{"DELETE", "/v1/record", 0, POLICY_ROLE_OPERATE, HTTP_NO_KEYS}, api_delete_record},
	{{"POST", "/v1/plan", 0, POLICY_ROLE_OPERATE, HTTP_NO_KEYS}, api_post_plan},
	{{"POST", "/v1/plan/admit", 0, POLICY_ROLE_OPERATE, HTTP_NO_KEYS}, api_post_admit},
};
static const struct http_routes table = HTTP_ROUTES(routes);

void api_route(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const struct route *r = container_of(q->route, struct route, is);

	if (http_route_ready(q, ret))
		r->run(a, q, ret);
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
	const struct weir_policy *p = gateway_policy(a->gateway);
	struct http_config c = {.addresses = o->addresses,
		.n_addresses = o->n_addresses,
		.sockets = o->sockets,
		.n_sockets = o->n_sockets,
		.access = {o->token_file, &p->access, o->state},
		.routes = table,
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
