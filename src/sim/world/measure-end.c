/* SPDX-License-Identifier: BSD-3-Clause */
/* measure-end: the values of a run, from the end of the warm-up to the end of the run. */
#include "sim/world/controller.h"
#include "sim/world/measure-impl.h"
#include <errno.h>
#include <math.h>
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

/* Return the number of bursts that began after the warm-up and are not over. */
static uint64_t count_unfinished(const struct world *w, const struct world_bursts *b)
{
	uint64_t n = b->lost;

	for (unsigned i = 0; i < b->n_open; i++)
		n += b->open[i].first >= w->warmup;
	return n;
}

static void put_bursts(struct metrics *m, struct world *w, const struct world_tenant *t)
{
	for (size_t i = 0; i < t->n_loads; i++) {
		struct world_load *l = &t->loads[i];
		const struct world_bursts *b = l->bursts;
		char prefix[256];

		if (!b)
			continue;
		world_load_sweep(w, l);
		snprintf(prefix, sizeof(prefix), "burst.%s.%s.%s", t->host->name, measure_path(t),
			l->config->name);
		metrics_putf(m, "", (double)b->finished, "%s.finished", prefix);
		metrics_putf(m, "", (double)count_unfinished(w, b), "%s.unfinished", prefix);
		if (b->finished)
			metrics_putf(m, "ms", b->total_ns / (double)b->finished / 1e6, "%s.mean",
				prefix);
	}
}

struct ending {
	struct measure *m;
	struct world *w;
	struct measure_mark *now;
	weir_time span;
	struct measure_flow *hosts;
	struct measure_flow total;
};

void measure_put_plan(struct metrics *m, const struct world_tenant *t)
{
	const struct world_plan *p = t->plan;
	char prefix[256];

	if (!p)
		return;
	snprintf(prefix, sizeof(prefix), "plan.%s.%s", t->host->name,
		t->host->group->gate.policy->tenants[t->index].path);
	metrics_putf(m, "requests", (double)p->ios, "%s.ios", prefix);
	metrics_putf(m, "", p->load, "%s.load", prefix);
	metrics_putf(m, "", p->ca2, "%s.ca2", prefix);
	metrics_putf(m, "", p->peak, "%s.peak", prefix);
	metrics_putf(m, "", p->priority, "%s.priority", prefix);
	if (isfinite(p->bound))
		metrics_putf(m, "ms", p->bound * 1e3, "%s.bound", prefix);
	metrics_putf(m, "", p->loss, "%s.loss", prefix);
	for (unsigned i = 0; i < p->n_links; i++)
		metrics_putf(
			m, "", p->links[i].priority, "%s.%s.priority", prefix, p->links[i].name);
	for (int i = 0; i < p->pairs; i++) {
		metrics_putf(m, "", p->pair[i].rate, "%s.rate%d", prefix, i + 1);
		metrics_putf(m, "ms", p->pair[i].size * 1e3, "%s.size%d", prefix, i + 1);
	}
}

/* Add the requests that wait, and have waited beyond the slo, as if they completed now. Return how many there are. */
static double add_waits(const struct world *w, const struct world_tenant *t, struct weir_hist *to)
{
	double n = 0;

	for (uint32_t i = 0; i < w->n_chunks * WORLD_CHUNK; i++) {
		const struct world_io *io = &w->chunks[i / WORLD_CHUNK][i % WORLD_CHUNK];
		weir_time wait = w->now - io->req.submitted;

		if (!io->waits || !io->load || io->load->tenant != t || wait <= t->slo_latency)
			continue;
		weir_hist_record(to, (uint64_t)wait);
		n++;
	}
	return n;
}

static void put_slo(struct measure *m, const struct world_tenant *t, const struct weir_tenant *p)
{
	double total = (double)(t->slo.total - t->slo_begun.total), waits;
	struct weir_tenant last = *p;

	expand_hist(m, t->measure ? &t->measure->all_total : NULL);
	waits = m->whole.count ? add_waits(m->world, t, &m->whole) : 0;
	last.slo_latency = t->slo_latency; /* a change may have set another */
	measure_put_slo(m->metrics, t->host->name, &last, &m->whole);
	if (total + waits > 0)
		metrics_putf(m->metrics, "",
			((double)(t->slo.late - t->slo_begun.late) + waits) / (total + waits),
			"slo.%s.%s.missed", t->host->name, p->path);
}

