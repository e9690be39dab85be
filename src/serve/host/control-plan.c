/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control-plan: the plan of a cluster, from the API to its servers (serve/host/cluster-plan.h has their side).
 *
 * METHOD  A plan is taken if it was made for the controller's policy, and gets a number above every number that a server has told. It is
 *         announced to each server that has another, again after a second without an answer; a server asks for it part by part, so
 *         that none has more than one part under way. A client that put it is answered when every connected server has taken or
 *         refused it, or after ANSWER. In the state folder it is kept as PLAN_FILE (serve/gateway/plan/kept.h).
 */
#include "base/container.h"
#include "base/no-memory.h"
#include "plan/planning.h"
#include "serve/http/json.h"
#include "serve/host/plans.h"
#include "serve/gateway/plan.h"
#include "serve/gateway/plan/kept.h"
#include "serve/host/control-join.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN     WEIR_SEC
#define ANSWER    (5 * WEIR_SEC)
#define PLAN_FILE "cluster-plan.json"
#define DUMP                                                                                       \
	JSON_COMPACT /* as often as it is read and written, it is the same; as in plan/kept.c */

struct control_asking {
	struct control_asking *next;
	struct http_later *later;
	weir_time since;
	uint64_t number;
};

/* ---- servers */

static bool has_it(const struct control *l, const struct control_server *s)
{
	static const uint8_t none[LEASE_DIGEST];

	return s->has.number == l->plan.number &&
	       memcmp(s->has.digest, l->plan.text ? l->plan.digest : none, LEASE_DIGEST) == 0;
}

enum where { NOT_CONNECTED, TOO_OLD, NOT_TOLD, REFUSED, NEWER, BEHIND, IN_FORCE };

static enum where where_is(const struct control *l, const struct control_server *s)
{
	if (!s->link || !lease_hub_plans(s->link))
		return s->link ? TOO_OLD : NOT_CONNECTED;
	if (!s->told)
		return NOT_TOLD;
	if (has_it(l, s))
		return IN_FORCE;
	if (s->has.refused && s->has.refused == l->plan.number)
		return REFUSED;
	return s->has.number > l->plan.number ? NEWER : BEHIND;
}

/* Tell a server which plan there is; or n bytes of it, from `offset` on. */
static void tell(struct control *l, struct control_server *s, uint64_t offset, size_t n)
{
	struct lease_message m = {.kind = LEASE_PLAN, .n = n};
	char hex[GATEWAY_DIGEST];

	if (l->said_start) { /* else it only asks */
		m.plan = (struct lease_plan){.number = l->plan.number,
			.length = l->plan.text ? l->plan.length : 0,
			.offset = offset};
		memcpy(m.plan.digest, l->plan.digest, LEASE_DIGEST);
		gateway_plan_tenants(l->policy, hex);
		sodium_hex2bin(m.plan.tenants, LEASE_DIGEST, hex, strlen(hex), NULL, NULL, NULL);
		m.bytes = n ? (uint8_t *)l->plan.text + offset : NULL;
	}
	lease_hub_tell(s->link, &m);
}

static bool is_open(enum where w, bool grants)
{
	return w == NOT_TOLD || (w == BEHIND && grants);
}

static void answer_all(struct control *l);

void control_plan_send(struct control *l)
{
	bool open = false;

	if (l->rank)
		return;
	for (size_t i = 0; i < l->n_servers; i++)
		if (is_open(where_is(l, &l->servers[i]), l->said_start)) {
			tell(l, &l->servers[i], 0, 0);
			open = true;
		}
	answer_all(l);
	if (open || l->plan.asking)
		loop_set(l->loop, &l->plan.timer, loop_clock() + AGAIN);
}

static void due(struct loop_timer *t, weir_time now)
{
	control_plan_send(container_of(t, struct control, plan.timer));
}

