/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stall: a volume that does not answer must not take the window from the others.
 *
 * LAW     A volume with requests inside and no completion for a quarter of `stall` is held until the next completion: its waiting requests,
 *         and those that come, wait here and not in their tenants' queues, so that a tenant of several volumes goes on with
 *         the others. Of the requests inside such volumes, as many as a sixteenth of the window count for the gate, so that the
 *         others keep nine tenths of it; the rest have left it. Their times are no measurements of the device: they count for neither its latency nor its capacity.
 *         After `stall` without a completion the volume is called stalled, in the log and in the status.
 *         (A quarter, since volumes that stop together may be noticed one after the other: the slots that the first
 *         gives up are filled by requests of the next.)
 * METHOD  Requests inside are in a list of their volume, and volumes with requests inside in a list of the resource, which is
 *         looked at often. A request that has left the gate early has a mark (gate.user).
 * COST    A request is linked and unlinked; resources without volumes pay a comparison.
 */
#include "base/array.h"
#include "base/list.h"
#include "serve/back/volumes.h"
#include "serve/loop/log.h"
#include "serve/resource/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STALL WEIR_SEC /* unless the policy states another time */
#define QUIET 4        /* a volume is held after one by this of it, … */
#define LOOK  8        /* … and the volumes are looked at after one by this */
#define PART  16 /* of the window: the most that stalled volumes have together is one by this */

struct volume { /* with a request inside, now or before */
	uint32_t slot;
	bool quiet;         /* it is held */
	bool stalled;       /* and called so */
	uint32_t counted;   /* requests inside that the gate counts */
	weir_time progress; /* of the last completion, or since when requests are inside */
	struct request *inside;
	struct request_list held;    /* while it is stalled */
	struct volume *next, **link; /* of the volumes with requests inside */
};

struct resource_stall {
	struct volume **by_slot;
	size_t n;
	struct volume *busy;
	uint32_t stalled; /* volumes */
	uint32_t held;    /* requests, over all volumes */
	weir_time look_at;
};

static weir_time stall_of(const struct resource *r)
{
	return r->spec.stall ? r->spec.stall : STALL;
}

static uint32_t slot_of(const struct request *q)
{
	return (uint32_t)(q->gate.offset >> BACK_VOLUMES_BITS);
}

static struct volume *volume_of(struct resource_stall *s, uint32_t slot)
{
	return slot < s->n ? s->by_slot[slot] : NULL;
}

static struct volume *make_volume(struct resource_stall *s, uint32_t slot)
{
	size_t n = s->n;
	struct volume *v;

	if (slot >= n) {
		n = slot + 1 > 2 * n ? (size_t)slot + 1 : 2 * n;
		if (array_resize(&s->by_slot, n) < 0)
			return NULL;
		memset(s->by_slot + s->n, 0, (n - s->n) * sizeof(*s->by_slot));
		s->n = n;
	}
	v = s->by_slot[slot] = calloc(1, sizeof(*v));
	if (!v)
		return NULL;
	v->slot = slot;
	request_list_clear(&v->held);
	return v;
}

/* ---- inside */

void resource_stall_sent(struct resource *r, struct request *q)
{
	struct resource_stall *s = r->stall;
	struct volume *v = volume_of(s, slot_of(q));

	q->inside_link = NULL;
	if (q->client == &r->own)
		return;
	if (!v && !(v = make_volume(s, slot_of(q))))
		return; /* without memory it is never called stalled */
	if (!v->inside) {
		v->progress = r->now;
		list_push(s->busy, v);
		if (s->look_at == WEIR_NEVER)
			s->look_at = r->now + stall_of(r) / LOOK;
	}
	q->inside_next = v->inside;
	q->inside_link = &v->inside;
	if (v->inside)
		v->inside->inside_link = &q->inside_next;
	v->inside = q;
	v->counted += !q->gate.user;
}

static void say(const struct resource *r, const struct request *q, bool stalled)
{
	back_volumes_stalled(r->back, slot_of(q), stalled);
	log_event(stalled ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO,
		stalled ? "volume-stalled" : "volume-resumed", "resource", r->name, "volume",
		q->client->export_, "why",
		stalled ? "no request was completed for the time of `stall`"
			: "a request was completed",
		NULL);
}

/* Its requests go to the gate, in order, in this turn. */
static void resume(struct resource *r, struct volume *v, const struct request *q)
{
	struct request *held = v->held.first, *next;

	if (v->stalled) {
		r->stall->stalled--;
		say(r, q, false);
	}
	v->quiet = v->stalled = false;
	for (request_list_clear(&v->held); held; held = next) {
		next = held->next;
		r->stall->held--;
		request_list_add(&r->again, held);
	}
}

