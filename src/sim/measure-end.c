/* SPDX-License-Identifier: BSD-3-Clause */
/* measure-end: the values of a run, from the end of the warm-up to the end of the run. */
#include "sim/control/controller.h"
#include "sim/measure-impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Expand a tenant's histogram; empty if none of its IOs has completed. */
static const struct weir_hist *expand_hist(struct measure *m, const struct hist_small *h)
{
	if (h)
		hist_small_read(h, &m->whole);
	else
		weir_hist_clear(&m->whole);
	return &m->whole;
}

static int put_wait(struct metrics *m, const struct world_tenant *t,
	const struct measure_mark *from, const struct measure_mark *to,
	const struct measure_flow *f)
{
	double wait_ns[WEIR_CAUSES];

	for (int c = 0; c < WEIR_CAUSES; c++)
		wait_ns[c] = to->wait_ns[c] - from->wait_ns[c];
	return measure_put_wait(m, t->host->name, measure_path(t), wait_ns, f);
}

static int put_slo(struct measure *m, const struct world_tenant *t)
{
	const struct weir_tenant *p = &t->host->group->gate.policy->tenants[t->index];

	if (p->slo_percentile <= 0)
		return 0;
	return measure_put_slo(m->metrics, t->host->name, p->path,
		expand_hist(m, t->measure ? &t->measure->all_total : NULL), p->slo_percentile,
		p->slo_latency);
}

/* Return the number of bursts that began after the warm-up and are not over. */
static uint64_t count_unfinished(const struct world *w, const struct world_bursts *b)
{
	uint64_t n = b->lost;

	for (unsigned i = 0; i < b->n_open; i++)
		n += b->open[i].first >= w->warmup;
	return n;
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
			t->host->name, measure_path(t), l->config->name);
		if (r == 0)
			r = metrics_putf(m, "", (double)count_unfinished(w, b),
				"burst.%s.%s.%s.unfinished", t->host->name, measure_path(t),
				l->config->name);
		if (r == 0 && b->finished)
			r = metrics_putf(m, "ms", b->total_ns / (double)b->finished / 1e6,
				"burst.%s.%s.%s.mean", t->host->name, measure_path(t),
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
	struct metrics *m = e->m->metrics;
	char prefix[256];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < e->w->n_tenants; i++) {
		struct world_tenant *t = &e->w->tenants[i];
		const struct measure_mark *from = &e->m->begin[i], *to = &e->now[i];
		struct measure_flow f = measure_between(from, to, e->span);
		struct measure_flow *h = &e->hosts[t->host - e->w->hosts];
		uint32_t device = e->w->n_tenants + t->host->group->device;
		double all = (double)(e->now[device].count.done - e->m->begin[device].count.done);

		snprintf(prefix, sizeof(prefix), "tenant.%s.%s", t->host->name, measure_path(t));
		r = measure_put_flow(m, &f, prefix);
		if (r == 0)
			r = metrics_putf(m, "", all > 0 ? f.ios / all : 0, "%s.share", prefix);
		if (r == 0)
			r = measure_put_hist(m, "tenant", t->host->name, measure_path(t),
				expand_hist(e->m, t->measure ? &t->measure->all_total : NULL));
		if (r == 0)
			r = measure_put_hist(m, "inside", t->host->name, measure_path(t),
				expand_hist(e->m, t->measure ? &t->measure->all_device : NULL));
		if (r == 0)
			r = put_wait(m, t, from, to, &f);
		if (r == 0)
			r = put_slo(e->m, t);
		if (r == 0)
			r = put_bursts(m, e->w, t);
		measure_tenant_free(t->measure); /* free it early: the values need memory, too */
		t->measure = NULL;
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
		weir_gate_get_totals(e->w->hosts[i].gate->gate, e->w->now, &totals);
		snprintf(prefix, sizeof(prefix), "host.%s", e->w->hosts[i].name);
		r = measure_put_flow(m, f, prefix);
		if (r == 0)
			r = measure_put_mean(m, f, prefix);
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
		struct measure_flow f = measure_between(from, to, e->span);

		snprintf(prefix, sizeof(prefix), "%s.%s", measure_sort(e->w, i), st->config->name);
		r = measure_put_flow(m, &f, prefix);
		if (r == 0)
			r = measure_put_mean(m, &f, prefix);
		if (r == 0 && st->device->ops->worked)
			r = metrics_putf(m, "", (to->worked_ns - from->worked_ns) / (double)e->span,
				"%s.busy", prefix);
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
		weir_gate_get_totals(e->w->hosts[i].gate->gate, e->w->now, &totals);
		queued += totals.queued;
		in_flight += totals.in_flight;
	}
	if (r == 0)
		r = measure_put_mean(m, f, "total");
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

		measure_mark_all(w, now);
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
