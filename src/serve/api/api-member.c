/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api-member: changes of the policy of a cluster, by the API of a member.
 *
 * METHOD  The gateway makes the change as a dry run, which checks it against this machine's resources and lists what changes. Then it is
 *         stored as a version, which every member follows, this one too.
 */
#include "base/no-memory.h"
#include "serve/api/api-impl.h"
#include "serve/member/member.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VALUE_MAX       512
#define VERSIONS_LISTED 1000

struct shared { /* a change under way; its texts are owned */
	struct api *api;
	struct api_call *call;
	struct versions_request q;
	char *text, *name, *user, *message, *key, *value;
	bool dry;
	json_t *notes;
};

static void shared_free(struct shared *s)
{
	free(s->text);
	free(s->name);
	free(s->user);
	free(s->message);
	free(s->key);
	free(s->value);
	json_decref(s->notes);
	free(s);
}

static void shared_answer(struct shared *s, struct http_reply *r)
{
	api_answer(s->call, r);
	shared_free(s);
}

static void stored(void *arg, int rc, const struct record *record, const struct weir_err *err)
{
	struct shared *s = arg;
	struct http_reply r = {0};

	if (rc == -ESHUTDOWN)
		http_json_fail(&r, 503, "the gateway ends");
	else if (rc == -EAGAIN || rc == -ETIMEDOUT)
		http_json_fail(&r, 503, err->text);
	else if (rc < 0)
		api_fail(&r, rc, err);
	else
		http_json_give(&r, 200,
			json_pack("{s:I, s:b, s:O}", "version", (json_int_t)record->number,
				"stored", 1, "notes", s->notes));
	shared_answer(s, &r);
}

/* The dry run is done. */
static void checked(void *arg, int rc, const struct gateway_note *note, const struct weir_err *err)
{
	struct shared *s = arg;
	struct http_reply r = {0};

	if (rc == -ESHUTDOWN) {
		http_json_fail(&r, 503, "the gateway ends");
	} else if (rc < 0) {
		api_fail(&r, rc, err);
	} else {
		s->notes = json_array();
		for (size_t i = 0; i < note->n; i++)
			json_array_append_new(s->notes, json_string(note->lines[i]));
		if (!s->dry) {
			member_put(s->api->member, &s->q, stored, s);
			return;
		}
		http_json_give(&r, 200,
			json_pack("{s:I, s:O}", "version",
				(json_int_t)gateway_version(s->api->gateway), "notes", s->notes));
	}
	shared_answer(s, &r);
}

/* Begin; c: the dry run, NULL: no memory. */
static void start(struct shared *s, struct http_request *q, struct gateway_change *c)
{
	if (!c) {
		shared_free(s); /* 500 */
		return;
	}
	s->call = api_keep(q);
	gateway_change_dry(c);
	gateway_change_start(s->api->gateway, c, checked, s);
}

static bool copy_key(const struct http_request *q, const char *key, char **to)
{
	const char *value = http_query(q, key);

	*to = strdup(value ? value : "");
	return *to;
}

/* The author of the version is named by a token, a certificate or the kernel. A client of the unix socket may add its name: to look it up
 * could take long. Root is believed, since the user of sudo is another one. */
static bool copy_user(const struct http_request *q, char **to)
{
	const char *own = q->who->name, *user = http_query(q, "user");

	if (strcmp(q->who->by, "unix") != 0 || !user || !*user)
		*to = strdup(own);
	else if (strcmp(own, "uid 0") == 0)
		*to = strdup(user);
	else if (asprintf(to, "%.60s (%s)", user, own) < 0)
		*to = NULL;
	return *to;
}

static struct shared *shared_new(struct api *a, const struct http_request *q)
{
	struct shared *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->api = a;
	if (!copy_user(q, &s->user) || !copy_key(q, "message", &s->message)) {
		shared_free(s);
		return NULL;
	}
	s->user[strnlen(s->user, 100)] = 0;
	s->message[strnlen(s->message, RECORD_MESSAGE)] = 0;
	s->q.user = s->user;
	s->q.message = s->message;
	return s;
}

