/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stand: where a leaf's head stands: in the lanes of its classes, or waiting for a bucket.
 *
 * METHOD  A look asks the leaf's own buckets once, whenever its head changes: does it wait for its
 *         hold buckets or a token, with a timer for when they will do; or may it pass as one of the
 *         rest, and from when on as better? Who may pass stays so and can only become better, so
 *         that a timer's expiry then only has to put it into one more lane.
 *
 * Inline and written twice, as it were: `flat` is a constant, true where the gate has no inner node
 * but the root, the order is FAIR and there are no runs. It leaves out what only others need.
 */
#ifndef WEIR_GATE_STAND_H
#define WEIR_GATE_STAND_H

#include "gate/node.h"

/* Looks at the leaf's head again, if there is one: where does it stand now? */
void stand_update(struct weir_gate *g, uint32_t n, weir_time now);
/* The leaf stands nowhere any more, until the next look. */
void stand_forget(struct weir_gate *g, uint32_t n);
/* What waits in lane l, or is stopped, may have changed: the lane stands in the lane above, or not, with the kinds of
 * requests that may pass from it; and so on up. */
void stand_present(struct weir_gate *g, struct lane *l);
/* In the orders FIFO and EDF the least key below is the key of a lane. */
void stand_join_keyed(
	struct weir_gate *g, uint32_t e, uint32_t parent, unsigned slot, weir_time key);
/* A request's key in the orders FIFO and EDF. */
weir_time stand_key(const struct weir_gate *g, uint32_t n, const struct weir_req *r);

/* ---- inside */

/* What does not change during a call. */
struct stand {
	struct weir_gate *g;
	struct node *nodes;
	weir_time now;
	weir_time coarse; /* as of which R-tokens are seen */
	bool flat;
	bool at_once; /* a head that is found to be the next when it is looked at passes then; */
	bool sole;    /* so does the only one that is looked at, if nobody waits in a lane */
	struct lane *reserved, *rest, **priority; /* the root's; NULL: none */
};

/* By value: a pointer given to a function would keep them out of registers everywhere. */
void stand_held(struct stand s, uint32_t n, struct node *node, weir_time until);
/* `seen`: R-tokens that have come in by then are seen. An R-token is worth no haste: its bucket holds what comes in
 * 20 ms or more, and a coarse timer is cheap. So it is seen as of the coarse time, or of a pass: how often somebody
 * looks must not change what passes. */
void stand_look_many(struct stand s, uint32_t n, struct node *node, weir_time seen);
/* Looks at a leaf again, if it has a head. */
void stand_again(struct stand s, uint32_t n, struct node *node);

POOL_HOT struct stand stand_at(struct weir_gate *g, weir_time now, bool flat)
{
	return (struct stand){.g = g,
		.nodes = g->nodes,
		.now = now,
		.coarse = timer_coarse(now),
		.flat = flat,
		.reserved = node_lane(g, WEIR_ROOT, NODE_RESERVED),
		.rest = node_lane(g, WEIR_ROOT, NODE_REST),
		.priority = g->nodes[WEIR_ROOT].inner->priority};
}

/* The root's lane of a slot. */
POOL_HOT struct lane *stand_lane_flat(const struct stand *s, unsigned slot)
{
	return slot < NODE_PRIORITIES ? s->priority[slot]
	       : slot == NODE_REST    ? s->rest
				      : s->reserved;
}
/* The lane of a slot in which a child of `parent` stands. */
POOL_HOT struct lane *stand_lane(const struct stand *s, uint32_t parent, unsigned slot)
{
	return s->flat ? stand_lane_flat(s, slot) : node_lane(s->g, parent, slot);
}

/* Return the cost of a request in fair queueing. */
POOL_HOT double stand_cost(const struct stand *s, const struct weir_req *r)
{
	return (double)limits_cost(r, s->g->cost);
}

/* Return the distance by which one of this weight may start before the others. */
POOL_HOT double stand_credit(const struct weir_gate *g, double weight)
{
	return g->credit > 0 ? lane_step(&g->home, g->credit, weight) : 0;
}

