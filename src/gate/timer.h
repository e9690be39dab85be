/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer: a timer wheel with an entry per node.
 *
 * SOURCE  Varghese and Lauck, Hashed and Hierarchical Timing Wheels (SOSP'87), scheme 7.
 * METHOD  Levels of slots, each used as a ring. Level 0 has the 32 ticks of the current slot; level 1, the calendar,
 *         has slots of 33 µs, in a number that grows with the room for entries; every level above has 64 slots: an
 *         eighth of the calendar each, and then half of the level below. A bit per slot says whether it has entries.
 *         They are kept in the order in which they were set: in a list linked through the entries; in the calendar
 *         the first few are in cells of the slot itself. Most timers are set, moved and expire there without
 *         touching any other entry, and those that expire soon can be read from the cells. An entry moves down a
 *         level when its slot comes near: into the calendar and the levels above ahead of time, a few entries with
 *         every call, and to the ticks when its slot has begun; an entry that is due at the start of a slot
 *         (timer_set_coarse) never moves to the ticks.
 *         The slots of the new and the old time of a large calendar are mostly not in the cache: they are fetched, and
 *         the time waits in a short ring until others have followed, or another function of the timer is called.
 * SYMBOLS A tick is 1.024 µs; an entry expires at the first tick at or after its time. edge[l] is the
 *         first tick that is beyond level l: entries from there on are at a higher level. While a slot moves down,
 *         the entries moved already are from edge[l] on, too; an entry set to that slot meanwhile is put behind
 *         those not moved yet, so that entries of one tick stay in the order in which they were set.
 * COST    Setting and clearing are O(1), and exact: no stale entry stays behind. timer_expire returns or moves at
 *         most max + TIMER_STEPS entries, however many are due and however far time leaps. If there are more, the
 *         next calls continue, and the order may differ: otherwise all would have to be sorted before the first is
 *         returned.
 * DIFFERS timer_set keeps an earlier time already set: the entry expires early, is checked, and is set again. That
 *         saves most of the moves of a timer that is pushed back at every request.
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
#define TIMER_COARSE      (1 << TIMER_COARSE_BITS) /* ticks per slot, 33 µs */
#define TIMER_LEVELS      11 /* so that the highest reaches the end of time, 2^53 ticks */
#define TIMER_FAR         64 /* slots of a level above the calendar */
#define TIMER_FAR_BITS    5  /* log2 of half of TIMER_FAR */
#define TIMER_PARTS_BITS  3  /* log2 of TIMER_PARTS */
#define TIMER_PARTS       8  /* slots of level 2 that make up a calendar */
#define TIMER_NONE        INT64_MAX
#define TIMER_STEPS       16 /* entries that timer_expire may move besides `max` */
#define TIMER_CELLS       6  /* entries in a slot of the calendar; further ones are in a list */

/* An entry is in a doubly linked list, or in a cell of a slot of the calendar. */
struct timer_entry {
	int64_t tick;  /* when due; < 0: not set, ~tick is when it was due last */
	uint32_t next; /* entry; at the end of a list TIMER_LIST | the list's number; TIMER_NIL:
	                  in a cell */
	uint32_t prev; /* as next; or the cell: TIMER_WORDS · slot + its index there */
};

struct timer_list {
	uint32_t first, last; /* entries; in an empty list TIMER_LIST | the list's number */
};
#define TIMER_LIST UINT32_C(0x80000000)
#define TIMER_NIL  UINT32_MAX

struct timer_slot {
	uint32_t cell[TIMER_CELLS]; /* entries, in the order in which they were set; TIMER_NIL:
	                               none */
	struct timer_list more;     /* the entries after them */
};
#define TIMER_WORDS 8
_Static_assert(sizeof(struct timer_slot) == TIMER_WORDS * sizeof(uint32_t), "two to a cache line");

/* A slot's count: the cells up to the last used one, plus TIMER_LIVE times the cells that have entries; TIMER_FINE
 * if some entry is due after the start of the slot; TIMER_MORE if the list has entries. 0: no entries. */
#define TIMER_USED  7
#define TIMER_LIVE  8
#define TIMER_ALIVE (7 * TIMER_LIVE | TIMER_MORE)
#define TIMER_FINE  64
#define TIMER_MORE  128

/* A time to which an entry is to be set. */
struct timer_late {
	uint64_t tick;
	uint32_t entry;
};
#define TIMER_LATE 4
#define TIMER_NEAR                                                                                 \
	16384 /* slots: a calendar of fewer is mostly in a core's own cache, so that times need not wait */

struct timer {
	char *entries; /* the first; POOL_STRIDE bytes apart */
	int64_t now;   /* tick: no entry is due before it */
	int64_t quiet; /* tick before which timer_expire has nothing to do */
	int64_t edge[TIMER_LEVELS];
	int64_t bring; /* tick from which on entries are to be moved down ahead of time; */
	uint32_t left; /* and how many may be, before the next timer_expire */
	uint32_t mask; /* the calendar's slots − 1 */
	unsigned bits; /* log2 of the ticks of a slot of level 2 */
	uint32_t set;  /* number of entries that are set */
	struct timer_slot *slots;    /* the calendar; its lists have the slots' numbers; */
	struct timer_list *lists;    /* the other levels': numbers from mask + 1 on, TIMER_FAR
	                                each; */
	uint8_t *count;              /* per slot */
	struct marks marks;          /* slots that have entries; */
	uint64_t used[TIMER_LEVELS]; /* and those of the other levels, a bit each */
	uint64_t moves;              /* entries moved down so far */
	uint64_t asked;              /* tick to which an entry was set last */
	struct timer_late late[TIMER_LATE]; /* a ring: times not set yet (timer_set_tick) */
	uint32_t n_late, n_taken;           /* number of times put into it, and taken out */
};

POOL_HOT struct timer_entry *timer_entry(const struct timer *t, uint32_t i)
{
	return (void *)(t->entries + (size_t)i * POOL_STRIDE);
}

/* Return the first tick at or after `when`, or TIMER_NEVER if there is none. */
#define TIMER_NEVER UINT64_MAX
static inline uint64_t timer_tick(weir_time when)
{
	return when <= WEIR_NEVER - TIMER_TICK
		       ? (uint64_t)(when + TIMER_TICK - 1) >> TIMER_TICK_BITS
		       : TIMER_NEVER;
}
/* Return the start of the current slot. */
static inline weir_time timer_coarse(weir_time now)
{
	return now & -(TIMER_COARSE * TIMER_TICK);
}
/* Return the tick of the first start of a slot at or after `when`; a tick after all others if there is none. */
POOL_HOT uint64_t timer_tick_coarse(weir_time when)
{
	return ((uint64_t)when + TIMER_COARSE * TIMER_TICK - 1) / (TIMER_COARSE * TIMER_TICK) *
	       TIMER_COARSE;
}

void timer_move(struct timer *t, uint32_t i, uint64_t tick); /* to any time, or TIMER_NEVER */
void timer_unlink(struct timer *t, const struct timer_entry *e);

/* Make timer_expire run from this tick on. */
POOL_HOT void timer_wake(struct timer *t, int64_t tick)
{
	t->quiet = tick < t->quiet ? tick : t->quiet;
}

/* Put entry i, which is e, into a cell of slot s, which has an unused one. */
POOL_HOT void timer_take(struct timer *t, struct timer_entry *e, uint32_t i, uint32_t s)
{
	unsigned count = t->count[s], fine = e->tick % TIMER_COARSE ? TIMER_FINE : 0;

	timer_wake(t, e->tick & -TIMER_COARSE);
	t->slots[s].cell[count & TIMER_USED] = i;
	e->next = TIMER_NIL;
	e->prev = s * TIMER_WORDS + (count & TIMER_USED);
	t->count[s] = (uint8_t)((count + TIMER_LIVE + 1) | fine);
	marks_add(&t->marks, s);
}

/* Set entry i, which is e, to expire at a tick, whatever it was set to. */
POOL_HOT void timer_set_now(struct timer *t, struct timer_entry *e, uint32_t i, uint64_t tick)
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
/* The same for the times in the ring, oldest first. */
void timer_set_all(struct timer *t);
/* The same; in a large calendar soon: the slots are fetched into the cache meanwhile. */
POOL_HOT void timer_set_tick(struct timer *t, struct timer_entry *e, uint32_t i, uint64_t tick)
{
	uint32_t s = (uint32_t)(tick >> TIMER_COARSE_BITS) & t->mask;
	uint32_t old = e->prev / TIMER_WORDS & t->mask; /* its slot, if the entry is in a cell */

	if (t->mask < TIMER_NEAR) {
		t->asked = tick;
		timer_set_now(t, e, i, tick);
		return;
	}
	struct timer_late *late = &t->late[t->n_late % TIMER_LATE], before = *late;

	__builtin_prefetch(&t->count[s], 1);
	__builtin_prefetch(&t->slots[s], 1);
	__builtin_prefetch(&t->count[old], 1);
	__builtin_prefetch(&t->slots[old], 1);
	timer_wake(t, (int64_t)tick < t->edge[0] ? (int64_t)tick : (int64_t)tick & -TIMER_COARSE);
	*late = (struct timer_late){tick, i};
	t->asked = tick;
	if (t->n_late++ - t->n_taken < TIMER_LATE)
		return;
	t->n_taken++;
	timer_set_now(t, timer_entry(t, before.entry), before.entry, before.tick);
}
/* The same, at the first start of a slot at or after `when`. */
POOL_HOT void timer_set_coarse(struct timer *t, struct timer_entry *e, uint32_t i, weir_time when)
{
	timer_set_tick(t, e, i, timer_tick_coarse(when));
}

/* Set entry i to expire at `when`, or leave it at the time already set if that is earlier. */
static inline void timer_set(struct timer *t, uint32_t i, weir_time when)
{
	uint64_t tick = timer_tick(when);

	t->asked = tick;
	timer_set_all(t);
	if ((uint64_t)timer_entry(t, i)->tick > tick) /* unsigned: not set is greatest */
		timer_move(t, i, tick);
}
static inline void timer_clear(struct timer *t, uint32_t i)
{
	timer_set_all(t);
	timer_move(t, i, TIMER_NEVER);
}

/* Return the time to which an entry that has expired was set. */
POOL_HOT weir_time timer_was(const struct timer_entry *e)
{
	return (weir_time)~e->tick << TIMER_TICK_BITS;
}

/* Return true if timer_expire has work to do. */
POOL_HOT bool timer_due(const struct timer *t, weir_time now)
{
	return now >> TIMER_TICK_BITS >= t->quiet;
}
/* Advance time to `now` and return the number of entries that are due, up to `max`, in order in `ret`. They are no
 * longer set. If there were too many to return or to move, timer_next is not after `now`. */
uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max);
/* Write up to `max` entries that expire until a time, at least `least` if there are so many, in the order of slots,
 * and return their number. For prefetching: entries are not read, and of a slot's list only the first is returned.
 * `ret` needs room for max + TIMER_CELLS. */
