/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resource-shadow: `enforce: false`: nothing is delayed, and the gate shows what would have been.
 *
 * LAW     A request that arrives at a goes to the back end at once and comes back after the device's
 *         time t. Its shadow is submitted to the gate at a, is handed out at d ≥ a, and is done at
 *         d + t. So the gate's window, queues, causes and histograms are those of a gate that
 *         enforces, as long as the device would have taken as long.
 * METHOD  Shadows lie in one array. Those whose d and t are both known wait in a heap by d + t.
 * LIMITS  At most SHADOWS at once. A tenant may have as many as are free, so that one over its
 *         limits, whose shadows pile up without end, leaves room for the others; what finds no room
 *         is counted (unrecorded).
 * DIFFERS A client whose requests are not delayed sends more of them than one that waits would: the
 *         waits shown are those of an open loop.
 * EXAMPLE max 100 iops, 1,000 arrive in a second: all are served at once, and after that second 900
 *         shadows wait, `max`.
 */
#include "port/resource-impl.h"
#include "base/heap.h"
#include <errno.h>
#include <stdlib.h>

#define SHADOWS 65536 /* 6 MiB, of which only what was used once is really there */

enum shadow_state { SHADOW_FREE, SHADOW_QUEUED, SHADOW_INSIDE };

struct shadow {
	struct weir_req gate; /* user: this shadow */
	struct request *real; /* inside the back end; NULL: back */
	weir_time device;     /* ns; known when real is NULL */
	struct shadow *next;  /* of the free ones */
	uint8_t state;
};

struct resource_shadows {
	struct shadow *all;
	struct shadow *free; /* that were used before */
	uint32_t fresh;      /* all[fresh] and what follows was never used */
	uint32_t n_free, waiting;
	struct heap due; /* when a shadow is done; value: its index */
	uint64_t serial;
};

int resource_shadow_on(struct resource *r)
{
	struct resource_shadows *s = r->shadows;

	if (s) {
		r->shadow = true;
		return 0;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	heap_init(&s->due, NULL);
	s->all = calloc(SHADOWS, sizeof(*s->all));
	s->n_free = SHADOWS;
	if (!s->all || heap_reserve(&s->due, SHADOWS) < 0) {
		free(s->all);
		heap_free(&s->due);
		free(s);
		return -ENOMEM;
	}
	r->shadows = s;
	r->shadow = true;
	return 0;
}

static void put(struct resource *r, struct shadow *s)
{
	if (s->real)
		s->real->gate.user = r;
	s->real = NULL;
	s->state = SHADOW_FREE;
	s->next = r->shadows->free;
	r->shadows->free = s;
	r->shadows->n_free++;
	r->counts[s->gate.tenant].shadows--;
}

struct weir_req *resource_shadow_make(struct resource *r, struct request *q)
{
	struct resource_shadows *all = r->shadows;
	struct resource_count *n = &r->counts[q->client->node];
	struct shadow *s = all->free;

	if (n->shadows >= all->n_free) {
		n->unrecorded++;
		return NULL;
	}
	if (s)
		all->free = s->next;
	else
		s = &all->all[all->fresh++];
	all->n_free--;
	n->shadows++;
	s->gate = q->gate;
	s->gate.tenant = q->client->node;
	s->gate.user = s;
	s->real = q;
	s->state = SHADOW_QUEUED;
	all->waiting++;
	q->gate.user = s;
	return &s->gate;
}

static void await(struct resource_shadows *all, struct shadow *s)
{
	struct heap_item item = {.key = s->gate.dispatched + s->device,
		.serial = all->serial++,
		.value = (uint64_t)(s - all->all)};

	heap_push(&all->due, item); /* room was made for all there can be */
}

void resource_shadow_passed(struct resource *r, struct weir_req *req)
{
	struct shadow *s = req->user;

	r->shadows->waiting--;
	s->state = SHADOW_INSIDE;
	if (!s->real)
		await(r->shadows, s);
}

void resource_shadow_back(struct resource *r, weir_time now, struct request *q)
{
	struct shadow *s = q->gate.user;

	s->real = NULL;
	s->device = now - q->gate.dispatched;
	if (s->state == SHADOW_INSIDE)
		await(r->shadows, s);
}

void resource_shadow_turn(struct resource *r, weir_time now)
{
	struct resource_shadows *all = r->shadows;

	while (all->due.n && heap_min(&all->due)->key <= now) {
		struct heap_item item = heap_pop(&all->due);
		struct shadow *s = &all->all[item.value];
		struct weir_req *req = &s->gate;

		resource_total(r, s->gate.tenant, item.key - s->gate.submitted);
		weir_gate_done(r->gate, now, &req, 1);
		put(r, s);
	}
}

weir_time resource_shadow_next(const struct resource *r)
{
	return r->shadows->due.n ? heap_min(&r->shadows->due)->key : WEIR_NEVER;
}

uint32_t resource_shadow_waiting(const struct resource *r)
{
	return r->shadows->waiting;
}

bool resource_shadow_busy(const struct resource *r)
{
	return r->shadows->waiting || r->shadows->due.n;
}

void resource_shadow_refused(struct resource *r, struct weir_req *req)
{
	r->shadows->waiting--;
	put(r, req->user);
}

static bool is_shadow(const struct weir_req *q, void *arg)
{
	return q->user != NULL;
}

static void drop(struct weir_req *q, void *arg)
{
	resource_queue_out(arg, q);
	resource_shadow_refused(arg, q);
}

void resource_shadow_off(struct resource *r)
{
	struct resource_shadows *all = r->shadows;

	r->shadow = false;
	if (!all)
		return;
	while (all->due.n)
		heap_pop(&all->due);
	for (uint32_t i = 0; i < all->fresh; i++) {
		struct shadow *s = &all->all[i];
		struct weir_req *req = &s->gate;

		if (s->state == SHADOW_QUEUED)
			weir_gate_cancel(r->gate, r->now, s->gate.tenant, is_shadow, drop, r);
		if (s->state != SHADOW_INSIDE)
			continue;
		weir_gate_done(r->gate, r->now, &req, 1);
		put(r, s);
	}
}

void resource_shadow_free(struct resource *r)
{
	if (!r->shadows)
		return;
	heap_free(&r->shadows->due);
	free(r->shadows->all);
	free(r->shadows);
	r->shadows = NULL;
}