void control_plan_greet(struct control *l, struct control_server *s)
{
	s->has = (struct lease_has){0};
	s->why[0] = 0;
	if (lease_hub_plans(s->link)) {
		tell(l, s, 0, 0);
		loop_set(l->loop, &l->plan.timer, loop_clock() + AGAIN);
	} else if (l->plan.text) {
		log_event(LOG_LEVEL_WARNING, "plan-not-sent", "server", s->name, "why",
			"its version knows no plans", NULL);
	}
}

static void say(const struct control *l, const struct control_server *s, enum where was)
{
	enum where is = where_is(l, s);
	char number[24];

	if (is == was || !l->plan.number)
		return;
	log_number(number, (double)l->plan.number);
	if (is == IN_FORCE)
		log_event(LOG_LEVEL_INFO, "plan", "server", s->name, "number", number, NULL);
	else if (is == REFUSED)
		log_event(LOG_LEVEL_WARNING, "plan-refused", "server", s->name, "number", number,
			"why", s->why, NULL);
	else if (is == NEWER)
		log_event(LOG_LEVEL_WARNING, "plan-newer", "server", s->name, "number", number,
			"why", "the server has a later plan, which stays", NULL);
}

void control_plan_hear(struct control *l, struct control_server *s, const struct lease_message *m)
{
	enum where was = where_is(l, s);
	uint64_t left;

	s->told = true;
	s->has = m->has;
	if (m->n)
		memcpy(s->why, m->bytes, m->n);
	s->why[m->n] = 0;
	/* two controllers gave one number to two plans: that of the one that grants counts */
	if (l->said_start && l->plan.number && s->has.number == l->plan.number && !has_it(l, s))
		l->plan.number++;
	say(l, s, was);
	if (l->said_start && l->plan.text && s->has.wanted == l->plan.number &&
		s->has.offset < l->plan.length) {
		left = l->plan.length - s->has.offset;
		tell(l, s, s->has.offset, left < LEASE_PART ? left : LEASE_PART);
	} else if (is_open(where_is(l, s), l->said_start)) {
		tell(l, s, 0, 0);
	}
	answer_all(l);
}

json_t *control_plan_server(const struct control *l, const struct control_server *s)
{
	static const char *const words[] = {[NOT_CONNECTED] = "not connected",
		[TOO_OLD] = "its version knows no plans",
		[NOT_TOLD] = "no answer",
		[REFUSED] = "refused",
		[NEWER] = "it has a later one",
		[BEHIND] = "on its way",
		[IN_FORCE] = "in force"};
	enum where w = where_is(l, s);
	json_t *number = s->told ? json_integer((json_int_t)s->has.number) : json_null();

	return json_pack("{s:o, s:s, s:s?}", "number", number, "state",
		l->plan.number || w == TOO_OLD || w == NEWER ? words[w] : "none", "why",
		w == REFUSED ? s->why : NULL);
}

/* ---- clients */

/* Return the notes about a plan's servers; *ret_bad: some server does not have it. */
static json_t *notes_json(struct control *l, bool *ret_bad)
{
	json_t *notes = json_array();
	char line[LEASE_WHY_MAX + 128];

	*ret_bad = false;
	for (size_t i = 0; i < l->n_servers; i++) {
		const struct control_server *s = &l->servers[i];
		json_t *j = control_plan_server(l, s);
		const char *why = json_string_value(json_object_get(j, "why"));

		*ret_bad |= where_is(l, s) != IN_FORCE;
		snprintf(line, sizeof(line), "%s: %s%s%s", s->name,
			json_string_value(json_object_get(j, "state")), why ? ": " : "",
			why ? why : "");
		json_array_append_new(notes, json_string(line));
		json_decref(j);
	}
	return notes;
}

