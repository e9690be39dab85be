/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world-plan: the knobs that a planner sets before the run, or at a change, for experiments (`plan` of `lab`).
 *
 * A tenant with an slo and open workloads is planned. Its trace is the arrivals of those workloads that run, of the same streams
 * as in the run and from then on over the scenario's duration: so the planner sees what will come, as it would see a
 * recorded trace, except what a change starts later. A later plan replaces the one before whole. Its stages are the gates on its way whose policies have a `plan`: of its
 * host or its device, where work is the device time that the gate estimates, and of links, where work is bytes. The blocking of
 * a device is the window times the largest request of any tenant, that of a link a packet, or its largest message.
 *
 *   meister  buckets: the trace's border at the stage, pruned; priorities: control/meister's search over all stages together
 *   edf      deadlines: the slos, of closed workloads too
 */
#include "base/array.h"
#include "base/no-memory.h"
#include "control/meister/frontier.h"
#include "control/meister/system.h"
#include "sim/world/world-trace.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MOST   256.0 /* of a bucket, in stages */
#define BURST_BY    0.7   /* of the duration: a burst that begins later is not seen whole */
#define NO_DEADLINE (INT64_C(3600) * WEIR_SEC) /* of a tenant without an slo: behind all others */

struct hop { /* a tenant that is planned, at one of its stages */
	uint32_t stage;
	bool request; /* on a link: towards the device */
	struct meister_pair pairs[POLICY_LAB_PROFILES];
	struct meister_knee knees[POLICY_LAB_PROFILES];
	int n_pairs;
};

struct item {
	struct world_tenant *tenant;
	struct trace trace;
	struct hop hops[2 * SCENARIO_HOPS + 2];
	unsigned n_hops;
	weir_time burst; /* when its longest burst begins */
};

struct planning {
	struct world *w;
	struct world_gate **gates; /* by stage */
	struct item *items;
	struct meister_stage *stages;
	struct meister_workload *workloads; /* by item */
	struct meister_hop *hops;           /* in the items' order */
	uint32_t n, n_stages, n_hops;
};

static const struct weir_tenant *tenant_of(const struct world_tenant *t)
{
	return &t->host->gate->policy->tenants[t->index];
}

static const struct policy_lab_resource *lab_of(const struct world_gate *g)
{
	return &g->config->resource.lab;
}

static bool is_link(const struct world *w, const struct world_gate *g)
{
	return !g->host && g->station >= w->stations + w->scenario->n_devices;
}

/* ---- the work of requests */

/* Return a request's work at a stage, in s or in bytes. */
static double work_of(const struct planning *p, const struct world_gate *g, bool request,
	struct estimate_past *past, const struct trace_record *r)
{
	struct weir_req q = {.bytes = r->bytes, .offset = r->offset, .op = r->op};

	if (is_link(p->w, g))
		return world_link_bytes(request, r->op, r->bytes);
	world_costs(g->config, past, &q);
	return (double)q.time / 1e9;
}

static double largest_in(const struct planning *p, const struct trace *t,
	const struct world_gate *g, bool request, double most)
{
	for (size_t i = 0; t && i < t->n; i++)
		most = fmax(most, work_of(p, g, request, NULL, &t->records[i]));
	return most;
}

/* Return the work of the tenant's largest request. */
static double largest_of(const struct planning *p, const struct world_tenant *t,
	const struct world_gate *g, bool request)
{
	double most = 0;

	for (size_t i = 0; i < t->n_loads; i++) {
		const struct scenario_workload *l = t->loads[i].config;
		const struct workload_config *c = &l->config;

		most = largest_in(p, c->trace, g, request, most);
		for (uint32_t k = 0; k < l->n_traces; k++)
			most = largest_in(p, &l->traces[k], g, request, most);
		for (unsigned k = 0; k < c->n_sizes && c->arrivals != WORKLOAD_TRACE; k++)
			for (int op = WEIR_READ; op <= WEIR_WRITE; op++) {
				struct trace_record r = {
					.bytes = c->sizes[k].bytes, .op = (uint8_t)op};
				most = fmax(most, work_of(p, g, request, NULL, &r));
			}
	}
	return most;
}

/* ---- one tenant at one stage */

/* A gate's bucket has a highest rate: a trace with requests that are ns apart has steeper pairs. */
static void cap_rates(const struct meister_frontier *border, double most, struct hop *to)
{
	for (int i = 0; i < to->n_pairs; i++)
		if (to->pairs[i].rate > most)
			to->pairs[i] =
				(struct meister_pair){most, meister_frontier_size(border, most)};
	to->n_pairs = (int)meister_pairs_reduce(to->pairs, (size_t)to->n_pairs);
}