/* A leaf or a lane that does not wait in `lane` begins to, for a request of this cost. Return true if the lane was
 * empty. */
POOL_HOT bool stand_join(struct weir_gate *g, struct lane *lane, struct lane_entry *entry,
	uint32_t e, double weight, double cost)
{
	const struct lane_home *h = &g->home;

	return lane_join(
		lane, h, entry, e, weight, lane_width(h, cost, weight), stand_credit(g, weight));
}

/* A leaf or a lane that waits ceases to. */
POOL_HOT void stand_out(
	const struct weir_gate *g, struct lane *lane, struct lane_entry *entry, double weight)
{
	if (entry->group != LANE_NONE)
		lane_take(lane, &g->home, entry);
	if (lane->waits == 1 && !entry->without)
		lane_leave_last(lane, entry);
	else
		lane_leave(lane, entry, weight);
}

/* A leaf's head may pass in this slot: the way for trees. */
void stand_enter_as(const struct stand *s, uint32_t n, struct node *node, unsigned slot,
	const struct weir_req *head);

/* The leaf's head may pass in this slot. If it stands there already, its tag is right and has been
 * since it entered. */
POOL_HOT void stand_enter_flat(const struct stand *s, uint32_t n, struct node *node, unsigned slot)
{
	unsigned class = node_class(slot);
	struct lane_entry *entry = node_entry(node, class);
	struct lane *lane = stand_lane_flat(s, slot);

	node->may |= (uint8_t)(1u << class);
	if (entry->group != LANE_NONE)
		return;
	const struct lane_home *h = &s->g->home;
	double weight = node->weight;
	unsigned width = lane_width(h, stand_cost(s, node->head), weight);

	if (entry->waits) /* it has just been served */
		lane_put(lane, h, entry, n, width);
	/* (The flat way looks for itself whether a lane is empty, but for priorities.) */
	else if (lane_join_leaf(lane, h, entry, n, weight, width, stand_credit(s->g, weight)) &&
		 slot < NODE_RESERVED)
		node_set_ready(s->g, slot, true);
}
POOL_HOT void stand_enter(const struct stand *s, uint32_t n, struct node *node, unsigned slot)
{
	if (s->flat)
		stand_enter_flat(s, n, node, slot);
	else
		stand_enter_as(s, n, node, slot, node->head);
}

/* Return true if a head that is found to hold an R-token passes at once: it does not come to stand with the rest. */
POOL_HOT bool stand_open(const struct stand *s)
{
	return s->at_once && !(s->reserved && s->reserved->waits);
}

/* Return true if a head that may pass stands with the rest. One that holds an R-token passes before them, and has no need
 * to, if it passes at once or is the only one: what it leaves is idle. (Where others follow, the leaf would lose its place
 * there.) */
POOL_HOT bool stand_rests(const struct stand *s, const struct node *node, weir_time seen)
{
	return node->reserved > seen || node->entry_rest.waits ||
	       node->priority != NODE_NO_PRIORITY || (node->head->next && !stand_open(s));
}

/* The leaf ceases to wait in a slot of this class if its head may not pass there, as of the last look. */
POOL_HOT void stand_settle_one(
	const struct stand *s, struct node *node, struct lane_entry *entry, unsigned slot)
{
	if (__builtin_expect(!entry->waits || node_may(node, slot), 1))
		return;
	struct lane *lane = stand_lane(s, node->parent, slot);

	stand_out(s->g, lane, entry, node->weight);
	if (!s->flat)
		stand_present(s->g, lane);
}

/* The leaf has been looked at: it ceases to wait wherever its head may not pass. */
POOL_HOT void stand_settle(const struct stand *s, struct node *node)
{
	if (!s->flat && s->g->order != WEIR_FAIR)
		return; /* found at the front */
	stand_settle_one(s, node, &node->entry_rest, NODE_REST);
	stand_settle_one(s, node, &node->entry_reserved, NODE_RESERVED);
	if (node->priority != NODE_NO_PRIORITY)
		stand_settle_one(s, node, &node->entry_priority, node->priority);
}