static void answer(struct control *l, struct control_asking *a)
{
	struct http_reply r = {0};
	char text[4096];
	size_t used = 0, i;
	json_t *note, *notes;
	bool bad;

	notes = notes_json(l, &bad);
	if (!bad) {
		http_json_give(&r, 200,
			json_pack("{s:I, s:o}", "version", (json_int_t)a->number, "notes", notes));
	} else {
		used = (size_t)snprintf(text, sizeof(text),
			"plan %llu is not in force at every server", (unsigned long long)a->number);
		json_array_foreach(notes, i, note) if (used < sizeof(text)) used +=
			(size_t)snprintf(
				text + used, sizeof(text) - used, "; %s", json_string_value(note));
		json_decref(notes);
		http_json_fail(&r, 409, text);
	}
	http_answer(a->later, &r);
	free(a);
}

/* Answer the clients whose plan every server has taken or refused, or that have waited long enough. */
static void answer_all(struct control *l)
{
	weir_time now = loop_clock();
	bool open = false;

	for (size_t i = 0; i < l->n_servers; i++)
		open |= is_open(where_is(l, &l->servers[i]), true);
	for (struct control_asking **at = &l->plan.asking; *at;) {
		struct control_asking *a = *at;

		if (open && now - a->since < ANSWER) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		answer(l, a);
	}
}

/* Take the plan's text, malloc'ed; NULL: none. */
static void set_plan(struct control *l, const struct plan_kept *k, char *text)
{
	free(l->plan.text);
	l->plan.number = k->number;
	l->plan.applied = k->applied;
	l->plan.text = text;
	l->plan.length = text ? strlen(text) : 0;
	crypto_hash_sha256(
		l->plan.digest, (const unsigned char *)(text ? text : ""), l->plan.length);
}

/* Check a plan, and write it as it is kept and sent. 0, -EINVAL or -ENOMEM with the reason. */
static int check(
	const struct control *l, const char *text, size_t len, char **ret, struct weir_err *err)
{
	char digest[PLAN_DIGEST];
	struct gateway_plan *plan;
	json_t *j;
	int rc = gateway_plan_read(text, len, &plan, err);

	if (rc < 0)
		return rc;
	planning_digest(l->options.text, strlen(l->options.text), l->policy->tenants_text, digest);
	if (strcmp(plan->policy, digest) != 0)
		rc = weir_err_set(err, -EINVAL,
			"the plan does not fit the controller's policy; it was made for another: "
			"%.12s…, which is %.12s… now; plan again",
			plan->policy, digest);
	gateway_plan_drop(plan);
	if (rc < 0)
		return rc;
	j = json_loadb(text, len, 0, NULL);
	*ret = j ? json_dumps(j, DUMP) : NULL;
	json_decref(j);
	if (*ret && strlen(*ret) > LEASE_PLAN_MAX) {
		free(*ret);
		return weir_err_set(err, -EINVAL, "the plan is too large");
	}
	return *ret ? 0 : no_memory(err);
}

static uint64_t next_number(const struct control *l)
{
	uint64_t n = l->plan.number;

	for (size_t i = 0; i < l->n_servers; i++)
		if (l->servers[i].has.number > n)
			n = l->servers[i].has.number;
	return n + 1;
}

static int keep(const struct control *l, const struct plan_kept *k, struct weir_err *err)
{
	return l->policy->state ? plan_kept_write(l->policy->state, PLAN_FILE, k, err) : 0;
}

static struct control_asking *asking_new(struct http_request *q)
{
	struct control_asking *a = calloc(1, sizeof(*a));

	if (a && !(a->later = http_defer(q))) {
		free(a);
		return NULL;
	}
	return a;
}

/* Put a plan in force; text NULL: none. The reply is deferred first: a plan that is kept is in force. */
static void put_in_force(
	struct control *l, struct http_request *q, struct http_reply *ret, char *text)
{
	struct control_asking *a = asking_new(q);
	struct http_reply reply = {0};
	struct weir_err err;
	struct plan_kept k = {next_number(l), 0, "", "", text};

	if (!a) {
		http_json_fail(ret, 500, "out of memory");
		free(text);
		return;
	}
	k.applied = loop_date();
	if (keep(l, &k, &err) < 0) {
		http_json_fail(&reply, 500, err.text);
		http_answer(a->later, &reply);
		free(text);
		free(a);
		return;
	}
	set_plan(l, &k, text);
	a->number = l->plan.number;
	a->since = loop_clock();
	a->next = l->plan.asking;
	l->plan.asking = a;
	control_plan_send(l);
}

