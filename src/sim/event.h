/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event: the queue of things that will happen, in virtual time.
 *
 * LAW     Earliest time first; at one time, in the order in which they were armed (a serial), so
 *         that a run is repeatable.
 * METHOD  Every source of events (a device, a gate's wake-up, a workload's next arrival, an IO that
 *         pauses) has a small number, its id, and at most one event armed. Arming it anew moves
 *         the event it has; so nothing stale is ever popped, and an event counts as one pop.
 *         What was popped stays at the top of the heap until another is armed or asked for: a
 *         device that happens and is armed anew, the common case, then moves once down the heap
 *         instead of leaving at the top and coming in at the bottom.
 * COST    O(log armed) per arm and pop; O(1) to arm at the time it is armed for already.
 */
#ifndef WEIR_SIM_EVENT_H
#define WEIR_SIM_EVENT_H

#include "base/clock.h"
#include "base/heap.h"
#include <stdbool.h>

struct event_queue {
	struct heap heap;
	uint32_t *place; /* the heap's: by id */
	weir_time *at;   /* by id: armed for; WEIR_NEVER: not armed */
	uint32_t ids;    /* how many ids there is room for */
	uint64_t serial; /* of the next arming */
	uint64_t popped;
	bool hole; /* the top of the heap was popped, and is still in it */
};

void event_init(struct event_queue *q);
void event_free(struct event_queue *q);

/* Room for ids 0 … ids−1, kept if there is more already. 0 or -ENOMEM; afterwards arming cannot
 * fail. */
int event_reserve(struct event_queue *q, uint32_t ids);

/* The id's one event happens at `at`; WEIR_NEVER: not at all. */
void event_arm(struct event_queue *q, uint32_t id, weir_time at);

static inline weir_time event_at(const struct event_queue *q, uint32_t id)
{
	return q->at[id];
}

void event_close(struct event_queue *q); /* the hole; for event_next */

/* When the next event happens; WEIR_NEVER when none is armed. */
static inline weir_time event_next(struct event_queue *q)
{
	const struct heap_item *first;

	if (q->hole)
		event_close(q);
	first = heap_min(&q->heap);
	return first ? first->key : WEIR_NEVER;
}

/* Takes the next event, which there must be; its id, no longer armed. */
uint32_t event_pop(struct event_queue *q);

#endif
