/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/window.h"
#include <math.h>

static void window_limit(struct window *w)
{
	w->limit = (uint32_t)(w->size / WINDOW_ONE);
	if (window_fractional(w) && w->credit >= 0)
		w->limit++;
}

void window_set(struct window *w, double slots, weir_time now)
{
	w->size = llround(slots * (double)WINDOW_ONE);
	w->stamp = now;
	window_limit(w);
}

void window_update_slow(struct window *w, weir_time now, uint32_t in_flight)
{
	weir_time span = now - w->stamp;
	int64_t used = (int64_t)(in_flight > w->limit ? in_flight : w->limit) * WINDOW_ONE;

	if (span > 0) {
		double credit = (double)w->credit + (double)(w->size - used) * (double)span;

		credit = fmin(fmax(credit, -(double)WINDOW_CAP), (double)WINDOW_CAP);
		w->credit = (int64_t)credit;
		w->stamp = now;
	}
	window_limit(w);
}

weir_time window_next(const struct window *w)
{
	int64_t part = w->size & (WINDOW_ONE - 1);

	if (part == 0 || w->credit >= 0)
		return WEIR_NEVER;
	return w->stamp + (-w->credit + part - 1) / part;
}
