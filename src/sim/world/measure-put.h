/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure-put: write measured values under their names.
 *
 * The simulator (measure.c) and the gateways of a live run both write their counts here, so that
 * one claim can be checked against either. weir-scenario(5), "What is measured", lists the names.
 * Errors are those of the metrics (metrics_failed).
 */
#pragma once

#include <weir/hist.h>
#include <weir/gate.h>
#include "sim/metrics.h"

struct scenario;
struct weir_tenant;

/* The IOs of a tenant, a host, a device, a link or all, from one time to another. */
struct measure_flow {
	double span;                    /* s */
	double ios, bytes;              /* completed */
	double latency_ms, outstanding; /* means */
	double latency_ns;              /* sum */
};
/* Add all but the span, which is taken over. */
void measure_flow_add(struct measure_flow *to, const struct measure_flow *from);

/*
 * The series of a run: of its tenants, hosts, and stations (of a live run: devices), in this order.
 * `path` gives the host's index and the path of the n-th tenant.
 */
typedef const char *measure_tenant_path(const void *arg, size_t n, uint32_t *ret_host);
/* Return the handles, malloc'ed; NULL: out of memory. */
int *measure_series_new(struct metrics *m, const struct scenario *s, size_t n_tenants,
	measure_tenant_path *path, const void *arg);

struct measure_sampling { /* a sample, written in the same order */
	struct metrics *metrics;
	int *handle; /* the next */
	double t;    /* s */
};
void measure_sample_tenant(struct measure_sampling *s, const struct measure_flow *f, double p99_ms);
void measure_sample_host(struct measure_sampling *s, const struct measure_flow *f, double window);
/* capacity: only if it is learned. */
void measure_sample_station(
	struct measure_sampling *s, const struct measure_flow *f, const double *capacity);
void measure_sample_total(struct measure_sampling *s, double iops);

/*
 * The values of a run. `sort` is "tenant" or "inside"; the hist is in ns; wait_ns is request·ns by
 * cause, over the flow's span. The times of a tenant of which no IO completed are NaN (metrics.h).
 */
void measure_put_flow(struct metrics *m, const struct measure_flow *f, const char *prefix);
/* The same with the mean latency. */
void measure_put_group(struct metrics *m, const struct measure_flow *f, const char *prefix);
/* The learned capacity: requests and bytes a second; NAN: not known. */
void measure_put_capacity(struct metrics *m, const double capacity[2], const char *prefix);
void measure_put_share(
	struct metrics *m, const struct measure_flow *f, double device_ios, const char *prefix);
void measure_put_hist(struct metrics *m, const char *sort, const char *host, const char *path,
	const struct weir_hist *h);
void measure_put_wait(struct metrics *m, const char *host, const char *path,
	const double wait_ns[WEIR_CAUSES], const struct measure_flow *f);
/* Write the ratio of a tenant's percentile to its slo: above 1 is a miss. */
void measure_put_slo(struct metrics *m, const char *host, const struct weir_tenant *t,
	const struct weir_hist *h);
