/* SPDX-License-Identifier: BSD-3-Clause */
/* replayed: replay the traces of a plan, and judge slos by bound or by replay. */
#include "base/no-memory.h"
#include "plan/planning.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOOSER      1.25 /* steps of the factor of the slos */
#define LOOSER_MOST 100

double planning_miss(const struct planning *p, uint32_t i)
{
	return meister_latency(&p->plan.system, i) - p->tenants[i].slo;
}

bool planning_holds(const struct planning *p, uint32_t i)
{
	const struct replay_result *r = p->by_replay ? &p->replayed[i] : NULL;

	if (p->tenant[i].held)
		return false;
	if (!r)
		return planning_miss(p, i) <= 0;
	/* NAN: no request of the kind of the slo */
	return !(r->at > p->tenants[i].slo * (1 - p->margin)) &&
	       !(fmax(r->high, r->next) > p->tenants[i].slo);
}

bool planning_feasible(const struct planning *p)
{
	for (uint32_t i = 0; i < p->in.n_tenants; i++)
		if (!planning_holds(p, i))
			return false;
	for (uint32_t i = 0; i < p->in.n_stages; i++)
		if (planning_crowded(p, i))
			return false;
	return true;
}

bool planning_crowded(const struct planning *p, uint32_t stage)
{
	return p->stage[stage].min_of && p->stage[stage].taken > 1 + 1e-9 &&
	       plan_load(&p->in, stage) <= 1;
}

bool planning_limited(const struct planning *p)
{
	for (uint32_t i = 0; i < p->in.n_tenants; i++)
		if (p->tenant[i].held)
			return true;
	for (uint32_t i = 0; i < p->in.n_stages; i++)
		if (planning_crowded(p, i))
			return true;
	return false;
}

/* ---- priorities for a replay */

/* Search again with slos that are all larger by the least factor that is found; the plan keeps its own slos. */
static int loosen(struct planning *p)
{
	struct plan_tenant *tenants = calloc(p->in.n_tenants + 1, sizeof(*tenants));
	struct plan_input in = p->in;
	int rc = tenants ? 0 : -ENOMEM;
	bool found = false;

	in.tenants = tenants;
	in.how.anneal = false;
	for (double x = LOOSER; rc == 0 && !found && x < LOOSER_MOST; x *= LOOSER) {
		struct plan plan;

		memcpy(tenants, p->tenants, p->in.n_tenants * sizeof(*tenants));
		for (uint32_t i = 0; i < p->in.n_tenants; i++)
			tenants[i].slo *= x;
		rc = plan_make(&in, &plan);
		found = rc == 0 && plan.feasible;
		if (found) {
			plan_free(&p->plan);
			p->plan = plan;
			p->plan.feasible = false; /* by its own slos */
			for (uint32_t i = 0; i < p->in.n_tenants; i++)
				p->plan.workloads[i].slo = p->tenants[i].slo;
		} else if (rc == 0) {
			plan_free(&plan);
		}
	}
	free(tenants);
	return rc;
}

/* ---- room to grow */

/* A replay that demands a margin leaves room to the buckets, too: a tenant may send `growth` times its trace before it is out of profile.
 * Its slo was judged by what its trace sends, so that costs no admission; with buckets that the trace just fits, every growth is best
 * effort, and late. Bounds are those of the larger buckets. */
static int widen(struct planning *p, double growth)
{
	uint32_t *priority = calloc(p->plan.system.n_hops + 1, sizeof(*priority));
	struct plan plan;
	int rc = priority ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < p->plan.system.n_hops; i++)
		priority[i] = p->plan.system.hops[i].priority;
	for (uint32_t i = 0; rc == 0 && i < p->in.n_tenants; i++)
		for (uint32_t k = 0; k < p->tenants[i].n_hops; k++) {
			struct plan_hop *h = &p->tenants[i].hop[k];
			double most = plan_rate_most(p->stages[h->stage].rate);

			for (unsigned n = 0; n < h->n; n++) {
				h->pair[n].rate = fmin(most, h->pair[n].rate * growth);
				h->pair[n].size *= growth;
			}
			h->n = (unsigned)meister_pairs_reduce(h->pair, h->n);
		}
	if (rc == 0)
		rc = plan_keep(&p->in, priority, &plan);
	free(priority);
	if (rc == 0) {
		plan.found = p->plan.found;
		plan.feasible = p->plan.feasible && plan.feasible;
		plan_free(&p->plan);
		p->plan = plan;
	}
	return rc;
}

/* Borrowed hops are those of another plan, and must not change. */
static int own_hops(struct planning *p)
{
	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		size_t size = p->tenants[i].n_hops * sizeof(struct plan_hop);
		struct plan_hop *copy = p->tenant[i].borrowed ? malloc(size) : NULL;

		if (p->tenant[i].borrowed && !copy)
			return -ENOMEM;
		if (copy) {
			memcpy(copy, p->tenants[i].hop, size);
			p->tenants[i].hop = copy;
			p->tenant[i].own_hop = true;
		}
	}
	return 0;
}

