/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure-put: write measured values under their names.
 *
 * The simulator (measure.c) and the gateways of a live run both write their counts here, so that
 * one claim can be checked against either. weir-scenario(5), "What is measured", lists the names.
 */
#ifndef WEIR_SIM_MEASURE_PUT_H
#define WEIR_SIM_MEASURE_PUT_H

#include <weir/hist.h>
#include <weir/gate.h>
#include "sim/metrics.h"

/* The IOs of a tenant, a host, a device, a link or all, from one time to another. */
struct measure_flow {
	double span;                    /* s */
	double ios, bytes;              /* completed */
	double latency_ms, outstanding; /* means */
	double latency_ns;              /* sum */
};
void measure_flow_add(
	struct measure_flow *to, const struct measure_flow *from); /* except the span */

/* The series of a tenant, a host, a device or link, in the order in which a sample writes them. */
struct measure_series {
	const char *name, *unit;
};
#define MEASURE_TENANT_SERIES  5
#define MEASURE_HOST_SERIES    4
#define MEASURE_STATION_SERIES 5 /* the last, capacity, only if it is learned */
extern const struct measure_series measure_tenant_series[MEASURE_TENANT_SERIES],
	measure_host_series[MEASURE_HOST_SERIES], measure_station_series[MEASURE_STATION_SERIES];
/* Create `n` series PREFIX.NAME; put their handles into ret[0 … n − 1], which may hold an error. */
void measure_name_series(struct metrics *m, const char *prefix, const struct measure_series *series,
	size_t n, int *ret);

/* Write the values of a run. All return metrics_error(m). `sort` is "tenant" or
 * "inside"; the hist is in ns; wait_ns is request·ns by cause, over the flow's span. The times of a
 * tenant of which no IO completed are NaN (metrics.h). */
int measure_put_flow(struct metrics *m, const struct measure_flow *f, const char *prefix);
/* Write PREFIX.mean, the flow's mean latency. */
int measure_put_mean(struct metrics *m, const struct measure_flow *f, const char *prefix);
int measure_put_hist(struct metrics *m, const char *sort, const char *host, const char *path,
	const struct weir_hist *h);
int measure_put_wait(struct metrics *m, const char *host, const char *path,
	const double wait_ns[WEIR_CAUSES], const struct measure_flow *f);
/* Write the ratio of a tenant's percentile to its slo: above 1 is a miss. */
int measure_put_slo(struct metrics *m, const char *host, const char *path,
	const struct weir_hist *h, double percentile, weir_time bound);

#endif