/* Return the time at which the longest burst begins: the one that fills a bucket of this rate most. */
static weir_time burst_of(const struct meister_arrival *a, size_t n, double rate, double until)
{
	double level = 0, most = 0, began = a[0].t, longest = a[0].t;

	for (size_t i = 0; i < n && began < until; i++) {
		level -= i ? (a[i].t - a[i - 1].t) * rate : 0;
		if (level <= 0) {
			level = 0;
			began = a[i].t;
		}
		level += a[i].work;
		if (level > most) {
			most = level;
			longest = began;
		}
	}
	return (weir_time)(longest * 1e9);
}

static void describe(struct item *of, const struct meister_arrival *a, size_t n, double load)
{
	struct trace_summary s;

	trace_summarise(&of->trace, &s);
	*of->tenant->plan = (struct world_plan){
		.load = load, .ca2 = s.ca2, .peak = meister_peak(a, n, 1), .ios = n};
}

/* Compute the tenant's buckets at a stage. */
static int analyze(struct planning *p, struct item *of, struct hop *to, struct weir_err *err)
{
	const struct world_gate *g = p->gates[to->stage];
	size_t n = of->trace.n;
	struct meister_arrival *arrivals = calloc(n, sizeof(*arrivals));
	struct meister_frontier border = {0};
	struct estimate_past past = {0};
	double loss;
	int r = arrivals ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++)
		arrivals[i] = (struct meister_arrival){(double)of->trace.records[i].at / 1e9,
			work_of(p, g, to->request, g->host ? &past : NULL, &of->trace.records[i])};
	if (r == 0)
		r = meister_frontier(arrivals, n, &border);
	if (r == 0) {
		to->n_pairs = meister_frontier_prune(&border, lab_of(g)->pairs, to->pairs, &loss);
		r = to->n_pairs < 0 ? to->n_pairs : 0;
	}
	if (r == 0)
		cap_rates(&border, RATE_MOST * p->stages[to->stage].rate, to);
	if (r == 0 && !is_link(p->w, g)) {
		describe(of, arrivals, n, border.mean);
		of->tenant->plan->loss = loss;
		of->burst = burst_of(arrivals, n, 1.0 / p->w->n_tenants,
			BURST_BY * (double)p->w->scenario->duration / 1e9);
	}
	meister_frontier_free(&border);
	free(arrivals);
	return r < 0 ? no_memory(err) : 0;
}

static int add_hop(
	struct planning *p, struct item *of, uint32_t stage, bool request, struct weir_err *err)
{
	struct hop *h = &of->hops[of->n_hops];
	int r;

	*h = (struct hop){.stage = stage, .request = request};
	r = analyze(p, of, h, err);
	if (r)
		return r;
	meister_curve_of(h->pairs, (size_t)h->n_pairs, h->knees);
	p->hops[p->n_hops++] = (struct meister_hop){
		.workload = p->n, .stage = stage, .curve = {(size_t)h->n_pairs, h->knees}};
	of->n_hops++;
	return 0;
}

/* Add the gate as a stage of the tenant if it is planned. */
static int add_gate(struct planning *p, struct item *of, const struct world_gate *g, bool request,
	struct weir_err *err)
{
	for (uint32_t i = 0; g && i < p->n_stages; i++)
		if (p->gates[i] == g)
			return add_hop(p, of, i, request, err);
	return 0;
}

static int add_gates(struct planning *p, struct item *of, struct weir_err *err)
{
	const struct scenario_group *g = of->tenant->host->group;
	const struct world_station *stations = p->w->stations;
	int r = add_gate(p, of, of->tenant->host->gate, false, err);

	for (unsigned i = 0; r == 0 && i < g->n_request; i++)
		r = add_gate(p, of, stations[g->request[i]].gate, true, err);
	if (r == 0)
		r = add_gate(p, of, stations[g->device].gate, false, err);
	for (unsigned i = 0; r == 0 && i < g->n_reply; i++)
		r = add_gate(p, of, stations[g->reply[i]].gate, false, err);
	return r;
}

static int add_item(struct planning *p, struct world_tenant *t, struct weir_err *err)
{
	struct item *to = &p->items[p->n];
	uint32_t first = p->n_hops;
	int r;

	*to = (struct item){.tenant = t};
	t->plan = calloc(1, sizeof(*t->plan));
	if (!t->plan)
		return no_memory(err);
	r = world_trace_make(p->w, t, &to->trace, err);
	if (r == 0)
		r = add_gates(p, to, err);
	free(to->trace.records);
	if (r)
		return r;
	if (!to->n_hops) {
		free(t->plan);
		t->plan = NULL;
		return 0;
	}
	p->workloads[p->n++] = (struct meister_workload){
		(double)tenant_of(t)->slo_latency / 1e9, .hops = first, .n_hops = to->n_hops};
	return 0;
}

