/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * change: put a new version of the policy in force while handshakes, the API and I/O continue.
 *
 * METHOD  Changes run one after the other, each in stages:
 *           MAKE    aside: the whole next version, checked and stored on disk
 *                   (serve/gateway/policy.c)
 *           DIVIDE  aside: the parts of limits that several resources share. They are frozen from
 *                   here to ENTER
 *           STEP    one resource after the other, on its thread: new nodes and knobs, in steps of
 *                   less than a millisecond, one per round of its loop
 *           SWITCH  the same: from here on the resource's clients have the new policy
 *           ENTER   main thread: so have new clients, and readers of the policy
 *           LEAVE   volumes and resources that the new policy lacks are flushed and closed; a second
 *                   at most, then they leave later
 *         If a resource refuses (out of memory), the others and the disk are restored (UNDO). The
 *         old version is freed aside, with its last reference.
 *         A client in its handshake meanwhile is matched once more when it joins its resource.
 */
#include "base/no-memory.h"
#include "base/container.h"
#include "serve/gateway/change.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY      WEIR_MS        /* for the parts to stand still */
#define STOP_TIME  (50 * WEIR_MS) /* for jobs aside when the gateway ends */
#define LEAVE_TIME WEIR_SEC

enum stage { MAKE, DIVIDE, STEP, SWITCH, UNDO, UNKEEP, LEAVE };
enum state { UNTOUCHED, STARTED, SWITCHED }; /* of a resource */

void gateway_change_free(struct gateway_change *c)
{
	if (!c)
		return;
	gateway_draft_free(&c->draft);
	gateway_note_free(&c->note);
	free(c->states);
	free(c->text);
	free(c->name);
	free(c->key);
	free(c->value);
	free(c);
}

struct gateway_change *gateway_change_apply(
	char *text, size_t len, size_t tenants, const char *name, bool keep, bool dry)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (!c || !(c->name = strdup(name))) {
		free(text);
		free(c);
		return NULL;
	}
	c->kind = CHANGE_APPLY;
	c->text = text;
	c->tenants_len = tenants < len ? tenants : 0;
	c->len = len - c->tenants_len;
	c->keep = keep;
	c->dry = dry;
	return c;
}

struct gateway_change *gateway_change_set(const char *key, const char *value)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = CHANGE_SET;
	c->key = strdup(key);
	c->value = value ? strdup(value) : NULL;
	if (!c->key || (value && !c->value)) {
		gateway_change_free(c);
		return NULL;
	}
	return c;
}

struct gateway_change *gateway_change_reload(void)
{
	struct gateway_change *c = calloc(1, sizeof(*c));

	if (c)
		c->kind = CHANGE_RELOAD;
	return c;
}

/* ---- at one resource, on its thread */

/* 1: there is more to do; 0; or a negative errno with a message. */
static int step_there(struct gateway_change *c, struct gateway_resource *r, uint8_t *state)
{
	const struct gateway_version *v = c->draft.version;
	int rc;

	if (*state == STARTED)
		return resource_swap_step(r->resource, &c->err);
	rc = gateway_resource_start(r, &c->err);
	if (rc == 0)
		rc = resource_swap_start(r->resource,
			&(struct resource_change){
				v->policy, v->bounds, r->entered ? c->draft.was : NULL},
			&c->err);
	if (rc < 0)
		return rc;
	*state = STARTED;
	return 1;
}

static int switch_there(struct gateway_change *c, struct gateway_resource *r, uint8_t *state)
{
	int rc = gateway_volumes_add(&c->draft.volumes, r, &c->err);

	if (rc == 0)
		rc = resource_swap_finish(r->resource, &c->err);
	if (rc < 0)
		return rc;
	*state = SWITCHED;
	return gateway_divide_swapped(c->gateway, r, c->draft.version->policy, &c->err);
}

