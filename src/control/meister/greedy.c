/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * greedy: find an order of priorities at each stage from the lowest up.
 *
 * SOURCE   PriorityMeister §4.3. With one stage it is Audsley's algorithm, which finds an order if there is one.
 * METHOD   A workload that meets its slo below all the others that have no priority yet gets the lowest one, at every stage
 *          where it has none: only which workloads stand above it matters, not their order. If none does, the workload that
 *          misses its slo by least gets the lowest priority at one stage, the one at which its bound is least. A pass over N
 *          workloads costs N bounds, and a placed workload a pass over its stages' turns: O(N² log N) in all.
 * DIFFERS  A workload that meets its slo is placed at once, before the next one is tried: no bound grows by that. Workloads
 *          are tried by falling slo, equal ones as in the list, so that plans are repeatable.
 */
#include "control/meister/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { OPEN, PLACED }; /* of a hop, in `place` */

struct greedy {
	struct meister_searching *x;
	uint32_t *left; /* by stage: hops without a priority */
	struct turn_of {
		double slo;
		uint32_t workload;
	} * order; /* in which workloads are tried: the largest slo first, which most often fits below the others */
};

/* Return the bound of an open hop below all the other open ones of its stage. */
static double lowest(const struct greedy *g, const struct meister_hop *h)
{
	const struct meister_queue *q = &g->x->queues[h->stage];

	return meister_hop_bound(
		g->x->system, h, &h->curve, (struct meister_above){&q->above, &h->curve});
}

/* Give an open hop, whose bound is set, the lowest priority left. */
static void place(struct greedy *g, uint32_t hop)
{
	uint32_t stage = g->x->system->hops[hop].stage;
	struct meister_queue *q = &g->x->queues[stage];

	g->x->place[hop] = PLACED;
	q->hop[--g->left[stage]] = hop;
	meister_sum_of(&q->sum, g->x->place, OPEN, OPEN + 1, &q->above);
}

/* Set the bounds of a workload's open hops as if it were the lowest; return its latency. */
static double latency(struct greedy *g, uint32_t w)
{
	struct meister_system *s = g->x->system;
	const struct meister_workload *load = &s->workloads[w];

	for (uint32_t h = load->hops; h < load->hops + load->n_hops; h++)
		if (g->x->place[h] == OPEN)
			s->hops[h].bound = lowest(g, &s->hops[h]);
	return meister_latency(s, w);
}

static void place_all(struct greedy *g, uint32_t w)
{
	const struct meister_workload *load = &g->x->system->workloads[w];

	for (uint32_t h = load->hops; h < load->hops + load->n_hops; h++)
		if (g->x->place[h] == OPEN)
			place(g, h);
}

static void place_least(struct greedy *g, uint32_t w)
{
	const struct meister_system *s = g->x->system;
	const struct meister_workload *load = &s->workloads[w];
	uint32_t least = UINT32_MAX;

	for (uint32_t h = load->hops; h < load->hops + load->n_hops; h++)
		if (g->x->place[h] == OPEN &&
			(least == UINT32_MAX || s->hops[h].bound < s->hops[least].bound))
			least = h;
	place(g, least);
}

static bool is_open(const struct greedy *g, uint32_t w)
{
	const struct meister_workload *load = &g->x->system->workloads[w];

	for (uint32_t h = load->hops; h < load->hops + load->n_hops; h++)
		if (g->x->place[h] == OPEN)
			return true;
	return false;
}

/* Place the workloads that meet their slo, or else one hop. Return false if all are placed. */
static bool pass(struct greedy *g)
{
	const struct meister_system *s = g->x->system;
	uint32_t best = UINT32_MAX;
	double least = HUGE_VAL;
	bool placed = false;

	for (uint32_t i = 0; i < s->n_workloads; i++) {
		uint32_t w = g->order[i].workload;
		double over;

		if (!is_open(g, w))
			continue;
		over = latency(g, w) - s->workloads[w].slo;
		if (over <= 0) {
			place_all(g, w);
			placed = true;
		} else if (best == UINT32_MAX || over < least) {
			best = w;
			least = over;
		}
	}
	if (!placed && best != UINT32_MAX)
		place_least(g, best);
	return placed || best != UINT32_MAX;
}

static int by_slo(const void *a, const void *b)
{
	const struct turn_of *x = a, *y = b;

	if (x->slo != y->slo)
		return x->slo > y->slo ? -1 : 1;
	return x->workload < y->workload ? -1 : x->workload > y->workload;
}

int meister_greedy(struct meister_searching *x)
{
	struct greedy g = {x, calloc(x->system->n_stages + 1, sizeof(*g.left)),
		calloc(x->system->n_workloads + 1, sizeof(*g.order))};

	if (!g.left || !g.order) {
		free(g.left);
		free(g.order);
		return -ENOMEM;
	}
	for (uint32_t w = 0; w < x->system->n_workloads; w++)
		g.order[w] = (struct turn_of){x->system->workloads[w].slo, w};
	qsort(g.order, x->system->n_workloads, sizeof(*g.order), by_slo);
	for (uint32_t h = 0; h < x->system->n_hops; h++)
		x->place[h] = OPEN;
	for (uint32_t i = 0; i < x->system->n_stages; i++) {
		struct meister_queue *q = &x->queues[i];

		g.left[i] = q->n;
		meister_sum_of(&q->sum, x->place, OPEN, OPEN + 1, &q->above);
	}
	while (pass(&g))
		;
	free(g.left);
	free(g.order);
	return 0;
}