void resource_stall_back(struct resource *r, struct request *q)
{
	struct resource_stall *s = r->stall;
	struct volume *v = volume_of(s, slot_of(q));

	if (!v || !q->inside_link)
		return;
	*q->inside_link = q->inside_next;
	if (q->inside_next)
		q->inside_next->inside_link = q->inside_link;
	v->counted -= !q->gate.user;
	v->progress = r->now;
	if (v->quiet)
		resume(r, v, q);
	if (v->inside)
		return;
	list_remove(v);
	if (!s->busy)
		s->look_at = WEIR_NEVER;
}

bool resource_stall_ignores(const struct resource *r, const struct request *q)
{
	return r->stall && q->gate.user == r->stall;
}

/* ---- before the gate */

bool resource_stall_holds(struct resource *r, struct request *q, bool again)
{
	struct volume *v = volume_of(r->stall, slot_of(q));

	if (!v || !v->quiet || q->client == &r->own)
		return false;
	if (!again)
		q->since = r->now;
	r->stall->held++;
	request_list_add(&v->held, q);
	return true;
}

struct request_list *resource_stall_held(struct resource *r, size_t *at)
{
	struct resource_stall *s = r->stall;

	while (s && s->held && *at < s->n) {
		struct volume *v = s->by_slot[(*at)++];

		if (v && v->held.first)
			return &v->held;
	}
	return NULL;
}

void resource_stall_dropped(struct resource *r, uint32_t n)
{
	r->stall->held -= n;
}

/* ---- a volume stalls */

struct taking {
	struct resource *resource;
	struct volume *volume;
};

static bool is_of(const struct weir_req *q, void *arg)
{
	const struct taking *t = arg;

	return !q->user && q->offset >> BACK_VOLUMES_BITS == t->volume->slot;
}

static void take_request(struct weir_req *q, void *arg)
{
	struct taking *t = arg;
	struct request *one = resource_request(q);

	resource_queue_out(t->resource, q);
	one->since = q->submitted;
	t->resource->stall->held++;
	request_list_add(&t->volume->held, one);
}

/* Let requests leave the gate until stalled volumes have no more than their part of the window. */
static void release(struct resource *r, struct volume *v, uint32_t *left)
{
	for (struct request *q = v->inside; q; q = q->inside_next) {
		struct weir_req *one = &q->gate;

		if (one->user)
			continue;
		if (*left > 0) {
			--*left;
			continue;
		}
		one->dispatched = r->now; /* no time in the device */
		weir_gate_done(r->gate, r->now, &one, 1);
		one->user = r->stall;
		v->counted--;
	}
}

static void release_all(struct resource *r)
{
	struct weir_gate_totals totals;
	uint32_t left;

	weir_gate_get_totals(r->gate, r->now, &totals);
	left = (uint32_t)(totals.window / PART);
	for (struct volume *v = r->stall->busy; v; v = v->next)
		if (v->quiet)
			release(r, v, &left);
}

void resource_stall_look(struct resource *r, weir_time now)
{
	struct resource_stall *s = r->stall;
	weir_time stall = stall_of(r);
	bool more = false;

	if (now < s->look_at)
		return;
	s->look_at = now + stall / LOOK;
	for (struct volume *v = s->busy; v; v = v->next) {
		if (!v->quiet && now - v->progress >= stall / QUIET) {
			v->quiet = more = true;
			resource_cancel(r, false, is_of, take_request, &(struct taking){r, v});
		}
		if (!v->stalled && now - v->progress >= stall) {
			v->stalled = true;
			s->stalled++;
			say(r, v->inside, true);
		}
	}
	if (more)
		release_all(r);
}

weir_time resource_stall_next(const struct resource *r)
{
	return r->stall->look_at;
}

uint32_t resource_stalled(const struct resource *r)
{
	return r->stall ? r->stall->stalled : 0;
}

/* ---- start and end */

int resource_stall_new(struct resource *r)
{
	if (!r->gate || !back_is_volumes(r->back))
		return 0;
	r->stall = calloc(1, sizeof(*r->stall));
	if (!r->stall)
		return -ENOMEM;
	r->stall->look_at = WEIR_NEVER;
	return 0;
}

void resource_stall_free(struct resource *r)
{
	for (size_t i = 0; r->stall && i < r->stall->n; i++)
		free(r->stall->by_slot[i]);
	if (r->stall)
		free(r->stall->by_slot);
	free(r->stall);
}
