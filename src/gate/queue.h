/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue: those timers that have no place of their own in a slot of the calendar: the ones of the present
 * slot, by tick; those too many for a slot; and those beyond the edge. Part of timer.h.
 *
 * METHOD  A setting puts a cell at the end of a queue, with the entry's number, the low bits of the tick
 *         and a count, and nobody takes it out before its time comes. Then it is passed over if the
 *         entry has since been set to something else, which shows by the count. So cells move
 *         nearer without a look at their entries. What overflows from the slots of a group, 4 ms,
 *         shares a queue until the group is near, and then has one a slot.
 * COST    What is to be done for many cells is done for a few at a time (QUEUE_STEPS, QUEUE_COME), with each
 *         that is put in and each look at the time: a half turn comes into the calendar while the one
 *         before it is the present one, a group is split while the one before it is, and if there are
 *         more cells than entries by a sixteenth, and 256, those that do not hold any more are
 *         weeded out. Only when time leaps is the rest of the first two done at once.
 */
#ifndef WEIR_GATE_QUEUE_H
#define WEIR_GATE_QUEUE_H

#include "gate/timer.h"

#define QUEUE_STEPS 16 /* cells that are weeded, if there is need, or split; */
#define QUEUE_COME  4  /* and that come into the calendar, each of which is more work */

/* From how many cells on, if there are so many entries, they are weeded. A weeding looks at every queue,
 * which is to be worth it in a small gate, too. */
static inline uint32_t queue_enough(uint32_t room)
{
	return room + room / 16 + 256;
}
/* And how many there may be. When a weeding ends, no cells are left but those that held when it began and
 * those put in since. It sees a cell up to three times, since cells move on meanwhile from groups to
 * slots and to ticks; so that there are fewer of the latter than 3/(QUEUE_STEPS − 3) of what was there,
 * and of the queues. */
static inline uint32_t queue_most(uint32_t room)
{
	return queue_enough(room) + (3 * queue_enough(room) + 2048) / (QUEUE_STEPS - 3);
}

POOL_HOT uint32_t queue_number(uint64_t cell)
{
	return (uint32_t)cell;
}
/* The tick of a cell: the first, from `base` on, that has its low bits. */
POOL_HOT int64_t queue_tick(uint64_t cell, int64_t base)
{
	return base + (((int64_t)(cell >> (64 - TIMER_LOW_BITS)) - base) & TIMER_LOW);
}

POOL_HOT struct timer_entry *queue_entry(const struct timer *t, uint64_t cell)
{
	return timer_entry(t, queue_number(cell));
}

/* Does a cell of this tick still hold? */
POOL_HOT bool queue_holds(const struct timer_entry *e, uint64_t cell, int64_t tick)
{
	return e->place == TIMER_NIL && e->tick == tick &&
	       e->count == (cell >> 32 & (TIMER_COUNTS - 1));
}

/* The same of a cell of queue q, whose base (below) this is. */
bool queue_holds_in(const struct timer *t, uint32_t q, uint64_t cell, int64_t base);

/* 0 or -ENOMEM. For a calendar of so many slots, and so many entries. */
int queue_init(struct timer *t, uint32_t calendar, uint32_t room);
void queue_free(struct timer *t);
uint32_t queue_count(const struct timer *t); /* how many queues */

/* Entry i, which is e, goes to the end of queue q. */
void queue_put(struct timer *t, struct timer_entry *e, uint32_t i, uint32_t q);
/* The same at the ticks of the present slot, for a cell that there is already. */
void queue_put_tick(struct timer *t, uint64_t cell, int64_t tick);
/* Which queue has the overflow of a slot of time. */
uint32_t queue_of_slot(const struct timer *t, int64_t slot);
/* The overflow of a slot that has begun, which is in no queue any more. */
struct cells queue_take_slot(struct timer *t, int64_t slot);

/* Queue q as a whole, if it is being weeded: that is the end of it. */
void queue_whole(struct timer *t, uint32_t q);
/* Does what is to be done for the group after the present one, and for weeding. */
void queue_work(struct timer *t);

/* The last half turn all of which is in the calendar. */
static inline int64_t queue_last_turn(const struct timer *t)
{
	return (t->edge >> t->half) - 1;
}
/* The next half turn, of those that are far, that has entries; or, if there are only entries beyond, the
 * first of the next round, where they come nearer. TIMER_NONE: there is nothing. */
int64_t queue_next_turn(const struct timer *t);
/* The queue that has what such a half turn is to bring. */
uint32_t queue_of_turn(const struct timer *t, int64_t turn);

/* All of a queue: it is empty afterwards. */
struct cells queue_take(struct timer *t, uint32_t q);
/* The first of it, or of one that is whole. The entries of the next few are fetched. */
uint64_t queue_pop(struct timer *t, struct cells *c);

/* The first tick of a queue's cells that hold, none of which is before `base`; that, if they are too many to be
 * asked. TIMER_NONE: none hold, and it is empty now. Those before the first that holds are gone. */
int64_t queue_least(struct timer *t, uint32_t q, int64_t base);
/* Time goes on to a tick, and before half turn `next`, from which on there is what is beyond, there is nothing:
 * that, or the first of a later round of TIMER_FAR before which there is nothing either. So a leap of time
 * takes as long as there are entries, not as it is far. O(cells beyond), if there is a leap. */
int64_t queue_leap(struct timer *t, int64_t next, int64_t to);
/* Only cells that hold are left. O(cells): for when there are too many, to which it comes only if an entry is
 * set a multiple of TIMER_COUNTS times, so that its old cells seem to hold. */
void queue_weed(struct timer *t);
/* The tick from which on those of a queue are. */
int64_t queue_base(const struct timer *t, uint32_t q);

/* Numbers of up to `max` of a queue's cells, first to last: how many. */
uint32_t queue_peek(const struct timer *t, uint32_t q, uint32_t *ret, uint32_t max);

#endif
