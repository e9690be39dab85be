/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/ahead.h"
#include <errno.h>

#define AHEAD_FEW   2000  /* timers set: a megabyte of nodes, which fits in a core's own cache */
#define AHEAD_MANY  16384 /* timers set; with fewer the nodes come from a cache, fast enough */
#define AHEAD_PIECE 128   /* bytes: four buckets, or the part of a profile that a request touches */
#define AHEAD_LEAST 4     /* nodes to note, even if none is due that soon */
#define AHEAD_LAG   8     /* nodes: after this many further prefetches, one has arrived */

static void ahead_piece(const void *piece)
{
	for (size_t line = 0; line < AHEAD_PIECE; line += POOL_LINE)
		__builtin_prefetch((const char *)piece + line, 1);
}

/* Prefetch the requests, the clocks if the head is held, and the buckets that are not in the node. */
POOL_HOT void ahead_head(const struct node *node)
{
	ahead_requests(node);
	if (node->flags & NODE_STATE)
		__builtin_prefetch(&node->held, 1);
	if (!(node->flags & NODE_APART))
		return;
	if (!limits_own(&node->limits))
		ahead_piece(node->limits.b);
	ahead_profile(node);
}

int ahead_fit(struct ahead *a, uint32_t room)
{
	if (room > AHEAD_MANY && !a->node)
		a->node = pool_array(NULL, 0, AHEAD_NOTED * sizeof *a->node);
	return room <= AHEAD_MANY || a->node ? 0 : -ENOMEM;
}

void ahead_note(struct weir_gate *g, weir_time now)
{
	struct ahead *a = &g->ahead;
	weir_time span = now - a->at;

	a->at = now;

	a->soon = a->step = 0;
	if (g->timer.set <= AHEAD_MANY)
		return;
	a->soon = timer_soon(&g->timer, now + span, AHEAD_LEAST, a->node, AHEAD_BATCH);
}

/* Take steps up to `to`: each prefetches a node, and the requests of an earlier one. */
static void ahead_steps(struct weir_gate *g, uint32_t to)
{
	struct ahead *a = &g->ahead;

	for (; a->step < to; a->step++) {
		if (a->step < a->soon)
			ahead_node(&g->nodes[a->node[a->step]]);
		if (a->step < a->soon && g->ranked)
			ahead_rank(&g->nodes[a->node[a->step]]);
		if (a->step >= AHEAD_LAG && a->step - AHEAD_LAG < a->soon)
			ahead_head(&g->nodes[a->node[a->step - AHEAD_LAG]]);
	}
}

void ahead_some(struct weir_gate *g, size_t passed, size_t max)
{
	ahead_steps(g, (uint32_t)(g->ahead.soon * passed / max));
}

void ahead_others(struct weir_gate *g)
{
	ahead_steps(g, g->ahead.soon + AHEAD_LAG);
}

/* (All loops are as long as a slot, with the root in place of an unused cell: a branch on the number of used cells
 * would be mispredicted.) */
bool ahead_slot(struct weir_gate *g)
{
	uint32_t *slot = g->ahead.slot;

	if (g->timer.set < AHEAD_FEW)
		return false;
	if (g->ahead.edge == g->timer.edge[0])
		return true; /* some entries of a slot expire after others */
	g->ahead.edge = g->timer.edge[0];
	for (unsigned k = 0; k < TIMER_CELLS; k++)
		ahead_requests(&g->nodes[slot[k]]);
	timer_cells(&g->timer, 1, slot);
	for (unsigned k = 0; k < TIMER_CELLS; k++) {
		slot[k] &= -(uint32_t)(slot[k] != TIMER_NIL);
		ahead_node(&g->nodes[slot[k]]);
	}
	return true;
}

void ahead_due_heads(const struct weir_gate *g, const uint32_t *due, uint32_t n)
{
	if (g->timer.set < AHEAD_FEW)
		return;
	for (uint32_t i = 0; i < n; i++)
		ahead_head(&g->nodes[due[i]]);
}
