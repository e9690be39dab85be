/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure: what a run is asked for at its end: values over the time after the warm-up, and series.
 *
 * METHOD  A completion puts three numbers into a ring. The ring is emptied in one go, the
 *         histograms' lines fetched ahead: with a thousand tenants each record would else wait for
 *         memory twice. Each tenant has a histogram of total latency for the running sample: a
 *         sample reads its p99, adds it to that of the whole run, and clears it. Time in the device
 *         goes into that of the run at once. All are small ones (base/hist-small.h): there may be
 *         100,000 hosts.
 *
 * NAMES   weir-scenario(5), "What is measured", lists them all.
 */
#ifndef WEIR_SIM_MEASURE_H
#define WEIR_SIM_MEASURE_H

#include "base/hist-small.h"
#include "sim/metrics.h"

struct world;

struct measure_tenant {
	struct hist_small total;                 /* the running sample's */
	struct hist_small all_total, all_device; /* since the warm-up's end */
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
		*last; /* counters at the warm-up's end, and at the last sample */
	weir_time began, sampled;
	bool warm;              /* the warm-up has ended */
	struct weir_hist whole; /* what is read from a small one */
	int *series;            /* handles, in the order in which a sample writes them */
	int failed;             /* sticky */
};

int measure_new(struct world *w, struct measure **ret);
void measure_free(struct measure *m);
void measure_tenant_free(struct measure_tenant *h); /* or NULL */

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

/* A sample ends at the world's now. */
void measure_sample(struct measure *m, struct world *w);
/* The warm-up ends at the world's now: the run's values count from here. */
void measure_begin(struct measure *m, struct world *w);
/* The run has ended: the last sample and all values. The metrics are the caller's. */
int measure_end(struct measure *m, struct world *w, struct metrics **ret);

#endif
