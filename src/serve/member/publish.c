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
#include "serve/member/member.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_MAX ((size_t)64 << 10) /* bytes of a member's own file that others see */

struct publish {
	struct loop *loop;
	struct store *store;
	struct loop_timer due;
	const char *members, *known_as;
	char *name, *local;
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

static void was_put(void *arg, int rc, const struct store_result *a, const struct weir_err *err)
{
	struct publish *p = arg;

	if (!is_back(p))
		return;
	if (rc == -ENOENT)
		p->lease = 0; /* it has ended */
	if (rc < 0)
		p->dirty = true;
	p->known |= rc == 0;
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
	json_t *j = json_pack("{s:s, s:I, s:s, s:I, s:s?, s:s?, s:s}", "name", p->name, "version",
		(json_int_t)p->version, "id", p->id, "wanted", (json_int_t)p->wanted, "fault",
		p->fault, "local", p->local, "weir", WEIR_VERSION);
	char *text;

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
	struct store_request q = {.kind = STORE_TXN, .changes = c, .n_changes = p->known ? 1 : 2};

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
