/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/measure-put.h"
#include <math.h>

#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *const cause_names[WEIR_CAUSES] = {"window", "max", "above", "tokens", "turn"};

const struct measure_series measure_tenant_series[MEASURE_TENANT_SERIES] = {{"throughput", "iops"},
	{"bandwidth", "B/s"}, {"latency", "ms"}, {"latency_p99", "ms"},
	{"outstanding", "requests"}};
const struct measure_series measure_host_series[MEASURE_HOST_SERIES] = {{"throughput", "iops"},
	{"latency", "ms"}, {"outstanding", "requests"}, {"window", "requests"}};
const struct measure_series measure_station_series[MEASURE_STATION_SERIES] = {
	{"throughput", "iops"}, {"bandwidth", "B/s"}, {"latency", "ms"},
	{"outstanding", "requests"}, {"capacity", "iops"}};

void measure_flow_add(struct measure_flow *to, const struct measure_flow *from)
{
	to->ios += from->ios;
	to->bytes += from->bytes;
	to->latency_ns += from->latency_ns;
	to->outstanding += from->outstanding;
	to->latency_ms = to->ios > 0 ? to->latency_ns / to->ios / 1e6 : 0;
}

void measure_name_series(struct metrics *m, const char *prefix, const struct measure_series *series,
	size_t n, int *ret)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = metrics_seriesf(m, series[i].unit, "%s.%s", prefix, series[i].name);
}

int measure_put_hist(struct metrics *m, const char *sort, const char *host, const char *path,
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
	return metrics_error(m);
}

int measure_put_mean(struct metrics *m, const struct measure_flow *f, const char *prefix)
{
	return metrics_putf(m, "ms", f->ios > 0 ? f->latency_ms : NAN, "%s.mean", prefix);
}

int measure_put_flow(struct metrics *m, const struct measure_flow *f, const char *prefix)
{
	metrics_putf(m, "requests", f->ios, "%s.ios", prefix);
	metrics_putf(m, "iops", f->ios / f->span, "%s.iops", prefix);
	metrics_putf(m, "B/s", f->bytes / f->span, "%s.bytes", prefix);
	metrics_putf(m, "requests", f->outstanding, "%s.in_flight", prefix);
	return metrics_error(m);
}

int measure_put_wait(struct metrics *m, const char *host, const char *path,
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
	return metrics_error(m);
}

int measure_put_slo(struct metrics *m, const char *host, const char *path,
	const struct weir_hist *h, double percentile, weir_time bound)
{
	double found = h->count > 0 ? (double)weir_hist_percentile(h, percentile) : NAN;

	return metrics_putf(m, "", found / (double)bound, "slo.%s.%s.ratio", host, path);
}
