/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world-plan: the knobs of a host's tenants that a planner sets before the run, for experiments (`plan` of `lab`).
 *
 * A tenant with an slo and open workloads is planned. Its trace is the arrivals of those workloads that run from the start, of
 * the same streams as in the run and over the scenario's duration: so the planner sees what will come, as it would see a
 * recorded trace, except what a change starts later. Work is the device time that the gate estimates. The gate is the only
 * stage. Its blocking is the window times the largest request of any tenant.
 *
 *   meister  buckets: the trace's border, pruned; priorities: control/meister's search
 *   byslo    the same buckets; the tenant with the smallest slo first
 *   edf      deadlines: the slos, of closed workloads too
 */
#include "base/array.h"
#include "control/meister/frontier.h"
#include "control/meister/system.h"
#include "sim/world.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MOST   256.0                      /* of a bucket, in devices */
#define NO_DEADLINE (INT64_C(3600) * WEIR_SEC) /* of a tenant without an slo: behind all others */

struct item { /* a tenant that is planned */
	struct world_tenant *tenant;
	struct meister_pair pairs[POLICY_LAB_PROFILES];
	struct meister_knee knees[POLICY_LAB_PROFILES];
	int n_pairs;
};

struct planning { /* of one host */
	struct world *w;
	const struct world_host *host;
	const struct policy_lab_resource *lab;
	struct item *items;
	struct meister_workload *workloads; /* by item */
	struct meister_hop *hops;           /* by item */
	uint32_t n;
};

static const struct weir_tenant *tenant_of(const struct world_tenant *t)
{
	return &t->host->gate->policy->tenants[t->index];
}

/* ---- traces */

static int add_workload(struct planning *p, const struct world_load *l, struct trace *to,
	size_t *room, struct weir_err *err)
{
	struct workload *source;
	struct workload_io io;
	int r = world_load_source(p->w, l->tenant, l->config, &source, err);

	if (r)
		return r;
	while (r == 0 && workload_next(source, 0, &io) && io.at < p->w->scenario->duration) {
		r = array_grow(&to->records, room, to->n + 1);
		if (r == 0)
			to->records[to->n++] = (struct trace_record){
				.at = io.at, .offset = io.offset, .bytes = io.bytes, .op = io.op};
	}
	workload_free(source);
	return r < 0 ? weir_err_set(err, r, "plan: out of memory") : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct trace_record *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static int make_trace(
	struct planning *p, const struct world_tenant *t, struct trace *ret, struct weir_err *err)
{
	size_t room = 0;
	int r = 0;

	*ret = (struct trace){0};
	for (size_t i = 0; r == 0 && i < t->n_loads; i++)
		if (!t->loads[i].config->stopped)
			r = add_workload(p, &t->loads[i], ret, &room, err);
	if (r == 0 && ret->n == 0)
		r = weir_err_set(err, -EINVAL, "plan: '%s' sends no request", tenant_of(t)->path);
	if (r == 0 && t->n_loads > 1)
		qsort(ret->records, ret->n, sizeof(*ret->records), by_time);
	return r;
}

static bool is_open(const struct world_tenant *t)
{
	for (size_t i = 0; i < t->n_loads; i++)
		if (t->loads[i].closed)
			return false;
	return t->n_loads > 0;
}

static double work_of(
	const struct scenario_gate *g, struct estimate_past *past, const struct trace_record *r)
{
	struct weir_req q = {.bytes = r->bytes, .offset = r->offset, .op = r->op};

	world_costs(g, past, &q);
	return (double)q.time / 1e9;
}

/* Return the work of the tenant's largest request, in s. */
static double largest_of(const struct world_tenant *t)
{
	double most = 0;

	for (size_t i = 0; i < t->n_loads; i++) {
		const struct workload_config *c = &t->loads[i].config->config;

		for (unsigned k = 0; k < c->n_sizes; k++)
			for (uint8_t op = WEIR_READ; op <= WEIR_WRITE; op++) {
				struct trace_record r = {.bytes = c->sizes[k].bytes, .op = op};
				most = fmax(most, work_of(t->host->gate->config, NULL, &r));
			}
		for (size_t k = 0; c->trace && k < c->trace->n; k++)
			most = fmax(
				most, work_of(t->host->gate->config, NULL, &c->trace->records[k]));
	}
	return most;
}

/* ---- one tenant */

/* A gate's bucket has a highest rate: a trace with requests that are ns apart has steeper pairs. */
static void cap_rates(const struct meister_frontier *border, struct item *to)
{
	for (int i = 0; i < to->n_pairs; i++)
		if (to->pairs[i].rate > RATE_MOST)
			to->pairs[i] = (struct meister_pair){
				RATE_MOST, meister_frontier_size(border, RATE_MOST)};
	to->n_pairs = (int)meister_pairs_reduce(to->pairs, (size_t)to->n_pairs);
}

/* Compute the tenant's buckets, and describe its trace. */
static int analyze(struct planning *p, struct item *to, struct trace *t, struct weir_err *err)
{
	struct meister_arrival *arrivals = calloc(t->n, sizeof(*arrivals));
	struct world_plan *plan = calloc(1, sizeof(*plan));
	struct meister_frontier border = {0};
	struct estimate_past past = {0};
	struct trace_summary s;
	int r = arrivals && plan ? 0 : -ENOMEM;

	to->tenant->plan = plan;
	for (size_t i = 0; r == 0 && i < t->n; i++)
		arrivals[i] = (struct meister_arrival){(double)t->records[i].at / 1e9,
			work_of(p->host->gate->config, &past, &t->records[i])};
	if (r == 0)
		r = meister_frontier(arrivals, t->n, &border);
	if (r == 0) {
		trace_summarise(t, &s);
		*plan = (struct world_plan){.load = border.mean,
			.ca2 = s.ca2,
			.peak = meister_peak(arrivals, t->n, 1),
			.ios = t->n};
		to->n_pairs =
			meister_frontier_prune(&border, p->lab->pairs, to->pairs, &plan->loss);
		r = to->n_pairs < 0 ? to->n_pairs : 0;
	}
	if (r == 0)
		cap_rates(&border, to);
	meister_frontier_free(&border);
	free(arrivals);
	return r < 0 ? weir_err_set(err, r, "plan: out of memory") : 0;
}

static int add_item(struct planning *p, struct world_tenant *t, struct weir_err *err)
{
	struct item *to = &p->items[p->n];
	struct trace trace;
	int r = make_trace(p, t, &trace, err);

	to->tenant = t;
	if (r == 0)
		r = analyze(p, to, &trace, err);
	free(trace.records);
	if (r)
		return r;
	meister_curve_of(to->pairs, (size_t)to->n_pairs, to->knees);
	p->workloads[p->n] = (struct meister_workload){
		(double)tenant_of(t)->slo_latency / 1e9, .hops = p->n, .n_hops = 1};
	p->hops[p->n] =
		(struct meister_hop){.workload = p->n, .curve = {(size_t)to->n_pairs, to->knees}};
	p->n++;
	return 0;
}

/* ---- priorities */

/* Give the first priority to the smallest slo. */
static void order_by_slo(struct planning *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = 0; k < p->n; k++)
			p->hops[i].priority +=
				p->workloads[k].slo < p->workloads[i].slo ||
				(p->workloads[k].slo == p->workloads[i].slo && k < i);
}