/* ---- stages */

static bool uses(const struct world *w, const struct world_tenant *t, const struct world_gate *g)
{
	return g->host ? t->host == g->host
		       : is_link(w, g) || &w->stations[t->host->group->device] == g->station;
}

/* Return the longest time in the device that its profile has seen, in s. */
static double inside_of(const struct estimate *e)
{
	double most = 0;

	for (unsigned op = 0; e && op < ESTIMATE_OPS; op++)
		most = fmax(most, e->inside[op].max / 1e9);
	return most;
}

static void add_stage(struct planning *p, struct world_gate *g)
{
	struct meister_stage *s = &p->stages[p->n_stages];
	bool link = is_link(p->w, g);
	double most = 0;

	if (lab_of(g)->plan != POLICY_LAB_MEISTER)
		return;
	for (uint32_t i = 0; i < p->w->n_tenants; i++)
		for (int request = 0; request < 2 && uses(p->w, &p->w->tenants[i], g); request++)
			most = fmax(most, largest_of(p, &p->w->tenants[i], g, request));
	*s = (struct meister_stage){.rate = 1, .levels = lab_of(g)->levels};
	if (link) {
		const struct link_config *c = &g->station->config->config.link;

		s->rate = c->rate;
		s->inside = (double)c->delay / 1e9;
		s->blocking = c->mtu ? fmin(most, (double)c->mtu) : most;
	} else {
		s->blocking = most * g->config->config.window;
		s->rate = 1 / lab_of(g)->margin;
		s->inside = inside_of(g->config->estimate);
	}
	if (!lab_of(g)->blocking)
		s->blocking = 0;
	p->gates[p->n_stages++] = g;
}

static int add_items(struct planning *p, struct weir_err *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < p->w->n_tenants; i++) {
		struct world_tenant *t = &p->w->tenants[i];

		if (tenant_of(t)->slo_percentile > 0 && world_trace_is_known(t))
			r = add_item(p, t, err);
	}
	return r;
}

static int prioritize(struct planning *p, struct weir_err *err)
{
	struct meister_system s = {p->stages, p->workloads, p->hops, p->n_stages, p->n, p->n_hops};
	struct meister_search how = {.greedy = true, .anneal = true, .seed = 1};
	enum meister_found found;

	return meister_search(&s, &how, &found) < 0 ? no_memory(err) : 0;
}

/* ---- the gates */

static size_t index_at(const struct world_gate *g, const struct world_tenant *t)
{
	return g->host ? t->index
		       : (size_t)scenario_leaf_for(g->config, t->host->name, tenant_of(t)->path);
}

static int set_knobs(struct planning *p, const struct item *of, unsigned hop, struct weir_err *err)
{
	const struct hop *from = &of->hops[hop];
	struct world_gate *g = p->gates[from->stage];
	const struct policy_lab_resource *lab = lab_of(g);
	bool link = is_link(p->w, g);
	double unit = link ? 1 : 1e9;
	uint32_t priority = p->hops[p->workloads[of - p->items].hops + hop].priority;
	struct scenario_knobs k = {.given = POLICY_LAB_PRIORITY | POLICY_LAB_PROFILE};
	int first = lab->only == POLICY_LAB_STEADY ? from->n_pairs - 1 : 0;
	int last = lab->only == POLICY_LAB_SHARP ? 0 : from->n_pairs - 1;

	k.lab.priority = (int)priority;
	for (int n = first; n <= last; n++)
		k.lab.profile[k.lab.n_profile++] =
			(struct weir_bucket_spec){lab->holds ? WEIR_HOLD : WEIR_PROFILE,
				link ? WEIR_UNIT_BYTES : WEIR_UNIT_TIME, WEIR_OPS_ALL,
				from->pairs[n].rate * unit, ceil(from->pairs[n].size * unit)};
	return world_gate_change(p->w, g, index_at(g, of->tenant), &k, err);
}

static void note_hop(
	struct planning *p, const struct hop *h, uint32_t priority, struct world_plan *to)
{
	const struct world_gate *g = p->gates[h->stage];

	if (is_link(p->w, g)) {
		to->links[to->n_links].name = g->station->config->name;
		to->links[to->n_links++].priority = priority;
		return;
	}
	to->priority = priority;
	to->pairs = h->n_pairs;
	memcpy(to->pair, h->pairs, sizeof(to->pair));
}

