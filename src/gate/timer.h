/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer: which nodes are to be looked at again, and when.
 *
 * SOURCE  Varghese and Lauck, Hashed and Hierarchical Timing Wheels (SOSP'87), scheme 7.
 * METHOD  Levels of slots, each used in a circle. Level 0 is the present slot's 32 ticks; level 1, the
 *         calendar, has slots of 33 µs, the more the more entries there may be; every level above has
 *         64 slots: an eighth of the calendar each, and then half of the level below. A bit a slot says whether it has entries,
 *         which stand there in the order in which they were set: in a list through the entries; in
 *         the calendar the first few in cells of the slot itself. Most timers are set, moved and
 *         expire there without touching any other entry, and which expire soon can be read off the
 *         cells. What is to be written into a cell waits until the slot has come into the cache.
 *         An entry moves down a level when its slot comes near: into the calendar and the levels
 *         above ahead of time, a few entries with every call, and to the ticks when its slot has
 *         begun; one that is due at the beginning of a slot (timer_set_coarse) not at all.
 * SYMBOLS A tick is 1.024 µs; an entry expires at the first tick at or after its time. edge[l] is the
 *         first tick that is beyond level l: entries from there on are at a higher level. While a
 *         slot moves down, those moved already are from edge[l] on, too; what is set to that slot
 *         meanwhile is put behind those that are not, so that entries of one tick stay in the order
 *         in which they were set.
 * COST    Setting and clearing are O(1), and exact: nothing stays behind. timer_expire gives or moves at
 *         most max + TIMER_STEPS entries, however many are due and however far time leaps. Where they
 *         are more, the next calls go on, and their order may be another: else all would have to be
 *         sorted before one is given.
 * DIFFERS timer_set keeps an earlier time already set: the entry expires early, is looked at, and is
 *         set again. That saves most of the moves of a timer that is pushed back at every request.
 */
#ifndef WEIR_GATE_TIMER_H
#define WEIR_GATE_TIMER_H

#include <weir/clock.h>
#include "gate/marks.h"
#include "gate/pool.h"
#include <stdbool.h>
#include <string.h>

#define TIMER_TICK_BITS   10
#define TIMER_TICK        (INT64_C(1) << TIMER_TICK_BITS) /* ns */
#define TIMER_COARSE_BITS 5
#define TIMER_COARSE      (1 << TIMER_COARSE_BITS) /* ticks of a slot, 33 µs */
#define TIMER_LEVELS      11 /* so many that the highest reaches the end of time, 2^53 ticks */
#define TIMER_FAR         64 /* slots of a level above the calendar */
#define TIMER_FAR_BITS    5  /* log2 of half of them */
#define TIMER_PARTS_BITS  3  /* log2 of: */
#define TIMER_PARTS       8  /* slots of the level above that make a calendar */
#define TIMER_NONE        INT64_MAX
#define TIMER_STEPS       16 /* entries that timer_expire may move besides `max` */
#define TIMER_CELLS       6  /* entries in a slot of the calendar; the others are in a list */
#define TIMER_LATER       64 /* what is to be written into slots: that of a batch, or so */

/* Where an entry is: in a list, doubly linked, or in a cell of a slot of the calendar. */
struct timer_entry {
	int64_t tick; /* when due; < 0: not set */
	uint32_t
		next; /* entry; at the end of a list TIMER_LIST | its number; TIMER_NIL: in a cell */
	uint32_t prev; /* the same; or the cell: TIMER_WORDS · slot + its number in it */
};

struct timer_list {
	uint32_t first, last; /* entries; of an empty list TIMER_LIST | its number */
};
#define TIMER_LIST UINT32_C(0x80000000)
#define TIMER_NIL  UINT32_MAX

struct timer_slot {
	uint32_t cell[TIMER_CELLS]; /* in the order in which they were set; TIMER_NIL: none */
	struct timer_list more;     /* after them */
};
#define TIMER_WORDS 8
_Static_assert(sizeof(struct timer_slot) == TIMER_WORDS * sizeof(uint32_t), "two to a cache line");

/* A slot's count: of cells up to the last used one, 8 times those that have entries; TIMER_FINE if some entry is
 * due after the slot's beginning; TIMER_MORE if the list has entries. 0: none has. */
#define TIMER_USED  7
#define TIMER_LIVE  8
#define TIMER_ALIVE (7 * TIMER_LIVE | TIMER_MORE)
#define TIMER_FINE  64
#define TIMER_MORE  128

struct timer {
	char *entries; /* the first; POOL_STRIDE bytes from one to the next */
	int64_t now;   /* tick: none is due before it */
	int64_t quiet; /* tick before which timer_expire has nothing to do */
	int64_t edge[TIMER_LEVELS];
	int64_t bring; /* tick from which on entries are to be moved down ahead of time; */
	uint32_t left; /* and how many, before the next timer_expire */
	uint32_t mask; /* the calendar's slots − 1 */
	unsigned bits; /* log2 of the ticks of a slot of level 2 */
	uint32_t set;  /* how many are set */
	struct timer_slot *slots;    /* the calendar; its lists' numbers are those of the slots; */
	struct timer_list *lists;    /* of the other levels: from mask + 1 on, TIMER_FAR each; */
	uint8_t *count;              /* of slots */
	struct marks marks;          /* slots that have entries; */
	uint64_t used[TIMER_LEVELS]; /* and of the other levels, a bit each */
	uint32_t n_later;
	uint64_t later
		[TIMER_LATER]; /* cells, into which the numbers in the high half are to be written */
	uint64_t moves;        /* entries that were moved down so far */
};

POOL_HOT struct timer_entry *timer_entry(const struct timer *t, uint32_t i)
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

void timer_flush(struct timer *t);                           /* writes what is to be written */
void timer_move(struct timer *t, uint32_t i, uint64_t tick); /* to another time, TIMER_NEVER too */
void timer_unlink(struct timer *t, const struct timer_entry *e);

/* Writes a number into a cell when that has come into the cache. */
POOL_HOT void timer_write(struct timer *t, uint32_t cell, uint32_t number)
{
	if (t->n_later == TIMER_LATER)
		timer_flush(t);
	t->later[t->n_later++] = (uint64_t)number << 32 | cell;
	__builtin_prefetch(&t->slots[cell / TIMER_WORDS], 1);
}

/* From this tick on timer_expire has something to do. */
POOL_HOT void timer_wake(struct timer *t, int64_t tick)
{
	t->quiet = tick < t->quiet ? tick : t->quiet;
}

/* Entry i, which is e, takes a cell of slot s, which has one that was not used. */
POOL_HOT void timer_take(struct timer *t, struct timer_entry *e, uint32_t i, uint32_t s)
{
	unsigned count = t->count[s], fine = e->tick % TIMER_COARSE ? TIMER_FINE : 0;

	timer_wake(t, e->tick & -TIMER_COARSE);
	e->next = TIMER_NIL;
	e->prev = s * TIMER_WORDS + (count & TIMER_USED);
	t->count[s] = (uint8_t)((count + TIMER_LIVE + 1) | fine);
	timer_write(t, e->prev, i);
	marks_add(&t->marks, s);
}

/* Entry i, which is e, is to expire at a tick, whatever it was set to. Before the next timer_soon there is to be a
 * timer_flush; other calls see to it by themselves. */
POOL_HOT void timer_set_tick(struct timer *t, struct timer_entry *e, uint32_t i, uint64_t tick)
{
	uint32_t s = (uint32_t)(tick >> TIMER_COARSE_BITS) & t->mask;

	if ((uint64_t)e->tick == tick)
		return;
	if (tick < (uint64_t)t->edge[0] || tick >= (uint64_t)t->edge[1] ||
		(t->count[s] & (TIMER_USED | TIMER_MORE)) >= TIMER_CELLS) {
		timer_move(t, i, tick);
		return;
	}
	if (e->tick < 0)
		t->set++;
	else
		timer_unlink(t, e);
	e->tick = (int64_t)tick;
	timer_take(t, e, i, s);
}
/* The same at the first beginning of a slot at or after `when`. */
POOL_HOT void timer_set_coarse(struct timer *t, struct timer_entry *e, uint32_t i, weir_time when)
{
	timer_set_tick(t, e, i, timer_tick_coarse(when));
}

/* Entry i is to expire at `when`, or at the time already set if that is earlier. */
static inline void timer_set(struct timer *t, uint32_t i, weir_time when)
{
	uint64_t tick = timer_tick(when);

	if ((uint64_t)timer_entry(t, i)->tick > tick) /* unsigned: not set is never */
		timer_move(t, i, tick);
}
static inline void timer_clear(struct timer *t, uint32_t i)
{
	timer_move(t, i, TIMER_NEVER);
}

/* Is there anything to do for timer_expire? */
POOL_HOT bool timer_due(const struct timer *t, weir_time now)
{
	return now >> TIMER_TICK_BITS >= t->quiet;
}
/* Moves time on to `now` and gives up to `max` entries that are due, in order; how many. What expires is no
 * longer set. If there were too many to give or to move, timer_next is not after `now`. */
uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max);
/* Up to `max` that expire until a time, at least `least` if there are so many, in the order of slots; how many.
 * For fetching them into the cache: entries are not read, and of each slot only the first and the last are
 * known. */