/* The gateway's whole policy with these tenants, for the dry run. */
static struct gateway_change *dry_policy(const struct shared *s)
{
	char *local = member_text(member_local(s->api->member)), *all;
	size_t n = local ? strlen(local) : 0;

	all = local ? malloc(n + s->q.length + 1) : NULL;
	if (all) {
		memcpy(all, local, n);
		memcpy(all + n, s->text, s->q.length);
	}
	free(local);
	return all ? gateway_change_apply(
			     all, n + s->q.length, s->q.length, s->name, s->q.keep, true)
		   : NULL;
}

void api_put_policy_member(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *name = http_query(q, "name"), *base = http_query(q, "base");
	struct shared *s;
	struct weir_err err;
	int64_t n = 0;

	if (base && (weir_units_int(base, &n, &err) < 0 || n < 0)) {
		http_json_fail(ret, 400, "base: must be the number of a version");
		return;
	}
	if (!q->length) {
		http_json_fail(ret, 400, "the body must be a list of tenants");
		return;
	}
	s = shared_new(a, q);
	if (!s)
		return;
	s->q.kind = VERSIONS_APPLY;
	s->q.base = (uint64_t)n;
	s->q.keep = api_flag(q, "keep");
	s->q.length = q->length;
	s->dry = api_flag(q, "dry");
	s->text = http_take_body(q);
	s->name = strdup(name && *name ? name : "policy");
	s->q.text = s->text;
	s->q.name = s->name;
	start(s, q, s->text && s->name ? dry_policy(s) : NULL);
}

void api_set_member(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *span = http_query(q, "for");
	bool put = strcmp(q->method, "PUT") == 0;
	size_t n = q->length;
	struct weir_err err;
	struct timespec now;
	struct shared *s;
	weir_time t = 0;

	while (put && n && strchr(" \t\r\n", q->body[n - 1]))
		n--;
	if (put && (n == 0 || n >= VALUE_MAX || memchr(q->body, 0, n))) {
		http_json_fail(ret, 400, "the body must be the value, such as: 5k iops");
		return;
	}
	if (span && (weir_units_time(span, &t, &err) < 0 || t <= 0)) {
		http_json_fail(ret, 400, "for: must be a time, such as 1h");
		return;
	}
	s = shared_new(a, q);
	if (!s)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	s->q.kind = VERSIONS_SET;
	s->q.until = t ? (double)now.tv_sec + (double)t / 1e9 : 0;
	s->key = strdup(q->path + strlen("/v1/set/"));
	s->value = put ? strndup(q->body, n) : NULL;
	s->q.key = s->key;
	s->q.value = s->value;
	start(s, q, s->key && (s->value || !put) ? gateway_change_set(s->key, s->value) : NULL);
}

/* ---- history */

struct asked { /* for versions */
	struct api_call *call;
};

static void versions_came(void *arg, int rc, const struct record *list, size_t n, bool more,
	const struct weir_err *err)
{
	struct asked *a = arg;
	struct http_reply r = {0};
	json_t *all;

	if (rc < 0) {
		http_json_fail(&r, 503, rc == -ESHUTDOWN ? "the gateway ends" : err->text);
	} else {
		all = json_array();
		for (size_t i = 0; i < n; i++) {
			char *text = record_write(&list[i]);

			json_array_append_new(all, text ? json_loads(text, 0, NULL) : NULL);
			free(text);
		}
		http_json_give(&r, 200, json_pack("{s:o}", "versions", all));
	}
	api_answer(a->call, &r);
	free(a);
}

void api_get_versions(struct api *a, struct http_request *q, struct http_reply *ret)
{
	const char *number = http_query(q, "number");
	struct weir_err err;
	struct asked *asked;
	int64_t n = 20;

	if (!a->member) {
		http_json_fail(ret, 404, "this gateway is no member of a cluster");
		return;
	}
	if (number && (weir_units_int(number, &n, &err) < 0 || n < 1 || n > VERSIONS_LISTED)) {
		http_json_fail(ret, 400, "number: must be from 1 to 1000");
		return;
	}
	asked = calloc(1, sizeof(*asked));
	if (!asked)
		return; /* 500 */
	asked->call = api_keep(q);
	member_list(a->member, (size_t)n, versions_came, asked);
}
