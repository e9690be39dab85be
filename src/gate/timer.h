/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer: who is to be looked at again, and when.
 *
 * SOURCE  Varghese and Lauck, Hashed and Hierarchical Timing Wheels (SOSP'87), scheme 7.
 * METHOD  Three wheels, of 32, 16384 and 256 slots, a bit a slot, and a list of what is beyond. An
 *         entry stands on the wheel of the highest digit in which its time differs from now, and
 *         moves down when now reaches that digit: at most twice, and once in 137 s while it is
 *         beyond. Setting, expiring and finding the next are O(1). A slot of the middle wheel is
 *         33 µs, so that a move down is of few entries at a time, and there are 16384, so that most
 *         timers (537 ms) move once. One that is set to the beginning of such a slot
 *         (timer_set_coarse) does not even do that: it expires straight from there.
 * SYMBOLS A tick is 1.024 µs; an entry expires at the first tick at or after its time. Entries
 *         are small integers, one timer each, part of what they belong to. Those of one tick
 *         expire in the order in which they were set, however often somebody looks in between.
 * DIFFERS An earlier time already set is kept: the entry expires early, is looked at, and is set
 *         again. That saves most of the moves of a timer that is pushed back at every request.
 */
#ifndef WEIR_GATE_TIMER_H
#define WEIR_GATE_TIMER_H

#include "base/clock.h"
#include "gate/chain.h"
#include "gate/pool.h"
#include <stdbool.h>
#include <stddef.h>

#define TIMER_TICK_BITS 10
#define TIMER_TICK      (INT64_C(1) << TIMER_TICK_BITS) /* ns */
#define TIMER_COARSE    32 /* ticks: the lowest wheel; a slot of the middle one, 33 µs */
#define TIMER_WHEELS    4
#define TIMER_MIDDLE    16384
#define TIMER_FAR       256
#define TIMER_SLOTS     (TIMER_COARSE + TIMER_MIDDLE + TIMER_FAR + 1)
#define TIMER_WORDS     (1 + TIMER_MIDDLE / 64 + TIMER_FAR / 64 + 1)

struct timer_entry {
	int64_t tick;   /* when due; < 0: not set */
	uint32_t place; /* in its slot's chain */
};

struct timer {
	char *entries;              /* the first; POOL_STRIDE bytes from one to the next */
	uint32_t set;               /* how many are set */
	int64_t now;                /* tick */
	uint64_t top[TIMER_WHEELS]; /* which of a wheel's words of `words` are not 0 */
	uint64_t words[TIMER_WHEELS - 1 + TIMER_MIDDLE / 4096]; /* which words of `bits` are not */
	uint64_t bits[TIMER_WORDS];     /* which slots have entries: wheel after wheel */
	struct chain slot[TIMER_SLOTS]; /* where the slot's bit is set */
	struct chain_store store;
};

void timer_init(struct timer *t);
/* The entries are here now, and so many; new ones have tick -1. 0 or -ENOMEM, then unchanged. */
int timer_fit(struct timer *t, struct timer_entry *entries, uint32_t room);
void timer_free(struct timer *t); /* the entries are the caller's */

static inline struct timer_entry *timer_entry(const struct timer *t, uint32_t i)
{
	return (void *)(t->entries + (size_t)i * POOL_STRIDE);
}

void timer_move(struct timer *t, uint32_t i, int64_t tick); /* from later, or from not set */
/* The first tick at or after `when`; TIMER_NEVER: there is none. */
#define TIMER_NEVER UINT64_MAX
static inline uint64_t timer_tick(weir_time when)
{
	return when <= WEIR_NEVER - TIMER_TICK
		       ? (uint64_t)(when + TIMER_TICK - 1) >> TIMER_TICK_BITS
		       : TIMER_NEVER;
}
/* The last beginning of a slot of the middle wheel. */
static inline weir_time timer_coarse(weir_time now)
{
	return now & -(TIMER_COARSE * TIMER_TICK);
}
/* The tick of the first such beginning at or after `when`: cheaper to set. */
static inline uint64_t timer_tick_coarse(weir_time when)
{
	const weir_time coarse = TIMER_COARSE * TIMER_TICK;

	return when <= WEIR_NEVER - coarse
		       ? (uint64_t)timer_coarse(when + coarse - 1) >> TIMER_TICK_BITS
		       : TIMER_NEVER;
}
/* Entry i is to expire at `tick`, or at the time already set if that is earlier. */
static inline void timer_set_tick(struct timer *t, uint32_t i, uint64_t tick)
{
	if ((uint64_t)timer_entry(t, i)->tick > tick) /* unsigned: not set is never */
		timer_move(t, i, (int64_t)tick);
}
static inline void timer_set(struct timer *t, uint32_t i, weir_time when)
{
	timer_set_tick(t, i, timer_tick(when));
}
static inline void timer_set_coarse(struct timer *t, uint32_t i, weir_time when)
{
	timer_set_tick(t, i, timer_tick_coarse(when));
}
void timer_clear(struct timer *t, uint32_t i);

/* Moves time on to `now` and gives up to `max` entries that are due, in order; how many. Fewer than
 * max: there are no more. What expires is no longer set. */
uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max);
/* Up to `max` that expire soon, in the order of slots; how many. For fetching them into the cache:
 * nothing but hints. */
uint32_t timer_soon(const struct timer *t, uint32_t *ret, uint32_t max);

/* No later than the first expiry; WEIR_NEVER when nothing is set. */
weir_time timer_next(const struct timer *t);

#endif
