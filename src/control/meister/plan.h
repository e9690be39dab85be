/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: from traces and SLOs to priorities, token buckets and a statement of what holds.
 *
 * SOURCE   PriorityMeister (Zhu et al., SoCC'14), §4: analysis, estimates, prioritizer, bounds.
 * LAW      A tenant's latency is at most the sum of its stages' bounds (system.h). At each stage L, the work of lower priority
 *          inside, is W × the most work of one request of any tenant there: a request of best effort is below every priority,
 *          and requests of any tenant may be best effort. A device's time inside is added.
 * METHOD   A trace at a stage is reduced to k pairs (frontier.h). The search is greedy first, annealing when that fails. A
 *          remedy is a change of one number after which the same search meets every slo; the least change is found by
 *          bisection. A trace at a part x of its rate has the pairs (x r, b).
 * DIFFERS  The paper has no blocking term. A rate is at least PLAN_RATE_LEAST of the stage's, so that a bucket of a trace whose
 *          requests come all at once fills again.
 * EXAMPLE  tests/control/meister/plan.c; weir-plan(1).
 */
#ifndef WEIR_CONTROL_MEISTER_PLAN_H
#define WEIR_CONTROL_MEISTER_PLAN_H

#include "control/meister/frontier.h"
#include "control/meister/system.h"

#define PLAN_PAIRS      4
#define PLAN_RATE_LEAST 1e-3 /* of the stage's rate */
/* Steeper pairs are replaced, and refused by a gateway: a gate's bucket takes up to 2.7e11 bytes or ns a second. */
#define PLAN_RATE_MOST 256.0  /* of the stage's rate; of device time: s a second */
#define PLAN_RATE_GATE 2.5e11 /* bytes a second */

struct plan_stage {
	double rate;  /* work per second */
	double depth; /* W: requests inside; 1 for a link */
	double largest; /* work of the largest request of any tenant, also of those that are not planned */
	double inside; /* s, added to every bound */
	unsigned levels;
};

struct plan_hop { /* a tenant at a stage */
	uint32_t stage;
	struct meister_pair pair[MEISTER_PAIRS];
	unsigned n;
	double loss;    /* of the choice of pairs */
	double load;    /* mean work per second, before it is raised to PLAN_RATE_LEAST */
	double largest; /* work of the largest request */
};

struct plan_tenant {
	double slo;           /* s */
	struct plan_hop *hop; /* by stage of the path */
	uint32_t n_hops;
};

struct plan_input {
	const struct plan_stage *stages;
	const struct plan_tenant *tenants;
	uint32_t n_stages, n_tenants;
	struct meister_search how;
};

static inline double plan_rate_most(double stage_rate)
{
	double most = PLAN_RATE_MOST * stage_rate;

	return most < PLAN_RATE_GATE ? most : PLAN_RATE_GATE;
}

/* Reduce a trace at a stage of that rate to at most k pairs. n ≥ 1. Sets all of ret but `stage`. 0 or -ENOMEM. */
int plan_hop_of(const struct meister_arrival *arrivals, size_t n, size_t k, double rate,
	struct plan_hop *ret);
/* The same with one pair: that of the least r × slo + b. */
int plan_hop_single(const struct meister_arrival *arrivals, size_t n, double slo, double rate,
	struct plan_hop *ret);

struct plan { /* as found; indices of tenants and stages are the input's */
	struct meister_system system;
	struct meister_stage *stages;
	struct meister_workload *workloads;
	struct meister_knee *knees;
	enum meister_found found;
	bool feasible; /* every slo is met */
};

/* Search for priorities. 0 or -ENOMEM. */
int plan_make(const struct plan_input *in, struct plan *ret);
/* The same with given priorities, by tenant and place in its path, instead of a search. */
int plan_keep(const struct plan_input *in, const uint32_t *priority, struct plan *ret);
void plan_free(struct plan *p);
/* Return a tenant's hop, by its place in the tenant's path: priority and bound. */
static inline const struct meister_hop *plan_hop(const struct plan *p, uint32_t tenant, uint32_t i)
{
	return &p->system.hops[p->workloads[tenant].hops + i];
}

/* The parts of a tenant's bound, which add up to it; of an unbounded one all are 0. */
struct plan_parts {
	double own;      /* s: its own burst */
	double blocking; /* s: requests of lower priority inside */
	double inside;   /* s */
	double *others;  /* s, by tenant: those of higher priority, or of the same */
};
/* ret->others has room for all tenants. 0 or -ENOMEM. */
int plan_explain(const struct plan *p, uint32_t tenant, struct plan_parts *ret);

/* Return the long-run load of a stage's planned tenants, relative to its rate: above 1 no bound exists for all of them. */
double plan_load(const struct plan_input *in, uint32_t stage);

/* Remedies: the least change that meets every slo, by the same search. Each returns 1 and the value, 0 if no value does, or
 * -ENOMEM. */
/* Greater slos, up to `most` (s, by tenant): each is slo + x (most − slo) with the least x, 0 … 1. */
int plan_remedy_slo(const struct plan_input *in, const double *most, double *ret_x);
/* A part of the trace's rate, 0 … 1, of one tenant. */
int plan_remedy_rate(const struct plan_input *in, uint32_t tenant, double *ret_part);
/* A smaller whole depth of a stage. */
int plan_remedy_depth(const struct plan_input *in, uint32_t stage, double *ret_depth);
/* The same without a tenant. */
int plan_remedy_without(const struct plan_input *in, uint32_t tenant);

#endif