uint32_t timer_soon(
	const struct timer *t, weir_time until, uint32_t least, uint32_t *ret, uint32_t max);

/* Read the cells of the calendar's slot that is `after` slots after the next. Also for prefetching. */
POOL_HOT void timer_cells(const struct timer *t, uint32_t after, uint32_t ret[TIMER_CELLS])
{
	uint32_t s = ((uint32_t)(t->edge[0] >> TIMER_COARSE_BITS) + after) & t->mask;

	memcpy(ret, t->slots[s].cell, sizeof t->slots[s].cell);
}

/* Return a time no later than the first expiry; WEIR_NEVER if nothing is set. */
weir_time timer_next(struct timer *t);

/* ---- the memory of a timer, and how it grows (calendar.c); not on the hot path */

/* Note that the entries have moved, and make room for this many; new ones have tick -1. The timer is zeroed at
 * first. Return 0, or -ENOMEM, then the timer is unchanged. */
int calendar_fit(struct timer *t, struct timer_entry *entries, uint32_t room);
void calendar_free(struct timer *t); /* the entries are the caller's */
size_t calendar_memory(const struct timer *t);

/* ---- internal, for calendar.c */

#define TIMER_LISTS ((TIMER_LEVELS - 1) * TIMER_FAR) /* besides the calendar's */

/* Return log2 of the ticks of a slot. */
static inline unsigned timer_bits(const struct timer *t, unsigned level)
{
	return level < 2 ? level * TIMER_COARSE_BITS : t->bits + (level - 2) * TIMER_FAR_BITS;
}
/* Return the ticks from the current slot on in which the calendar has room for one more slot of level 2. */
static inline int64_t timer_reach(const struct timer *t)
{
	return ((int64_t)(t->mask + 1) << TIMER_COARSE_BITS) - (INT64_C(1) << t->bits);
}
static inline struct timer_list *timer_ends(const struct timer *t, uint32_t list)
{
	return list <= t->mask ? &t->slots[list].more : &t->lists[list - t->mask - 1];
}
/* Put entry i, which is e, into the slot of its tick, which is not in the past. */
void timer_link(struct timer *t, struct timer_entry *e, uint32_t i);

#endif