static int prioritize(struct planning *p, struct weir_err *err)
{
	struct meister_stage stage = {.rate = 1, .levels = 64};
	struct meister_system s = {&stage, p->workloads, p->hops, 1, p->n, p->n};
	struct meister_search how = {.greedy = true, .anneal = true, .seed = 1};
	enum meister_found found;
	double most = 0;
	int r;

	for (uint32_t i = 0; i < p->host->n_tenants; i++)
		most = fmax(most, largest_of(&p->host->tenants[i]));
	stage.blocking = most * p->host->gate->config->config.window;
	if (p->lab->plan == POLICY_LAB_BYSLO) {
		order_by_slo(p);
		r = meister_bounds(&s);
	} else {
		r = meister_search(&s, &how, &found);
	}
	return r < 0 ? weir_err_set(err, r, "plan: out of memory") : 0;
}

/* ---- the gate */

static int set_knobs(struct planning *p, uint32_t i, struct weir_err *err)
{
	const struct item *from = &p->items[i];
	struct world_plan *plan = from->tenant->plan;
	struct scenario_knobs k = {.given = POLICY_LAB_PRIORITY | POLICY_LAB_PROFILE};
	int first = p->lab->only == POLICY_LAB_STEADY ? from->n_pairs - 1 : 0;
	int last = p->lab->only == POLICY_LAB_SHARP ? 0 : from->n_pairs - 1;

	plan->priority = p->hops[i].priority;
	plan->bound = p->hops[i].bound;
	plan->pairs = from->n_pairs;
	memcpy(plan->pair, from->pairs, sizeof(plan->pair));
	k.lab.priority = (int)p->hops[i].priority;
	for (int n = first; n <= last; n++)
		k.lab.profile[k.lab.n_profile++] = (struct weir_bucket_spec){
			p->lab->holds ? WEIR_HOLD : WEIR_PROFILE, WEIR_UNIT_TIME, WEIR_OPS_ALL,
			from->pairs[n].rate * 1e9, ceil(from->pairs[n].size * 1e9)};
	return world_gate_change(p->w, p->host->gate, from->tenant->index, &k, err);
}

static int set_deadlines(struct world *w, const struct world_host *h, struct weir_err *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < h->n_tenants; i++) {
		const struct world_tenant *t = &h->tenants[i];
		const struct weir_tenant *of = tenant_of(t);
		struct scenario_knobs k = {.given = POLICY_LAB_DEADLINE};

		k.lab.deadline = of->slo_percentile > 0 ? of->slo_latency : NO_DEADLINE;
		r = world_gate_change(w, h->gate, t->index, &k, err);
	}
	return r;
}

int world_plan(struct world *w, struct world_host *h, struct weir_err *err)
{
	struct planning p = {.w = w, .host = h, .lab = &h->gate->config->resource.lab};
	int r = 0;

	if (p.lab->plan == POLICY_LAB_NO_PLAN)
		return 0;
	if (p.lab->plan == POLICY_LAB_EDF)
		return set_deadlines(w, h, err);
	p.items = calloc(h->n_tenants + 1, sizeof(*p.items));
	p.workloads = calloc(h->n_tenants + 1, sizeof(*p.workloads));
	p.hops = calloc(h->n_tenants + 1, sizeof(*p.hops));
	if (!p.items || !p.workloads || !p.hops)
		r = weir_err_set(err, -ENOMEM, "plan: out of memory");
	for (uint32_t i = 0; r == 0 && i < h->n_tenants; i++)
		if (tenant_of(&h->tenants[i])->slo_percentile > 0 && is_open(&h->tenants[i]))
			r = add_item(&p, &h->tenants[i], err);
	if (r == 0 && p.n)
		r = prioritize(&p, err);
	for (uint32_t i = 0; r == 0 && i < p.n; i++)
		r = set_knobs(&p, i, err);
	free(p.items);
	free(p.workloads);
	free(p.hops);
	return r;
}
