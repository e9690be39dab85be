/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead: memory ahead of need. What a batch will touch is fetched together, not one after the other.
 *
 * METHOD  Who is likely to pass in the next batch is read off the timer, if very many wait, before this
 *         one passes, and off the chains of the lanes after it, and their nodes are asked for. When
 *         those have come, their heads are asked for, and then those behind the heads: of the former
 *         while this batch passes, of the latter at the beginning of the next. With fewer, who is
 *         due is asked for when he is due. Nothing but hints: a wrong guess costs a fetch. Where
 *         few tenants wait it would cost as much as it gains, and is left out.
 */
#ifndef WEIR_GATE_AHEAD_H
#define WEIR_GATE_AHEAD_H

#include "gate/node.h"

/* All of a node that a pass touches. */
POOL_HOT void ahead_node(const struct node *node)
{
	__builtin_prefetch(&node->head, 1);
	__builtin_prefetch(&node->timer, 1);
	__builtin_prefetch(&node->own, 1);
	__builtin_prefetch(&node->limits, 1);
}

/* Makes what a gate with so many nodes needs for this. 0 or -ENOMEM. */
int ahead_fit(struct ahead *a, uint32_t room);

/* A batch is about to pass: who is due in the next is noted, if there are so many nodes that this is of use. */
void ahead_note(struct weir_gate *g, weir_time now);
POOL_HOT void ahead_soon(struct weir_gate *g, weir_time now)
{
	if (g->ahead.node)
		ahead_note(g, now);
}
/* Some more of up to `max` are about to pass, `passed` in all then: as large a part of those is fetched. */
void ahead_some(struct weir_gate *g, size_t passed, size_t max);
/* They have passed: the others are fetched. */
void ahead_others(struct weir_gate *g);
POOL_HOT void ahead_rest(struct weir_gate *g)
{
	if (g->ahead.soon)
		ahead_others(g);
}

/* A node's timer has expired, so that its places have come already: the other lines (few instructions: also
 * where few wait). Then, of n of them,
 * heads and buckets; and, when those have come, the requests behind the heads. */
POOL_HOT void ahead_due(const struct node *node)
{
	__builtin_prefetch(&node->head, 1);
	__builtin_prefetch(&node->own, 1);
	__builtin_prefetch(&node->limits, 1);
}
/* Few timers have expired: calls are so frequent that each slot of the calendar expires by itself, and what is due then is
 * too little to be fetched together. So this fetches the requests behind the heads of those that are due in the next slot,
 * the heads of those in the one after it, and the nodes of those in the third. Return false if so few timers are set that
 * it would be of no use. */
bool ahead_slot(struct weir_gate *g);
void ahead_due_heads(const struct weir_gate *g, const uint32_t *due, uint32_t n);
POOL_HOT void ahead_behind(const struct weir_gate *g, const uint32_t *nodes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct node *node = &g->nodes[nodes[i]];

		if ((node->flags & NODE_LEAF) && node->head)
			__builtin_prefetch(node->head->next, 1);
	}
}

/* A leaf that was empty is no longer: the next batch looks at all of it. */
POOL_HOT void ahead_idle(const struct node *node)
{
	__builtin_prefetch(&node->timer, 1);
	__builtin_prefetch(&node->own, 1);
	__builtin_prefetch(&node->limits, 1);
}

#endif
