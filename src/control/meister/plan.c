/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/plan.h"
#include "control/meister/bound.h"
#include "control/meister/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- traces */

/* Return the least size of a bucket of that rate, which may be below the mean, that the trace fits. */
static double size_at(const struct meister_arrival *arrivals, size_t n, double rate)
{
	double lack = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		double gap = i ? arrivals[i].t - arrivals[i - 1].t : 0;

		lack = fmax(0, lack - gap * rate) + arrivals[i].work;
		most = fmax(most, lack);
	}
	return most;
}

/* Replace the pairs that are steeper than a gate's bucket can be. */
static void cap_rates(
	struct meister_frontier *f, const struct meister_arrival *arrivals, size_t n, double most)
{
	size_t steep = 0;

	while (steep < f->n && f->pairs[steep].rate > most)
		steep++;
	if (!steep)
		return;
	f->pairs[steep - 1] = (struct meister_pair){most, size_at(arrivals, n, most)};
	f->n -= steep - 1;
	memmove(f->pairs, f->pairs + steep - 1, f->n * sizeof(*f->pairs));
}

/* Raise rates that are too low to fill a bucket again, and note the largest request. */
static void hop_finish(
	struct plan_hop *h, const struct meister_arrival *arrivals, size_t n, double rate)
{
	for (unsigned i = 0; i < h->n; i++)
		h->pair[i].rate = fmax(h->pair[i].rate, PLAN_RATE_LEAST * rate);
	h->n = (unsigned)meister_pairs_reduce(h->pair, h->n);
	h->largest = 0;
	for (size_t i = 0; i < n; i++)
		h->largest = fmax(h->largest, arrivals[i].work);
}

int plan_hop_of(const struct meister_arrival *arrivals, size_t n, size_t k, double rate,
	struct plan_hop *ret)
{
	struct meister_frontier f;
	int rc = meister_frontier(arrivals, n, &f);

	if (rc < 0)
		return rc;
	cap_rates(&f, arrivals, n, plan_rate_most(rate));
	rc = meister_frontier_prune(&f, k, ret->pair, &ret->loss);
	ret->load = f.mean;
	meister_frontier_free(&f);
	if (rc < 0)
		return rc;
	ret->n = (unsigned)rc;
	hop_finish(ret, arrivals, n, rate);
	return 0;
}

int plan_hop_single(const struct meister_arrival *arrivals, size_t n, double slo, double rate,
	struct plan_hop *ret)
{
	struct meister_frontier f;
	int rc = meister_frontier(arrivals, n, &f);

	if (rc < 0)
		return rc;
	*ret = (struct plan_hop){.pair = {f.pairs[0]}, .n = 1, .load = f.mean};
	for (size_t i = 1; i < f.n; i++)
		if (f.pairs[i].rate * slo + f.pairs[i].size <
			ret->pair[0].rate * slo + ret->pair[0].size)
			ret->pair[0] = f.pairs[i];
	meister_frontier_free(&f);
	hop_finish(ret, arrivals, n, rate);
	return 0;
}

/* ---- the search */

static struct meister_stage stage_of(const struct plan_stage *s)
{
	return (struct meister_stage){.rate = s->rate,
		.blocking = s->depth * s->largest,
		.inside = s->inside,
		.levels = s->levels};
}

static int plan_room(const struct plan_input *in, struct plan *p)
{
	size_t hops = 0, knees = 0;

	for (uint32_t t = 0; t < in->n_tenants; t++) {
		hops += in->tenants[t].n_hops;
		for (uint32_t i = 0; i < in->tenants[t].n_hops; i++)
			knees += in->tenants[t].hop[i].n;
	}
	p->stages = calloc(in->n_stages + 1, sizeof(*p->stages));
	p->workloads = calloc(in->n_tenants + 1, sizeof(*p->workloads));
	p->system.hops = calloc(hops + 1, sizeof(*p->system.hops));
	p->knees = calloc(knees + 1, sizeof(*p->knees));
	return p->stages && p->workloads && p->system.hops && p->knees ? 0 : -ENOMEM;
}

