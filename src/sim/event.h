/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event: the queue of future events, in virtual time.
 *
 * LAW     Earliest time first; at one time, in the order in which they were armed (a serial), so
 *         that a run is repeatable.
 * METHOD  Every source of events (a device, a gate's wake-up, a workload's next arrival, a pausing
 *         IO) has a small number, its id, and at most one armed event. Arming it again moves that
 *         event; so no stale event is ever popped, and an event counts as one pop. A popped event
 *         stays at the top of the heap until another one is armed or requested: a device that is
 *         armed again after its event, the common case, then moves down the heap once instead of
 *         leaving at the top and entering at the bottom.
 * COST    O(log armed) per arm and pop; O(1) to arm for the time already armed.
 */
#pragma once

#include <weir/clock.h>
#include "base/heap.h"
#include <stdbool.h>

struct event_queue {
	struct heap heap;
	uint32_t *place; /* the heap's, by id */
	weir_time *at;   /* by id: time armed for; WEIR_NEVER: not armed */
	uint32_t ids;    /* number of ids with room */
	uint64_t serial; /* of the next arming */
	uint64_t popped;
	bool hole; /* the top of the heap was popped, but is still in it */
};

void event_init(struct event_queue *q);
void event_free(struct event_queue *q);

/* Reserve ids 0 … ids−1; never shrinks. Return 0 or -ENOMEM; afterwards arming cannot fail. */
int event_reserve(struct event_queue *q, uint32_t ids);

/* Arm the id's event for `at`; WEIR_NEVER: disarm it. */
void event_arm(struct event_queue *q, uint32_t id, weir_time at);

static inline weir_time event_at(const struct event_queue *q, uint32_t id)
{
	return q->at[id];
}

void event_close(struct event_queue *q); /* remove the popped top */

/* Return the time of the next event; WEIR_NEVER if none is armed. */
static inline weir_time event_next(struct event_queue *q)
{
	const struct heap_item *first;

	if (q->hole)
		event_close(q);
	first = heap_min(&q->heap);
	return first ? first->key : WEIR_NEVER;
}

/* Pop the next event, which must exist. Return its id, which is no longer armed. */
uint32_t event_pop(struct event_queue *q);
