/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/measure-impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 8 /* records whose histograms are prefetched */

/* ---- set-up */

static int name_series(struct measure *m, struct world *w)
{
	char prefix[256];
	int *h = m->series;

	for (uint32_t i = 0; i < w->n_tenants; i++, h += MEASURE_TENANT_SERIES) {
		snprintf(prefix, sizeof(prefix), "tenant.%s.%s", w->tenants[i].host->name,
			measure_path(&w->tenants[i]));
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

		snprintf(prefix, sizeof(prefix), "%s.%s", measure_sort(w, i),
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

struct sampling {
	struct measure *m;
	struct world *w;
	int *handle;
	double t;
	weir_time span;
};

static void put_value(struct sampling *s, double value)
{
	int r = metrics_append(s->m->metrics, *s->handle++, s->t, value);

	if (r)
		s->m->failed = r;
}

/* Skip the latency of a sample in which no IO completed: it is not 0. */
static void put_value_if(struct sampling *s, bool any, double value)
{
	if (any)
		put_value(s, value);
	else
		s->handle++;
}

static double sample_p99(struct sampling *s, const struct world_tenant *t)
{
	hist_small_read(&t->measure->total, &s->m->whole);
	return (double)weir_hist_percentile(&s->m->whole, 99) / 1e6;
}

static void sample_tenant(struct sampling *s, const struct world_tenant *t,
	struct measure_mark *last, struct measure_flow *host)
{
	struct measure_mark now;
	struct measure_flow f;

	mark_tenant(s->w, t, &now);
	f = measure_between(last, &now, s->span);
	put_value(s, f.ios / f.span);
	put_value(s, f.bytes / f.span);
	put_value_if(s, f.ios > 0, f.latency_ms);
	put_value_if(s, f.ios > 0, f.ios > 0 ? sample_p99(s, t) : 0);
	put_value(s, f.outstanding);
	measure_flow_add(host, &f);
	*last = now;
}

static void sample_host(
	struct sampling *s, const struct world_host *h, const struct measure_flow *f)
{
	struct weir_gate_totals totals;

	weir_gate_get_totals(h->gate->gate, s->w->now, &totals);
	put_value(s, f->ios / ((double)s->span / 1e9));
	put_value_if(s, f->ios > 0, f->latency_ns / f->ios / 1e6);
	put_value(s, f->outstanding);
	put_value(s, totals.window);
}

static void sample_station(
	struct sampling *s, const struct world_station *st, struct measure_mark *last)
{
	struct measure_mark now;
	struct measure_flow f;

	mark_station(s->w, st, &now);
	f = measure_between(last, &now, s->span);
	put_value(s, f.ios / f.span);
	put_value(s, f.bytes / f.span);
	put_value_if(s, f.ios > 0, f.latency_ms);
	put_value(s, f.outstanding);
	if (st->config->capacity_auto)
		put_value(s, st->capacity);
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
	put_value(&s, total / ((double)s.span / 1e9));
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
	m->began = w->now;
	m->warm = true;
}
