/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/stand.h"
#include "gate/above.h"
#include "gate/kind.h"

/* ---- lanes */

/* Let lane l wait in the lane above with these kinds, or not if there are none. Return false if nothing changed. */
static bool stand_present_in(
	struct weir_gate *g, struct lane *above, struct lane *l, double weight, unsigned kinds)
{
	unsigned without = KIND_ALL & ~kinds;
	uint32_t e = l->number | LANE_OF_LANE;

	if (!kinds) {
		if (!l->own.waits)
			return false;
		stand_out(g, above, &l->own, weight);
	} else if (!l->own.waits) {
		l->own.without = without & KIND_ALL;
		if (stand_join(g, above, &l->own, e, weight, l->own_cost))
			above->own_cost = l->own_cost;
	} else if (l->own.without != without) {
		lane_change(above, &g->home, &l->own, e, weight,
			lane_width(&g->home, l->own_cost, weight), without);
	} else {
		return false;
	}
	return true;
}

void stand_present(struct weir_gate *g, struct lane *l)
{
	while (l->node != WEIR_ROOT) {
		const struct node *node = &g->nodes[l->node];
		struct lane *above = node_lane(g, node->parent, l->slot);
		unsigned kinds = lane_kinds(l) & ~node_stopped(g, l->node, l->slot);
		unsigned before = lane_kinds(above);

		if (!stand_present_in(g, above, l, node->weight, kinds) ||
			lane_kinds(above) == before)
			return;
		l = above;
	}
	node_set_ready(g, l->slot, l->waits);
}

void stand_enter_as(const struct stand *s, uint32_t n, struct node *node, unsigned slot,
	const struct weir_req *head)
{
	unsigned class = node_class(slot);
	struct lane_entry *entry = node_entry(node, class);
	const struct lane_home *h = &s->g->home;

	node->may |= (uint8_t)(1u << class);
	if (s->g->order != WEIR_FAIR) {
		stand_join_keyed(s->g, n, node->parent, slot, stand_key(s->g, n, head));
		return;
	}
	struct lane *lane = node_lane(s->g, node->parent, slot);
	double cost = stand_cost(s, head);
	unsigned without = kind_without(s->g, n, class), width = lane_width(h, cost, node->weight);

	if (!entry->waits) {
		entry->without = without & KIND_ALL;
		if (stand_join(s->g, lane, entry, n, node->weight, cost))
			lane->own_cost = cost;
		stand_present(s->g, lane);
		return;
	}
	if (entry->without != without) {
		lane_change(lane, h, entry, n, node->weight, width, without);
		stand_present(s->g, lane);
	}
	if (entry->group == LANE_NONE) /* the leaf has just been served */
		lane_put(lane, h, entry, n, width);
}

void stand_join_keyed(
	struct weir_gate *g, uint32_t e, uint32_t parent, unsigned slot, weir_time key)
{
	for (;;) {
		struct lane *lane = node_lane(g, parent, slot);
		struct lane_entry *entry = lane_entry(&g->home, lane, e);
		bool inside = entry->group != LANE_NONE;

		if (inside && (weir_time)entry->tag <= key) {
			if (!(e & LANE_OF_LANE))
				entry->tag = (uint64_t)key; /* the key grew: sorted again at the
				                               front */
			return;
		}
		entry->tag = (uint64_t)key;
		lane_key(lane, &g->home, e);
		if (parent == WEIR_ROOT) {
			node_set_ready(g, slot, true);
			return;
		}
		if (node_stopped(g, parent, slot))
			return;
		e = lane->number | LANE_OF_LANE;
		parent = g->nodes[parent].parent;
	}
}

weir_time stand_key(const struct weir_gate *g, uint32_t n, const struct weir_req *r)
{
	weir_time key = r->submitted;

	if (g->order == WEIR_EDF)
		key += r->deadline ? r->deadline * WEIR_US : g->deadline[n];
	return key;
}

/* ---- check a leaf's head against its own buckets */

