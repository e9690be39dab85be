/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/measure.h"
#include "sim/controller.h"
#include "sim/world.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 8 /* records whose histograms are fetched before they are needed */

struct measure_mark { /* counters of one tenant or station at a time */
	struct world_count count;
	double inside_ns; /* request·ns beyond the gate, or in the station */
	double wait_ns[WEIR_CAUSES];
	uint64_t drops, marks;
};

static const char *const cause_names[WEIR_CAUSES] = {"window", "max", "above", "tokens", "turn"};

/* series of a tenant, a host, a device or link, in the order of writing */
static const struct {
	const char *name, *unit;
} tenant_series[] = {{"throughput", "iops"}, {"bandwidth", "B/s"}, {"latency", "ms"},
	{"latency_p99", "ms"}, {"outstanding", "requests"}},
  host_series[] = {{"throughput", "iops"}, {"latency", "ms"}, {"outstanding", "requests"},
	  {"window", "requests"}},
  station_series[] = {{"throughput", "iops"}, {"bandwidth", "B/s"}, {"latency", "ms"},
	  {"outstanding", "requests"}, {"capacity", "iops"}};
#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char *tenant_path(const struct world_tenant *t)
{
	return t->host->group->gate.policy->tenants[t->index].path;
}

static const char *station_sort(const struct world *w, uint32_t i)
{
	return i < w->scenario->n_devices ? "device" : "link";
}

/* ---- set-up */

static int name_series(struct measure *m, struct world *w)
{
	int *h = m->series;

	for (uint32_t i = 0; i < w->n_tenants; i++) {
		for (size_t k = 0; k < N(tenant_series); k++)
			*h++ = metrics_seriesf(m->metrics, tenant_series[k].unit, "tenant.%s.%s.%s",
				w->tenants[i].host->name, tenant_path(&w->tenants[i]),
				tenant_series[k].name);
	}
	for (uint32_t i = 0; i < w->scenario->n_hosts; i++) {
		for (size_t k = 0; k < N(host_series); k++)
			*h++ = metrics_seriesf(m->metrics, host_series[k].unit, "host.%s.%s",
				w->hosts[i].name, host_series[k].name);
	}
	for (uint32_t i = 0; i < w->scenario->n_stations; i++) {
		bool learns = w->stations[i].config->capacity_auto;
		for (size_t k = 0; k < N(station_series) - !learns; k++)
			*h++ = metrics_seriesf(m->metrics, station_series[k].unit, "%s.%s.%s",
				station_sort(w, i), w->stations[i].config->name,
				station_series[k].name);
	}
	*h++ = metrics_series(m->metrics, "total.throughput", "iops");
	for (int *p = m->series; p < h; p++) {
		if (*p < 0)
			return *p;
	}
	return 0;
}

