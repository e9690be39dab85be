/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publish: grant a lease, put the state with it, keep the lease alive.
 *
 * METHOD  One request is under way at most. When it is done: without a lease ask for one; with a state that is not written
 *         write it; else keep the lease alive every third of its time. A failure is tried again after a second.
 */
#include "serve/member/publish.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "serve/loop/log.h"
#include "serve/member/member.h"
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCAL_MAX ((size_t)64 << 10) /* bytes of a member's own file that others see */

struct publish {
	struct loop *loop;
	struct store *store;
	struct loop_timer due;
	const char *members, *known_as;
	char *name, *local;
	char instance[PIECES_DIGEST]; /* "": none, and the name is not checked */
	uint64_t
		changed; /* revision at which the state under the name was changed last; 0: there is none */
	bool look; /* it is another one: read it */
	bool taken;
	json_t *facts;
	uint64_t lease;
	uint64_t version, wanted;
	char id[RECORD_ID];
	char *fault;
	bool dirty, busy, known;
	bool stopped; /* freed when the request is done */
};

static void publish_free(struct publish *p)
{
	free(p->name);
	free(p->local);
	free(p->fault);
	json_decref(p->facts);
	free(p);
}

static void act(struct publish *p);

static void act_due(struct loop_timer *t, weir_time now)
{
	act(container_of(t, struct publish, due));
}

static void act_after(struct publish *p, weir_time wait)
{
	loop_set(p->loop, &p->due, loop_clock() + wait);
}

/* Return false if the publisher is gone. */
static bool is_back(struct publish *p)
{
	p->busy = false;
	if (p->stopped)
		publish_free(p);
	else
		return true;
	return false;
}

static void granted(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct publish *p = arg;

	if (!is_back(p))
		return;
	if (rc == 0) {
		p->lease = a->lease;
		p->dirty = true;
		act(p);
	} else {
		act_after(p, WEIR_SEC);
	}
}

/* ---- the name */

static void read_word(const char *path, char *ret, size_t room)
{
	FILE *f = fopen(path, "re");

	ret[0] = 0;
	if (f && fgets(ret, (int)room, f))
		ret[strcspn(ret, "\n")] = 0;
	if (f)
		fclose(f);
}

static void host_name(char ret[256])
{
	if (gethostname(ret, 256) < 0)
		ret[0] = 0;
	ret[255] = 0;
}

void publish_instance(const char *file, char ret[PIECES_DIGEST])
{
	char machine[64], host[256], text[512 + PATH_MAX];
	int n;

	read_word("/etc/machine-id", machine, sizeof(machine));
	host_name(host);
	n = snprintf(text, sizeof(text), "%s\n%s\n%s", machine, host, file);
	pieces_digest(text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, ret);
}

int publish_check(const struct store_key *k, const char *instance, struct weir_err *err)
{
	json_t *j = json_loadb(k->value, k->length, 0, NULL);
	const char *is = json_string_value(json_object_get(j, "instance"));
	const char *host = json_string_value(json_object_get(j, "host"));
	int rc = 0;

	if (is && strcmp(is, instance) != 0)
		rc = weir_err_set(err, -EINVAL,
			"there is a member '%s' already, on %s (process %lld, with its own file); "
			"state "
			"another --name, or wait %d s if that one has ended",
			k->key + strlen(PUBLISH_MEMBERS), host ? host : "?",
			(long long)json_integer_value(json_object_get(j, "process")), MEMBER_TTL);
	json_decref(j);
	return rc;
}

static void name_read(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct publish *p = arg;
	bool was = p->taken;
	struct weir_err why;

	if (!is_back(p))
		return;
	if (rc == 0) {
		p->changed = a->n ? a->keys[0].changed : 0;
		p->taken = a->n && publish_check(&a->keys[0], p->instance, &why) < 0;
		p->look = p->taken;
	}
	if (p->taken && !was)
		log_event(LOG_LEVEL_ERROR, "name-taken", "why", why.text, NULL);
	if (p->look)
		act_after(p, WEIR_SEC);
	else
		act(p);
}

static void read_name(struct publish *p)
{
	struct store_request q = {.kind = STORE_LIST, .exact = true};
	char key[STORE_KEY_MAX];

	snprintf(key, sizeof(key), "%s%s", p->members, p->name);
	q.prefix = key;
	p->busy = true;
	store_ask(p->store, &q, name_read, p);
}

/* ---- the state */