/* Return false if a change is not for this controller, with the answer. */
static bool may_change(const struct control *l, struct http_reply *ret)
{
	struct weir_err err;

	if (!l->said_start)
		http_json_fail(ret, 409, "this controller does not grant: ask the one that does");
	else if (control_join_check(l, &err) < 0)
		http_json_fail(ret, 503, err.text);
	else
		return true;
	return false;
}

void control_put_plan(struct control *l, struct http_request *q, struct http_reply *ret)
{
	struct weir_err err;
	char *text = NULL;
	int rc;

	if (!may_change(l, ret))
		return;
	rc = check(l, q->body, q->length, &text, &err);
	if (rc < 0)
		http_json_fail(ret, rc == -ENOMEM ? 500 : 400, err.text);
	else
		put_in_force(l, q, ret, text);
}

void control_delete_plan(struct control *l, struct http_request *q, struct http_reply *ret)
{
	if (!l->plan.text)
		http_json_fail(ret, 404, "no plan is in force");
	else if (may_change(l, ret))
		put_in_force(l, q, ret, NULL);
}

void control_get_plan(struct control *l, struct http_request *q, struct http_reply *ret)
{
	json_t *j, *servers;

	if (!l->plan.text) {
		http_json_fail(ret, 404, "no plan is in force");
		return;
	}
	servers = json_object();
	for (size_t i = 0; i < l->n_servers; i++)
		json_object_set_new(
			servers, l->servers[i].name, control_plan_server(l, &l->servers[i]));
	j = json_pack("{s:I, s:f, s:o, s:o}", "number", (json_int_t)l->plan.number, "applied",
		l->plan.applied, "servers", servers, "plan", json_loads(l->plan.text, 0, NULL));
	http_json_give(ret, 200, j);
}

static void planned(void *arg, struct http_reply *r)
{
	http_answer(arg, r);
}

static void post_plan(struct control *l, struct http_request *q, struct http_reply *ret, bool admit)
{
	struct plans_of of = {.loop = l->loop,
		.text = l->options.text,
		.file = l->options.file,
		.reader = l->options.reader,
		.reader_arg = l->options.reader_arg};
	struct http_later *later = http_defer(q);
	struct http_reply none = {0};

	if (later && !plans_post(&l->plans, &of, q, admit, planned, later))
		http_answer(later, &none);
}

void control_post_plan(struct control *l, struct http_request *q, struct http_reply *ret)
{
	post_plan(l, q, ret, false);
}

void control_post_admit(struct control *l, struct http_request *q, struct http_reply *ret)
{
	post_plan(l, q, ret, true);
}

/* ---- from start to end */

int control_plan_start(struct control *l, struct weir_err *err)
{
	struct gateway_plan *plan = NULL;
	struct plan_kept k = {0};
	char *text = NULL;
	int rc = 0;

	l->plan.timer.due = due;
	if (l->policy->state)
		rc = plan_kept_read(l->policy->state, PLAN_FILE, &k.number, &plan, err);
	if (rc == 0 && plan && !(text = strdup(plan->text)))
		rc = no_memory(err);
	if (rc == 0 && k.number) {
		k.applied = plan ? plan->applied : 0;
		set_plan(l, &k, text);
	} else {
		free(text);
	}
	gateway_plan_drop(plan);
	return rc;
}

void control_plan_stop(struct control *l)
{
	struct http_reply none = {.status = 503};

	if (l->plan.timer.due)
		loop_set(l->loop, &l->plan.timer, WEIR_NEVER);
	while (l->plan.asking) {
		struct control_asking *a = l->plan.asking;

		l->plan.asking = a->next;
		http_answer(a->later, &none);
		free(a);
	}
	plans_free(l->plans);
	free(l->plan.text);
}
