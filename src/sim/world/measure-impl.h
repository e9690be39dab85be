/* SPDX-License-Identifier: BSD-3-Clause */
/* measure-impl: shared by measure.c (series, during the run) and measure-end.c (values, at the
 * end). */
#pragma once

#include "sim/world/measure-put.h"
#include "sim/world/measure.h"
#include "sim/world/world.h"

struct measure_mark { /* counters of one tenant or station at a time */
	struct world_count count;
	double inside_ns; /* request·ns beyond the gate, or in the station */
	double wait_ns[WEIR_CAUSES];
	uint64_t drops, marks;
	double worked_ns; /* of a station, if its model counts it */
};

/* Read the counters now: first of all tenants, then of all stations. */
void measure_mark_all(struct world *w, struct measure_mark *ret);

/* Return the difference from `from` to `to`. */
static inline struct measure_flow measure_between(
	const struct measure_mark *from, const struct measure_mark *to, weir_time span)
{
	struct measure_flow f = {.span = (double)span / 1e9,
		.ios = (double)(to->count.done - from->count.done),
		.bytes = (double)(to->count.bytes - from->count.bytes),
		.latency_ns = to->count.latency_ns - from->count.latency_ns,
		.outstanding = (to->inside_ns - from->inside_ns) / (double)span};

	f.latency_ms = f.ios > 0 ? f.latency_ns / f.ios / 1e6 : 0;
	return f;
}

static inline const char *measure_path(const struct world_tenant *t)
{
	return t->host->group->gate.policy->tenants[t->index].path;
}

static inline const char *measure_sort(const struct world *w, uint32_t station)
{
	return station < w->scenario->n_devices ? "device" : "link";
}
