/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/ahead.h"

#define AHEAD_FEW 16384 /* tenants that wait; some 10 MB with their requests and buckets */

#define AHEAD_STEP 8 /* passes that a line takes to come, at some 30 ns a pass */

static inline void ahead_node(const struct weir_gate *g, uint32_t n)
{
	__builtin_prefetch(&g->nodes[n], 1);
	__builtin_prefetch(&g->nodes[n].dispatched, 1);
}

static inline void ahead_head(const struct weir_gate *g, uint32_t n)
{
	const struct node *node = &g->nodes[n];

	__builtin_prefetch(node->head, 1);
	__builtin_prefetch(&g->entries[node->entry[WEIR_CLASS_REST] & ~1u], 1); /* a pair */
	if (!node->limits)
		return;
	__builtin_prefetch(node->limits, 1);
	__builtin_prefetch(&node->limits->b[1], 1);
	if (node->priority != NODE_NO_PRIORITY) { /* profiles: more buckets than fit there */
		__builtin_prefetch(&node->limits->b[3], 1);
		__builtin_prefetch(&node->limits->b[5], 1);
	}
}

void ahead_nodes(const struct weir_gate *g, const struct ahead_batch *batch)
{
	for (uint32_t i = 0; i < batch->n; i++)
		ahead_node(g, batch->node[i]);
}

void ahead_heads(const struct weir_gate *g, const struct ahead_batch *batch)
{
	for (uint32_t i = 0; i < batch->n; i++)
		ahead_head(g, batch->node[i]);
}

void ahead_next(const struct weir_gate *g, const struct ahead_batch *batch)
{
	for (uint32_t i = 0; i < batch->n; i++) {
		const struct weir_req *head = g->nodes[batch->node[i]].head;

		if (head)
			__builtin_prefetch(head->next, 1);
	}
}

/* Adds the owners of up to `max` entries at the front of one of the root's lanes. */
static void ahead_lane(const struct weir_gate *g, const struct lane *lane, struct lane_walk *w,
	struct ahead_batch *ahead, uint32_t max)
{
	for (uint32_t e; max && (e = lane_walk(lane, g->entries, w)) != LANE_NIL; max--) {
		uint32_t owner = g->entries[e].owner;

		if (owner >= NODE_ORPHAN) /* a lane of its own, or nobody */
			continue;
		ahead->node[ahead->n++] = owner;
		ahead_node(g, owner);
		__builtin_prefetch(&g->timer.entries[owner], 1);
	}
}

/* The leaves that are likely to pass next: those at the front of the root's lanes. The walk goes on
 * where this ends. */
void ahead_front(
	const struct weir_gate *g, struct ahead_walk *walk, struct ahead_batch *ahead, size_t max)
{
	uint32_t want = max < AHEAD_BATCH ? (uint32_t)max : AHEAD_BATCH;

	for (unsigned slot = node_ready(g, 0); slot <= NODE_REST && ahead->n < want;
		slot = node_ready(g, slot + 1)) {
		walk->of = node_lane(g, WEIR_ROOT, slot);
		walk->lane = lane_walk_from_front(walk->of);
		ahead_lane(g, walk->of, &walk->lane, ahead, want - ahead->n);
	}
	ahead_heads(g, ahead);
}

void ahead_start(const struct weir_gate *g, struct ahead_walk *w)
{
	w->of = node_lane(g, WEIR_ROOT, NODE_REST);
	w->lane = lane_walk_from_front(w->of);
	w->timer = (struct timer_walk){
		.at = TIMER_NIL, .digit = (uint32_t)(g->timer.now / TIMER_COARSE) & 4095};
	w->n = w->of->members > AHEAD_FEW ? 0 : AHEAD_BATCH;
}

void ahead_step(const struct weir_gate *g, struct ahead_walk *w)
{
	uint32_t k = w->n++, n = timer_walk(&g->timer, &w->timer);
	uint32_t e = lane_walk(w->of, g->entries, &w->lane);

	w->due[k] = n;
	w->entry[k] = e;
	if (n != TIMER_NIL) {
		__builtin_prefetch(&g->timer.entries[n], 1);
		ahead_node(g, n);
	}
	if (e != LANE_NIL)
		__builtin_prefetch(&g->entries[e], 1);
	if (k < AHEAD_STEP)
		return;
	n = w->due[k - AHEAD_STEP];
	if (n != TIMER_NIL)
		ahead_head(g, n);
	e = w->entry[k - AHEAD_STEP];
	n = e != LANE_NIL ? g->entries[e].owner : NODE_NIL;
	w->node[k] = n;
	if (n < NODE_ORPHAN)
		ahead_node(g, n);
	if (k >= 2 * AHEAD_STEP && w->node[k - AHEAD_STEP] < NODE_ORPHAN)
		ahead_head(g, w->node[k - AHEAD_STEP]);
}
