/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stand: put a leaf's head into the lanes of its classes, or let it wait for a bucket.
 *
 * METHOD  The leaf's own buckets are checked once, whenever its head changes. Either the head waits for its hold
 *         buckets or a token, with a timer for when they will admit it; or it may pass in the class REST, and from
 *         some time on in a better class. A head that may pass stays so and can only get a better class, so that the
 *         timer's expiry only has to put it into one more lane.
 *
 * Inline functions are compiled twice: `flat` is a constant, true if the gate has no inner node but the root, the
 * order is FAIR and there are no runs. The flat variant leaves out the work that only other gates need.
 */
#pragma once

#include "gate/node.h"

/* Check the leaf's head again, if there is one, and put it where it belongs now. */
void stand_update(struct weir_gate *g, uint32_t n, weir_time now);
/* Remove the leaf from all lanes, until it is checked again. */
void stand_forget(struct weir_gate *g, uint32_t n);
/* Update the entry of lane l in the lane above after its children or the stopped kinds have changed: the lane waits
 * there with the kinds of requests that may pass from it, or not at all. Continue upwards as far as needed. */
void stand_present(struct weir_gate *g, struct lane *l);
/* Insert an entry with this key (orders FIFO and EDF), and lower the keys of the lanes above: a lane's key is the
 * least key below. */
void stand_join_keyed(
	struct weir_gate *g, uint32_t e, uint32_t parent, unsigned slot, weir_time key);
/* Return a request's key in the orders FIFO and EDF. */
weir_time stand_key(const struct weir_gate *g, uint32_t n, const struct weir_req *r);

/* ---- inside */

/* Values that do not change during a call. */
struct stand {
	struct weir_gate *g;
	struct node *nodes;
	weir_time now;
	weir_time at;   /* time as of which a leaf is checked: now, or when its timer was due */
	weir_time seen; /* time as of which R-tokens are counted */
	bool flat;
	bool at_once; /* a head that is checked and is the next passes at once; */
	bool sole;    /* so does the only head that is checked, if every lane is empty */
	struct lane *reserved, *rest, **priority; /* the root's; NULL: none */
};

/* Let the head wait for the leaf's hold buckets. */
void stand_held(struct weir_gate *g, uint32_t n, struct node *node, weir_time until, weir_time now);
/* `seen`: the time as of which R-tokens are counted. An R-token is not urgent: its bucket holds what comes in 20 ms
 * or more, and a coarse timer is cheap. So tokens are counted as of the coarse time, or of a dispatch: how often
 * weir_gate_next is called must not change what passes. */
void stand_look_many(const struct stand *s, uint32_t n, struct node *node, weir_time seen);
/* Check a leaf again, if it has a head. */
void stand_again(const struct stand *s, uint32_t n, struct node *node);

POOL_HOT struct stand stand_at(struct weir_gate *g, weir_time now, bool flat)
{
	return (struct stand){.g = g,
		.nodes = g->nodes,
		.now = now,
		.at = now,
		.seen = timer_coarse(now),
		.flat = flat,
		.reserved = node_lane(g, WEIR_ROOT, NODE_RESERVED),
		.rest = node_lane(g, WEIR_ROOT, NODE_REST),
		.priority = g->nodes[WEIR_ROOT].inner->priority};
}

/* Return the root's lane of a slot. */
POOL_HOT struct lane *stand_lane_flat(const struct stand *s, unsigned slot)
{
	return slot < NODE_PRIORITIES ? s->priority[slot]
	       : slot == NODE_REST    ? s->rest
				      : s->reserved;
}
/* Return the lane of a slot for the children of `parent`. */
POOL_HOT struct lane *stand_lane(const struct stand *s, uint32_t parent, unsigned slot)
{
	return s->flat ? stand_lane_flat(s, slot) : node_lane(s->g, parent, slot);
}

/* Return the cost of a request in fair queueing. */
POOL_HOT double stand_cost(const struct stand *s, const struct weir_req *r)
{
	return (double)limits_cost(r, s->g->cost);
}

/* Return the distance by which a child of this weight may start before the others. */
POOL_HOT double stand_credit(const struct weir_gate *g, double weight)
{
	return g->credit > 0 ? lane_step(&g->home, g->credit, weight) : 0;
}

