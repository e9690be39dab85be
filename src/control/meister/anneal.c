/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * anneal: improve the orders of all stages by random moves.
 *
 * SOURCE   Simulated annealing (Kirkpatrick, Gelatt, Vecchi, 1983). The paper has none; its greedy finds few of the orders that
 *          differ from stage to stage (greedy.c).
 * LAW      A move that changes the cost by Δ is kept with probability min(1, e^(−Δ/T)). The cost is Σ (latency − slo)/slo over
 *          the workloads that miss.
 * METHOD   A move takes one hop to another position of its stage; only the bounds of the hops between change. Every other
 *          move raises a hop of a workload that misses. T falls from T_FIRST to T_LAST in equal ratios. The best orders seen
 *          are kept; a cost of 0 ends the search.
 */
#include "base/rng.h"
#include "control/meister/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define T_FIRST 0.3   /* in units of the cost: a third of an slo … */
#define T_LAST  0.003 /* … to 0.3 % of one */
#define REACH   32 /* positions that a move covers at most, so that its cost does not grow with N */
#define WORK    4e8 /* turns visited in all: about a second */

struct anneal {
	struct meister_searching *x;
	struct rng rng;
	uint32_t *kept;     /* the best orders, hops of all stages in a row */
	double *kept_bound; /* by hop */
	double cost, best, work;
};

struct move {
	uint32_t stage, from, to;
};

/* Take the hop at `from` to the position `to`. */
static void shift(struct meister_queue *q, uint32_t from, uint32_t to)
{
	uint32_t hop = q->hop[from];

	if (from < to)
		memmove(&q->hop[from], &q->hop[from + 1], (to - from) * sizeof(hop));
	else
		memmove(&q->hop[to + 1], &q->hop[to], (from - to) * sizeof(hop));
	q->hop[to] = hop;
}

static double miss_of(const struct meister_system *s, uint32_t hop)
{
	uint32_t w = s->hops[hop].workload;

	return meister_miss(meister_latency(s, w), s->workloads[w].slo);
}

/* Compute the bounds at the positions from … to, whose order changed; return the change of the cost. */
static double rebound(struct anneal *a, const struct move *m, double *ret_was)
{
	struct meister_system *s = a->x->system;
	struct meister_queue *q = &a->x->queues[m->stage];
	uint32_t low = m->from < m->to ? m->from : m->to, high = m->from + m->to - low;
	double change = 0;

	meister_queue_places(a->x, q);
	for (uint32_t i = low; i <= high; i++) {
		struct meister_hop *h = &s->hops[q->hop[i]];

		change -= miss_of(s, q->hop[i]);
		ret_was[i - low] = h->bound;
		meister_sum_of(&q->sum, a->x->place, 0, i, &q->above);
		h->bound =
			meister_hop_bound(s, h, &h->curve, (struct meister_above){&q->above, NULL});
		change += miss_of(s, q->hop[i]);
	}
	a->work += (double)(high - low + 1) * (double)q->sum.n;
	return change;
}

static void undo(struct anneal *a, const struct move *m, const double *was)
{
	struct meister_queue *q = &a->x->queues[m->stage];
	uint32_t low = m->from < m->to ? m->from : m->to, high = m->from + m->to - low;

	for (uint32_t i = low; i <= high; i++)
		a->x->system->hops[q->hop[i]].bound = was[i - low];
	shift(q, m->to, m->from);
}

/* Return a hop of a workload that misses, if a few tries find one, or else any. */
static uint32_t choose_hop(struct anneal *a)
{
	const struct meister_system *s = a->x->system;
	uint32_t hop = 0;

	for (int tries = 0; tries < 8; tries++) {
		hop = (uint32_t)rng_below(&a->rng, s->n_hops);
		if (miss_of(s, hop) > 0)
			break;
	}
	return hop;
}

static uint32_t position(const struct meister_queue *q, uint32_t hop)
{
	uint32_t i = 0;

	while (q->hop[i] != hop)
		i++;
	return i;
}

/* Return false if the stage has one hop only. */
static bool choose(struct anneal *a, bool up, struct move *ret)
{
	const struct meister_system *s = a->x->system;
	uint32_t hop = up ? choose_hop(a) : (uint32_t)rng_below(&a->rng, s->n_hops);
	const struct meister_queue *q = &a->x->queues[s->hops[hop].stage];
	uint32_t from = position(q, hop), least = from > REACH ? from - REACH : 0;
	uint32_t most = from + REACH < q->n ? from + REACH : q->n - 1;

	if (up)
		most = from;
	*ret = (struct move){
		s->hops[hop].stage, from, least + (uint32_t)rng_below(&a->rng, most - least + 1)};
	return ret->to != from;
}

static void keep_best(struct anneal *a)
{
	const struct meister_system *s = a->x->system;
	uint32_t *to = a->kept;

	a->best = a->cost;
	for (uint32_t i = 0; i < s->n_stages; i++) {
		const struct meister_queue *q = &a->x->queues[i];

		memcpy(to, q->hop, q->n * sizeof(*to));
		to += q->n;
	}
	for (uint32_t h = 0; h < s->n_hops; h++)
		a->kept_bound[h] = s->hops[h].bound;
}

static void restore_best(struct anneal *a)
{
	const struct meister_system *s = a->x->system;
	const uint32_t *from = a->kept;

	for (uint32_t i = 0; i < s->n_stages; i++) {
		struct meister_queue *q = &a->x->queues[i];

		memcpy(q->hop, from, q->n * sizeof(*from));
		from += q->n;
	}
	for (uint32_t h = 0; h < s->n_hops; h++)
		s->hops[h].bound = a->kept_bound[h];
}

static void try_move(struct anneal *a, double t)
{
	double was[REACH + 1], change;
	struct move m;

	if (!choose(a, rng_double(&a->rng) < 0.5, &m))
		return;
	shift(&a->x->queues[m.stage], m.from, m.to);
	change = rebound(a, &m, was);
	if (change > 0 && rng_double(&a->rng) >= exp(-change / t)) {
		undo(a, &m, was);
		return;
	}
	a->cost = change != 0 ? meister_violation(a->x->system) : a->cost;
	if (a->cost < a->best)
		keep_best(a);
}

static void run_moves(struct anneal *a, uint32_t moves)
{
	for (uint32_t i = 0; i < moves && a->best > 0 && a->work < WORK; i++) {
		double part = fmax((double)i / moves, a->work / WORK);

		try_move(a, T_FIRST * pow(T_LAST / T_FIRST, part));
	}
	restore_best(a);
}

int meister_anneal(struct meister_searching *x, const struct meister_search *how)
{
	const struct meister_system *s = x->system;
	struct anneal a = {.x = x, .cost = meister_violation(s)};

	a.kept = calloc(s->n_hops + 1, sizeof(*a.kept));
	a.kept_bound = calloc(s->n_hops + 1, sizeof(*a.kept_bound));
	if (a.kept && a.kept_bound && s->n_hops) {
		rng_init(&a.rng, how->seed, "meister");
		keep_best(&a);
		run_moves(&a, how->moves ? how->moves : MEISTER_MOVES);
	}
	free(a.kept);
	free(a.kept_bound);
	return a.kept && a.kept_bound ? 0 : -ENOMEM;
}
