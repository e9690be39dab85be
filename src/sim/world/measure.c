/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/measure-impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 8 /* records whose histograms are prefetched */

/* ---- set-up */

static const char *tenant_path(const void *arg, size_t n, uint32_t *ret_host)
{
	const struct world *w = arg;

	*ret_host = (uint32_t)(w->tenants[n].host - w->hosts);
	return measure_path(&w->tenants[n]);
}

int measure_new(struct world *w, struct measure **ret)
{
	size_t things = w->n_tenants + w->scenario->n_stations;
	struct measure *m = calloc(1, sizeof(*m));
	int r = -ENOMEM;

	if (!m)
		return -ENOMEM;
	m->world = w;
	m->begin = calloc(things, sizeof(*m->begin));
	m->last = calloc(things, sizeof(*m->last));
	if (m->begin && m->last)
		r = metrics_new(&m->metrics);
	if (r == 0 && w->scenario->sample) {
		m->series =
			measure_series_new(m->metrics, w->scenario, w->n_tenants, tenant_path, w);
		for (uint32_t i = 0; i < w->n_tenants; i++)
			if (w->tenants[i].slo_latency)
				w->tenants[i].slo_series = metrics_seriesf(m->metrics, "requests",
					"slo.%s.%s.late", w->tenants[i].host->name,
					measure_path(&w->tenants[i]));
		r = m->series ? metrics_failed(m->metrics) : -ENOMEM;
	}
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

static struct measure_tenant *tenant_histograms(struct measure *m, struct world_tenant *t)
{
	struct measure_tenant *h;

	if (t->measure)
		return t->measure;
	h = malloc(sizeof(*h));
	if (!h) {
		m->failed = -ENOMEM;
		return NULL;
	}
	hist_small_init(&h->total);
	hist_small_init(&h->all_total);
	hist_small_init(&h->all_device);
	return t->measure = h;
}

void measure_tenant_free(struct measure_tenant *h)
{
	if (!h)
		return;
	hist_small_free(&h->total);
	hist_small_free(&h->all_total);
	hist_small_free(&h->all_device);
	free(h);
}

void measure_drain(struct measure *m)
{
	struct world_tenant *tenants = m->world->tenants;

	for (uint32_t i = 0; i < m->n; i++) {
		struct measure_tenant *h;
		if (i + AHEAD < m->n && (h = tenants[m->ring[i + AHEAD].tenant].measure)) {
			hist_small_fetch(&h->total);
			hist_small_fetch(&h->all_device);
		}
		h = tenant_histograms(m, &tenants[m->ring[i].tenant]);
		if (!h)
			break;
		if (hist_small_record(&h->total, (uint64_t)m->ring[i].total) ||
			(m->warm && hist_small_record(&h->all_device, (uint64_t)m->ring[i].device)))
			m->failed = -ENOMEM;
	}
	m->n = 0;
}

/* ---- marks */

static void mark_tenant(struct world *w, const struct world_tenant *t, struct measure_mark *ret)
{
	struct weir_gate_stats stats;

	ret->count = t->count;
	if (weir_gate_get_stats(t->host->gate->gate, w->now, t->node, &stats))
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
	if (st->device->ops->worked)
		ret->worked_ns = st->device->ops->worked(st->device);
}

void measure_mark_all(struct world *w, struct measure_mark *ret)
{
	for (uint32_t i = 0; i < w->n_tenants; i++)
		mark_tenant(w, &w->tenants[i], &ret[i]);
	for (uint32_t i = 0; i < w->scenario->n_stations; i++)
		mark_station(w, &w->stations[i], &ret[w->n_tenants + i]);
}

/* ---- samples */

static double sample_p99(struct measure *m, const struct world_tenant *t)
{
	hist_small_read(&t->measure->total, &m->whole);
	return (double)weir_hist_percentile(&m->whole, 99) / 1e6;
}

/* Return the flow since the last sample, and note the counters for the next. */
static struct measure_flow flow_since(
	struct measure *m, struct measure_mark *last, const struct measure_mark *now)
{
	struct measure_flow f = measure_between(last, now, m->world->now - m->sampled);

	*last = *now;
	return f;
}

static void write_sample(struct measure *m, struct world *w)
{
	struct measure_sampling s = {m->metrics, m->series, (double)w->now / 1e9};
	const struct scenario *sc = w->scenario;
	struct measure_flow *hosts = calloc(sc->n_hosts, sizeof(*hosts)), f;
	struct measure_mark now;
	double total = 0;

	if (!hosts) {
		m->failed = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		struct world_tenant *t = &w->tenants[i];

		if (t->slo_latency)
			metrics_append(m->metrics, t->slo_series, s.t,
				(double)(t->slo.late - t->slo_sampled.late));
		t->slo_sampled = t->slo;
		mark_tenant(w, t, &now);
		f = flow_since(m, &m->last[i], &now);
		measure_sample_tenant(&s, &f, f.ios > 0 ? sample_p99(m, t) : 0);
		measure_flow_add(&hosts[t->host - w->hosts], &f);
	}
	for (uint32_t i = 0; i < sc->n_hosts; i++) {
		struct weir_gate_totals totals;

		weir_gate_get_totals(w->hosts[i].gate->gate, w->now, &totals);
		measure_sample_host(&s, &hosts[i], totals.window);
		total += hosts[i].ios;
	}
	for (uint32_t i = 0; i < sc->n_stations; i++) {
		const struct world_station *st = &w->stations[i];

		mark_station(w, st, &now);
		f = flow_since(m, &m->last[w->n_tenants + i], &now);
		measure_sample_station(&s, &f, st->config->capacity_auto ? &st->capacity : NULL);
	}
	measure_sample_total(&s, total / ((double)(w->now - m->sampled) / 1e9));
	free(hosts);
}

/* Add the sample's histograms to the run's, or discard them before the end of the warm-up. */
static void fold_sample(struct measure *m, struct world *w)
{
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		struct measure_tenant *h = w->tenants[i].measure;
		if (!h || h->total.count == 0)
			continue;
		if (m->warm && hist_small_merge(&h->all_total, &h->total))
			m->failed = -ENOMEM;
		hist_small_clear(&h->total);
	}
}

void measure_sample(struct measure *m, struct world *w)
{
	measure_drain(m);
	if (w->now == m->sampled)
		return;
	if (w->scenario->sample)
		write_sample(m, w);
	fold_sample(m, w);
	m->sampled = w->now;
}

void measure_begin(struct measure *m, struct world *w)
{
	measure_sample(m, w);
	measure_mark_all(w, m->begin);
	for (uint32_t i = 0; i < w->n_tenants; i++)
		w->tenants[i].slo_begun = w->tenants[i].slo;
	m->began = w->now;
	m->warm = true;
}
