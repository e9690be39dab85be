/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/above.h"
#include "gate/kind.h"

void above_begin(struct weir_gate *g, uint32_t n)
{
	const struct limits *l = &g->nodes[n].limits;

	/* (Leaves that wait need not join the clocks: `above` clocks are 0 until then.) */
	g->above = true;
	tree_shape(g);
	for (unsigned i = 0; i < l->n_hold; i++)
		g->tells |= kind_tells(l->b[i].ops);
}

/* Return the kinds that wait with r if a bucket refuses it. */
static unsigned above_counted(
	const struct weir_gate *g, const struct bucket *b, const struct weir_req *r)
{
	unsigned kinds = 1u << kind_of(r);

	if (g->order != WEIR_FAIR)
		return KIND_ALL; /* the order is kept */
	if (kind_of(r) == KIND_CONTROL)
		return kinds;
	if (b->ops & WEIR_OPS(WEIR_READ))
		kinds |= 1u << KIND_READ;
	if (b->ops & (WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM)))
		kinds |= 1u << KIND_WRITE;
	return kinds;
}

/* Set the timer of inner node n to when it is to be tried again, if it is stopped. */
static void above_alarm(struct weir_gate *g, uint32_t n)
{
	const struct node_inner *in = g->nodes[n].inner;
	weir_time first = WEIR_NEVER;

	for (unsigned k = 0; k < NODE_KIND_N; k++)
		if (in->stopped[k] && in->until[k] < first)
			first = in->until[k];
	timer_set(&g->timer, n, first);
}

/* Stop inner node n, whose buckets refuse r. */
static void above_stop(
	struct weir_gate *g, uint32_t n, unsigned slot, const struct weir_req *r, weir_time now)
{
	struct node *node = &g->nodes[n];
	struct node_inner *in = node->inner;
	const struct limits *l = &node->limits;
	weir_time until[NODE_KIND_N] = {0};

	for (unsigned i = 0; i < l->n_hold; i++) {
		if (limits_all(&l->b[i], 1, r, now - l->stamp))
			continue;
		weir_time when = limits_when_all(&l->b[i], 1, r, l->stamp);
		unsigned kinds = above_counted(g, &l->b[i], r);

		for (unsigned k = 0; k < NODE_KIND_N; k++)
			if ((kinds >> k & 1) && when > until[k])
				until[k] = when;
	}
	stats_turn(g, node, now);
	node->flags |= NODE_STOPPED;
	for (unsigned k = 0; k < NODE_KIND_N; k++) {
		if (!until[k])
			continue;
		/* (If a better slot is stopped already, this one is tried again after that.) */
		if (!in->stopped[k] || slot + 1 < in->stopped[k]) {
			in->stopped[k] = (uint8_t)(slot + 1);
			in->until[k] = until[k];
		} else if (slot + 1 == in->stopped[k] && until[k] > in->until[k]) {
			in->until[k] = until[k];
		}
	}
	above_alarm(g, n);
	above_rejoin_all(g, n);
}

bool above_ask(struct weir_gate *g, uint32_t n, const struct weir_req *r, unsigned slot, bool stop,
	weir_time now)
{
	const struct limits *l = &g->nodes[n].limits;

	if (limits_all(l->b, l->n_hold, r, now - l->stamp))
		return true;
	if (stop)
		above_stop(g, n, slot, r, now);
	return false;
}

bool above_admit(struct weir_gate *g, uint32_t leaf, const struct weir_req *r, unsigned slot,
	bool stop, weir_time now)
{
	for (uint32_t n = leaf; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		if (g->nodes[n].limits.n_hold && !above_ask(g, n, r, slot, stop, now)) {
			if (stop)
				kind_refused(g, leaf, r);
			return false;
		}
	}
	return true;
}

unsigned above_stopped(const struct weir_gate *g, uint32_t n, unsigned slot, weir_time now)
{
	unsigned kinds = node_stopped(g, n, slot);

	for (unsigned k = 0; k < NODE_KIND_N; k++)
		if ((kinds >> k & 1) &&
			timer_tick(g->nodes[n].inner->until[k]) <= (uint64_t)now >> TIMER_TICK_BITS)
			kinds &= ~(1u << k);
	return kinds;
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

void above_rejoin(struct weir_gate *g, uint32_t n, unsigned slot)
{
	struct lane *l = node_lane(g, n, slot);
	const struct node *node = &g->nodes[n];

	if (!l)
		return;
	if (g->order == WEIR_FAIR) {
		stand_present(g, l);
		if (n != WEIR_ROOT && l->own.waits && l->own.group == LANE_NONE)
			lane_put(node_lane(g, node->parent, slot), &g->home, &l->own,
				l->number | LANE_OF_LANE,
				lane_width(&g->home, l->own_cost, node->weight));
		return;
	}
	if (n == WEIR_ROOT || l->waits == 0 || node_stopped(g, n, slot))
		return;
	uint32_t first = lane_first(l, &g->home);

	stand_join_keyed(g, l->number | LANE_OF_LANE, node->parent, slot,
		(weir_time)lane_entry(&g->home, l, first)->tag);
}

void above_rejoin_all(struct weir_gate *g, uint32_t n)
{
	for (unsigned s = g->nodes[n].inner->priority ? 0 : NODE_RESERVED; s <= NODE_REST; s++)
		above_rejoin(g, n, s);
}

/* Release inner node n for the kinds whose time has come by `due`. */
static void above_try(struct weir_gate *g, uint32_t n, weir_time due, weir_time now)
{
	struct node *node = &g->nodes[n];
	struct node_inner *in = node->inner;
	unsigned left = 0;

	if (!(node->flags & NODE_STOPPED))
		return;
	stats_turn(g, node, now);
	for (unsigned k = 0; k < NODE_KIND_N; k++) {
		if (in->stopped[k] && in->until[k] <= due)
			in->stopped[k] = 0;
		left |= in->stopped[k];
	}
	if (left)
		above_alarm(g, n);
	else
		node->flags &= (uint8_t)~NODE_STOPPED;
	above_rejoin_all(g, n);
}

void above_due(struct weir_gate *g, uint32_t n, weir_time due, weir_time now)
{
	above_try(g, n, due, now);
}

void above_release(struct weir_gate *g, uint32_t n, weir_time now)
{
	above_try(g, n, WEIR_NEVER, now);
}

void above_release_all(struct weir_gate *g, uint32_t n, weir_time now)
{
	while (n != WEIR_ROOT) {
		n = g->nodes[n].parent;
		above_release(g, n, now);
	}
}
