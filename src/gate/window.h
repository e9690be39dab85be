/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * window: the number of requests that may be in flight at once, with fractions kept over time.
 *
 * LAW     The time average of max(limit, in flight) is w, with limit ∈ {⌊w⌋, ⌊w⌋ + 1}.
 * METHOD  A credit integrates w − max(limit, in flight); the limit is the upper one while the
 *         credit is not negative. For w < 1 that means: one request inside for d, then none for d·(1 − w)/w.
 * DIFFERS PARDA §3.3 names fractional windows as an open problem; ⌊w⌋ would skew small windows.
 * EXAMPLE w = 2.5 over a device that takes 1 ms: two and three inside, half the time each.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>

#define WINDOW_ONE       INT64_C(65536) /* one slot */
#define WINDOW_MAX       1e6            /* slots */
#define WINDOW_BYTES_MAX 0x1p52         /* largest: a double holds all whole numbers up to it */
#define WINDOW_CAP       (WINDOW_ONE * INT64_C(1000000000)) /* most credit: a slot for a second */

struct window {
	int64_t size;    /* w, in 1/WINDOW_ONE slots */
	int64_t credit;  /* 1/WINDOW_ONE slot·ns */
	weir_time stamp; /* time for which the credit is valid */
	uint32_t limit;  /* current limit, slots */
};

static inline bool window_fractional(const struct window *w)
{
	return (w->size & (WINDOW_ONE - 1)) != 0;
}

void window_set(struct window *w, double slots, weir_time now);
void window_update_slow(struct window *w, weir_time now, uint32_t in_flight);

/* Call it before in_flight changes and before limit is read. */
static inline void window_update(struct window *w, weir_time now, uint32_t in_flight)
{
	if (window_fractional(w))
		window_update_slow(w, now, in_flight);
}

/* Return when the limit will rise by itself; WEIR_NEVER if it won't. */
weir_time window_next(const struct window *w);
