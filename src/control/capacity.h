/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capacity: estimate how many requests and bytes per second a resource can serve.
 *
 * A resource shows its capacity only while it is saturated, that is, while its gate's window is
 * full. The site of a controller owns the estimate and calls capacity_watch every 10 ms to 1 s, which divides the
 * time into its own intervals and keeps an estimate in requests and in bytes per second. The
 * estimate keeps changing: mins, and the controllers that divide capacity, use the latest value.
 *
 * Pure: no clock, no allocation. The counters may start at any value and must not fall.
 */
#pragma once

#include <weir/gate.h>

struct capacity_config {    /* 0: the default */
	weir_time interval; /* least length of an observation; 1 s */
	weir_time settle;   /* time constant of falling, and of small rises; 10 s */
	double saturated;   /* share of an interval with the window full that counts; 0.8 */
};

struct capacity_totals {   /* from any origin; totals of the gate, or counters of the caller */
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

/* For a site: take the time during which the window was full from the gates in front of the resource, as the mean of
 * those that had requests, and step. `requests` and `bytes` as in struct capacity_totals. O(n). */
bool capacity_watch(struct capacity *c, weir_time now, struct weir_gate *const *gates, size_t n,
	uint64_t requests, uint64_t bytes);

/* For counters without a gate: pass the totals at `now`. Return true if an interval ended and the estimate was updated. A `now`
 * that does not advance is ignored. O(1). */
bool capacity_step(struct capacity *c, weir_time now, const struct capacity_totals *totals);

static inline bool capacity_known(const struct capacity *c)
{
	return c->rate[0] > 0;
}