static int set_item(struct planning *p, uint32_t i, struct weir_err *err)
{
	const struct item *of = &p->items[i];
	const struct meister_hop *hops = &p->hops[p->workloads[i].hops];
	struct world_plan *plan = of->tenant->plan;
	int r = 0;

	for (unsigned k = 0; r == 0 && k < of->n_hops; k++) {
		plan->bound += hops[k].bound;
		note_hop(p, &of->hops[k], hops[k].priority, plan);
		r = set_knobs(p, of, k, err);
	}
	return r;
}

/* Start the workloads again so that all bursts begin with the last of them. */
static int align(struct planning *p, struct weir_err *err)
{
	weir_time last = 0;
	int r = 0;

	for (uint32_t i = 0; i < p->n; i++)
		last = p->items[i].burst > last ? p->items[i].burst : last;
	for (uint32_t i = 0; r == 0 && i < p->n; i++) {
		const struct world_tenant *t = p->items[i].tenant;
		bool aligned = lab_of(p->gates[p->items[i].hops[0].stage])->aligned;

		if (aligned && p->w->now)
			return weir_err_set(
				err, -EINVAL, "plan: bursts are aligned at the start only");

		for (size_t k = 0; r == 0 && aligned && k < t->n_loads; k++) {
			workload_free(t->loads[k].source);
			t->loads[k].source = NULL;
			r = world_load_source(p->w, t, t->loads[k].config, last - p->items[i].burst,
				&t->loads[k].source, err);
		}
	}
	return r;
}

static int set_deadlines(struct world *w, struct world_gate *g, struct weir_err *err)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < w->n_tenants; i++) {
		const struct world_tenant *t = &w->tenants[i];
		const struct weir_tenant *of = tenant_of(t);
		struct scenario_knobs k = {.given = POLICY_LAB_DEADLINE};

		k.lab.deadline = of->slo_percentile > 0 ? of->slo_latency : NO_DEADLINE;
		if (uses(w, t, g))
			r = world_gate_change(w, g, index_at(g, t), &k, err);
	}
	return r;
}

/* Take the earlier plan away: every planned tenant is best effort. */
static int clear_plans(struct planning *p, struct weir_err *err)
{
	static const struct scenario_knobs none = {
		.given = POLICY_LAB_PRIORITY | POLICY_LAB_PROFILE, .lab.priority = -1};
	int r = 0;

	for (uint32_t i = 0; i < p->w->n_tenants; i++) {
		struct world_tenant *t = &p->w->tenants[i];

		for (uint32_t k = 0; r == 0 && t->plan && k < p->n_stages; k++)
			if (uses(p->w, t, p->gates[k]) && (int)index_at(p->gates[k], t) >= 0)
				r = world_gate_change(
					p->w, p->gates[k], index_at(p->gates[k], t), &none, err);
		free(t->plan);
		t->plan = NULL;
	}
	return r;
}

/* ---- all */

static int plan_all(struct planning *p, struct weir_err *err)
{
	size_t stages = p->w->n_gates;
	size_t hops = (size_t)p->w->n_tenants * (2 * SCENARIO_HOPS + 2);
	int r;

	p->gates = calloc(stages, sizeof(*p->gates));
	p->stages = calloc(stages, sizeof(*p->stages));
	p->items = calloc(p->w->n_tenants + 1, sizeof(*p->items));
	p->workloads = calloc(p->w->n_tenants + 1, sizeof(*p->workloads));
	p->hops = calloc(hops + 1, sizeof(*p->hops));
	if (!p->gates || !p->stages || !p->items || !p->workloads || !p->hops)
		return no_memory(err);
	for (uint32_t i = 0; i < p->w->n_gates; i++)
		add_stage(p, &p->w->gates[i]);
	r = clear_plans(p, err);
	if (r == 0)
		r = add_items(p, err);
	if (r || !p->n)
		return r;
	r = prioritize(p, err);
	for (uint32_t i = 0; r == 0 && i < p->n; i++)
		r = set_item(p, i, err);
	return r ? r : align(p, err);
}

int world_plan(struct world *w, struct weir_err *err)
{
	struct planning p = {.w = w};
	bool any = false;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < w->n_gates; i++) {
		enum policy_lab_plan plan = lab_of(&w->gates[i])->plan;

		any |= plan == POLICY_LAB_MEISTER;
		if (plan == POLICY_LAB_EDF && !is_link(w, &w->gates[i]))
			r = set_deadlines(w, &w->gates[i], err);
	}
	if (r || !any)
		return r;
	r = plan_all(&p, err);
	free(p.gates);
	free(p.stages);
	free(p.items);
	free(p.workloads);
	free(p.hops);
	return r;
}
