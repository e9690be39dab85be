/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/ahead.h"

#define AHEAD_FEW   2000  /* tenants that wait: a megabyte, which a core has of its own */
#define AHEAD_MANY  16384 /* timers that are set; fewer come from a cache, soon enough */
#define AHEAD_PIECE 192   /* bytes of buckets: five of them, or six */
#define AHEAD_LEAST 4     /* of each: what is next may not be like what was */

static uint32_t ahead_want(size_t n)
{
	return n < AHEAD_LEAST ? AHEAD_LEAST : n < AHEAD_BATCH ? (uint32_t)n : AHEAD_BATCH;
}

void ahead_nodes(struct weir_gate *g, size_t passed, size_t due)
{
	struct ahead *a = &g->ahead;
	const struct lane *lane = node_lane(g, WEIR_ROOT, NODE_REST);
	bool priorities = g->nodes[WEIR_ROOT].inner->priority;

	a->n = 0;
	if (g->timer.set < AHEAD_FEW && lane->members < AHEAD_FEW)
		return;
	uint32_t n = 0;

	if (g->timer.set > AHEAD_MANY)
		n = timer_soon(&g->timer, a->node, ahead_want(due));
	/* Who has just become due in a better class passes at once; the others come from the first
	 * lane that is not empty. */
	if (node_ready(g, 0) < NODE_REST)
		lane = node_lane(g, WEIR_ROOT, node_ready(g, 0));
	n += lane_soon(lane, a->node + n, ahead_want(passed > due ? passed - due : 0));
	for (uint32_t i = 0; i < n; i++) {
		if (a->node[i] & LANE_OF_LANE)
			continue;
		const struct node *node = &g->nodes[a->node[i]];

		__builtin_prefetch(&node->head, 1);
		__builtin_prefetch(&node->entry_reserved, 1);
		__builtin_prefetch(&node->own, 1);
		__builtin_prefetch(&node->limits, 1);
		if (priorities)
			__builtin_prefetch(&node->entry_priority, 1);
		a->node[a->n++] = a->node[i];
	}
}

static void ahead_piece(const void *piece)
{
	for (size_t line = 0; line < AHEAD_PIECE; line += POOL_LINE)
		__builtin_prefetch((const char *)piece + line, 1);
}

/* A node may be another's since, or an inner one, whose first word is a pointer, too. */
void ahead_heads(const struct weir_gate *g)
{
	bool priorities = g->nodes[WEIR_ROOT].inner->priority;

	for (uint32_t i = 0; i < g->ahead.n; i++) {
		const struct node *node = &g->nodes[g->ahead.node[i]];

		__builtin_prefetch(node->head, 1);
		if (!limits_own(&node->limits))
			ahead_piece(node->limits.b);
		if (priorities && node->profile)
			ahead_piece(node->profile);
	}
}

void ahead_next(const struct weir_gate *g)
{
	for (uint32_t i = 0; i < g->ahead.n; i++) {
		const struct weir_req *head = g->nodes[g->ahead.node[i]].head;

		if (head)
			__builtin_prefetch(head->next, 1);
	}
}
