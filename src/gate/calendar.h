/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calendar: the memory of a timer, and how it grows. Part of timer.h; nothing here is on the hot path.
 *
 * METHOD  The calendar has about a slot a timer. When there are to be more timers a longer one is made, and
 *         what is set goes from the one to the other, in order: O(timers + slots).
 */
#ifndef WEIR_GATE_CALENDAR_H
#define WEIR_GATE_CALENDAR_H

#include "gate/timer.h"

/* The entries are here now, and so many; new ones have tick -1. The timer is all zero at first. 0 or -ENOMEM,
 * then unchanged. */
int calendar_fit(struct timer *t, struct timer_entry *entries, uint32_t room);
void calendar_free(struct timer *t); /* the entries are the caller's */
size_t calendar_memory(const struct timer *t);

#endif