/* Let a leaf or a lane begin to wait in `lane` for a request of this cost. Return true if the lane was empty. */
POOL_HOT bool stand_join(struct weir_gate *g, struct lane *lane, struct lane_entry *entry,
	uint32_t e, double weight, double cost)
{
	const struct lane_home *h = &g->home;

	return lane_join(
		lane, h, entry, e, weight, lane_width(h, cost, weight), stand_credit(g, weight));
}

/* Let a leaf or a lane cease to wait. */
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

/* Let a leaf's head wait in this slot: variant for trees. */
void stand_enter_as(const struct stand *s, uint32_t n, struct node *node, unsigned slot,
	const struct weir_req *head);

/* Let the leaf's head wait in this slot. If the leaf waits there already, its tag is still right. */
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

	if (entry->waits) /* the leaf has just been served */
		lane_put(lane, h, entry, n, width);
	/* (The flat variant checks for itself whether a lane is empty, except for priorities.) */
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

/* Return true if a head that holds an R-token passes at once, without waiting in the class REST. */
POOL_HOT bool stand_open(const struct stand *s)
{
	return s->at_once && !(s->reserved && s->reserved->waits);
}

/* Return true if a head that may pass is to wait in the class REST. A head with an R-token passes first, and need
 * not wait there if it passes at once or is its leaf's only request: the leaf is idle afterwards. (If others follow,
 * the leaf would lose its place there.) */
POOL_HOT bool stand_rests(const struct stand *s, const struct node *node, weir_time seen)
{
	return node->reserved > seen || node->entry_rest.waits ||
	       node->priority != NODE_NO_PRIORITY || (node->head->next && !stand_open(s));
}

/* Let the leaf cease to wait in a slot if its head may not pass there, as of the last check. */
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

/* Let the leaf cease to wait wherever its head may not pass, after a check. */
POOL_HOT void stand_settle(const struct stand *s, struct node *node)
{
	if (!s->flat && s->g->order != WEIR_FAIR)
		return; /* dropped at the front of its lane */
	stand_settle_one(s, node, &node->entry_rest, NODE_REST);
	stand_settle_one(s, node, &node->entry_reserved, NODE_RESERVED);
	if (node->priority != NODE_NO_PRIORITY)
		stand_settle_one(s, node, &node->entry_priority, node->priority);
}

/* Return true if the head fits its profile, or has none. */
POOL_HOT bool stand_fits(const struct stand *s, const struct node *node)
{
	return !node->profile || node->profile->fits <= s->at;
}

/* Return the time as of which a leaf's R-tokens are counted: not before the last change of their buckets. */
POOL_HOT weir_time stand_seen(const struct stand *s, const struct node *node)
{
	return s->seen > node->limits.r_stamp ? s->seen : node->limits.r_stamp;
}

/* Let a head that may pass in the class REST also wait in RESERVED if it holds an R-token, else set a timer for
 * that. */
POOL_HOT void stand_promote(const struct stand *s, uint32_t n, struct node *node, weir_time seen)
{
	if (node->reserved <= seen && !node_may(node, NODE_RESERVED))
		stand_enter(s, n, node, NODE_RESERVED);
	else if (node->reserved > seen && node->reserved < WEIR_NEVER && !s->sole)
		timer_set_coarse(&s->g->timer, &node->timer, n, node->reserved);
}

/* The same for a leaf with a priority, in which its head may pass while it fits its profile. Then it passes before
 * it could with an R-token, and needs no timer for one. */
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

/* Let a head that has changed and may pass in the class REST also wait in a better class, now or by a timer. */
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

/* Prefetch the request that is checked next: if the head may pass in a better class it may do so at once, so that is
 * the request behind it. (No branch: it would be mispredicted.) */
POOL_HOT void stand_fetch(const struct node *node)
{
	const unsigned better = 1u << WEIR_CLASS_PRIORITY | 1u << WEIR_CLASS_RESERVED;

	__builtin_prefetch(node->may & better ? node->head->next : node->head, 1);
}

/* Let the head wait in its classes: the leaf has no buckets, or a pair that suits the head and admits it. */
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