static void stand_state(
	struct weir_gate *g, uint32_t n, const struct node *node, uint8_t state, weir_time now)
{
	if ((node->flags & NODE_STATE) != state)
		stats_state(g, n, 0, state, now);
}

void stand_held(struct weir_gate *g, uint32_t n, struct node *node, weir_time until, weir_time now)
{
	stand_state(g, n, node, NODE_HELD, now);
	timer_set_tick(&g->timer, &node->timer, n, timer_tick(until));
}

/* Return true if a leaf with an L-bucket has a token; if not, let it wait for one. */
static bool stand_token(const struct stand *s, uint32_t n, struct node *node)
{
	const struct limits *l = &node->limits;
	weir_time when = limits_when_all(&l->b[l->l], l->n_l, node->head, l->stamp);

	if (node->reserved < when)
		when = node->reserved;
	if (when <= s->at)
		return true;
	stand_state(s->g, n, node, NODE_TOKENS, s->now);
	timer_set(&s->g->timer, n, when);
	return false;
}

static void stand_look(const struct stand *s, uint32_t n, struct node *node, weir_time seen)
{
	const struct limits *l = &node->limits;
	const struct weir_req *head = node->head;
	bool pair = l->pair && limits_narrow(node->own, head);
	weir_time span = s->at - l->stamp;

	if (pair ? limits_held_pair(node->own, head, span)
		 : !limits_all(l->b, l->n_hold, head, span)) {
		stand_held(s->g, n, node, limits_when_all(l->b, l->n_hold, head, l->stamp), s->now);
		return;
	}
	node->reserved = pair ? limits_reserved_pair(l, node->own, head) : limits_reserved(l, head);
	if (l->n_l && !stand_token(s, n, node))
		return;
	stand_state(s->g, n, node, 0, s->now);
	if (stand_rests(s, node, seen))
		stand_enter(s, n, node, NODE_REST);
	if (node->priority != NODE_NO_PRIORITY || node->reserved < WEIR_NEVER)
		stand_better(s, n, node, seen);
	if ((!l->n || pair) && !s->g->above)
		node->may |= NODE_PLAIN;
}

void stand_look_many(const struct stand *s, uint32_t n, struct node *node, weir_time seen)
{
	if (node->flags & NODE_KINDS)
		kind_look(*s, n, node, seen);
	else
		stand_look(s, n, node, seen);
	stand_settle(s, node);
}

void stand_again(const struct stand *s, uint32_t n, struct node *node)
{
	unsigned may = s->g->above && (node->flags & NODE_KINDS) ? kind_may(s->g, n) : 0;

	node->may = 0;
	if (node->queued)
		stand_look_many(s, n, node, stand_seen(s, node));
	else
		stand_idle(s, node);
	/* A head that could pass may now have to wait behind an older one which an L-bucket refuses, since no hold
	 * bucket does any more. Its turn is over, so release the kinds that it stopped above. */
	if (may & ~kind_may(s->g, n))
		above_release_all(s->g, n, s->now);
}

void stand_update(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct stand s = stand_at(g, now, false);

	stand_again(&s, n, &g->nodes[n]);
}

static void stand_forget_one(
	struct weir_gate *g, uint32_t n, struct lane_entry *entry, unsigned slot)
{
	const struct node *node = &g->nodes[n];
	struct lane *lane = entry->group == LANE_NONE && !entry->waits
				    ? NULL
				    : node_lane(g, node->parent, slot);

	if (!lane)
		return;
	if (entry->group != LANE_NONE && lane->keyed)
		lane_key_out(lane, entry, n);
	if (!entry->waits)
		return;
	stand_out(g, lane, entry, node->weight);
	stand_present(g, lane);
}

void stand_forget(struct weir_gate *g, uint32_t n)
{
	struct node *node = &g->nodes[n];

	node->may = 0;
	stand_forget_one(g, n, &node->entry_rest, NODE_REST);
	stand_forget_one(g, n, &node->entry_reserved, NODE_RESERVED);
	if (node->priority != NODE_NO_PRIORITY)
		stand_forget_one(g, n, &node->entry_priority, node->priority);
}
