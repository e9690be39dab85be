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
 *           LEAVE   volumes and resources that the new policy lacks are flushed and closed, while the
 *                   next change begins; the request is answered then, or after LEAVE_TIME, a request for one
 *                   volume after LEAVE_VOLUME
 *         If a resource refuses (out of memory), the others and the disk are restored (UNDO). The
 *         old version is freed aside, with its last reference. A gateway that ends undoes the change
 *         that it has begun.
 *         A client in its handshake meanwhile is matched once more when it joins its resource.
 */
#include "base/no-memory.h"
#include "base/container.h"
#include "base/list.h"
#include "serve/gateway/change.h"
#include "serve/gateway/handover.h"
#include "serve/store/folder.h"
#include "serve/snapshot/note.h"
#include "serve/gateway/volume-edit.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY      WEIR_MS        /* for the parts to stand still */
#define STOP_TIME  (50 * WEIR_MS) /* for jobs aside when the gateway ends */
#define LEAVE_TIME WEIR_SEC
#define LEAVE_VOLUME                                                                               \
	(50 * WEIR_MS) /* an orchestrator has its answer within 100 ms, whatever the storage does */

enum stage { MAKE, DIVIDE, STEP, SWITCH, UNDO, UNKEEP, LEAVE, UNLINK };
enum state { UNTOUCHED, STARTED, SWITCHED }; /* of a resource */

/* ---- at one resource, on its thread */

/* 1: there is more to do; 0; or a negative errno with a message. */
static int step_there(struct gateway_change *c, struct gateway_resource *r, uint8_t *state)
{
	struct resource_change to = gateway_version_change(c->draft.version, r->name);
	int rc;

	if (*state == STARTED)
		return resource_swap_step(r->resource, &c->err);
	to.was = r->entered ? c->draft.was : NULL;
	to.rows = gateway_divide_rows(c->gateway, r, to.to);
	rc = gateway_resource_start(r, &c->err);
	if (rc == 0)
		rc = resource_swap_start(r->resource, &to, &c->err);
	if (rc < 0)
		return rc;
	*state = STARTED;
	return 1;
}

static int switch_there(struct gateway_change *c, struct gateway_resource *r, uint8_t *state)
{
	const struct gateway_volume *v = c->idle ? c->idle : c->grows;
	int rc = 0;

	if (c->idle && v->resource == r && gateway_volume_busy(v))
		return weir_err_set(&c->err, -EBUSY, "volume '%s' has clients", v->name);
	if (c->grows && v->resource == r)
		rc = gateway_volume_grown(v);
	if (rc < 0)
		return weir_err_set(&c->err, rc, "volume '%s': %s", v->name, strerror(-rc));
	rc = gateway_volumes_add(&c->draft.volumes, r, &c->err);
	if (rc == 0)
		rc = resource_swap_finish(r->resource, &c->err);
	if (rc < 0)
		return rc;
	*state = SWITCHED;
	return gateway_divide_swapped(c->gateway, r, c->draft.version->policy, &c->err);
}

static int undo_there(struct gateway_change *c, struct gateway_resource *r, uint8_t *state)
{
	struct resource_change old = gateway_version_change(c->gateway->in_force, r->name);
	struct weir_err why;

	gateway_volumes_undo(&c->draft.volumes, r);
	if (*state == STARTED && resource_swap_undo(r->resource))
		return 1;
	if (*state == SWITCHED && r->entered &&
		(resource_swap_all(r->resource, &old, &why) < 0 ||
			gateway_divide_swapped(c->gateway, r, old.to, &why) < 0))
		log_event(LOG_LEVEL_ERROR, "swap-back-failed", "resource", r->name, "why", why.text,
			NULL);
	*state = UNTOUCHED;
	return 0;
}