/* ---- the input */

struct setting {
	struct replay_stage *stages;
	struct replay_tenant *tenants;
	uint32_t *priority; /* by hop */
};

static void set_stages(const struct planning *p, struct setting *s)
{
	const size_t resources = p->policy->n_resources;

	for (uint32_t i = 0; i < p->in.n_stages; i++) {
		const struct planning_stage *from = &p->stage[i];

		s->stages[i] = (struct replay_stage){.rate = p->stages[i].rate,
			.depth = fmax(1, from->depth),
			.link = from->link,
			.piece = from->link ? (double)p->policy->links[i - resources].mtu : 0,
			.untraced = from->untraced,
			.most_inside = p->stages[i].inside};
		memcpy(s->stages[i].inside, from->estimate.inside, sizeof(s->stages[i].inside));
	}
}

static uint32_t group_of(const struct planning *p, uint32_t i)
{
	size_t group = policy_plan_together(p->policy, p->tenant[i].tenant);

	for (uint32_t k = 0; group && k < i; k++)
		if (policy_plan_together(p->policy, p->tenant[k].tenant) == group)
			return k;
	return i;
}

/* Return when a trace begins, after the first one of its group in the same recording. */
static weir_time start_of(const struct planning *p, uint32_t i)
{
	const size_t group = policy_plan_together(p->policy, p->tenant[i].tenant);
	const char *file = planning_tenant(p, i)->planned->trace;
	weir_time own = p->tenant[i].kept->trace.start, first = own;

	for (uint32_t k = 0; group && k < p->n_traced; k++)
		if (policy_plan_together(p->policy, p->tenant[k].tenant) == group &&
			strcmp(planning_tenant(p, k)->planned->trace, file) == 0 &&
			p->tenant[k].kept->trace.start < first)
			first = p->tenant[k].kept->trace.start;
	return own - first;
}

static void set_tenants(const struct planning *p, struct setting *s)
{
	uint32_t *priority = s->priority;

	for (uint32_t i = 0; i < p->n_traced; i++) {
		const struct weir_tenant *of = planning_tenant(p, i);

		s->tenants[i] = (struct replay_tenant){.trace = &p->tenant[i].kept->trace,
			.hop = p->tenants[i].hop,
			.n_hops = p->tenants[i].n_hops,
			.work = p->tenant[i].kept->work,
			.priority = i < p->in.n_tenants ? priority : NULL,
			.start = start_of(p, i),
			.group = group_of(p, i),
			.ops = of->slo_ops,
			.percentile = of->slo_percentile > 0 ? of->slo_percentile : 50};
		for (uint32_t k = 0; i < p->in.n_tenants && k < p->tenants[i].n_hops; k++)
			*priority++ = plan_hop(&p->plan, i, k)->priority;
	}
}

int planning_replay(struct planning *p, const struct planning_replay *how, struct weir_err *err)
{
	struct setting s = {calloc(p->in.n_stages + 1, sizeof(*s.stages)),
		calloc(p->n_traced + 1, sizeof(*s.tenants)),
		calloc(p->plan.system.n_hops + 1, sizeof(*s.priority))};
	struct replay_result *results = calloc(p->n_traced + 1, sizeof(*results));
	int rc = s.stages && s.tenants && s.priority && results ? 0 : -ENOMEM;

	if (rc == 0 && !p->plan.feasible)
		rc = loosen(p);
	if (rc == 0 && how->judge && how->margin > 0) {
		rc = own_hops(p);
		rc = rc < 0 ? rc : widen(p, 1 / ((1 - how->margin) * (1 - how->margin)));
	}
	if (rc == 0) {
		set_stages(p, &s);
		set_tenants(p, &s);
		rc = replay_run(&(struct replay_input){.stages = s.stages,
					.tenants = s.tenants,
					.n_stages = p->in.n_stages,
					.n_tenants = p->n_traced,
					.alignments = how->alignments,
					.seed = how->seed,
					.run = how->run,
					.pool = how->pool},
			results);
	}
	free(s.stages);
	free(s.tenants);
	free(s.priority);
	if (rc < 0) {
		free(results);
		return rc == -ENOMEM
			       ? no_memory(err)
			       : weir_err_set(err, -EINVAL,
					 rc == -ERANGE
						 ? "a trace of more than 9 years cannot be replayed"
						 : "replay: a gate refuses a bucket");
	}
	free(p->replayed);
	p->replayed = results;
	p->by_replay = how->judge;
	p->margin = how->margin;
	return 0;
}
