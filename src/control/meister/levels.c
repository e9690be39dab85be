/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * levels: put workloads, sorted by priority, into as few groups as a stage can tell apart.
 *
 * SOURCE   PriorityMeister §4.7.
 * LAW      Groups are cuts of the order; inside a group requests are served first in, first out. Of all cuts into at most k
 *          groups the one with the least Σ (latency − slo)/slo over the workloads that miss.
 * SYMBOLS  cost(i, j)  the sum over the hops at positions i … j − 1 as one group, behind those at 0 … i − 1
 *          best(l, j)  the least sum over the first j hops in l groups: min over i of best(l − 1, i) + cost(i, j)
 * METHOD   Dynamic programming, exact: N²/2 groups are bounded, and k N²/2 sums are compared. The bounds of the workloads'
 *          other stages are taken as they are, so several stages with few levels are cut one after the other.
 *          Before that, groups are made from the first on, each as long as every slo in it is met, by bisection: if these are few
 *          enough no cut misses less, and k log N groups were bounded.
 */
#include "control/meister/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct cut {
	struct meister_searching *x;
	struct meister_queue *q;
	uint32_t n, levels;
	double *other; /* by position: the bounds of the workload's other stages */
	double *bound; /* of the group i … j − 1 at i * (n + 1) + j */
	double *cost;  /* of the same */
	double *best;  /* of j in l groups at l * (n + 1) + j */
	uint32_t *from;
};

static int cut_room(struct cut *c)
{
	size_t row = c->n + 1, groups = row * row, sums = row * (c->levels + 1);

	c->bound = calloc(groups, sizeof(*c->bound));
	c->cost = calloc(groups, sizeof(*c->cost));
	c->best = calloc(sums, sizeof(*c->best));
	c->from = calloc(sums, sizeof(*c->from));
	return c->bound && c->cost && c->best && c->from ? 0 : -ENOMEM;
}

static void cut_free(struct cut *c)
{
	free(c->other);
	free(c->bound);
	free(c->cost);
	free(c->best);
	free(c->from);
}

static double other_stages(const struct meister_system *s, uint32_t hop)
{
	const struct meister_workload *w = &s->workloads[s->hops[hop].workload];
	double sum = 0;

	for (uint32_t h = w->hops; h < w->hops + w->n_hops; h++)
		sum += h == hop ? 0 : s->hops[h].bound;
	return sum;
}

/* Return the bound of the group i … j − 1; the work above is set. */
static double group_bound(struct cut *c, uint32_t i, uint32_t j)
{
	const struct meister_system *s = c->x->system;
	struct meister_queue *q = c->q;

	meister_sum_of(&q->sum, c->x->place, i, j, &q->group);
	return meister_hop_bound(
		s, &s->hops[q->hop[i]], &q->group, (struct meister_above){&q->above, NULL});
}

static void bound_groups(struct cut *c)
{
	struct meister_queue *q = c->q;

	meister_queue_places(c->x, q);
	for (uint32_t i = 0; i < c->n; i++) {
		meister_sum_of(&q->sum, c->x->place, 0, i, &q->above);
		for (uint32_t j = i + 1; j <= c->n; j++)
			c->bound[i * (c->n + 1) + j] = group_bound(c, i, j);
	}
}

static void cost_groups(struct cut *c)
{
	const struct meister_system *s = c->x->system;

	for (uint32_t i = 0; i < c->n; i++) {
		for (uint32_t j = i + 1; j <= c->n; j++) {
			double bound = c->bound[i * (c->n + 1) + j], sum = 0;

			for (uint32_t k = i; k < j; k++)
				sum += meister_miss(c->other[k] + bound,
					s->workloads[s->hops[c->q->hop[k]].workload].slo);
			c->cost[i * (c->n + 1) + j] = sum;
		}
	}
}

static void find_best(struct cut *c)
{
	uint32_t row = c->n + 1;

	for (uint32_t j = 1; j <= c->n; j++)
		c->best[j] = HUGE_VAL; /* no group holds no hop */
	for (uint32_t l = 1; l <= c->levels; l++) {
		for (uint32_t j = 1; j <= c->n; j++) {
			double best = HUGE_VAL;

			for (uint32_t i = 0; i < j; i++) {
				double sum = c->best[(l - 1) * row + i] + c->cost[i * row + j];

				if (sum < best) {
					best = sum;
					c->from[l * row + j] = i;
				}
			}
			c->best[l * row + j] = best;
		}
	}
}

static void apply(struct cut *c)
{
	uint32_t row = c->n + 1, j = c->n;

	for (uint32_t l = c->levels; l > 0; l--) {
		uint32_t i = c->from[l * row + j];

		for (uint32_t k = i; k < j; k++) {
			struct meister_hop *h = &c->x->system->hops[c->q->hop[k]];

			h->priority = l - 1;
			h->bound = c->bound[i * row + j];
		}
		j = i;
	}
}

/* ---- the short way */

/* Return true if every workload of the group i … j − 1 meets its slo. */
static bool group_meets(struct cut *c, uint32_t i, uint32_t j, double *ret_bound)
{
	const struct meister_system *s = c->x->system;
	double bound = group_bound(c, i, j);

	for (uint32_t k = i; k < j; k++)
		if (c->other[k] + bound > s->workloads[s->hops[c->q->hop[k]].workload].slo)
			return false;
	*ret_bound = bound;
	return true;
}

/* Set priorities and bounds; false: a workload misses its slo, or there are too many groups. */
static bool cut_short(struct cut *c)
{
	struct meister_system *s = c->x->system;
	uint32_t level = 0;

	meister_queue_places(c->x, c->q);
	for (uint32_t i = 0, end; i < c->n; i = end, level++) {
		uint32_t low = i, high = c->n; /* the longest has low … high hops */
		double bound = 0;

		meister_sum_of(&c->q->sum, c->x->place, 0, i, &c->q->above);
		while (low < high) {
			uint32_t middle = low + (high - low + 1) / 2;

			if (group_meets(c, i, middle, &bound))
				low = middle;
			else
				high = middle - 1;
		}
		end = low;
		if (end == i || level == c->levels)
			return false;
		for (uint32_t k = i; k < end; k++) {
			s->hops[c->q->hop[k]].priority = level;
			s->hops[c->q->hop[k]].bound = bound;
		}
	}
	return true;
}

int meister_levels(struct meister_searching *x, uint32_t stage)
{
	struct meister_queue *q = &x->queues[stage];
	struct cut c = {.x = x, .q = q, .n = q->n, .levels = x->system->stages[stage].levels};
	int rc;

	c.other = calloc(c.n + 1, sizeof(*c.other));
	if (!c.other)
		return -ENOMEM;
	for (uint32_t i = 0; i < c.n; i++)
		c.other[i] = other_stages(x->system, q->hop[i]);
	rc = cut_short(&c) ? 1 : cut_room(&c);
	if (rc == 0) {
		bound_groups(&c);
		cost_groups(&c);
		find_best(&c);
		apply(&c);
	}
	cut_free(&c);
	return rc < 0 ? rc : 0;
}