static int undo_at_once(void *arg, struct gateway_resource *r)
{
	struct gateway_change *c = arg;

	while (undo_there(c, r, &c->states[c->resource]) > 0)
		continue;
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

static void answer(struct gateway *g, struct gateway_change *c)
{
	c->done(c->arg, c->rc, &c->note, &c->err);
	if (!c->entered && !c->same)
		gateway_each_failed(g, c->kind == CHANGE_REFRESH && c->rc < 0);
	discard(g, c);
}

/* c: the first change of g. */
static void unqueue(struct gateway *g, struct gateway_change *c)
{
	g->switching = false;
	gateway_divide_pause(g, false);
	if (c->draft.resources)
		gateway_resources_drop(
			g, c->draft.resources, c->draft.n_resources, c->draft.version);
	c->draft.resources = NULL;
	g->changes = c->next;
	c->next = NULL;
	if (!g->changes)
		g->changes_last = &g->changes;
}

static void begin_next(struct gateway *g)
{
	if (g->changes && !g->changes_end)
		start_first(g);
}

static void finish(struct gateway *g, struct gateway_change *c)
{
	bool lost;

	folders_taken(g->folders, false);
	/* the events of folders that a change has read are lost with it */
	lost = !g->changes_end && !c->entered && c->kind != CHANGE_REFRESH &&
	       folders_version(g->folders) != g->folders_version;
	unqueue(g, c);
	answer(g, c);
	begin_next(g);
	if (lost)
		gateway_refresh_folders(g, false);
}

static void run_aside(struct aside_job *j)
{
	struct gateway_change *c = container_of(j, struct gateway_change, job);

	switch (c->stage) {
	case MAKE:
		if (c->rc == 0)
			gateway_draft_make(c->gateway, c);
		break;
	case DIVIDE:
		c->rc = gateway_divide_prepare(
			c->gateway, c->draft.version->policy, c->draft.resources);
		if (c->rc < 0)
			no_memory(&c->err);
		break;
	case UNLINK:
		gateway_volume_unlink(c->volume.name, c->gone, &c->gone_file, &c->note);
		break;
	default:
		gateway_volume_unmake(c);
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
	gateway_volume_unmake(c); /* the end: there is no thread aside */
	gateway_draft_unkeep(c->gateway, &c->draft);
	finish(c->gateway, c);
}

/* The gateway ends, and the change was begun: take back the change from the resources, which would use its version after it is
 * freed, and from the disk, since it is answered as refused. */
static void break_off(struct gateway_change *c)
{
	c->rc = c->rc < 0 ? c->rc : -ESHUTDOWN;
	for (c->resource = 0; c->states && c->resource < c->draft.version->policy->n_resources;
		c->resource++)
		if (c->states[c->resource] != UNTOUCHED)
			gateway_at(c->draft.resources[c->resource], undo_at_once, c);
	give_up(c);
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

/* ---- volumes and resources that leave: a client that removed one may use its file at once */

/* All are closed, or closing takes long. */
static void left(struct gateway_change *c)
{
	struct gateway *g = c->gateway;

	loop_set(g->loop, &c->leave_timer, WEIR_NEVER);
	gateway_volumes_unwait(g, c);
	gateway_resources_unwait(g, c);
	list_remove(c);
	if (c->gone && !g->changes_end) {
		c->stage = UNLINK;
		aside_post(g->aside, &c->job);
	} else {
		answer(g, c);
	}
}

void gateway_change_left(struct gateway_change *c)
{
	if (--c->leaving == 0)
		left(c);
}

static void leave_late(struct loop_timer *t, weir_time now)
{
	struct gateway_change *c = container_of(t, struct gateway_change, leave_timer);

	if (c->kind == CHANGE_VOLUME)
		gateway_note_add(&c->note, "volume '%s' is still being closed", c->volume.name);
	left(c);
}

/* The change is in force: begin the next. */
static void leave(struct gateway *g, struct gateway_change *c)
{
	weir_time patience = c->kind == CHANGE_VOLUME ? LEAVE_VOLUME : LEAVE_TIME;

	c->stage = LEAVE;
	unqueue(g, c);
	list_push(g->leaves, c);
	c->leave_timer.due = leave_late;
	if (!c->leaving || loop_set(g->loop, &c->leave_timer, loop_clock() + patience) < 0)
		left(c);
	begin_next(g);
}

void gateway_change_retry(struct loop_timer *t, weir_time now)
{
	struct gateway *g = container_of(t, struct gateway, change_retry);

	if (g->changes && g->changes->stage == DIVIDE)
		divide_or_retry(g->changes);
}

static void done_aside(struct aside_job *j)
{
	struct gateway_change *c = container_of(j, struct gateway_change, job);
	struct gateway *g = c->gateway;

	if (c->stage == UNLINK) {
		answer(g, c);
		return;
	}
	if (c->stage == MAKE)
		gateway_folders_follow(g);
	if (g->changes_end && c->rc == 0 && c->stage != UNKEEP && !c->dry && !c->same)
		break_off(c);
	else if (c->stage == UNKEEP || (c->stage == MAKE && (c->rc < 0 || c->dry || c->same)))
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
		break_off(c);
	} else if (advance(c, c->step_rc)) {
		post_there(c);
	} else if (c->rc < 0) {
		give_up(c);
	} else {
		gateway_draft_enter(g, c);
		c->entered = true;
		leave(g, c);
	}
}

static void start_first(struct gateway *g)
{
	struct gateway_change *c = g->changes;

	if (c == g->refresh)
		g->refresh = NULL;
	if (gateway_each_copy(g, &c->instances) < 0)
		c->rc = no_memory(&c->err);
	c->stage = MAKE;
	c->job.run = run_aside;
	c->job.done = done_aside;
	c->there.run = change_there;
	c->back.run = change_back;
	aside_post(g->aside, &c->job);
}

/* The process that replaces this one has read already what is in force. */
static void refuse(struct gateway *g, struct gateway_change *c)
{
	c->rc = weir_err_set(
		&c->err, -EBUSY, "another process is taking over; try again in a moment");
	c->done(c->arg, c->rc, &c->note, &c->err);
	gateway_change_free(c);
}

void gateway_change_start(
	struct gateway *g, struct gateway_change *c, gateway_changed_fn *done, void *arg)
{
	c->gateway = g;
	c->done = done;
	c->arg = arg;
	if (gateway_is_replaced(g) && c->kind != CHANGE_REFRESH) {
		refuse(g, c);
		return;
	}
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
	if (idle && g->changes && g->changes->stage != MAKE)
		break_off(g->changes);
	while (idle && g->changes) { /* not begun */
		g->changes->rc = -ESHUTDOWN;
		finish(g, g->changes);
	}
	while (idle && g->leaves)
		left(g->leaves);
	return idle;
}
