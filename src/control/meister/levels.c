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

	c->other = calloc(row, sizeof(*c->other));
	c->bound = calloc(groups, sizeof(*c->bound));
	c->cost = calloc(groups, sizeof(*c->cost));
	c->best = calloc(sums, sizeof(*c->best));
	c->from = calloc(sums, sizeof(*c->from));
	return c->other && c->bound && c->cost && c->best && c->from ? 0 : -ENOMEM;
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

static void bound_groups(struct cut *c)
{
	const struct meister_system *s = c->x->system;
	struct meister_queue *q = c->q;

	meister_queue_places(c->x, q);
	for (uint32_t i = 0; i < c->n; i++) {
		c->other[i] = other_stages(s, q->hop[i]);
		meister_sum_of(&q->sum, c->x->place, 0, i, &q->above);
		for (uint32_t j = i + 1; j <= c->n; j++) {
			meister_sum_of(&q->sum, c->x->place, i, j, &q->group);
			c->bound[i * (c->n + 1) + j] = meister_hop_bound(s, &s->hops[q->hop[i]],
				&q->group, (struct meister_above){&q->above, NULL});
		}
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

int meister_levels(struct meister_searching *x, uint32_t stage)
{
	struct meister_queue *q = &x->queues[stage];
	struct cut c = {.x = x, .q = q, .n = q->n, .levels = x->system->stages[stage].levels};
	int rc = cut_room(&c);

	if (rc == 0) {
		bound_groups(&c);
		cost_groups(&c);
		find_best(&c);
		apply(&c);
	}
	cut_free(&c);
	return rc;
}