static int undo_there(struct gateway_change *c, struct gateway_resource *r, uint8_t *state)
{
	const struct weir_policy *old = c->gateway->policy;
	struct weir_err why;

	gateway_volumes_undo(&c->draft.volumes, r);
	if (*state == STARTED && resource_swap_undo(r->resource))
		return 1;
	if (*state == SWITCHED && r->entered &&
		(resource_swap(r->resource, old, &why) < 0 ||
			gateway_divide_swapped(c->gateway, r, old, &why) < 0))
		log_event(LOG_LEVEL_ERROR, "swap-back-failed", "resource", r->name, "why", why.text,
			NULL);
	*state = UNTOUCHED;
	return 0;
}

static int act_there(struct gateway_change *c)
{
	struct gateway_resource *r = c->draft.resources[c->resource];
	uint8_t *state = &c->states[c->resource];

	return c->stage == STEP     ? step_there(c, r, state)
	       : c->stage == SWITCH ? switch_there(c, r, state)
				    : undo_there(c, r, state);
}

/* ---- one after the other */

/* Advance to the next resource, or the next stage. Return false if all is done. */
static bool advance(struct gateway_change *c, int rc)
{
	if (rc < 0) {
		c->rc = rc;
		c->stage = UNDO;
		c->resource = 0;
		return true;
	}
	if (++c->resource < c->draft.version->policy->n_resources)
		return true;
	c->resource = 0;
	if (c->stage != STEP)
		return false;
	c->stage = SWITCH;
	c->gateway->switching = true;
	return true;
}

static int begin_swap(struct gateway_change *c)
{
	struct gateway *g = c->gateway;
	const struct weir_policy *p = c->draft.version->policy;
	int rc;

	c->states = calloc(p->n_resources, sizeof(*c->states));
	c->stage = STEP;
	c->resource = 0;
	if (!c->states || gateway_volumes_room(g, &c->draft.volumes) < 0)
		return no_memory(&c->err);
	rc = workers_run(g, &c->err);
	if (rc == 0 && c->own && !g->stopping)
		rc = gateway_listeners_open(g, p, &c->draft.listeners, &c->err);
	return rc;
}

/* ---- while everything goes on */

static void start_first(struct gateway *g);

struct leftover {
	struct aside_job job;
	struct gateway_change *change;
};

static void free_aside(struct aside_job *j)
{
	struct leftover *l = container_of(j, struct leftover, job);

	gateway_change_free(l->change);
	free(l);
}

/* The old version may have 100,000 tenants, too: free it aside. */
static void discard(struct gateway *g, struct gateway_change *c)
{
	struct leftover *l = g->changes_end ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		gateway_change_free(c);
		return;
	}
	l->job.run = free_aside;
	l->change = c;
	aside_post(g->aside, &l->job);
}

/* c: the first change of g. */
static void finish(struct gateway *g, struct gateway_change *c)
{
	g->switching = false;
	gateway_divide_pause(g, false);
	if (c->draft.resources)
		gateway_resources_drop(g, c->draft.resources, c->draft.version->policy->n_resources,
			c->draft.version);
	c->draft.resources = NULL;
	g->changes = c->next;
	if (!g->changes)
		g->changes_last = &g->changes;
	c->done(c->arg, c->rc, &c->note, &c->err);
	discard(g, c);
	if (g->changes && !g->changes_end)
		start_first(g);
}

static void run_aside(struct aside_job *j)
{
	struct gateway_change *c = container_of(j, struct gateway_change, job);

	switch (c->stage) {
	case MAKE:
		gateway_draft_make(c->gateway, c);
		break;
	case DIVIDE:
		c->rc = gateway_divide_prepare(
			c->gateway, c->draft.version->policy, c->draft.resources);
		if (c->rc < 0)
			no_memory(&c->err);
		break;
	default:
		gateway_draft_unkeep(c->gateway, &c->draft);
	}
}

static void post_there(struct gateway_change *c)
{
	loop_post(c->draft.resources[c->resource]->worker->loop, &c->there);
}

static void give_up(struct gateway_change *c)
{
	gateway_divide_prepare(c->gateway, NULL, NULL);
	c->stage = UNKEEP;
	if (!c->gateway->changes_end) {
		aside_post(c->gateway->aside, &c->job);
		return;
	}
	gateway_draft_unkeep(c->gateway, &c->draft); /* the end: there is no thread aside */
	finish(c->gateway, c);
}

