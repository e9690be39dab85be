/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/above.h"
#include "gate/stand.h"

static void above_stop(
	struct weir_gate *g, uint32_t n, unsigned slot, const struct weir_req *r, weir_time now)
{
	struct node *node = &g->nodes[n];
	const struct limits *l = &node->limits;

	if (!(node->flags & NODE_STOPPED)) {
		stats_turn(g, node, now);
		node->flags |= NODE_STOPPED;
		node->inner->stopped = (uint8_t)slot;
	} else if (slot < node->inner->stopped) {
		node->inner->stopped = (uint8_t)slot;
	}
	timer_set(&g->timer, n, limits_when_all(l->b, l->n_hold, r, l->stamp));
}

/* Does inner node n's own admit r now? If not, it is stopped. */
static bool above_ask(
	struct weir_gate *g, uint32_t n, const struct weir_req *r, unsigned slot, weir_time now)
{
	const struct limits *l = &g->nodes[n].limits;

	if (limits_all(l->b, l->n_hold, r, now - l->stamp))
		return true;
	above_stop(g, n, slot, r, now);
	return false;
}

bool above_admit(
	struct weir_gate *g, uint32_t leaf, const struct weir_req *r, unsigned slot, weir_time now)
{
	for (uint32_t n = leaf; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		if (g->nodes[n].limits.n_hold && !above_ask(g, n, r, slot, now))
			return false;
	}
	return true;
}

void above_charge(struct weir_gate *g, uint32_t n, const struct weir_req *r, weir_time now)
{
	while (n != WEIR_ROOT) {
		n = g->nodes[n].parent;
		struct limits *l = &g->nodes[n].limits;

		if (!l->n_hold)
			continue;
		limits_fill(l, limits_as_of(l, r, now));
		limits_take(l->b, l->n_hold, r);
	}
}

/* The leaf at the front of inner node n's slot; NODE_NIL: none, or one that no longer waits there. */
static uint32_t above_front(struct weir_gate *g, uint32_t n, unsigned slot)
{
	struct lane *l = node_lane(g, n, slot);

	while (l) {
		uint32_t e = lane_first(l, &g->home);

		if (e == LANE_NIL)
			return NODE_NIL;
		if (!(e & LANE_OF_LANE))
			return node_may(&g->nodes[e], slot) ? e : NODE_NIL;
		l = g->lanes[e & ~LANE_OF_LANE];
	}
	return NODE_NIL;
}

void above_probe(struct weir_gate *g, uint32_t leaf, weir_time now)
{
	for (uint32_t n = leaf; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		const struct node *node = &g->nodes[n];

		if (!node->limits.n_hold || (node->flags & NODE_STOPPED))
			continue;
		unsigned slot = node->inner->priority ? 0 : NODE_RESERVED;
		uint32_t front = NODE_NIL;

		for (; slot <= NODE_REST && front == NODE_NIL; slot++)
			front = above_front(g, n, slot);
		if (front != NODE_NIL)
			(void)above_ask(g, n, g->nodes[front].head, slot - 1, now);
	}
}

void above_rejoin(struct weir_gate *g, uint32_t n, unsigned slot)
{
	struct lane *l = node_lane(g, n, slot);
	const struct node *node = &g->nodes[n];
	bool stopped = node_stopped(g, n, slot);

	if (!l || (g->order != WEIR_FAIR && (l->waits == 0 || stopped)))
		return;
	if (g->order != WEIR_FAIR) {
		uint32_t first = lane_first(l, &g->home);

		stand_join_keyed(g, l->number | LANE_OF_LANE, node->parent, slot,
			(weir_time)lane_entry(&g->home, l, first)->tag);
		return;
	}
	struct lane *above = node_lane(g, node->parent, slot);

	if (l->own.waits && (!l->waits || stopped))
		stand_out(g, above, &l->own, node->weight);
	else if (l->own.waits && l->own.group == LANE_NONE)
		lane_put(above, &g->home, &l->own, l->number | LANE_OF_LANE,
			lane_width(&g->home, l->own_cost, node->weight));
	else if (l->waits)
		stand_join_above(g, l);
}

void above_rejoin_all(struct weir_gate *g, uint32_t n)
{
	for (unsigned s = g->nodes[n].inner->priority ? 0 : NODE_RESERVED; s <= NODE_REST; s++)
		above_rejoin(g, n, s);
}

void above_forget(struct weir_gate *g, uint32_t n)
{
	const struct node *node = &g->nodes[n];

	for (unsigned s = node->inner->priority ? 0 : NODE_RESERVED; s <= NODE_REST; s++) {
		struct lane *l = node_lane(g, n, s), *above;

		if (!l || !l->own.waits)
			continue;
		above = node_lane(g, node->parent, s);
		stand_out(g, above, &l->own, node->weight);
		if (!above->waits)
			stand_leave_above(g, above);
	}
}

void above_release(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct node *node = &g->nodes[n];

	if (!(node->flags & NODE_STOPPED))
		return;
	stats_turn(g, node, now);
	node->flags &= (uint8_t)~NODE_STOPPED;
	if (n != WEIR_ROOT)
		above_rejoin_all(g, n);
}

void above_release_all(struct weir_gate *g, uint32_t n, weir_time now)
{
	while (n != WEIR_ROOT) {
		n = g->nodes[n].parent;
		above_release(g, n, now);
	}
}