int measure_new(struct world *w, struct measure **ret)
{
	size_t things = w->n_tenants + w->scenario->n_stations;
	size_t series = w->n_tenants * N(tenant_series) + w->scenario->n_hosts * N(host_series) +
			w->scenario->n_stations * N(station_series) + 1;
	struct measure *m = calloc(1, sizeof(*m));
	int r = -ENOMEM;

	if (!m)
		return -ENOMEM;
	m->world = w;
	m->begin = calloc(things, sizeof(*m->begin));
	m->last = calloc(things, sizeof(*m->last));
	m->series = calloc(series, sizeof(*m->series));
	if (m->begin && m->last && m->series)
		r = metrics_new(&m->metrics);
	if (r == 0 && w->scenario->sample)
		r = name_series(m, w);
	if (r) {
		measure_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void measure_free(struct measure *m)
{
	if (!m)
		return;
	metrics_free(m->metrics);
	free(m->begin);
	free(m->last);
	free(m->series);
	free(m);
}

/* ---- records */

static struct measure_tenant *histograms(struct measure *m, struct world_tenant *t)
{
	struct measure_tenant *h;

	if (t->measure)
		return t->measure;
	h = malloc(sizeof(*h));
	if (!h) {
		m->failed = -ENOMEM;
		return NULL;
	}
	weir_hist_clear(&h->total);
	weir_hist_clear(&h->device);
	weir_hist_clear(&h->all_total);
	weir_hist_clear(&h->all_device);
	return t->measure = h;
}

void measure_drain(struct measure *m)
{
	struct world_tenant *tenants = m->world->tenants;

	for (uint32_t i = 0; i < m->n; i++) {
		struct measure_tenant *h;
		if (i + AHEAD < m->n && (h = tenants[m->ring[i + AHEAD].tenant].measure)) {
			__builtin_prefetch(&h->total, 1);
			__builtin_prefetch(&h->device, 1);
		}
		h = histograms(m, &tenants[m->ring[i].tenant]);
		if (!h)
			break;
		weir_hist_record(&h->total, (uint64_t)m->ring[i].total);
		weir_hist_record(&h->device, (uint64_t)m->ring[i].device);
	}
	m->n = 0;
}

/* ---- marks */

static void mark_tenant(struct world *w, const struct world_tenant *t, struct measure_mark *ret)
{
	struct weir_gate_stats stats;

	ret->count = t->count;
	if (weir_gate_stats(t->host->gate->gate, w->now, t->node, &stats))
		return;
	ret->inside_ns = stats.device_ns;
	memcpy(ret->wait_ns, stats.wait_ns, sizeof(ret->wait_ns));
}

static void mark_station(struct world *w, const struct world_station *st, struct measure_mark *ret)
{
	ret->count = st->count;
	ret->inside_ns = st->inside_ns + (double)st->inside * (double)(w->now - st->inside_since);
	ret->drops = st->drops;
	ret->marks = st->marks;
}

static void mark_all(struct world *w, struct measure_mark *ret)
{
	for (uint32_t i = 0; i < w->n_tenants; i++)
		mark_tenant(w, &w->tenants[i], &ret[i]);
	for (uint32_t i = 0; i < w->scenario->n_stations; i++)
		mark_station(w, &w->stations[i], &ret[w->n_tenants + i]);
}

/* What happened from `from` to `to`. */
struct measure_flow {
	double span;                    /* s */
	double ios, bytes;              /* completed */
	double latency_ms, outstanding; /* means */
	double latency_ns;              /* summed */
};

static struct measure_flow flow(
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

/* ---- samples */

struct sampling {
	struct measure *m;
	struct world *w;
	int *handle;
	double t;
	weir_time span;
};

static void put(struct sampling *s, double value)
{
	int r = metrics_append(s->m->metrics, *s->handle++, s->t, value);

	if (r)
		s->m->failed = r;
}

/* Latency in a sample in which nothing completed is not 0: there is none. */
static void put_if(struct sampling *s, bool any, double value)
{
	if (any)
		put(s, value);
	else
		s->handle++;
}

static void sample_tenant(struct sampling *s, const struct world_tenant *t,
	struct measure_mark *last, struct measure_flow *host)
{
	struct measure_mark now;
	struct measure_flow f;

	mark_tenant(s->w, t, &now);
	f = flow(last, &now, s->span);
	put(s, f.ios / f.span);
	put(s, f.bytes / f.span);
	put_if(s, f.ios > 0, f.latency_ms);
	put_if(s, f.ios > 0,
		f.ios > 0 ? (double)weir_hist_percentile(&t->measure->total, 99) / 1e6 : 0);
	put(s, f.outstanding);
	host->ios += f.ios;
	host->latency_ns += f.latency_ns;
	host->outstanding += f.outstanding;
	*last = now;
}

static void sample_host(
	struct sampling *s, const struct world_host *h, const struct measure_flow *f)
{
	struct weir_gate_totals totals;

	weir_gate_totals(h->gate->gate, s->w->now, &totals);
	put(s, f->ios / ((double)s->span / 1e9));
	put_if(s, f->ios > 0, f->latency_ns / f->ios / 1e6);
	put(s, f->outstanding);
	put(s, totals.window);
}

static void sample_station(
	struct sampling *s, const struct world_station *st, struct measure_mark *last)
{
	struct measure_mark now;
	struct measure_flow f;

	mark_station(s->w, st, &now);
	f = flow(last, &now, s->span);
	put(s, f.ios / f.span);
	put(s, f.bytes / f.span);
	put_if(s, f.ios > 0, f.latency_ms);
	put(s, f.outstanding);
	if (st->config->capacity_auto)
		put(s, st->capacity);
	*last = now;
}

static void write_sample(struct measure *m, struct world *w)
{
	struct sampling s = {m, w, m->series, (double)w->now / 1e9, w->now - m->sampled};
	const struct scenario *sc = w->scenario;
	struct measure_flow *hosts = calloc(sc->n_hosts, sizeof(*hosts));
	double total = 0;

	if (!hosts) {
		m->failed = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < w->n_tenants; i++)
		sample_tenant(
			&s, &w->tenants[i], &m->last[i], &hosts[w->tenants[i].host - w->hosts]);
	for (uint32_t i = 0; i < sc->n_hosts; i++) {
		sample_host(&s, &w->hosts[i], &hosts[i]);
		total += hosts[i].ios;
	}
	for (uint32_t i = 0; i < sc->n_stations; i++)
		sample_station(&s, &w->stations[i], &m->last[w->n_tenants + i]);
	put(&s, total / ((double)s.span / 1e9));
	free(hosts);
}

/* The running sample's histograms go to the run's, or before the warm-up's end nowhere. */
static void fold(struct world *w, bool keep)
{
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		struct measure_tenant *h = w->tenants[i].measure;
		if (!h || h->total.count == 0)
			continue;
		if (keep) {
			weir_hist_merge(&h->all_total, &h->total);
			weir_hist_merge(&h->all_device, &h->device);
		}
		weir_hist_clear(&h->total);
		weir_hist_clear(&h->device);
	}
}

void measure_sample(struct measure *m, struct world *w)
{
	measure_drain(m);
	if (w->now == m->sampled)
		return;
	if (w->scenario->sample)
		write_sample(m, w);
	fold(w, w->now > w->warmup);
	m->sampled = w->now;
}

void measure_begin(struct measure *m, struct world *w)
{
	measure_sample(m, w);
	mark_all(w, m->begin);
	m->began = w->now;
}

/* ---- the end */

static int put_hist(struct metrics *m, const char *sort, const struct world_tenant *t,
	const struct weir_hist *h)
{
	static const struct {
		const char *name;
		double percent;
	} points[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}, {"p99_9", 99.9}, {"p99_99", 99.99}};
	const char *host = t->host->name, *path = tenant_path(t);
	int r = metrics_putf(m, "ms", weir_hist_mean(h) / 1e6, "%s.%s.%s.mean", sort, host, path);

	for (size_t i = 0; r == 0 && i < N(points); i++)
		r = metrics_putf(m, "ms", (double)weir_hist_percentile(h, points[i].percent) / 1e6,
			"%s.%s.%s.%s", sort, host, path, points[i].name);
	return r ? r
		 : metrics_putf(m, "ms", (double)h->max / 1e6, "%s.%s.%s.max", sort, host, path);
}

static int put_flow(struct metrics *m, const struct measure_flow *f, const char *prefix)
{
	int r = metrics_putf(m, "requests", f->ios, "%s.ios", prefix);

	if (r == 0)
		r = metrics_putf(m, "iops", f->ios / f->span, "%s.iops", prefix);
	if (r == 0)
		r = metrics_putf(m, "B/s", f->bytes / f->span, "%s.bytes", prefix);
	return r ? r : metrics_putf(m, "requests", f->outstanding, "%s.in_flight", prefix);
}

static int put_wait(struct metrics *m, const struct world_tenant *t,
	const struct measure_mark *from, const struct measure_mark *to,
	const struct measure_flow *f)
{
	double sum = 0, n = f->ios > 0 ? f->ios : 1;
	const char *host = t->host->name, *path = tenant_path(t);
	int r = 0;

	for (int c = 0; c < WEIR_CAUSES; c++)
		sum += to->wait_ns[c] - from->wait_ns[c];
	r = metrics_putf(m, "ms", sum / n / 1e6, "wait.%s.%s.mean", host, path);
	for (int c = 0; r == 0 && c < WEIR_CAUSES; c++)
		r = metrics_putf(m, "ms", (to->wait_ns[c] - from->wait_ns[c]) / n / 1e6,
			"wait.%s.%s.%s", host, path, cause_names[c]);
	return r ? r
		 : metrics_putf(
			   m, "requests", sum / (f->span * 1e9), "wait.%s.%s.queued", host, path);
}

/* How near a tenant with an `slo` came to it: over 1 is a miss. */
static int put_slo(struct metrics *m, const struct world_tenant *t)
{
	const struct weir_tenant *p = &t->host->group->gate.policy->tenants[t->index];
	double found;

	if (p->slo_percentile <= 0 || !t->measure)
		return 0;
	found = (double)weir_hist_percentile(&t->measure->all_total, p->slo_percentile);
	return metrics_putf(
		m, "", found / (double)p->slo_latency, "slo.%s.%s.ratio", t->host->name, p->path);
}

static int put_bursts(struct metrics *m, struct world *w, const struct world_tenant *t)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_loads; i++) {
		struct world_load *l = &t->loads[i];
		const struct world_bursts *b = l->bursts;
		if (!b)
			continue;
		world_load_sweep(w, l);
		r = metrics_putf(m, "", (double)b->finished, "burst.%s.%s.%s.finished",
			t->host->name, tenant_path(t), l->config->name);
		if (r == 0)
			r = metrics_putf(m, "", (double)(b->lost + b->n_open),
				"burst.%s.%s.%s.unfinished", t->host->name, tenant_path(t),
				l->config->name);
		if (r == 0 && b->finished)
			r = metrics_putf(m, "ms", b->total_ns / (double)b->finished / 1e6,
				"burst.%s.%s.%s.mean", t->host->name, tenant_path(t),
				l->config->name);
	}
	return r;
}