/* The parts are frozen when no message about them is in flight. */
static void divide_or_retry(struct gateway_change *c)
{
	struct gateway *g = c->gateway;

	c->stage = DIVIDE;
	if (gateway_divide_pause(g, true))
		aside_post(g->aside, &c->job);
	else
		loop_set(g->loop, &g->change_retry, loop_clock() + RETRY);
}

/* A client that removed a volume or a resource may use its file at once. */
static void finish_or_wait(struct gateway_change *c)
{
	struct gateway *g = c->gateway;

	if ((atomic_load(&g->volumes_leaving) == 0 && !g->leaving) || loop_clock() >= c->leave_by)
		finish(g, c);
	else
		loop_set(g->loop, &g->change_retry, loop_clock() + RETRY);
}

void gateway_change_retry(struct loop_timer *t, weir_time now)
{
	struct gateway *g = container_of(t, struct gateway, change_retry);

	if (g->changes && g->changes->stage == DIVIDE)
		divide_or_retry(g->changes);
	else if (g->changes && g->changes->stage == LEAVE)
		finish_or_wait(g->changes);
}

static void done_aside(struct aside_job *j)
{
	struct gateway_change *c = container_of(j, struct gateway_change, job);
	struct gateway *g = c->gateway;

	if (g->changes_end && c->rc == 0)
		c->rc = -ESHUTDOWN;
	if (c->stage == UNKEEP || (c->stage == MAKE && (c->rc < 0 || c->dry)))
		finish(g, c);
	else if (c->stage == MAKE)
		divide_or_retry(c);
	else if (c->rc < 0 || (c->rc = begin_swap(c)) < 0)
		give_up(c);
	else
		post_there(c);
}

static void change_there(struct loop_task *t)
{
	struct gateway_change *c = container_of(t, struct gateway_change, there);
	struct gateway *g = c->gateway;
	int rc = atomic_load(&g->changes_end) ? -ESHUTDOWN : act_there(c);

	if (rc > 0) {
		post_there(c); /* in the next round */
		return;
	}
	c->step_rc = rc;
	loop_post(g->loop, &c->back);
}

static void change_back(struct loop_task *t)
{
	struct gateway_change *c = container_of(t, struct gateway_change, back);
	struct gateway *g = c->gateway;

	if (atomic_load(&g->changes_end)) {
		c->rc = -ESHUTDOWN;
		finish(g, c);
	} else if (advance(c, c->step_rc)) {
		post_there(c);
	} else if (c->rc < 0) {
		give_up(c);
	} else {
		gateway_draft_enter(g, c);
		c->stage = LEAVE;
		c->leave_by = loop_clock() + LEAVE_TIME;
		finish_or_wait(c);
	}
}

static void start_first(struct gateway *g)
{
	struct gateway_change *c = g->changes;

	c->stage = MAKE;
	c->job.run = run_aside;
	c->job.done = done_aside;
	c->there.run = change_there;
	c->back.run = change_back;
	aside_post(g->aside, &c->job);
}

void gateway_change_start(
	struct gateway *g, struct gateway_change *c, gateway_changed_fn *done, void *arg)
{
	c->gateway = g;
	c->done = done;
	c->arg = arg;
	*g->changes_last = c;
	g->changes_last = &c->next;
	if (g->changes == c)
		start_first(g);
}

bool gateway_changes_stop(struct gateway *g)
{
	bool idle;

	atomic_store(&g->changes_end, true);
	loop_set(g->loop, &g->change_retry, WEIR_NEVER);
	if (g->changes)
		gateway_settle(g);
	idle = aside_free(g->aside, STOP_TIME);
	gateway_drain(g);
	while (idle && g->changes) { /* not begun, or in force and waiting */
		g->changes->rc = g->changes->stage == LEAVE ? 0 : -ESHUTDOWN;
		finish(g, g->changes);
	}
	return idle;
}