/* Does the head fit its profile? Without one it always does. */
POOL_HOT bool stand_fits(const struct stand *s, const struct node *node)
{
	return !node->profile || node->profile->fits <= s->now;
}

/* R-tokens are seen as of the coarse time, or of when their buckets last changed; as of now if the head passes now. */
POOL_HOT weir_time stand_seen(const struct stand *s, const struct node *node)
{
	weir_time seen = s->sole ? s->now : s->coarse;

	return seen > node->limits.r_stamp ? seen : node->limits.r_stamp;
}

/* The head may pass as one of the rest: may it as one with an R-token, of those seen by now, or when? */
POOL_HOT void stand_promote(const struct stand *s, uint32_t n, struct node *node, weir_time seen)
{
	if (node->reserved <= seen && !node_may(node, NODE_RESERVED))
		stand_enter(s, n, node, NODE_RESERVED);
	else if (node->reserved > seen && node->reserved < WEIR_NEVER && !s->sole)
		timer_set_coarse(&s->g->timer, &node->timer, n, node->reserved);
}

/* The same with a priority, which it may pass by while it fits its profile. Who does so passes before he
 * could by an R-token, and need not know when there will be one. */
POOL_HOT void stand_promote_first(
	const struct stand *s, uint32_t n, struct node *node, weir_time seen)
{
	weir_time reserved = node->reserved;

	if (stand_fits(s, node)) {
		stand_enter(s, n, node, node->priority);
		return;
	}
	if (reserved <= seen) {
		if (!node_may(node, NODE_RESERVED))
			stand_enter(s, n, node, NODE_RESERVED);
		reserved = WEIR_NEVER;
	}
	uint64_t token = timer_tick_coarse(reserved), fits = timer_tick(node->profile->fits);

	node->may = (uint8_t)((node->may & ~NODE_FITS) | (token < fits ? 0 : NODE_FITS));
	timer_set_tick(&s->g->timer, &node->timer, n, token < fits ? token : fits);
}

/* Its head has changed, and may pass as one of the rest. As better, too? */
POOL_HOT void stand_better(const struct stand *s, uint32_t n, struct node *node, weir_time seen)
{
	if (node->priority == NODE_NO_PRIORITY) {
		stand_promote(s, n, node, seen);
		return;
	}
	if (node->profile)
		profile_look(node->profile, node->head);
	stand_promote_first(s, n, node, seen);
}

/* Its head has been looked at: if that may pass as better, it may do so at once, and who is behind it is
 * looked at then. (No branch: nobody can predict it.) */
POOL_HOT void stand_fetch(const struct node *node)
{
	const unsigned better = 1u << WEIR_CLASS_PRIORITY | 1u << WEIR_CLASS_RESERVED;

	__builtin_prefetch(node->may & better ? node->head->next : node->head, 1);
}

/* It has a pair, which will do for the head and admits it. */
POOL_HOT void stand_admitted(const struct stand *s, uint32_t n, struct node *node, weir_time seen)
{
	node->may = NODE_PLAIN;
	if (node->flags & NODE_STATE)
		stats_state(s->g, n, 0, 0, s->now);
	node->reserved = limits_reserved_pair(&node->limits, node->own, node->head);
	if (stand_rests(s, node, seen))
		stand_enter(s, n, node, NODE_REST);
	stand_better(s, n, node, seen);
}

/* Somebody has just passed who was plain, so that levels are true now. */
POOL_HOT void stand_look_plain(const struct stand *s, uint32_t n, struct node *node)
{
	const struct weir_req *head = node->head;

	node->may = 0;
	if (!node->limits.n) {
		node->may = NODE_PLAIN;
		stand_enter(s, n, node, NODE_REST);
		if (node->priority != NODE_NO_PRIORITY)
			stand_better(s, n, node, s->now);
	} else if (!limits_narrow(node->own, head)) {
		stand_look_many(*s, n, node, s->now);
	} else if (limits_held_pair(node->own, head, s->now - node->limits.stamp)) {
		stand_held(*s, n, node, limits_until_pair(&node->limits, node->own, head));
	} else {
		stand_admitted(s, n, node, s->now);
		stand_fetch(node);
	}
	stand_settle(s, node);
}

