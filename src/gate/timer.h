/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer: who is to be looked at again, and when.
 *
 * SOURCE  Varghese and Lauck, Hashed and Hierarchical Timing Wheels (SOSP'87), scheme 7.
 * METHOD  Three wheels, of 64, 1024 and 1024 slots, a bit a slot, and a list of what is beyond. An entry stands on the wheel of
 *         the highest digit in which its time differs from now, and moves down when now reaches
 *         that digit: at most twice, and once in 69 s while it is beyond. Setting, expiring and finding the next are O(1). The middle
 *         wheel is wide so that a move down is of few entries at a time: one slot of it is 65 µs.
 * SYMBOLS A tick is 1.024 µs; an entry expires at the first tick at or after its time. Entries
 *         are small integers, one timer each.
 * DIFFERS An earlier time already set is kept: the entry expires early, is looked at, and is set
 *         again. That saves most of the moves of a timer that is pushed back at every request.
 */
#ifndef WEIR_GATE_TIMER_H
#define WEIR_GATE_TIMER_H

#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>

#define TIMER_TICK_BITS 10
#define TIMER_TICK      (INT64_C(1) << TIMER_TICK_BITS) /* ns */
#define TIMER_WHEELS    4
#define TIMER_SLOTS     (64 + 1024 + 1024 + 1)
#define TIMER_NIL       UINT32_MAX

struct timer_entry {
	int64_t tick; /* when due; < 0: not set */
	uint32_t next, prev;
};

struct timer {
	struct timer_entry *entries; /* the slots' list heads, then the entries */
	uint32_t room;               /* entries, heads apart */
	int64_t now;                 /* tick */
	uint64_t bits[1 + 16 + 16 +
		      1]; /* which slots have entries: 64 slots a word, wheel after wheel */
	uint64_t top[TIMER_WHEELS]; /* which of a wheel's words are not 0 */
	uint32_t set;               /* how many are set */
};

int timer_init(struct timer *t, uint32_t room);
int timer_grow(struct timer *t, uint32_t room); /* 0 or -ENOMEM, then unchanged */
void timer_free(struct timer *t);

/* Entry i is to expire at `when`, or at the time already set if that is earlier. */
void timer_set(struct timer *t, uint32_t i, weir_time when);
void timer_clear(struct timer *t, uint32_t i);

/* Moves time on to `now` and gives up to `max` entries that are due, in order; how many. Fewer than
 * max: there are no more. What expires is no longer set. */
uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max);
/* No later than the first expiry; WEIR_NEVER when nothing is set. */
weir_time timer_next(const struct timer *t);

#endif
