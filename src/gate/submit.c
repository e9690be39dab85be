/* SPDX-License-Identifier: BSD-3-Clause */
/* weir_gate_submit: append requests to their leaves' queues. */
#include "gate/check.h"
#include "gate/kind.h"
#include "gate/pending.h"
#include <errno.h>

#define GATE_SOME 64 /* requests of a submit handled at a time: a batch or two */

POOL_HOT void gate_stamp(struct weir_req *r, uint64_t age, weir_time now)
{
	r->submitted = now;
	r->dispatched = (weir_time)age;
	r->requests += r->requests == 0;
}

/* Append a request to its leaf's own queue. Return true if that was empty. */
POOL_HOT bool gate_link(struct node *node, struct weir_req *r)
{
	struct weir_req *tail = node->tail;

	*(tail ? &tail->next : &node->head) = r;
	if (tail == node->head)
		ahead_note_behind(node, tail, r);
	r->next = NULL;
	node->tail = r;
	node->queued++;
	return !tail;
}

/* Append a request of this age to its queue. Return true if that was empty. */
POOL_HOT bool gate_append(
	struct weir_gate *g, struct node *node, struct weir_req *r, uint64_t age, weir_time now)
{
	gate_stamp(r, age, now);
	if (__builtin_expect(kind_is_apart(node, r), 0))
		return kind_append(g, r, now);
	bool idle = gate_link(node, r);

	stats_wait_begin(g, node, now);
	return idle;
}

/* Note that leaf n is no longer idle: weir_gate_next is to check it. */
POOL_HOT void gate_rouse(struct weir_gate *g, uint32_t n, weir_time now)
{
	pending_add(g, n);
	if (g->tells)
		kind_sort(g, n, now);
	ahead_idle(&g->nodes[n]);
}

/* Append up to GATE_SOME requests. A branch on which queues were empty would be mispredicted: these leaves are noted
 * without a branch, and handled together. */
static void gate_append_some(
	struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	uint32_t idle[GATE_SOME], n_idle = 0;
	struct node *nodes = g->nodes;
	uint64_t age = g->age;

	g->age += n;
	for (size_t i = 0; i < n; i++) {
		struct weir_req *r = reqs[i];
		uint32_t tenant = r->tenant;

		idle[n_idle] = tenant;
		n_idle += gate_append(g, &nodes[tenant], r, age + i, now);
	}
	for (uint32_t k = 0; k < n_idle; k++)
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): idle[0 … n_idle) is set */
		gate_rouse(g, idle[k], now);
}

/* Return the leaf to which a request belongs; NULL if the request is not valid. */
POOL_HOT struct node *gate_leaf(const struct weir_gate *g, const struct weir_req *r)
{
	if (r->tenant >= g->n_nodes || r->op > WEIR_STATUS)
		return NULL;
	struct node *node = &g->nodes[r->tenant];

	return node->flags & NODE_LEAF ? node : NULL;
}

static __attribute__((noinline)) int gate_submit_many(
	struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct node *node = gate_leaf(g, reqs[i]);

		if (!node)
			return -EINVAL;
		__builtin_prefetch(node->tail, 1); /* the next request is linked to it */
	}
	check_submit(reqs, n);
	for (size_t i = 0; i < n; i += GATE_SOME)
		gate_append_some(g, now, reqs + i, n - i < GATE_SOME ? n - i : GATE_SOME);
	g->queued += (uint32_t)n;
	g->submitted += n;
	return 0;
}

/* Return true if gate_submit_plain suits a request. */
POOL_HOT bool gate_is_plain(
	const struct weir_gate *g, const struct node *node, const struct weir_req *r)
{
	return g->flat && !(node->flags & NODE_TOKENS) && !kind_is_apart(node, r);
}

/* Submit a single request, as many callers do, to a flat gate: no bucket above counts its wait. */
POOL_HOT void gate_submit_plain(
	struct weir_gate *g, weir_time now, struct weir_req *r, struct node *node)
{
	check_submit(&r, 1);
	gate_stamp(r, g->age++, now);
	stats_wait_begin_own(node, now);
	if (gate_link(node, r)) {
		pending_add(g, r->tenant);
		ahead_idle(node);
	}
	g->queued++;
	g->submitted++;
}

/* (The many are a function of their own, called last: then the single one saves no registers.) */
int weir_gate_submit(struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	struct node *node = n == 1 ? gate_leaf(g, reqs[0]) : NULL;

	now = gate_time(g, now);
	if (!node || !gate_is_plain(g, node, reqs[0]))
		return gate_submit_many(g, now, reqs, n);
	gate_submit_plain(g, now, reqs[0], node);
	return 0;
}