static void plan_fill(const struct plan_input *in, struct plan *p)
{
	struct meister_system *s = &p->system;
	struct meister_knee *knees = p->knees;

	for (uint32_t i = 0; i < in->n_stages; i++)
		p->stages[i] = stage_of(&in->stages[i]);
	for (uint32_t t = 0; t < in->n_tenants; t++) {
		const struct plan_tenant *from = &in->tenants[t];

		p->workloads[t] = (struct meister_workload){from->slo, s->n_hops, from->n_hops};
		for (uint32_t i = 0; i < from->n_hops; i++) {
			const struct plan_hop *h = &from->hop[i];

			s->hops[s->n_hops++] = (struct meister_hop){
				.workload = t, .stage = h->stage, .curve = {h->n, knees}};
			meister_curve_of(h->pair, h->n, knees);
			knees += h->n;
		}
	}
	s->stages = p->stages;
	s->workloads = p->workloads;
	s->n_stages = in->n_stages;
	s->n_workloads = in->n_tenants;
}

int plan_make(const struct plan_input *in, struct plan *ret)
{
	struct plan p = {0};
	int rc = plan_room(in, &p);

	if (rc == 0) {
		plan_fill(in, &p);
		rc = meister_search(&p.system, &in->how, &p.found);
	}
	if (rc < 0) {
		plan_free(&p);
		return rc;
	}
	p.feasible = meister_violation(&p.system) == 0;
	*ret = p;
	return 0;
}

int plan_keep(const struct plan_input *in, const uint32_t *priority, struct plan *ret)
{
	struct plan p = {0};
	int rc = plan_room(in, &p);

	if (rc == 0) {
		plan_fill(in, &p);
		for (uint32_t i = 0; i < p.system.n_hops; i++)
			p.system.hops[i].priority = priority[i];
		rc = meister_bounds(&p.system);
	}
	if (rc < 0) {
		plan_free(&p);
		return rc;
	}
	p.feasible = meister_violation(&p.system) == 0;
	*ret = p;
	return 0;
}

void plan_free(struct plan *p)
{
	free(p->stages);
	free(p->workloads);
	free(p->system.hops);
	free(p->knees);
}

double plan_load(const struct plan_input *in, uint32_t stage)
{
	double sum = 0;

	for (uint32_t t = 0; t < in->n_tenants; t++)
		for (uint32_t i = 0; i < in->tenants[t].n_hops; i++) {
			const struct plan_hop *h = &in->tenants[t].hop[i];

			sum += h->stage == stage ? h->pair[h->n - 1].rate : 0;
		}
	return sum / in->stages[stage].rate;
}

/* ---- the parts of a bound */

/* Add the parts of one hop: of higher priority up to the request's leaving, of equal priority up to its arrival. */
static void explain_hop(const struct plan *p, const struct meister_hop *h,
	const struct meister_queue *q, double arrival, struct plan_parts *to)
{
	const struct meister_stage *s = &p->stages[h->stage];
	double leaves = arrival + h->bound - s->inside;

	for (uint32_t i = 0; i < q->n; i++) {
		const struct meister_hop *o = &p->system.hops[q->hop[i]];
		bool higher = o->priority < h->priority;

		if (o != h && o->priority <= h->priority)
			to->others[o->workload] +=
				meister_curve_value(&o->curve, higher ? leaves : arrival) / s->rate;
	}
	to->own += meister_curve_value(&h->curve, arrival) / s->rate - arrival;
	to->blocking += s->blocking / s->rate;
	to->inside += s->inside;
}

int plan_explain(const struct plan *p, uint32_t tenant, struct plan_parts *ret)
{
	struct meister_system s = p->system;
	const struct meister_workload *w = &p->workloads[tenant];
	struct meister_searching x;
	struct plan_parts parts = {.others = ret->others};

	memset(parts.others, 0, s.n_workloads * sizeof(*parts.others));
	if (meister_searching_new(&s, &x) < 0)
		return -ENOMEM;
	for (uint32_t i = w->hops; i < w->hops + w->n_hops; i++) {
		const struct meister_hop *h = &s.hops[i];
		struct meister_queue *q = &x.queues[h->stage];
		double arrival;

		if (isinf(h->bound))
			continue;
		for (uint32_t k = 0; k < q->n; k++)
			x.place[q->hop[k]] = s.hops[q->hop[k]].priority;
		meister_sum_of(&q->sum, x.place, 0, h->priority, &q->above);
		meister_sum_of(&q->sum, x.place, h->priority, h->priority + 1, &q->group);
		meister_bound_at((struct meister_above){&q->above, NULL}, &q->group,
			p->stages[h->stage].rate, p->stages[h->stage].blocking, &arrival);
		explain_hop(p, h, q, arrival, &parts);
	}
	meister_searching_free(&x);
	*ret = parts;
	return 0;
}
