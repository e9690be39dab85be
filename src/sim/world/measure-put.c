/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/measure-put.h"
#include "sim/scenario/scenario.h"
#include <math.h>
#include <stdlib.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *const cause_names[WEIR_CAUSES] = {"window", "max", "above", "tokens", "turn"};

struct series {
	const char *name, *unit;
};
static const struct series tenant_series[] = {{"throughput", "iops"}, {"bandwidth", "B/s"},
	{"latency", "ms"}, {"latency_p99", "ms"}, {"outstanding", "requests"}};
static const struct series host_series[] = {{"throughput", "iops"}, {"latency", "ms"},
	{"outstanding", "requests"}, {"window", "requests"}};
static const struct series station_series[] = {{"throughput", "iops"}, {"bandwidth", "B/s"},
	{"latency", "ms"}, {"outstanding", "requests"}, {"capacity", "iops"}};

void measure_flow_add(struct measure_flow *to, const struct measure_flow *from)
{
	to->span = from->span;
	to->ios += from->ios;
	to->bytes += from->bytes;
	to->latency_ns += from->latency_ns;
	to->outstanding += from->outstanding;
	to->latency_ms = to->ios > 0 ? to->latency_ns / to->ios / 1e6 : 0;
}

/* ---- series */

/* Create series SORT.NAME[.PATH].SERIES; return the handle after theirs. */
static int *name_series(struct metrics *m, const char *sort, const char *name, const char *path,
	const struct series *series, size_t n, int *ret)
{
	for (size_t i = 0; i < n; i++)
		*ret++ = metrics_seriesf(m, series[i].unit, "%s.%s%s%s.%s", sort, name,
			path ? "." : "", path ? path : "", series[i].name);
	return ret;
}

int *measure_series_new(struct metrics *m, const struct scenario *s, size_t n_tenants,
	measure_tenant_path *path, const void *arg)
{
	int *all = calloc(n_tenants * N(tenant_series) + s->n_hosts * N(host_series) +
				  s->n_stations * N(station_series) + 1,
		sizeof(*all));
	int *h = all;

	for (size_t i = 0; h && i < n_tenants; i++) {
		uint32_t host;
		const char *name = path(arg, i, &host);

		h = name_series(
			m, "tenant", s->hosts[host].name, name, tenant_series, N(tenant_series), h);
	}
	for (uint32_t i = 0; h && i < s->n_hosts; i++)
		h = name_series(m, "host", s->hosts[i].name, NULL, host_series, N(host_series), h);
	for (uint32_t i = 0; h && i < s->n_stations; i++)
		h = name_series(m, i < s->n_devices ? "device" : "link", s->stations[i].name, NULL,
			station_series, N(station_series) - !s->stations[i].capacity_auto, h);
	if (h)
		*h = metrics_series(m, "total.throughput", "iops");
	return all;
}

static void put_point(struct measure_sampling *s, double value)
{
	metrics_append(s->metrics, *s->handle++, s->t, value);
}

/* Skip the latency of a sample in which no IO completed: it is not 0. */
static void put_latency(struct measure_sampling *s, const struct measure_flow *f, double ms)
{
	if (f->ios > 0)
		put_point(s, ms);
	else
		s->handle++;
}

static double rate_of(const struct measure_flow *f, double count)
{
	return f->span > 0 ? count / f->span : 0;
}

void measure_sample_tenant(struct measure_sampling *s, const struct measure_flow *f, double p99_ms)
{
	put_point(s, rate_of(f, f->ios));
	put_point(s, rate_of(f, f->bytes));
	put_latency(s, f, f->latency_ms);
	put_latency(s, f, p99_ms);
	put_point(s, f->outstanding);
}

void measure_sample_host(struct measure_sampling *s, const struct measure_flow *f, double window)
{
	put_point(s, rate_of(f, f->ios));
	put_latency(s, f, f->latency_ms);
	put_point(s, f->outstanding);
	put_point(s, window);
}

void measure_sample_station(
	struct measure_sampling *s, const struct measure_flow *f, const double *capacity)
{
	put_point(s, rate_of(f, f->ios));
	put_point(s, rate_of(f, f->bytes));
	put_latency(s, f, f->latency_ms);
	put_point(s, f->outstanding);
	if (capacity)
		put_point(s, *capacity);
}

void measure_sample_total(struct measure_sampling *s, double iops)
{
	put_point(s, iops);
}

/* ---- values */

void measure_put_hist(struct metrics *m, const char *sort, const char *host, const char *path,
	const struct weir_hist *h)
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}, {"p99_9", 99.9}, {"p99_99", 99.99}};
	double scale = h->count > 0 ? 1e6 : NAN; /* ns per ms; NaN if no IO completed */

	metrics_putf(m, "ms", weir_hist_mean(h) / scale, "%s.%s.%s.mean", sort, host, path);
	for (size_t i = 0; i < N(points); i++)
		metrics_putf(m, "ms", (double)weir_hist_percentile(h, points[i].percent) / scale,
			"%s.%s.%s.%s", sort, host, path, points[i].name);
	metrics_putf(m, "ms", (double)h->max / scale, "%s.%s.%s.max", sort, host, path);
}

void measure_put_flow(struct metrics *m, const struct measure_flow *f, const char *prefix)
{
	metrics_putf(m, "requests", f->ios, "%s.ios", prefix);
	metrics_putf(m, "iops", f->ios / f->span, "%s.iops", prefix);
	metrics_putf(m, "B/s", f->bytes / f->span, "%s.bytes", prefix);
	metrics_putf(m, "requests", f->outstanding, "%s.in_flight", prefix);
}

void measure_put_group(struct metrics *m, const struct measure_flow *f, const char *prefix)
{
	measure_put_flow(m, f, prefix);
	metrics_putf(m, "ms", f->ios > 0 ? f->latency_ms : NAN, "%s.mean", prefix);
}

void measure_put_capacity(struct metrics *m, const double capacity[2], const char *prefix)
{
	metrics_putf(m, "iops", isnan(capacity[0]) ? 0 : capacity[0], "%s.capacity_iops", prefix);
	metrics_putf(m, "B/s", isnan(capacity[1]) ? 0 : capacity[1], "%s.capacity_bytes", prefix);
}

void measure_put_share(
	struct metrics *m, const struct measure_flow *f, double device_ios, const char *prefix)
{
	metrics_putf(m, "", device_ios > 0 ? f->ios / device_ios : 0, "%s.share", prefix);
}

void measure_put_wait(struct metrics *m, const char *host, const char *path,
	const double wait_ns[WEIR_CAUSES], const struct measure_flow *f)
{
	double sum = 0, n = f->ios > 0 ? f->ios : NAN;

	for (int c = 0; c < WEIR_CAUSES; c++)
		sum += wait_ns[c];
	metrics_putf(m, "ms", sum / n / 1e6, "wait.%s.%s.mean", host, path);
	for (int c = 0; c < WEIR_CAUSES; c++)
		metrics_putf(
			m, "ms", wait_ns[c] / n / 1e6, "wait.%s.%s.%s", host, path, cause_names[c]);
	metrics_putf(m, "requests", sum / (f->span * 1e9), "wait.%s.%s.queued", host, path);
}

void measure_put_slo(
	struct metrics *m, const char *host, const struct weir_tenant *t, const struct weir_hist *h)
{
	double found = h->count > 0 ? (double)weir_hist_percentile(h, t->slo_percentile) : NAN;

	metrics_putf(m, "", found / (double)t->slo_latency, "slo.%s.%s.ratio", host, t->path);
}