uint32_t timer_soon(
	const struct timer *t, weir_time until, uint32_t least, uint32_t *ret, uint32_t max);

/* The cells of the calendar's slot that is `after` slots after the next. The same. */
POOL_HOT void timer_cells(const struct timer *t, uint32_t after, uint32_t ret[TIMER_CELLS])
{
	uint32_t s = ((uint32_t)(t->edge[0] >> TIMER_COARSE_BITS) + after) & t->mask;

	memcpy(ret, t->slots[s].cell, sizeof t->slots[s].cell);
}

/* No later than the first expiry; WEIR_NEVER when nothing is set. */
weir_time timer_next(struct timer *t);

/* ---- inside, for calendar.h */

#define TIMER_LISTS ((TIMER_LEVELS - 1) * TIMER_FAR) /* besides those of the calendar */

/* log2 of the ticks of a slot. */
static inline unsigned timer_bits(const struct timer *t, unsigned level)
{
	return level < 2 ? level * TIMER_COARSE_BITS : t->bits + (level - 2) * TIMER_FAR_BITS;
}
/* Ticks from the present slot on in which the calendar has room for one more slot of level 2. */
static inline int64_t timer_reach(const struct timer *t)
{
	return ((int64_t)(t->mask + 1) << TIMER_COARSE_BITS) - (INT64_C(1) << t->bits);
}
static inline struct timer_list *timer_ends(const struct timer *t, uint32_t list)
{
	return list <= t->mask ? &t->slots[list].more : &t->lists[list - t->mask - 1];
}
/* Entry i, which is e, goes where its tick, which is not in the past, belongs. */
void timer_link(struct timer *t, struct timer_entry *e, uint32_t i);

#endif
