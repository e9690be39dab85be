/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead: prefetching. The memory that a batch will touch is fetched in parallel, not line after line.
 *
 * METHOD  If very many timers are set, the nodes that are due in the next batch are read from the timer before this
 *         batch passes, and prefetched while it passes; when a node is in the cache its head is prefetched, and the
 *         request behind the head, which the node finds without reading the head. With fewer timers a node is
 *         prefetched when it is due, or its slot is near.
 *         These are hints: a wrong guess costs one fetch. With few tenants prefetching would cost as much as it
 *         gains, and is left out.
 */
#pragma once

#include "gate/node.h"

/* Prefetch the part of a node that a dispatch touches. */
POOL_HOT void ahead_node(const struct node *node)
{
	__builtin_prefetch(&node->head, 1);
	__builtin_prefetch(&node->timer, 1);
	__builtin_prefetch(&node->own, 1);
	__builtin_prefetch(&node->limits, 1);
}

/* Note the request behind the head. */
POOL_HOT void ahead_note_behind(
	struct node *node, const struct weir_req *head, const struct weir_req *behind)
{
	node->behind = behind ? (int32_t)(((intptr_t)behind - (intptr_t)head) / POOL_LINE) : 0;
}
/* Prefetch the head, and the request behind it: that is the next to be checked when the head has passed. (The node may
 * have been reused since it was noted, even as an inner node, whose first word is a pointer, too.) */
POOL_HOT void ahead_requests(const struct node *node)
{
	intptr_t head = (intptr_t)node->head; /* or NULL, or not the request that `behind` is for */

	__builtin_prefetch((const void *)head, 1);
	__builtin_prefetch((const void *)(head + (intptr_t)node->behind * POOL_LINE), 1);
}

/* Prefetch the part of a node that only leaves with a priority touch: the profile cannot be found before. */
POOL_HOT void ahead_rank(const struct node *node)
{
	__builtin_prefetch(&node->profile, 1);
}
/* Prefetch the part of the node's profile that a request touches, if it has one. (Not for inner nodes.) */
POOL_HOT void ahead_profile(const struct node *node)
{
	const struct profile *p = node->profile;

	if (p) {
		__builtin_prefetch(p, 1);
		__builtin_prefetch(&p->rate, 1);
	}
}

/* Allocate the memory that a gate with room for this many nodes needs. Return 0 or -ENOMEM. */
int ahead_fit(struct ahead *a, uint32_t room);

/* Before a batch passes: note the nodes that are due in the next, if there are so many nodes that this pays. */
void ahead_note(struct weir_gate *g, weir_time now);
POOL_HOT void ahead_soon(struct weir_gate *g, weir_time now)
{
	if (g->ahead.node)
		ahead_note(g, now);
}
/* Before some more of up to `max` requests pass, `passed` in all then: prefetch the same part of the noted nodes. */
void ahead_some(struct weir_gate *g, size_t passed, size_t max);
/* After the batch: prefetch the others. */
void ahead_others(struct weir_gate *g);
POOL_HOT void ahead_rest(struct weir_gate *g)
{
	if (g->ahead.soon)
		ahead_others(g);
}

/* Prefetch the other lines of a node whose timer has expired, so that the timer's line is in the cache (few
 * instructions, so also done for few nodes). Then ahead_due_heads prefetches the requests and buckets of n such
 * nodes. */
POOL_HOT void ahead_due(const struct node *node)
{
	__builtin_prefetch(&node->head, 1);
	__builtin_prefetch(&node->own, 1);
	__builtin_prefetch(&node->limits, 1);
}
/* Prefetch for the next slots of the calendar, if few timers have expired: calls are so frequent that each slot
 * expires by itself, with too few entries to be fetched in parallel. Prefetch the requests of the nodes due in the
 * next slot, and the nodes of the one after it. Return false if so few timers are set that it would not pay. */
bool ahead_slot(struct weir_gate *g);
void ahead_due_heads(const struct weir_gate *g, const uint32_t *due, uint32_t n);

/* Prefetch a leaf that is not empty any more: the next batch checks it. */
POOL_HOT void ahead_idle(const struct node *node)
{
	__builtin_prefetch(&node->timer, 1);
	__builtin_prefetch(&node->own, 1);
	__builtin_prefetch(&node->limits, 1);
}