/* Check the next head of a plain leaf that has just passed a request, so that its buckets' levels are up to date. */
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
		stand_look_many(s, n, node, s->now);
	} else if (limits_held_pair(node->own, head, s->now - node->limits.stamp)) {
		stand_held(
			s->g, n, node, limits_until_pair(&node->limits, node->own, head), s->now);
	} else {
		stand_admitted(s, n, node, s->now);
		stand_fetch(node);
	}
	stand_settle(s, node);
}

/* Place the next head of a leaf without a priority, of a flat gate, whose head has passed by a fast path in a slot
 * in which the leaf still waits; a pair suits the next head, if there is one. Return true if that waits in the same
 * slot, which is left to the caller; everything else is done here. `alone`: the head was checked and passed at once,
 * so that the leaf may still count as held. */
POOL_HOT bool stand_follow(
	const struct stand *s, uint32_t n, struct node *node, unsigned slot, bool alone)
{
	const struct weir_req *head = node->head;
	bool rest = slot == NODE_REST || node->entry_rest.waits;

	if (head)
		__builtin_prefetch(head->next, 1); /* the next head, when this one has passed */
	if (!head || (node->limits.n &&
			     limits_held_pair(node->own, head, s->now - node->limits.stamp))) {
		node->may = 0;
		if (slot == NODE_RESERVED && rest)
			stand_out(s->g, s->rest, &node->entry_rest, node->weight);
		if (head)
			stand_held(s->g, n, node, limits_until_pair(&node->limits, node->own, head),
				s->now);
		else if (alone && (node->flags & NODE_STATE))
			stats_state(s->g, n, 0, 0, s->now);
		return false;
	}
	node->may = NODE_PLAIN | 1u << WEIR_CLASS_REST;
	if (alone && (node->flags & NODE_STATE))
		stats_state(s->g, n, 0, 0, s->now);
	if (!node->limits.n)
		return true; /* (in the class REST) */
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
	/* (As in stand_rests.) */
	if (!rest && head->next)
		stand_enter_flat(s, n, node, NODE_REST);
	else if (!rest)
		node->may = NODE_PLAIN;
	node->may |= 1u << WEIR_CLASS_RESERVED;
	return true;
}

/* Return true if a leaf that was idle or held is now in the common case: no buckets except a profile, or a pair that
 * suits the head and admits it. */
POOL_HOT bool stand_simple(const struct stand *s, const struct node *node)
{
	const struct weir_req *head = node->head;
	const struct limits *l = &node->limits;

	if (!s->flat || !head || (node->flags & NODE_KINDS))
		return false;
	return !l->n || (l->pair && limits_narrow(node->own, head) &&
				!limits_held_pair(node->own, head, s->at - l->stamp));
}

/* stand_update, with a fast path for the common case. */
POOL_HOT void stand_wake(const struct stand *s, uint32_t n, struct node *node)
{
	if (stand_simple(s, node))
		stand_admitted(s, n, node, stand_seen(s, node));
	else
		stand_again(s, n, node);
}

/* Handle the expiry of a leaf's timer. (If very many are due, one may expire after the leaf was checked as of a later
 * time: then a head that may pass keeps its place.) */
POOL_HOT void stand_due(const struct stand *s, uint32_t n, struct node *node)
{
	if (!(node->may & (1u << WEIR_CLASS_RESERVED | 1u << WEIR_CLASS_REST)))
		stand_wake(s, n, node);
	else if (node->flags & NODE_KINDS)
		stand_again(s, n, node);
	else if (node->priority == NODE_NO_PRIORITY)
		stand_promote(s, n, node, stand_seen(s, node));
	else if (node->may & NODE_FITS)
		stand_enter(s, n, node, node->priority);
	else
		stand_promote_first(s, n, node, stand_seen(s, node));
}

/* Remove a leaf whose queue is empty from all lanes. */
static inline void stand_idle(const struct stand *s, struct node *node)
{
	node->may = 0;
	if (node->flags & NODE_STATE)
		stats_state(s->g, (uint32_t)(node - s->nodes), 0, 0, s->now);
	stand_settle(s, node);
}
