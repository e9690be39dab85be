/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/stand.h"
#include <string.h>

/* ---- lanes */

void stand_join_above(struct weir_gate *g, struct lane *l)
{
	/* (If it is stopped, above_release will see to it.) */
	while (l->node != WEIR_ROOT) {
		const struct node *node = &g->nodes[l->node];
		struct lane *above = node_lane(g, node->parent, l->slot);

		if (l->own.at != LANE_OUT || node_stopped(g, l->node, l->slot) ||
			!stand_join(g, above, &l->own, l->number | LANE_OF_LANE, node->per_weight))
			return;
		l = above;
	}
	node_set_ready(g, l->slot, true);
}

void stand_join_keyed(struct weir_gate *g, uint32_t e, uint32_t parent, unsigned slot, double key)
{
	for (;;) {
		struct lane *lane = node_lane(g, parent, slot);
		struct lane_entry *entry = lane_entry(&g->home, lane, e);
		bool inside = entry->at != LANE_OUT;

		if (inside && entry->tag <= key) {
			if (!(e & LANE_OF_LANE))
				entry->tag = key; /* it grew: found at the front */
			return;
		}
		entry->tag = key;
		if (inside)
			lane_lower(lane, &g->home, e);
		else
			lane_insert(lane, &g->home, e);
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

/* Its bits order as the time does. */
double stand_key(const struct weir_gate *g, uint32_t n, const struct weir_req *r)
{
	weir_time key = r->submitted;
	double tag;

	if (g->order == WEIR_EDF)
		key += r->deadline ? r->deadline * WEIR_US : g->deadline[n];
	memcpy(&tag, &key, sizeof tag);
	return tag;
}

/* ---- a leaf's head against its own buckets */

static void stand_state(const struct stand *s, struct node *node, uint8_t state)
{
	if ((node->flags & NODE_STATE) != state)
		stats_state(s->g, node, state, s->now);
}

void stand_held(struct stand s, uint32_t n, struct node *node)
{
	const struct limits *l = &node->limits;

	stand_state(&s, node, NODE_HELD);
	timer_set_tick(&s.g->timer, &node->timer, n,
		timer_tick(limits_when_all(l->b, l->n_hold, node->head, l->stamp)));
}

/* It has an L-bucket. Does it have a token? If not, it waits for one. */
static bool stand_token(const struct stand *s, uint32_t n, struct node *node)
{
	const struct limits *l = &node->limits;
	weir_time when = limits_when_all(&l->b[l->l], l->n_l, node->head, l->stamp);

	if (node->reserved < when)
		when = node->reserved;
	if (when <= s->now)
		return true;
	stand_state(s, node, NODE_TOKENS);
	timer_set(&s->g->timer, n, when);
	return false;
}

void stand_look_many(struct stand s, uint32_t n, struct node *node)
{
	const struct limits *l = &node->limits;
	const struct weir_req *head = node->head;
	bool pair = l->pair && limits_narrow(node->own, head);
	weir_time span = s.now - l->stamp;

	if (pair ? limits_held_pair(node->own, head, span)
		 : !limits_all(l->b, l->n_hold, head, span)) {
		stand_held(s, n, node);
		return;
	}
	node->reserved = pair ? limits_reserved_pair(l, node->own, head) : limits_reserved(l, head);
	if (l->n_l && !stand_token(&s, n, node))
		return;
	stand_state(&s, node, 0);
	stand_enter(&s, n, node, NODE_REST);
	if (node->priority != NODE_NO_PRIORITY || node->reserved < WEIR_NEVER)
		stand_better(&s, n, node, stand_seen(&s, node));
	if ((!l->n || pair) && !(node->flags & NODE_ABOVE))
		node->may |= NODE_PLAIN;
}

void stand_update(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct stand s = stand_at(g, now, false);
	struct node *node = &g->nodes[n];

	node->may = 0;
	if (node->head)
		stand_look_many(s, n, node);
	else
		stand_idle(g, node, now);
}