static void was_put(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct publish *p = arg;

	if (!is_back(p))
		return;
	if (rc == -ENOENT)
		p->lease = 0; /* it has ended */
	p->look = rc == 0 && !a->held;
	if (rc == 0 && a->held)
		p->changed = a->revision;
	if (rc < 0 || !a->held)
		p->dirty = true;
	p->known |= rc == 0 && a->held;
	if (rc == 0 && p->dirty)
		act(p);
	else
		act_after(p, rc < 0 ? WEIR_SEC : MEMBER_TTL * WEIR_SEC / 3);
}

static void was_kept(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct publish *p = arg;

	if (!is_back(p))
		return;
	if (rc == -ENOENT)
		p->lease = 0;
	if (p->dirty || !p->lease)
		act(p);
	else
		act_after(p, rc < 0 ? WEIR_SEC : MEMBER_TTL * WEIR_SEC / 3);
}

static char *state_text(const struct publish *p)
{
	char host[256];
	json_t *j = json_pack("{s:s, s:I, s:s, s:I, s:s?, s:s?, s:s}", "name", p->name, "version",
		(json_int_t)p->version, "id", p->id, "wanted", (json_int_t)p->wanted, "fault",
		p->fault, "local", p->local, "weir", WEIR_VERSION);
	char *text;

	host_name(host);
	if (j && *p->instance)
		json_object_update_new(j, json_pack("{s:s, s:s, s:I}", "instance", p->instance,
						  "host", host, "process", (json_int_t)getpid()));
	if (j && p->facts)
		json_object_update(j, p->facts);
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	return text;
}

static void put_state(struct publish *p)
{
	char key[STORE_KEY_MAX], known[STORE_KEY_MAX], *text = state_text(p);
	struct store_change c[2] = {
		{.key = key, .lease = p->lease}, {.key = known, .value = "{}", .length = 2}};
	struct store_condition mine = {.key = key, .changed = p->changed};
	struct store_request q = {.kind = STORE_TXN,
		.conditions = &mine,
		.n_conditions = *p->instance ? 1 : 0,
		.changes = c,
		.n_changes = p->known ? 1 : 2};

	if (!text) {
		act_after(p, WEIR_SEC);
		return;
	}
	snprintf(key, sizeof(key), "%s%s", p->members, p->name);
	snprintf(known, sizeof(known), "%s%s", p->known_as, p->name);
	c[0].value = text;
	c[0].length = strlen(text);
	p->busy = true;
	p->dirty = false;
	store_ask(p->store, &q, was_put, p);
	free(text);
}

static void act(struct publish *p)
{
	struct store_request q = {
		.kind = p->lease ? STORE_KEEP : STORE_GRANT, .ttl = MEMBER_TTL, .lease = p->lease};

	if (p->busy)
		return;
	if (p->look) {
		read_name(p);
		return;
	}
	if (p->lease && p->dirty) {
		put_state(p);
		return;
	}
	p->busy = true;
	store_ask(p->store, &q, p->lease ? was_kept : granted, p);
}

void publish_version(struct publish *p, const struct record *r, uint64_t wanted, const char *fault)
{
	free(p->fault);
	p->fault = fault ? strdup(fault) : NULL;
	p->version = r->number;
	memcpy(p->id, r->id, sizeof(p->id));
	p->wanted = wanted ? wanted : r->number;
	p->dirty = true;
	act(p);
}

void publish_facts(struct publish *p, json_t *facts)
{
	bool same = p->facts && facts && json_equal(p->facts, facts);

	if (same || !facts) {
		json_decref(facts);
		return;
	}
	json_decref(p->facts);
	p->facts = facts;
	p->dirty = true;
	act(p);
}

int publish_start(struct loop *l, struct store *s, const struct publish_options *o,
	struct publish **ret_publish, struct weir_err *err)
{
	struct publish *p = calloc(1, sizeof(*p));

	if (!p)
		return no_memory(err);
	p->loop = l;
	p->store = s;
	p->due.due = act_due;
	p->members = o->members;
	p->known_as = o->known;
	snprintf(p->instance, sizeof(p->instance), "%s", o->instance ? o->instance : "");
	p->name = strdup(o->name);
	p->local = o->local && strlen(o->local) <= LOCAL_MAX ? strdup(o->local) : NULL;
	if (!p->name) {
		publish_free(p);
		return no_memory(err);
	}
	*ret_publish = p;
	return 0;
}

void publish_stop(struct publish *p)
{
	if (!p)
		return;
	loop_set(p->loop, &p->due, WEIR_NEVER);
	p->stopped = true;
	if (!p->busy)
		publish_free(p);
}