static void end_tenant(struct ending *e, uint32_t i)
{
	struct metrics *m = e->m->metrics;
	struct world_tenant *t = &e->w->tenants[i];
	const struct weir_tenant *p = &t->host->group->gate.policy->tenants[t->index];
	const struct measure_mark *from = &e->m->begin[i], *to = &e->now[i];
	struct measure_flow f = measure_between(from, to, e->span);
	uint32_t device = e->w->n_tenants + t->host->group->device;
	const struct hist_small *total = t->measure ? &t->measure->all_total : NULL;
	double wait_ns[WEIR_CAUSES];
	char prefix[256];

	snprintf(prefix, sizeof(prefix), "tenant.%s.%s", t->host->name, p->path);
	measure_put_flow(m, &f, prefix);
	measure_put_share(m, &f,
		(double)(e->now[device].count.done - e->m->begin[device].count.done), prefix);
	measure_put_hist(m, "tenant", t->host->name, p->path, expand_hist(e->m, total));
	measure_put_hist(m, "inside", t->host->name, p->path,
		expand_hist(e->m, t->measure ? &t->measure->all_device : NULL));
	for (int c = 0; c < WEIR_CAUSES; c++)
		wait_ns[c] = to->wait_ns[c] - from->wait_ns[c];
	measure_put_wait(m, t->host->name, p->path, wait_ns, &f);
	if (p->slo_percentile > 0)
		put_slo(e->m, t, p);
	measure_put_plan(m, t);
	put_bursts(m, e->w, t);
	measure_tenant_free(t->measure); /* free it early: the values need memory, too */
	t->measure = NULL;
	measure_flow_add(&e->hosts[t->host - e->w->hosts], &f);
}

static void end_hosts(struct ending *e)
{
	char prefix[256];

	for (uint32_t i = 0; i < e->w->scenario->n_hosts; i++) {
		struct weir_gate_totals totals;

		if (e->w->hosts[i].n_tenants == 0)
			continue;
		weir_gate_get_totals(e->w->hosts[i].gate->gate, e->w->now, &totals);
		snprintf(prefix, sizeof(prefix), "host.%s", e->w->hosts[i].name);
		measure_put_group(e->m->metrics, &e->hosts[i], prefix);
		metrics_putf(e->m->metrics, "requests", totals.window, "%s.window_end", prefix);
		measure_flow_add(&e->total, &e->hosts[i]);
	}
}

static void end_station(struct ending *e, uint32_t i)
{
	struct metrics *m = e->m->metrics;
	const struct world_station *st = &e->w->stations[i];
	const struct measure_mark *from = &e->m->begin[e->w->n_tenants + i];
	const struct measure_mark *to = &e->now[e->w->n_tenants + i];
	struct measure_flow f = measure_between(from, to, e->span);
	char prefix[256];

	snprintf(prefix, sizeof(prefix), "%s.%s", measure_sort(e->w, i), st->config->name);
	measure_put_group(m, &f, prefix);
	if (st->device->ops->worked)
		metrics_putf(m, "", (to->worked_ns - from->worked_ns) / (double)e->span, "%s.busy",
			prefix);
	if (st->has_own)
		metrics_putf(m, "", (double)st->own_beside, "%s.own_beside", prefix);
	if (i < e->w->scenario->n_devices)
		return;
	metrics_putf(m, "requests", (double)(to->drops - from->drops), "%s.drops", prefix);
	metrics_putf(m, "requests", (double)(to->marks - from->marks), "%s.marks", prefix);
}

static void end_total(struct ending *e)
{
	struct metrics *m = e->m->metrics;
	uint64_t queued = 0, in_flight = 0;

	for (uint32_t i = 0; i < e->w->scenario->n_hosts; i++) {
		struct weir_gate_totals totals;
		weir_gate_get_totals(e->w->hosts[i].gate->gate, e->w->now, &totals);
		queued += totals.queued;
		in_flight += totals.in_flight;
	}
	measure_put_group(m, &e->total, "total");
	metrics_put(m, "run.submitted", "requests", (double)e->w->submitted);
	metrics_put(m, "run.served", "requests", (double)e->w->completed);
	metrics_put(m, "run.queued", "requests", (double)queued);
	metrics_put(m, "run.in_flight", "requests", (double)in_flight);
	metrics_put(m, "run.events", "", (double)e->w->events.popped);
}

static int end_all(struct ending *e)
{
	const struct scenario *s = e->w->scenario;
	int r = 0;

	for (uint32_t i = 0; i < e->w->n_tenants; i++)
		end_tenant(e, i);
	end_hosts(e);
	for (uint32_t i = 0; i < s->n_stations; i++)
		end_station(e, i);
	for (size_t i = 0; r == 0 && i < s->n_controllers; i++) {
		const struct sim_controller_ops *ops = s->controllers[i].ops;
		if (ops->report)
			r = ops->report(e->w->controllers[i].state, e->w, e->m->metrics);
	}
	end_total(e);
	return r ? r : metrics_failed(e->m->metrics);
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