/* A leaf without a priority, of a flat gate, has let its head pass by a short way in a slot, in which it still waits: where
 * does the next head stand, if there is one, for which a pair will do? Return true if in this slot, too. All but that is
 * seen to. `alone`: the head was looked at and passed at once, so that the leaf may yet count as held. */
POOL_HOT bool stand_follow(
	const struct stand *s, uint32_t n, struct node *node, unsigned slot, bool alone)
{
	const struct weir_req *head = node->head;
	bool rest = slot == NODE_REST || node->entry_rest.waits;

	if (!head || (node->limits.n &&
			     limits_held_pair(node->own, head, s->now - node->limits.stamp))) {
		node->may = 0;
		if (slot == NODE_RESERVED && rest)
			stand_out(s->g, s->rest, &node->entry_rest, node->weight);
		if (head)
			stand_held(*s, n, node, limits_until_pair(&node->limits, node->own, head));
		else if (alone && (node->flags & NODE_STATE))
			stats_state(s->g, n, 0, 0, s->now);
		return false;
	}
	node->may = NODE_PLAIN | 1u << WEIR_CLASS_REST;
	if (alone && (node->flags & NODE_STATE))
		stats_state(s->g, n, 0, 0, s->now);
	if (!node->limits.n)
		return true; /* (with the rest) */
	weir_time reserved = limits_reserved_pair(&node->limits, node->own, head);

	node->reserved = reserved;
	if (reserved > s->now) {
		if (!rest)
			stand_enter_flat(s, n, node, NODE_REST);
		if (reserved < WEIR_NEVER)
			timer_set_coarse(&s->g->timer, &node->timer, n, reserved);
		return slot == NODE_REST;
	}
	if (slot == NODE_REST) {
		stand_enter_flat(s, n, node, NODE_RESERVED);
		return true;
	}
	/* (As stand_rests.) */
	if (!rest && head->next)
		stand_enter_flat(s, n, node, NODE_REST);
	else if (!rest)
		node->may = NODE_PLAIN;
	node->may |= 1u << WEIR_CLASS_RESERVED;
	return true;
}

/* A leaf was idle, or was held, and perhaps is no longer. Return true if it is as most are: with no buckets but of a
 * profile, or a pair, which will do for the head and admits it. */
POOL_HOT bool stand_simple(const struct stand *s, const struct node *node)
{
	const struct weir_req *head = node->head;
	const struct limits *l = &node->limits;

	if (!s->flat || !head || (node->flags & NODE_KINDS))
		return false;
	return !l->n || (l->pair && limits_narrow(node->own, head) &&
				!limits_held_pair(node->own, head, s->now - l->stamp));
}

/* It is looked at: stand_update, with a short way for what is so mostly. */
POOL_HOT void stand_wake(const struct stand *s, uint32_t n, struct node *node)
{
	if (stand_simple(s, node))
		stand_admitted(s, n, node, stand_seen(s, node));
	else
		stand_again(*s, n, node);
}

/* Its timer has expired. */
POOL_HOT void stand_due(const struct stand *s, uint32_t n, struct node *node)
{
	if (!node_may(node, NODE_REST))
		stand_wake(s, n, node);
	else if (node->flags & NODE_KINDS)
		stand_again(*s, n, node);
	else if (node->priority == NODE_NO_PRIORITY)
		stand_promote(s, n, node, stand_seen(s, node));
	else if (node->may & NODE_FITS)
		stand_enter(s, n, node, node->priority);
	else
		stand_promote_first(s, n, node, stand_seen(s, node));
}

/* A queue that is empty stands nowhere. */
static inline void stand_idle(const struct stand *s, struct node *node)
{
	node->may = 0;
	if (node->flags & NODE_STATE)
		stats_state(s->g, (uint32_t)(node - s->nodes), 0, 0, s->now);
	stand_settle(s, node);
}

#endif