struct ending {
	struct measure *m;
	struct world *w;
	struct measure_mark *now;
	weir_time span;
	struct measure_flow *hosts;
	struct measure_flow total;
};

static int end_tenants(struct ending *e)
{
	static const struct weir_hist empty = {.min = UINT64_MAX};
	struct metrics *m = e->m->metrics;
	char prefix[256];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < e->w->n_tenants; i++) {
		const struct world_tenant *t = &e->w->tenants[i];
		const struct measure_mark *from = &e->m->begin[i], *to = &e->now[i];
		struct measure_flow f = flow(from, to, e->span);
		struct measure_flow *h = &e->hosts[t->host - e->w->hosts];
		uint32_t device = e->w->n_tenants + t->host->group->device;
		double all = (double)(e->now[device].count.done - e->m->begin[device].count.done);

		snprintf(prefix, sizeof(prefix), "tenant.%s.%s", t->host->name, tenant_path(t));
		r = put_flow(m, &f, prefix);
		if (r == 0)
			r = metrics_putf(m, "", all > 0 ? f.ios / all : 0, "%s.share", prefix);
		if (r == 0)
			r = put_hist(m, "tenant", t, t->measure ? &t->measure->all_total : &empty);
		if (r == 0)
			r = put_hist(m, "inside", t, t->measure ? &t->measure->all_device : &empty);
		if (r == 0)
			r = put_wait(m, t, from, to, &f);
		if (r == 0)
			r = put_slo(m, t);
		if (r == 0)
			r = put_bursts(m, e->w, t);
		h->span = e->total.span = f.span;
		h->ios += f.ios;
		h->bytes += f.bytes;
		h->latency_ns += f.latency_ns;
		h->outstanding += f.outstanding;
	}
	return r;
}

