/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api: which request does what. All on the main thread, one after the other.
 *
 * A reply is JSON, but for /metrics and /healthz; an error is {"error": "…"} with 400 (what was sent is
 * wrong), 404, 405, 409 (not now), 413 or 500.
 */
#include "port/api.h"
#include "port/gateway-ledger.h"
#include "port/gateway.h"
#include "port/http-json.h"
#include "port/log.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define KEY_MAX   512 /* bytes of what `set` names */
#define VALUE_MAX 512
/* Requests that a recording takes unless told otherwise: some 4 GB of lines, what a reader takes. */
#define RECORD_MOST 100000000

struct api {
	struct gateway *gateway;
	struct http *http;
	struct loop_timer record_end;
	weir_time record_until; /* WEIR_NEVER: its duration is not bounded */
	weir_time
		record_while; /* it ends when nobody asked after it for so long; WEIR_NEVER: not */
	bool recorded_set;    /* the timer has ended a recording, and this is what came of it */
	uint64_t recorded, dropped;
};

/* ---- replies */

/* What a negative errno is in HTTP. */
static void fail_errno(struct http_reply *ret, int code, const struct weir_err *err)
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

static bool flag(const struct http_request *q, const char *key)
{
	const char *value = http_query(q, key);

	return value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

/* ---- look */

static void get_health(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	ret->body = strdup("ok\n");
	ret->length = 3;
	ret->status = ret->body ? 200 : 500;
}

static uint64_t count_entries(const char *folder)
{
	DIR *d = opendir(folder);
	uint64_t n = 0;

	if (!d)
		return 0;
	for (const struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static void look_at_process(struct metrics_process *p)
{
	struct rusage use;
	char text[128]; /* "SIZE RESIDENT …", in pages */
	const char *resident;
	FILE *f = fopen("/proc/self/statm", "re");

	*p = (struct metrics_process){
		.fds = count_entries("/proc/self/fd"), .threads = count_entries("/proc/self/task")};
	if (getrusage(RUSAGE_SELF, &use) == 0)
		p->cpu = (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
			 ((double)use.ru_utime.tv_usec + (double)use.ru_stime.tv_usec) / 1e6;
	if (f && fgets(text, sizeof(text), f) && (resident = strchr(text, ' ')))
		p->resident = strtoul(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (f)
		fclose(f);
}

static void get_metrics(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	struct metrics_process process;
	struct snapshot *s;
	FILE *f;

	if (gateway_snapshot(a->gateway, &s) < 0)
		return;
	look_at_process(&process);
	f = open_memstream(&ret->body, &ret->length);
	if (f) {
		metrics_write(s, &process, f);
		ret->type = HTTP_PROM;
		ret->status = fclose(f) == 0 ? 200 : 500;
	}
	snapshot_free(s);
}

static void get_status(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	struct snapshot *s;

	if (gateway_snapshot(a->gateway, &s) < 0)
		return;
	http_json_give(ret, 200, api_status(s, flag(q, "histograms")));
	snapshot_free(s);
}

static void get_clients(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	struct snapshot *s;

	if (gateway_snapshot(a->gateway, &s) < 0)
		return;
	http_json_give(ret, 200, api_clients(s));
	snapshot_free(s);
}

static void get_ledger(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	json_t *j;

	if (gateway_ledger(a->gateway, &j) == 0)
		http_json_give(ret, 200, j);
}

/* ---- the policy */

static void get_policy(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	json_t *overrides = json_array();
	const char *key, *value;
	char here[PATH_MAX]; /* where a relative name starts */

	for (size_t i = 0; gateway_override(a->gateway, i, &key, &value); i++)
		json_array_append_new(
			overrides, json_pack("{s:s, s:s}", "key", key, "value", value));
	http_json_give(ret, 200,
		json_pack("{s:o, s:b, s:s, s:s, s:s, s:s*, s:o}", "version",
			json_integer((json_int_t)gateway_version(a->gateway)), "enforce",
			gateway_policy(a->gateway)->enforce, "name",
			gateway_policy_name(a->gateway), "folder",
			getcwd(here, sizeof(here)) ? here : "/", "text",
			gateway_policy_text(a->gateway), "tenants_text",
			gateway_policy(a->gateway)->tenants_text, "overrides", overrides));
}

static void give_changed(struct api *a, struct gateway_note *note, struct http_reply *ret)
{
	http_json_give(ret, 200,
		json_pack("{s:o, s:o}", "version",
			json_integer((json_int_t)gateway_version(a->gateway)), "notes",
			note_json(note)));
}

static void put_policy(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	const char *name = http_query(q, "name");
	struct gateway_note note = {0};
	struct weir_err err = {""};
	int r = gateway_apply(a->gateway, q->body, q->length, name && *name ? name : "policy",
		flag(q, "keep"), flag(q, "dry"), &note, &err);

	if (r < 0)
		fail_errno(ret, r, &err);
	else
		give_changed(a, &note, ret);
	gateway_note_free(&note);
}

/* ---- set */

static void set(struct api *a, const char *key, const char *value, struct http_reply *ret)
{
	struct gateway_note note = {0};
	struct weir_err err = {""};
	int r = gateway_set(a->gateway, key, value, &note, &err);

	if (r < 0)
		fail_errno(ret, r, &err);
	else
		give_changed(a, &note, ret);
	gateway_note_free(&note);
}

static void put_set(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	char value[VALUE_MAX];
	size_t n = q->length;

	while (n && strchr(" \t\r\n", q->body[n - 1]))
		n--;
	if (n == 0 || n >= sizeof(value) || memchr(q->body, 0, n)) {
		http_json_fail(ret, 400, "the body must be the value, such as: 5k iops");
		return;
	}
	memcpy(value, q->body, n);
	value[n] = 0;
	set(a, q->path + strlen("/v1/set/"), value, ret);
}

static void delete_set(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	set(a, q->path + strlen("/v1/set/"), NULL, ret);
}

/* ---- bypass */

static void get_bypass(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	json_t *list = json_array();
	const char *name;

	for (size_t i = 0; (name = gateway_bypassed(a->gateway, i)); i++)
		json_array_append_new(list, json_string(name));
	http_json_give(ret, 200, json_pack("{s:o}", "bypassed", list));
}

static void bypass(struct api *a, const struct http_request *q, bool on, struct http_reply *ret)
{
	const char *resource = q->path + strlen("/v1/bypass/");
	struct weir_err err = {""};
	uint32_t released;
	int r = gateway_bypass(a->gateway, resource, on, &released, &err);

	if (r < 0)
		fail_errno(ret, r, &err);
	else
		http_json_give(ret, 200,
			json_pack("{s:s, s:b, s:I}", "resource", resource, "bypassed", on,
				"released", (json_int_t)released));
}

static void put_bypass(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	bypass(a, q, true, ret);
}

static void delete_bypass(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	bypass(a, q, false, ret);
}

/* ---- record */

static void record_due(struct loop_timer *t, weir_time now)
{
	struct api *a = (struct api *)(void *)((char *)t - offsetof(struct api, record_end));

	a->recorded_set =
		gateway_record_stop(a->gateway, &a->recorded, &a->dropped) == 0 || a->recorded_set;
}

/* Somebody has asked for it, or after it. */
static void record_asked(struct api *a)
{
	weir_time now = loop_clock(), end = a->record_until;

	if (a->record_while < end - now)
		end = now + a->record_while;
	loop_set(gateway_loop(a->gateway), &a->record_end, end);
}

static void post_record(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	const char *file = http_query(q, "file"), *most = http_query(q, "requests"),
		   *duration = http_query(q, "duration"), *asked = http_query(q, "while");
	weir_time span = WEIR_NEVER, lease = WEIR_NEVER;
	double n = RECORD_MOST;
	struct weir_err err = {""};
	int r;

	if (!file || file[0] != '/') {
		http_json_fail(ret, 400, "?file= must name the file, from / on");
		return;
	}
	if ((most && weir_units_count(most, &n, &err) < 0) ||
		(duration && weir_units_time(duration, &span, &err) < 0) ||
		(asked && weir_units_time(asked, &lease, &err) < 0)) {
		http_json_fail(ret, 400, err.text);
		return;
	}
	if (n < 1 || n > 1e18) {
		http_json_fail(ret, 400, "requests: must be at least 1");
		return;
	}
	r = gateway_record(a->gateway, file, (uint64_t)n, &err);
	if (r < 0) {
		fail_errno(ret, r, &err);
		return;
	}
	a->recorded_set = false;
	a->record_until = span == WEIR_NEVER ? span : loop_clock() + span;
	a->record_while = lease;
	record_asked(a);
	http_json_give(ret, 200, json_pack("{s:b}", "recording", 1));
}

static void give_record(struct http_reply *ret, bool on, uint64_t recorded, uint64_t dropped)
{
	http_json_give(ret, 200,
		json_pack("{s:b, s:I, s:I}", "recording", on, "recorded", (json_int_t)recorded,
			"dropped", (json_int_t)dropped));
}

static void get_record(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	uint64_t recorded, dropped;
	bool on = gateway_recording(a->gateway, &recorded, &dropped);

	if (on)
		record_asked(a);
	if (!on && a->recorded_set) {
		recorded = a->recorded;
		dropped = a->dropped;
	}
	give_record(ret, on, recorded, dropped);
}

static void delete_record(struct api *a, const struct http_request *q, struct http_reply *ret)
{
	uint64_t recorded = a->recorded, dropped = a->dropped;
	int r = gateway_record_stop(a->gateway, &recorded, &dropped);

	loop_set(gateway_loop(a->gateway), &a->record_end, WEIR_NEVER);
	if (r < 0 && !a->recorded_set)
		http_json_fail(ret, 404, "nothing is being recorded");
	else
		give_record(ret, false, recorded, dropped);
	a->recorded_set = false;
}

/* ---- routes */

static const struct route {
	const char *method, *path;
	bool prefix; /* more follows */
	void (*run)(struct api *a, const struct http_request *q, struct http_reply *ret);
} routes[] = {
	{"GET", "/healthz", false, get_health},
	{"GET", "/metrics", false, get_metrics},
	{"GET", "/v1/status", false, get_status},
	{"GET", "/v1/clients", false, get_clients},
	{"GET", "/v1/ledger", false, get_ledger},
	{"GET", "/v1/policy", false, get_policy},
	{"PUT", "/v1/policy", false, put_policy},
	{"PUT", "/v1/set/", true, put_set},
	{"DELETE", "/v1/set/", true, delete_set},
	{"GET", "/v1/bypass", false, get_bypass},
	{"PUT", "/v1/bypass/", true, put_bypass},
	{"DELETE", "/v1/bypass/", true, delete_bypass},
	{"GET", "/v1/record", false, get_record},
	{"POST", "/v1/record", false, post_record},
	{"DELETE", "/v1/record", false, delete_record},
};
#define ROUTES (sizeof(routes) / sizeof(*routes))

static bool leads(const struct route *r, const char *path)
{
	size_t n = strlen(r->path);

	return r->prefix ? strncmp(r->path, path, n) == 0 && path[n] && strlen(path + n) < KEY_MAX
			 : strcmp(r->path, path) == 0;
}

/* The methods that a path has, for 405; there is one string for each path that has any. */
static const char *allowed(const char *path)
{
	static const char *const sets[][2] = {{"/v1/policy", "GET, PUT"},
		{"/v1/record", "GET, POST, DELETE"}, {"/v1/set/", "PUT, DELETE"},
		{"/v1/bypass/", "PUT, DELETE"}};

	for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		if (strncmp(path, sets[i][0], strlen(sets[i][0])) == 0)
			return sets[i][1];
	return "GET";
}

static void handle(void *arg, const struct http_request *q, struct http_reply *ret)
{
	bool there = false;

	for (size_t i = 0; i < ROUTES; i++) {
		bool head = strcmp(q->method, "HEAD") == 0 && strcmp(routes[i].method, "GET") == 0;
		if (!leads(&routes[i], q->path))
			continue;
		there = true;
		if (strcmp(routes[i].method, q->method) == 0 || head) {
			routes[i].run(arg, q, ret);
			return;
		}
	}
	http_json_fail(
		ret, there ? 405 : 404, there ? "not by this method" : "there is nothing here");
	if (there)
		ret->allow = allowed(q->path);
}

/* ---- start and end */

/* Where nobody said where. */
static int start_default(struct api *a, struct http_config *c, struct weir_err *err)
{
	char address[HTTP_SOCKET_MAX];
	const char *list[] = {address};
	int r = http_socket(true, address);

	if (r < 0)
		return weir_err_set(err, r, "no folder for its socket; set WEIR_SOCKET");
	c->addresses = list;
	c->n_addresses = 1;
	r = http_new(gateway_loop(a->gateway), c, &a->http, err);
	if (r == 0)
		log_event(LOG_LEVEL_INFO, "api", "address", address, NULL);
	return r;
}

int api_start(
	struct gateway *g, const struct api_options *o, struct api **ret_api, struct weir_err *err)
{
	struct api *a = calloc(1, sizeof(*a));
	struct http_config c = {.addresses = o->addresses,
		.n_addresses = o->n_addresses,
		.sockets = o->sockets,
		.n_sockets = o->n_sockets,
		.token_file = o->token_file,
		.mode = o->mode,
		.handler = handle,
		.arg = a};
	int r = 0;

	if (!a)
		return weir_err_set(err, -ENOMEM, "out of memory");
	a->gateway = g;
	a->record_end.due = record_due;
	if (o->n_addresses || o->n_sockets)
		r = http_new(gateway_loop(g), &c, &a->http, err);
	else
		r = start_default(a, &c, err);
	if (r < 0) {
		free(a);
		a = NULL;
	}
	/* Who said nothing about an API is served all the same if there cannot be one. */
	if (r < 0 && !o->n_addresses && !o->n_sockets && !o->token_file && !o->mode)
		log_event(LOG_LEVEL_WARNING, "no-api", "why", err->text, NULL);
	else if (r < 0)
		return r;
	*ret_api = a;
	return 0;
}

void api_stop(struct api *a)
{
	if (!a)
		return;
	loop_set(gateway_loop(a->gateway), &a->record_end, WEIR_NEVER);
	http_free(a->http);
	free(a);
}
