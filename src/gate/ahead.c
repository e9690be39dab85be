/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/ahead.h"

#define AHEAD_FEW 1000 /* tenants that wait; half a megabyte with their requests */

static void ahead_node(const struct weir_gate *g, uint32_t n)
{
	const char *node = (const char *)&g->nodes[n];

	for (size_t line = 0; line < offsetof(struct node, entry_priority); line += POOL_LINE)
		__builtin_prefetch(node + line, 1);
}

void ahead_nodes(struct weir_gate *g, size_t passed)
{
	struct ahead *a = &g->ahead;
	uint32_t want = passed < AHEAD_BATCH ? (uint32_t)passed : AHEAD_BATCH;

	a->n = 0;
	if (g->timer.set < AHEAD_FEW && node_lane(g, WEIR_ROOT, NODE_REST)->members < AHEAD_FEW)
		return;
	a->n = timer_soon(&g->timer, a->node, want);
	for (unsigned slot = node_ready(g, 0); slot <= NODE_REST && want;
		slot = node_ready(g, slot + 1)) {
		uint32_t n = lane_soon(node_lane(g, WEIR_ROOT, slot), a->node + a->n, want);

		a->n += n;
		want -= n;
	}
	for (uint32_t i = 0; i < a->n; i++)
		if (!(a->node[i] & LANE_OF_LANE))
			ahead_node(g, a->node[i]);
}

void ahead_heads(const struct weir_gate *g)
{
	for (uint32_t i = 0; i < g->ahead.n; i++) {
		uint32_t n = g->ahead.node[i];

		if (n < g->n_nodes && (g->nodes[n].flags & NODE_LEAF))
			__builtin_prefetch(g->nodes[n].head, 1);
	}
}

void ahead_next(const struct weir_gate *g)
{
	for (uint32_t i = 0; i < g->ahead.n; i++) {
		uint32_t n = g->ahead.node[i];

		if (n < g->n_nodes && (g->nodes[n].flags & NODE_LEAF) && g->nodes[n].head)
			__builtin_prefetch(g->nodes[n].head->next, 1);
	}
}
