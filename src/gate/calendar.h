/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calendar: the memory of a timer, and how it grows. Part of timer.h; nothing here is on the hot path.
 *
 * METHOD  The calendar has about one slot per timer. When the number of timers grows a longer calendar is made, and
 *         the entries that are set are transferred in order: O(timers + slots).
 */
#ifndef WEIR_GATE_CALENDAR_H
#define WEIR_GATE_CALENDAR_H

#include "gate/timer.h"

/* Note that the entries have moved, and make room for this many; new ones have tick -1. The timer is zeroed at
 * first. Return 0, or -ENOMEM, then the timer is unchanged. */
int calendar_fit(struct timer *t, struct timer_entry *entries, uint32_t room);
void calendar_free(struct timer *t); /* the entries are the caller's */
size_t calendar_memory(const struct timer *t);

#endif
