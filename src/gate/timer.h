/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer: who is to be looked at again, and when.
 *
 * SOURCE  Varghese and Lauck, Hashed and Hierarchical Timing Wheels (SOSP'87), schemes 6 and 7.
 * METHOD  A calendar of slots of 33 µs, used in a circle, a bit a slot. What is due inside the
 *         present slot stands on a wheel of its 32 ticks; what is beyond the calendar's edge, on one
 *         of 256 half turns, and what is beyond that, in one queue. The edge moves on by half a
 *         turn at a time: when the entries of the next half turn have come into the calendar, a few
 *         with every call. So most timers move once, from the calendar to the ticks, and one that
 *         is set to the beginning of a slot (timer_set_coarse) not at all. Setting, expiring and
 *         finding the next are O(1). The more timers, the longer the calendar.
 *         A slot, half a cache line, has room for a few entries' numbers. How many there are is a
 *         byte apart, and what is to be written into a slot waits until that has come into the
 *         cache: so setting a timer waits for nothing. All else is in queues (queue.h): they touch no
 *         entry but that which is set or expires. Who expires soon can be read off both.
 * SYMBOLS A tick is 1.024 µs; an entry expires at the first tick at or after its time. Entries
 *         are small integers, one timer each, part of what they belong to. Those of one tick
 *         expire in the order in which they were set, however often somebody looks in between.
 * DIFFERS timer_set keeps an earlier time already set: the entry expires early, is looked at, and is
 *         set again. That saves most of the moves of a timer that is pushed back at every request.
 */
#ifndef WEIR_GATE_TIMER_H
#define WEIR_GATE_TIMER_H

#include "base/clock.h"
#include "gate/cells.h"
#include "gate/marks.h"

#define TIMER_TICK_BITS   10
#define TIMER_TICK        (INT64_C(1) << TIMER_TICK_BITS) /* ns */
#define TIMER_COARSE_BITS 5
#define TIMER_COARSE      (1 << TIMER_COARSE_BITS) /* ticks of a slot, 33 µs */
#define TIMER_CELLS       7                        /* numbers in a slot */
#define TIMER_PLACES      8                        /* places per slot; a power of 2, above that */
#define TIMER_MOST        MARKS_MOST               /* slots of a calendar: 4.3 s */
#define TIMER_NIL         UINT32_MAX
#define TIMER_NONE        INT64_MAX

struct timer_entry {
	int64_t tick;   /* when due; < 0: not set */
	uint32_t place; /* slot · TIMER_PLACES + cell; TIMER_NIL: in a queue */
	uint32_t count; /* of times that it was put into one, modulo TIMER_COUNTS */
};

struct timer_slot {
	uint32_t cell[TIMER_PLACES]; /* in the order in which they were set; TIMER_NIL: none */
};
_Static_assert(sizeof(struct timer_slot) == 32, "two to a cache line");

/* A slot's count: of cells used, 8 times those not taken out; TIMER_FINE if some entry is due after the
 * slot's beginning; and TIMER_MORE if what came later is in a queue. 0: no entries. */
#define TIMER_USED  7
#define TIMER_LIVE  8
#define TIMER_ALIVE (7 * TIMER_LIVE)
#define TIMER_FINE  64
#define TIMER_MORE  128

/* ---- queues (queue.h). What stands there is a cell: the entry's number, its count then, and the low
 * bits of the tick. It holds until the entry is set to another time; nobody takes it out before. */

#define TIMER_COUNTS     1024
#define TIMER_LOW_BITS   22 /* of the tick: a turn of the longest calendar */
#define TIMER_LOW        ((INT64_C(1) << TIMER_LOW_BITS) - 1)
#define TIMER_GROUP_BITS 7
#define TIMER_GROUP      (1 << TIMER_GROUP_BITS) /* slots that share a queue, 4 ms */
#define TIMER_FAR        256                     /* half turns beyond the edge */
_Static_assert(TIMER_MOST *TIMER_COARSE <= TIMER_LOW + 1, "a turn of ticks in a cell");

/* Where the queues of a kind begin. */
enum timer_queue {
	TIMER_Q_TICK = 0,                             /* of the present slot */
	TIMER_Q_SLOT = TIMER_Q_TICK + TIMER_COARSE,   /* of this group and the next: overflow */
	TIMER_Q_FAR = TIMER_Q_SLOT + 2 * TIMER_GROUP, /* half turns */
	TIMER_Q_BEYOND = TIMER_Q_FAR + TIMER_FAR,     /* the rest; */
	TIMER_Q_BACK,  /* and what is to be of it while that comes nearer */
	TIMER_Q_GROUP, /* groups of the calendar: their overflow */
};

#define TIMER_LATER 64 /* what is to be written: that of a batch, or so */

struct timer {
	char *entries;                /* the first; POOL_STRIDE bytes from one to the next */
	int64_t now;                  /* tick */
	int64_t edge;                 /* the first slot of time that is beyond the calendar */
	struct timer_slot *slots;     /* the calendar */
	uint8_t *count;               /* of each slot */
	struct marks marks;           /* which slots have entries */
	uint32_t mask;                /* the calendar's slots − 1 */
	unsigned half;                /* log2 of the slots of half a turn */
	uint32_t set;                 /* how many are set */
	uint32_t room;                /* how many may be */
	uint32_t ticks;               /* which ticks have entries */
	uint64_t far[TIMER_FAR / 64]; /* which far half turns have */
	int64_t split;                /* the first group whose overflow has not a queue a slot */
	uint32_t pour; /* which queue is coming into the calendar; TIMER_NIL: that is complete */
	uint32_t weed; /* queues that are yet to be weeded; 0: none */
	struct cells kept;        /* the beginning of the last of those, which was */
	uint64_t steps;           /* cells that were moved or looked at by all that, so far */
	struct cells *queue;      /* enum timer_queue */
	struct cells_store store; /* what is in them */
	uint32_t n_later;
	uint64_t later
		[TIMER_LATER]; /* places, into which the numbers in the high half are to be written */
};

static inline struct timer_entry *timer_entry(const struct timer *t, uint32_t i)
{
	return (void *)(t->entries + (size_t)i * POOL_STRIDE);
}

/* The first tick at or after `when`; TIMER_NEVER: there is none. */
#define TIMER_NEVER UINT64_MAX
static inline uint64_t timer_tick(weir_time when)
{
	return when <= WEIR_NEVER - TIMER_TICK
		       ? (uint64_t)(when + TIMER_TICK - 1) >> TIMER_TICK_BITS
		       : TIMER_NEVER;
}
/* The last beginning of a slot. */
static inline weir_time timer_coarse(weir_time now)
{
	return now & -(TIMER_COARSE * TIMER_TICK);
}
/* The tick of the first such beginning at or after `when`; after all others if there is none. */
POOL_HOT uint64_t timer_tick_coarse(weir_time when)
{
	return ((uint64_t)when + TIMER_COARSE * TIMER_TICK - 1) / (TIMER_COARSE * TIMER_TICK) *
	       TIMER_COARSE;
}

/* TIMER_FINE if a tick is not a slot's beginning. */
POOL_HOT unsigned timer_fine(int64_t tick)
{
	return (unsigned)(tick % TIMER_COARSE != 0) * TIMER_FINE;
}

/* Entry e, whose tick is set, takes a cell of slot s, of which there is one: the place. */
POOL_HOT uint32_t timer_take_cell(struct timer *t, struct timer_entry *e, uint32_t s)
{
	unsigned count = t->count[s];

	e->place = s * TIMER_PLACES + (count & TIMER_USED);
	t->count[s] = (uint8_t)((count + TIMER_LIVE + 1) | timer_fine(e->tick));
	return e->place;
}

void timer_flush(struct timer *t);                           /* writes what waits to be written */
void timer_move(struct timer *t, uint32_t i, uint64_t tick); /* to another time, TIMER_NEVER too */

/* Entry i is to expire at `when`, or at the time already set if that is earlier. */
static inline void timer_set(struct timer *t, uint32_t i, weir_time when)
{
	uint64_t tick = timer_tick(when);

	if ((uint64_t)timer_entry(t, i)->tick <= tick) /* unsigned: not set is never */
		return;
	timer_move(t, i, tick);
	timer_flush(t);
}

POOL_HOT void timer_write(struct timer *t, uint32_t s, uint32_t place, uint32_t number)
{
	if (t->n_later == TIMER_LATER)
		timer_flush(t);
	t->later[t->n_later++] = (uint64_t)number << 32 | place;
	__builtin_prefetch(&t->slots[s], 1);
}

/* Takes an entry out of the slot in which it has a cell. (That may have none left; then nobody expires
 * there.) */
POOL_HOT uint32_t timer_leave_cell(struct timer *t, const struct timer_entry *e)
{
	uint32_t s = e->place / TIMER_PLACES;

	timer_write(t, s, e->place, TIMER_NIL);
	t->count[s] = (uint8_t)(t->count[s] - TIMER_LIVE);
	return s;
}

/* Entry i, which is e, is to expire at a tick, whatever it was set to. Before the next timer_soon or
 * timer_next there is to be a timer_flush; other calls see to it by themselves. */
POOL_HOT void timer_set_tick(struct timer *t, struct timer_entry *e, uint32_t i, uint64_t tick)
{
	int64_t slot = (int64_t)(tick >> TIMER_COARSE_BITS);
	uint32_t s = (uint32_t)slot & t->mask;

	if ((uint64_t)e->tick == tick)
		return;
	if (slot <= t->now >> TIMER_COARSE_BITS || slot >= t->edge ||
		(t->count[s] & (TIMER_USED | TIMER_MORE)) >= TIMER_CELLS) {
		timer_move(t, i, tick);
		return;
	}
	if (e->tick < 0)
		t->set++;
	else if (e->place != TIMER_NIL)
		timer_leave_cell(t, e);
	e->tick = (int64_t)tick;
	timer_write(t, s, timer_take_cell(t, e, s), i);
	marks_add(&t->marks, s);
}
/* The same at the first beginning of a slot at or after `when`. */
POOL_HOT void timer_set_coarse(struct timer *t, struct timer_entry *e, uint32_t i, weir_time when)
{
	timer_set_tick(t, e, i, timer_tick_coarse(when));
}
void timer_clear(struct timer *t, uint32_t i);

/* Moves time on to `now` and gives up to `max` entries that are due, in order; how many. Fewer than
 * max: there are no more. What expires is no longer set. */
uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max);
/* Up to `max` that expire until a time, or a few more so that they are at least so many, in the order of
 * slots; how many. For fetching them into the cache: nothing but hints: some may be set to another
 * time, or not at all. There is to be room for max + TIMER_CELLS. */
uint32_t timer_soon(
	const struct timer *t, weir_time until, uint32_t least, uint32_t *ret, uint32_t max);

/* No later than the first expiry; WEIR_NEVER when nothing is set. */
weir_time timer_next(struct timer *t);

/* ---- inside, for calendar.h */

/* Which half turn of time a tick is in. */
static inline int64_t timer_turn(const struct timer *t, int64_t tick)
{
	return tick >> (TIMER_COARSE_BITS + t->half);
}
/* Entry i, which is e, goes where it belongs by its tick, which is not in the past. */
void timer_link(struct timer *t, struct timer_entry *e, uint32_t i);
/* All that is coming into the calendar does. */
void timer_come_all(struct timer *t);

#endif