static int end_hosts(struct ending *e)
{
	struct metrics *m = e->m->metrics;
	char prefix[256];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < e->w->scenario->n_hosts; i++) {
		const struct measure_flow *f = &e->hosts[i];
		struct weir_gate_totals totals;

		if (e->w->hosts[i].n_tenants == 0)
			continue;
		weir_gate_totals(e->w->hosts[i].gate->gate, e->w->now, &totals);
		snprintf(prefix, sizeof(prefix), "host.%s", e->w->hosts[i].name);
		r = put_flow(m, f, prefix);
		if (r == 0)
			r = metrics_putf(m, "ms", f->ios > 0 ? f->latency_ns / f->ios / 1e6 : 0,
				"%s.mean", prefix);
		if (r == 0)
			r = metrics_putf(m, "requests", totals.window, "%s.window_end", prefix);
		e->total.ios += f->ios;
		e->total.bytes += f->bytes;
		e->total.latency_ns += f->latency_ns;
		e->total.outstanding += f->outstanding;
	}
	return r;
}

static int end_stations(struct ending *e)
{
	struct metrics *m = e->m->metrics;
	char prefix[256];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < e->w->scenario->n_stations; i++) {
		const struct world_station *st = &e->w->stations[i];
		const struct measure_mark *from = &e->m->begin[e->w->n_tenants + i];
		const struct measure_mark *to = &e->now[e->w->n_tenants + i];
		struct measure_flow f = flow(from, to, e->span);

		snprintf(prefix, sizeof(prefix), "%s.%s", station_sort(e->w, i), st->config->name);
		r = put_flow(m, &f, prefix);
		if (r == 0)
			r = metrics_putf(m, "ms", f.latency_ms, "%s.mean", prefix);
		if (i < e->w->scenario->n_devices)
			continue;
		if (r == 0)
			r = metrics_putf(m, "requests", (double)(to->drops - from->drops),
				"%s.drops", prefix);
		if (r == 0)
			r = metrics_putf(m, "requests", (double)(to->marks - from->marks),
				"%s.marks", prefix);
	}
	return r;
}

