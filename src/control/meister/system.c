/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

double meister_latency(const struct meister_system *s, uint32_t workload)
{
	const struct meister_workload *w = &s->workloads[workload];
	double sum = 0;

	for (uint32_t i = 0; i < w->n_hops; i++)
		sum += s->hops[w->hops + i].bound;
	return sum;
}

double meister_miss(double latency, double slo)
{
	return fmin(fmax(latency / slo - 1, 0), MEISTER_UNBOUNDED);
}

double meister_violation(const struct meister_system *s)
{
	double sum = 0;

	for (uint32_t w = 0; w < s->n_workloads; w++)
		sum += meister_miss(meister_latency(s, w), s->workloads[w].slo);
	return sum;
}

double meister_hop_bound(const struct meister_system *s, const struct meister_hop *h,
	const struct meister_curve *own, struct meister_above above)
{
	const struct meister_stage *q = &s->stages[h->stage];

	return meister_bound(above, own, q->rate, q->blocking) + q->inside;
}

/* ---- queues */

static int queue_room(struct meister_queue *q, size_t knees)
{
	q->hop = calloc(q->n + 1, sizeof(*q->hop));
	q->sum.turn = calloc(knees + 1, sizeof(*q->sum.turn));
	q->above.knee = calloc(knees + 1, sizeof(*q->above.knee));
	q->group.knee = calloc(knees + 1, sizeof(*q->group.knee));
	return q->hop && q->sum.turn && q->above.knee && q->group.knee ? 0 : -ENOMEM;
}

static int queue_fill(const struct meister_system *s, uint32_t stage, struct meister_queue *q)
{
	size_t knees = 0;

	for (uint32_t h = 0; h < s->n_hops; h++) {
		q->n += s->hops[h].stage == stage;
		knees += s->hops[h].stage == stage ? s->hops[h].curve.n : 0;
	}
	if (queue_room(q, knees) < 0)
		return -ENOMEM;
	q->n = 0;
	for (uint32_t h = 0; h < s->n_hops; h++) {
		if (s->hops[h].stage != stage)
			continue;
		q->hop[q->n++] = h;
		meister_sum_add(&q->sum, &s->hops[h].curve, h);
	}
	meister_sum_sort(&q->sum);
	return 0;
}

int meister_searching_new(struct meister_system *s, struct meister_searching *ret)
{
	struct meister_searching x = {s, calloc(s->n_stages + 1, sizeof(*x.queues)),
		calloc(s->n_hops + 1, sizeof(*x.place))};
	int rc = x.queues && x.place ? 0 : -ENOMEM;

	for (uint32_t i = 0; rc == 0 && i < s->n_stages; i++)
		rc = queue_fill(s, i, &x.queues[i]);
	if (rc == 0)
		*ret = x;
	else
		meister_searching_free(&x);
	return rc;
}

void meister_searching_free(struct meister_searching *x)
{
	for (uint32_t i = 0; x->queues && i < x->system->n_stages; i++) {
		struct meister_queue *q = &x->queues[i];

		free(q->hop);
		free(q->sum.turn);
		free(q->above.knee);
		free(q->group.knee);
	}
	free(x->queues);
	free(x->place);
}

void meister_queue_places(struct meister_searching *x, const struct meister_queue *q)
{
	for (uint32_t i = 0; i < q->n; i++)
		x->place[q->hop[i]] = i;
}

/* ---- bounds of given priorities */

/* Sort a queue's hops by priority; equal ones keep their order. */
static void sort_queue(const struct meister_system *s, struct meister_queue *q)
{
	for (uint32_t i = 1; i < q->n; i++) {
		uint32_t hop = q->hop[i], k = i;

		for (; k > 0 && s->hops[q->hop[k - 1]].priority > s->hops[hop].priority; k--)
			q->hop[k] = q->hop[k - 1];
		q->hop[k] = hop;
	}
}

/* Set the bounds of a queue's hops, group by group; the queue is sorted by priority. */
static void bound_queue(struct meister_searching *x, struct meister_queue *q)
{
	struct meister_hop *hops = x->system->hops;

	meister_queue_places(x, q);
	for (uint32_t from = 0, to; from < q->n; from = to) {
		double bound;

		for (to = from;
			to < q->n && hops[q->hop[to]].priority == hops[q->hop[from]].priority; to++)
			;
		meister_sum_of(&q->sum, x->place, 0, from, &q->above);
		meister_sum_of(&q->sum, x->place, from, to, &q->group);
		bound = meister_hop_bound(x->system, &hops[q->hop[from]], &q->group,
			(struct meister_above){&q->above, NULL});
		for (uint32_t i = from; i < to; i++)
			hops[q->hop[i]].bound = bound;
	}
}

int meister_bounds(struct meister_system *s)
{
	struct meister_searching x;

	if (meister_searching_new(s, &x) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_stages; i++) {
		sort_queue(s, &x.queues[i]);
		bound_queue(&x, &x.queues[i]);
	}
	meister_searching_free(&x);
	return 0;
}

/* ---- search */

/* Set the priorities from the orders, in groups where a stage has too few levels; bounds of other stages are set. */
static int set_priorities(struct meister_searching *x)
{
	struct meister_system *s = x->system;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->n_stages; i++) {
		const struct meister_queue *q = &x->queues[i];

		for (uint32_t k = 0; k < q->n; k++)
			s->hops[q->hop[k]].priority = k;
		if (s->stages[i].levels && q->n > s->stages[i].levels)
			rc = meister_levels(x, i);
	}
	return rc;
}

/* Return true if no workload has a second stage: then greedy finds an order if there is one. */
static bool one_stage(const struct meister_system *s)
{
	return s->n_hops <= s->n_workloads;
}

static int search(struct meister_searching *x, const struct meister_search *how,
	enum meister_found *ret_found)
{
	int rc = meister_greedy(x);

	if (rc == 0 && how->greedy)
		rc = set_priorities(x);
	if (rc == 0 && how->greedy && meister_violation(x->system) == 0) {
		*ret_found = MEISTER_GREEDY;
		return 0;
	}
	if (rc == 0 && how->anneal && !(how->greedy && one_stage(x->system)))
		rc = meister_anneal(x, how);
	if (rc == 0)
		rc = set_priorities(x);
	if (rc == 0)
		*ret_found = how->anneal && meister_violation(x->system) == 0 ? MEISTER_ANNEAL
									      : MEISTER_NOT;
	return rc;
}

int meister_search(
	struct meister_system *s, const struct meister_search *how, enum meister_found *ret_found)
{
	struct meister_searching x;
	int rc = meister_searching_new(s, &x);

	if (rc < 0)
		return rc;
	rc = search(&x, how, ret_found);
	meister_searching_free(&x);
	return rc;
}
