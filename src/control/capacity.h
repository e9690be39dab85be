/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capacity: how much a resource can do, learned from what it does, all the time.
 *
 * A resource shows its capacity only while it is saturated: while its gate's window is full. Fed
 * with a gate's running totals, now and then (every 10 ms to 1 s; it makes its own intervals), this
 * keeps an estimate in requests and in bytes per second. It is never measured once and for all:
 * mins, and the controllers that divide capacity, use the number as it is now, and it is shown.
 *
 * Pure: no clock, no memory of its own. The counters may start anywhere and must not fall.
 */
#ifndef WEIR_CONTROL_CAPACITY_H
#define WEIR_CONTROL_CAPACITY_H

#include <weir/clock.h>
#include <stdbool.h>
#include <stdint.h>

struct capacity_config {    /* 0: the default */
	weir_time interval; /* least length of an observation; 1 s */
	weir_time settle;   /* time constant of falling, and of small rises; 10 s */
	double saturated;   /* share of an interval with the window full that counts; 0.8 */
};

struct capacity_totals {   /* since any origin; of the gate's totals or the caller's own counters */
	uint64_t requests; /* served; their cost in requests where large ones count as several */
	uint64_t bytes;    /* served */
	weir_time full;    /* time during which the window was full */
};

struct capacity {
	struct capacity_config config;
	bool started;
	weir_time since;              /* start of the running interval */
	struct capacity_totals start; /* totals then */
	double rate[2]; /* per second: requests, bytes (enum weir_unit); 0: not known yet */
	weir_time seen; /* end of the last saturated interval; 0 if none */
};

void capacity_init(struct capacity *c, const struct capacity_config *config); /* NULL: defaults */

/* Tells it the totals at `now`. true: an interval ended and the estimate was renewed. A `now` that
 * does not advance is ignored. O(1). */
bool capacity_step(struct capacity *c, weir_time now, const struct capacity_totals *totals);

static inline bool capacity_known(const struct capacity *c)
{
	return c->rate[0] > 0;
}

#endif