static int end_total(struct ending *e)
{
	struct metrics *m = e->m->metrics;
	const struct measure_flow *f = &e->total;
	uint64_t queued = 0, in_flight = 0;
	int r = put_flow(m, f, "total");

	for (uint32_t i = 0; i < e->w->scenario->n_hosts; i++) {
		struct weir_gate_totals totals;
		weir_gate_totals(e->w->hosts[i].gate->gate, e->w->now, &totals);
		queued += totals.queued;
		in_flight += totals.in_flight;
	}
	if (r == 0)
		r = metrics_put(
			m, "total.mean", "ms", f->ios > 0 ? f->latency_ns / f->ios / 1e6 : 0);
	if (r == 0)
		r = metrics_put(m, "run.submitted", "requests", (double)e->w->submitted);
	if (r == 0)
		r = metrics_put(m, "run.served", "requests", (double)e->w->completed);
	if (r == 0)
		r = metrics_put(m, "run.queued", "requests", (double)queued);
	if (r == 0)
		r = metrics_put(m, "run.in_flight", "requests", (double)in_flight);
	return r ? r : metrics_put(m, "run.events", "", (double)e->w->events.popped);
}

static int end_all(struct ending *e)
{
	const struct scenario *s = e->w->scenario;
	int r;

	if ((r = end_tenants(e)) || (r = end_hosts(e)) || (r = end_stations(e)))
		return r;
	for (size_t i = 0; i < s->n_controllers; i++) {
		const struct sim_controller_ops *ops = s->controllers[i].ops;
		if (ops->report &&
			(r = ops->report(e->w->controllers[i].state, e->w, e->m->metrics)))
			return r;
	}
	return end_total(e);
}

int measure_end(struct measure *m, struct world *w, struct metrics **ret)
{
	struct ending e = {.m = m, .w = w, .span = w->now - m->began};
	int r = -ENOMEM;

	measure_sample(m, w);
	e.now = calloc(w->n_tenants + w->scenario->n_stations, sizeof(*e.now));
	e.hosts = calloc(w->scenario->n_hosts, sizeof(*e.hosts));
	if (e.now && e.hosts) {
		mark_all(w, e.now);
		r = end_all(&e);
	}
	free(e.now);
	free(e.hosts);
	if (r || m->failed)
		return r ? r : m->failed;
	*ret = m->metrics;
	m->metrics = NULL;
	return 0;
}
