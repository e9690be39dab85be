/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/measure.h"
#include "sim/controller.h"
#include "sim/measure-put.h"
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
	char prefix[256];
	int *h = m->series;

	for (uint32_t i = 0; i < w->n_tenants; i++, h += MEASURE_TENANT_SERIES) {
		snprintf(prefix, sizeof(prefix), "tenant.%s.%s", w->tenants[i].host->name,
			tenant_path(&w->tenants[i]));
		measure_name_series(
			m->metrics, prefix, measure_tenant_series, MEASURE_TENANT_SERIES, h);
	}
	for (uint32_t i = 0; i < w->scenario->n_hosts; i++, h += MEASURE_HOST_SERIES) {
		snprintf(prefix, sizeof(prefix), "host.%s", w->hosts[i].name);
		measure_name_series(
			m->metrics, prefix, measure_host_series, MEASURE_HOST_SERIES, h);
	}
	for (uint32_t i = 0; i < w->scenario->n_stations; i++) {
		size_t n = MEASURE_STATION_SERIES - !w->stations[i].config->capacity_auto;

		snprintf(prefix, sizeof(prefix), "%s.%s", station_sort(w, i),
			w->stations[i].config->name);
		measure_name_series(m->metrics, prefix, measure_station_series, n, h);
		h += n;
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
	size_t series = w->n_tenants * MEASURE_TENANT_SERIES +
			w->scenario->n_hosts * MEASURE_HOST_SERIES +
			w->scenario->n_stations * MEASURE_STATION_SERIES + 1;
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
	measure_flow_add(host, &f);
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

static int put_wait(struct metrics *m, const struct world_tenant *t,
	const struct measure_mark *from, const struct measure_mark *to,
	const struct measure_flow *f)
{
	double wait_ns[WEIR_CAUSES];

	for (int c = 0; c < WEIR_CAUSES; c++)
		wait_ns[c] = to->wait_ns[c] - from->wait_ns[c];
	return measure_put_wait(m, t->host->name, tenant_path(t), wait_ns, f);
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
		r = measure_put_flow(m, &f, prefix);
		if (r == 0)
			r = metrics_putf(m, "", all > 0 ? f.ios / all : 0, "%s.share", prefix);
		if (r == 0)
			r = measure_put_hist(m, "tenant", t->host->name, tenant_path(t),
				t->measure ? &t->measure->all_total : &empty);
		if (r == 0)
			r = measure_put_hist(m, "inside", t->host->name, tenant_path(t),
				t->measure ? &t->measure->all_device : &empty);
		if (r == 0)
			r = put_wait(m, t, from, to, &f);
		if (r == 0)
			r = put_slo(m, t);
		if (r == 0)
			r = put_bursts(m, e->w, t);
		h->span = e->total.span = f.span;
		measure_flow_add(h, &f);
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
		r = measure_put_flow(m, f, prefix);
		if (r == 0)
			r = metrics_putf(m, "ms", f->ios > 0 ? f->latency_ns / f->ios / 1e6 : 0,
				"%s.mean", prefix);
		if (r == 0)
			r = metrics_putf(m, "requests", totals.window, "%s.window_end", prefix);
		measure_flow_add(&e->total, f);
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
		r = measure_put_flow(m, &f, prefix);
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
	int r = measure_put_flow(m, f, "total");

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
	struct measure_mark *now;
	struct measure_flow *hosts;
	int r = -ENOMEM;

	measure_sample(m, w);
	now = calloc(w->n_tenants + w->scenario->n_stations, sizeof(*now));
	hosts = calloc(w->scenario->n_hosts, sizeof(*hosts));
	if (now && hosts) {
		struct ending e = {
			.m = m, .w = w, .now = now, .span = w->now - m->began, .hosts = hosts};

		mark_all(w, now);
		r = end_all(&e);
	}
	free(now);
	free(hosts);
	if (r || m->failed)
		return r ? r : m->failed;
	*ret = m->metrics;
	m->metrics = NULL;
	return 0;
}
