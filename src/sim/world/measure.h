/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure: the results of a run: values over the time after the warm-up, and series.
 *
 * METHOD  A completion puts three numbers into a ring. A full ring is drained at once, and the
 *         histograms' lines are prefetched: with a thousand tenants each record would otherwise
 *         wait for memory twice. Each tenant has a histogram of total latency for the current
 *         sample: at its end the p99 is read, the histogram is added to that of the whole run, and
 *         cleared. Time in the device is recorded in a histogram of the run directly. All are small
 *         histograms (base/hist-small.h): there may be 100,000 hosts.
 *
 * NAMES   weir-scenario(5), "What is measured", lists them all.
 */
#pragma once

#include "base/hist-small.h"
#include "sim/metrics.h"

struct world;
struct world_tenant;

struct measure_tenant {
	struct hist_small total;                 /* of the current sample */
	struct hist_small all_total, all_device; /* since the end of the warm-up */
};

#define MEASURE_RING 1024

struct measure {
	uint32_t n;
	struct {
		uint32_t tenant;
		weir_time total, device; /* ns */
	} ring[MEASURE_RING];
	struct world *world;
	struct metrics *metrics;
	struct measure_mark *begin,
		*last; /* counters at the end of the warm-up, and at the last sample */
	weir_time began, sampled;
	bool warm;              /* the warm-up has ended */
	struct weir_hist whole; /* an expanded small histogram */
	int *series;            /* handles, in the order in which a sample writes them */
	int failed;             /* first error, sticky */
};

int measure_new(struct world *w, struct measure **ret);
void measure_free(struct measure *m);
void measure_tenant_free(struct measure_tenant *h); /* may be NULL */

void measure_drain(struct measure *m);
static inline void measure_record(
	struct measure *m, uint32_t tenant, weir_time total, weir_time device)
{
	m->ring[m->n].tenant = tenant;
	m->ring[m->n].total = total;
	m->ring[m->n].device = device;
	if (++m->n == MEASURE_RING)
		measure_drain(m);
}

/* End a sample at the world's now. */
void measure_sample(struct measure *m, struct world *w);
/* End the warm-up at the world's now: the run's values count from here. */
void measure_begin(struct measure *m, struct world *w);
/* End the run: write the last sample and all values. The caller owns the metrics. */
int measure_end(struct measure *m, struct world *w, struct metrics **ret);
/* Write the plan of a tenant, if it has one. */
void measure_put_plan(struct metrics *m, const struct world_tenant *t);
