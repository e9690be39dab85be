/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn: choose the next request and dispatch it. Part of gate.c: every request passes through here.
 *
 * Written so that `flat` (stand.h) and, where it matters for speed, the slot are constants.
 */
#pragma once

#include "gate/above.h"
#include "gate/ahead.h"
#include "gate/kind.h"
#include "gate/lane-impl.h"

struct turn {
	uint32_t leaf;
	unsigned slot;
	struct lane *lane; /* the parent's, in which the leaf waits */
	struct weir_req *req;
	int64_t room; /* bytes that may pass now; TURN_FULL: the window is full */
	bool peek; /* change no lane: how often the next is looked for must not change what passes */
	bool sorted; /* a leaf was placed elsewhere: try the slots before this one again */
};
#define TURN_FULL (-1)

/* ---- choose the next */

#define TURN_AGAIN 0x7ffffffeu /* no leaf: an entry was dropped, and there may be another */
#define TURN_SORT  0x7ffffffdu /* no leaf: one was placed elsewhere, perhaps in a better slot */

/* Remove e, which is first in a keyed lane and may not pass. */
static inline uint32_t turn_drop(struct weir_gate *g, struct lane *lane, uint32_t e)
{
	lane_key_out(lane, lane_entry(&g->home, lane, e), e);
	return TURN_AGAIN;
}

/* Return true if r is in a queue of reads and writes, of which only one kind may pass: the leaf has not been split
 * since the buckets above began to distinguish them. */
static inline bool turn_mixed(
	const struct weir_gate *g, uint32_t n, const struct weir_req *r, unsigned kinds)
{
	return __builtin_expect((kinds & KIND_DATA) != KIND_DATA, 0) && r == g->nodes[n].head &&
	       !(g->nodes[n].flags & NODE_SPLIT);
}

/* Place leaf n again: it is at the front of a lane, and was placed before the buckets above distinguished kinds. */
static inline uint32_t turn_sort(struct weir_gate *g, uint32_t n, weir_time now)
{
	kind_sort(g, n, now);
	stand_update(g, n, now);
	return TURN_SORT;
}

/* Go down one slot from an inner node and return the leaf at the front; turn->req is its request. An entry on the way
 * that does not belong at the front of its lane is moved: then return TURN_AGAIN or TURN_SORT. Return NODE_NIL if
 * the slot is empty, or stopped at that node. */
static inline uint32_t turn_descend(
	struct weir_gate *g, struct turn *turn, uint32_t from, weir_time now)
{
	struct lane *above = NULL, *lane = node_lane(g, from, turn->slot);
	unsigned kinds = KIND_ALL & ~node_stopped(g, from, turn->slot);

	for (;;) {
		if (!kinds)
			return NODE_NIL;
		if (!turn->peek && !lane->keyed && lane->allowed != kinds)
			lane_allow(lane, kinds);
		uint32_t e =
			turn->peek ? lane_peek(lane, &g->home, kinds) : lane_first(lane, &g->home);

		if (e == LANE_NIL)
			return above && above->keyed
				       ? turn_drop(g, above, lane->number | LANE_OF_LANE)
				       : NODE_NIL;
		if (above && lane->keyed) {
			uint64_t key = lane_entry(&g->home, lane, e)->tag;

			if (lane->own.tag < key) {
				lane->own.tag = key; /* sorted again at the front */
				return TURN_AGAIN;
			}
		}
		if (!(e & LANE_OF_LANE)) {
			turn->lane = lane;
			turn->req = kind_head(g, e, node_class(turn->slot), kinds);
			bool may = node_may(&g->nodes[e], turn->slot) && turn->req;

			if (may &&
				(turn->peek || lane->keyed || !turn_mixed(g, e, turn->req, kinds)))
				return e;
			if (lane->keyed)
				return turn_drop(g, lane, e);
			if (!turn->peek)
				return turn_sort(g, e, now);
			g->tries = 0;
			return NODE_NIL;
		}
		struct lane *below = g->lanes[e & ~LANE_OF_LANE];

		kinds &= ~node_stopped(g, below->node, turn->slot);
		if (!kinds && lane->keyed)
			return turn_drop(g, lane, e);
		above = lane;
		lane = below;
	}
}

/* Return true if a leaf whose turn it is in a slot has got an R-token since it was checked. */
POOL_HOT bool turn_holds(const struct node *node, unsigned slot, weir_time now)
{
	return slot == NODE_REST && __builtin_expect(node->reserved <= now, 0) &&
	       !(node->flags & NODE_KINDS) && !node_may(node, NODE_RESERVED);
}

/* The same for the leaf that turn_descend found; if so, put it into the class RESERVED. But not while its request does
 * not fit into the window: how often the leaf is found meanwhile must not change what passes. */
static inline bool turn_promotes(
	struct weir_gate *g, const struct turn *turn, uint32_t n, weir_time now)
{
	const struct stand s = stand_at(g, now, false);

	if (n >= TURN_SORT || !turn_holds(&g->nodes[n], turn->slot, now) ||
		turn->req->bytes > turn->room)
		return false;
	stand_enter(&s, n, &g->nodes[n], NODE_RESERVED);
	return true;
}

/* Return true if the buckets above admit the turn's request; else stop the ancestor that does not.
 * But while the window is full it is no request's turn: then stop nothing, and let turn_choose give up. */
static inline bool turn_admits(struct weir_gate *g, const struct turn *turn, weir_time now)
{
	bool full = turn->room == TURN_FULL;

	if (!g->above || above_admit(g, turn->leaf, turn->req, turn->slot, !full, now))
		return true;
	if (full)
		g->tries = 0;
	return false;
}

static inline bool turn_pick(struct weir_gate *g, struct turn *turn, weir_time now)
{
	turn->sorted = false;
	for (;;) {
		uint32_t n = turn_descend(g, turn, WEIR_ROOT, now);

		if (n == NODE_NIL) {
			if (!node_lane(g, WEIR_ROOT, turn->slot)->waits)
				node_set_ready(g, turn->slot, false);
			return false;
		}
		if (turn_promotes(g, turn, n, now)) {
			turn->sorted = true;
			return false;
		}
		turn->leaf = n;
		turn->sorted = n == TURN_SORT;
		if (n < TURN_SORT && turn_admits(g, turn, now))
			return true;
		if (g->order != WEIR_FAIR && g->tries)
			continue;
		if (g->tries > 0)
			g->tries--;
		if (g->tries == 0) {
			turn->sorted = false;
			return false;
		}
		if (turn->sorted)
			return false;
	}
}

/* Return true if the run may continue in this slot; then its next request is the turn's. */
static inline bool turn_runs(struct weir_gate *g, struct turn *turn, weir_time now)
{
	const struct node *node = &g->nodes[g->run_node];
	unsigned slot = turn->slot;

	if (!g->run_left || slot != g->run_slot || !node_may(node, slot) ||
		(node->flags & NODE_KINDS))
		return false;
	uint64_t at = node->head->offset;
	uint64_t gap = at > g->run_end ? at - g->run_end : g->run_end - at;

	if (gap > g->run_distance)
		return false;
	for (uint32_t n = g->run_node; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		if (node_stopped(g, n, slot) >> kind_of(node->head) & 1)
			return false;
	}
	turn->leaf = g->run_node;
	turn->req = node->head;
	turn->lane = node_lane(g, node->parent, slot);
	return turn_admits(g, turn, now);
}

static inline bool turn_choose(struct weir_gate *g, struct turn *turn, weir_time now)
{
	unsigned slot = node_ready(g, 0);

	for (; slot <= NODE_REST && g->tries; slot = node_ready(g, turn->sorted ? 0 : slot + 1)) {
		turn->slot = slot;
		if ((g->run_left && turn_runs(g, turn, now)) || turn_pick(g, turn, now))
			return true;
	}
	return false;
}

/* The window has become full: stop the ancestors of a leaf that would stop the next request below them. While it is
 * full no request is tried, but one that an ancestor's bucket would refuse is to be counted as waiting for that. */
static inline void turn_probe(struct weir_gate *g, uint32_t leaf, weir_time now)
{
	for (uint32_t n = leaf; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		const struct node *node = &g->nodes[n];
		struct turn turn = {.slot = node->inner->priority ? 0 : NODE_RESERVED};

		for (; node->limits.n_hold && turn.slot <= NODE_REST; turn.slot++) {
			uint32_t e = TURN_AGAIN;

			while (node_lane(g, n, turn.slot) && (e == TURN_AGAIN || e == TURN_SORT))
				e = turn_descend(g, &turn, n, now);
			if (e < TURN_SORT) {
				(void)above_ask(g, n, turn.req, turn.slot, true, now);
				break;
			}
		}
	}
}

/* ---- dispatch */

/* Charge an entry of a lane with a cost; afterwards it waits and is in no group. */
POOL_HOT void turn_serve(const struct weir_gate *g, struct lane *lane, struct lane_entry *entry,
	double weight, double cost)
{
	double step = lane_step(&g->home, cost, weight);

	lane_raise(lane, entry, step);
	lane_take(lane, &g->home, entry);
	lane_serve(lane, entry, lane_cost(&g->home, cost, weight, step), step);
}

/* Charge the entries of all lanes on the path to the root. */
static inline void turn_serve_above(struct weir_gate *g, const struct turn *turn, double cost)
{
	struct lane *lane = turn->lane;

	if (g->order != WEIR_FAIR)
		return; /* (Keys are sorted at the front.) */

	for (uint32_t n = lane->node; n != WEIR_ROOT; n = g->nodes[n].parent) {
		struct lane *parent = node_lane(g, g->nodes[n].parent, turn->slot);

		lane->own_cost = cost;
		turn_serve(g, parent, &lane->own, g->nodes[n].weight, cost);
		lane = parent;
	}
}

static inline void turn_note_run(
	struct weir_gate *g, const struct turn *turn, const struct weir_req *r)
{
	if (g->order != WEIR_FAIR || g->run < 2)
		return;
	if (g->run_left && g->run_node == turn->leaf && g->run_slot == turn->slot)
		g->run_left--;
	else
		g->run_left = g->run - 1;
	g->run_node = turn->leaf;
	g->run_slot = (uint8_t)turn->slot;
	g->run_end = r->offset + r->bytes;
}

static inline void turn_charge(
	struct node *node, const struct weir_req *r, unsigned slot, weir_time now)
{
	if (node->limits.n)
		limits_charge(&node->limits, r, node->reserved <= now, now);
	if (slot < NODE_PRIORITIES && node->profile)
		profile_charge(node->profile, r);
}

/* Count a request that has left its queue. */
POOL_HOT void turn_leave(
	const struct stand *s, struct node *node, struct weir_req *r, unsigned class)
{
	node_area_begin(&node->device_area, &node->device_high, (uint64_t)s->now);
	node->in_flight++;
	node->bytes += r->bytes;
	s->g->inside += r->bytes;
	node->passed[class]++;
	r->class_ = (uint8_t) class;
	r->dispatched = s->now;
}

/* Take the head out of the node's own queue, and count it. */
POOL_HOT void turn_leave_own(
	const struct stand *s, struct node *node, struct weir_req *r, unsigned class)
{
	stats_wait_end(s->g, node, s->now);
	node->queued--;
	node->head = r->next;
	r->next = NULL;
	if (node->head)
		ahead_note_behind(node, node->head, node->head->next);
	turn_leave(s, node, r, class);
}

/* Dispatch the request whose turn it is. */
static inline struct weir_req *turn_pass(const struct stand *s, const struct turn *turn)
{
	struct node *node = &s->nodes[turn->leaf];
	struct weir_req *r = turn->req;
	unsigned class = node_class(turn->slot);
	double cost = stand_cost(s, r);
	unsigned may = 0;

	if (node->flags & NODE_KINDS) {
		kind_before(s->g, turn->leaf, r, turn->slot);
		may = kind_may(s->g, turn->leaf);
	}
	if (s->g->order == WEIR_FAIR)
		turn_serve(s->g, turn->lane, node_entry(node, class), node->weight, cost);
	else
		lane_key_out(turn->lane, node_entry(node, class), turn->leaf);
	if (!s->flat) {
		turn_serve_above(s->g, turn, cost);
		if (s->g->above)
			above_charge(s->g, turn->leaf, r, s->now);
		turn_note_run(s->g, turn, r);
	}
	turn_charge(node, r, turn->slot, s->now);
	if (node->flags & NODE_KINDS) {
		kind_take(s->g, turn->leaf, r, s->now);
		turn_leave(s, node, r, class);
	} else {
		turn_leave_own(s, node, r, class);
		node->tail = node->head ? node->tail : NULL;
	}
	node->may = 0;
	if (node->queued)
		stand_look_many(s, turn->leaf, node, s->now);
	else
		stand_idle(s, node);
	/* Let every lane on the path that is not empty wait in its parent's lane again. */
	for (uint32_t n = node->parent; !s->flat && n != WEIR_ROOT; n = s->nodes[n].parent)
		above_rejoin(s->g, n, turn->slot);
	/* If another head may not pass any more, release the kinds that it stopped above: it is no longer its
	 * turn. */
	if (s->g->above && (may & ~kind_may(s->g, turn->leaf)))
		above_release_all(s->g, turn->leaf, s->now);
	return r;
}

/* ---- the same for gates with only leaves below the root */

static __attribute__((noinline)) struct weir_req *turn_pass_any(
	struct stand s, uint32_t leaf, unsigned slot)
{
	struct turn turn = {.leaf = leaf,
		.slot = slot,
		.lane = stand_lane(&s, WEIR_ROOT, slot),
		.req = kind_head(s.g, leaf, node_class(slot), KIND_ALL)};

	return turn_pass(&s, &turn);
}

/* Dispatch the head of a plain leaf with a priority, the first of its lane. */
static __attribute__((noinline)) struct weir_req *turn_pass_ranked(
	struct stand s, uint32_t leaf, struct node *node, unsigned slot)
{
	struct weir_req *r = node->head;
	double weight = node->weight, cost = stand_cost(&s, r);

	lane_serve_first(stand_lane_flat(&s, slot), &s.g->home, node_entry(node, node_class(slot)),
		weight, cost, lane_step(&s.g->home, cost, weight));
	if (node->limits.n)
		limits_charge_either(&node->limits, node->own, r, node->reserved <= s.now, s.now);
	if (slot < NODE_PRIORITIES && node->profile)
		profile_charge(node->profile, r);
	turn_leave_own(&s, node, r, node_class(slot));
	if (node->head) {
		stand_look_plain(&s, leaf, node);
	} else {
		node->tail = NULL;
		stand_idle(&s, node);
	}
	return r;
}

/* Charge the head of a leaf without a priority and take it out of its queue, by the fast path. */
POOL_HOT void turn_leave_plain(
	const struct stand *s, struct node *node, struct weir_req *r, unsigned slot)
{
	if (slot == NODE_RESERVED || node->limits.n)
		limits_charge_pair(&node->limits, node->own, r,
			slot == NODE_RESERVED || node->reserved <= s->now, s->now);
	turn_leave_own(s, node, r, node_class(slot));
	if (!node->head)
		node->tail = NULL;
}

/* Return true if a leaf's next head is too large for a pair. */
POOL_HOT bool turn_is_large(const struct node *node)
{
	return node->head && node->limits.n && !limits_narrow(node->own, node->head);
}

/* Check a leaf whose head has passed, and which waits in that slot but is in no group; its next head is too large
 * for a pair. */
static __attribute__((noinline)) void turn_large(struct stand s, uint32_t leaf, struct node *node)
{
	s.sole = false;
	s.at = s.now;
	node->may = 0;
	stand_look_many(&s, leaf, node, s.now);
}

/* Return the width of a leaf's next request. */
POOL_HOT unsigned turn_width(const struct stand *s, const struct node *node)
{
	return lane_width(&s->g->home, stand_cost(s, node->head), node->weight);
}

/* Dispatch the head of a plain leaf without a priority, the first of its lane. */
POOL_HOT struct weir_req *turn_pass_plain(
	const struct stand *s, uint32_t leaf, struct node *node, unsigned slot)
{
	const struct lane_home *h = &s->g->home;
	struct lane *lane = stand_lane_flat(s, slot);
	struct lane_entry *entry = node_entry(node, node_class(slot));
	struct weir_req *r = node->head;
	double weight = node->weight, cost = stand_cost(s, r);
	/* (A division is slow: it runs while the buckets are charged.) */
	double step = lane_step(h, cost, weight);

	turn_leave_plain(s, node, r, slot);
	if (__builtin_expect(turn_is_large(node), 0)) {
		lane_serve_first(lane, h, entry, weight, cost, step);
		turn_large(*s, leaf, node);
	} else if (stand_follow(s, leaf, node, slot, false)) {
		lane_serve_again(lane, h, entry, leaf, weight, cost, step, turn_width(s, node));
	} else {
		lane_serve_out(lane, h, entry, weight, cost, step);
	}
	return r;
}

/* Prefetch for the leaves behind the one that passes, which are likely to be next: the requests of the second of them,
 * and the third leaf; so that each prefetch finds its pointer in the cache. */
POOL_HOT void turn_fetch(const struct stand *s, const struct lane_entry *entry, unsigned class)
{
	if (entry->next == LANE_NIL)
		return;
	uint32_t second = node_entry(&s->nodes[entry->next], class)->next;

	if (second == LANE_NIL)
		return;
	uint32_t third = node_entry(&s->nodes[second], class)->next;

	ahead_requests(&s->nodes[second]);
	if (third != LANE_NIL)
		ahead_node(&s->nodes[third]);
	if (__builtin_expect(!s->g->ranked, 1))
		return;
	ahead_profile(&s->nodes[second]);
	if (third != LANE_NIL)
		ahead_rank(&s->nodes[third]);
}

/* Dispatch the first request of a slot; NULL if the slot is empty, or the first leaf was moved to RESERVED. */
POOL_HOT struct weir_req *turn_flat(const struct stand *s, unsigned slot)
{
	struct lane *lane = stand_lane_flat(s, slot);
	uint32_t leaf = lane_first_of(lane, &s->g->home, true);

	if (leaf != LANE_NIL) {
		struct node *node = &s->nodes[leaf];

		if (turn_holds(node, slot, s->now)) {
			stand_enter_flat(s, leaf, node, NODE_RESERVED);
			return NULL;
		}
		turn_fetch(s, node_entry(node, node_class(slot)), node_class(slot));

		if (!(node->may & NODE_PLAIN))
			return turn_pass_any(*s, leaf, slot);
		return slot < NODE_PRIORITIES || node->priority != NODE_NO_PRIORITY
			       ? turn_pass_ranked(*s, leaf, node, slot)
			       : turn_pass_plain(s, leaf, node, slot);
	}
	if (slot < NODE_RESERVED)
		node_set_ready(s->g, slot, false);
	return NULL;
}

/* ---- dispatch at once the head of a leaf that is checked, if it is the next */

/* Dispatch the head of a leaf in the common case in a lane that is empty, without entering the lane. (Not inline: it
 * would be copied into several callers.) */
static __attribute__((noinline)) struct weir_req *turn_pass_alone(
	const struct stand *s, uint32_t leaf, struct node *node, unsigned slot)
{
	const struct lane_home *h = &s->g->home;
	struct lane *lane = stand_lane_flat(s, slot);
	struct lane_entry *entry = node_entry(node, node_class(slot));
	struct weir_req *r = node->head;
	double weight = node->weight, cost = stand_cost(s, r), credit = stand_credit(s->g, weight);

	turn_leave_plain(s, node, r, slot);
	if (__builtin_expect(turn_is_large(node), 0)) {
		lane_serve_alone(lane, h, entry, weight, cost, credit);
		turn_large(*s, leaf, node);
	} else if (stand_follow(s, leaf, node, slot, true)) {
		lane_serve_alone(lane, h, entry, weight, cost, credit);
		lane_put(lane, h, entry, leaf, turn_width(s, node));
	} else {
		lane_serve_by(lane, h, entry, weight, cost, credit);
	}
	return r;
}

/* Dispatch the head of a leaf that was idle or whose timer has expired if it is the next and the fast path suits;
 * else return NULL. Call it only if stand_open. */
POOL_HOT struct weir_req *turn_alone(const struct stand *s, uint32_t leaf, struct node *node)
{
	bool stands = node->may & NODE_PLAIN;

	if (stands ? node->flags & NODE_KINDS : !stand_simple(s, node))
		return NULL;
	if (!stands)
		node->reserved = limits_reserved_pair(&node->limits, node->own, node->head);
	if (node->reserved <= stand_seen(s, node))
		return turn_pass_alone(s, leaf, node, NODE_RESERVED);
	return s->sole && node->reserved > s->now ? turn_pass_alone(s, leaf, node, NODE_REST)
						  : NULL;
}

/* Dispatch the first head with an R-token; NULL if there is none. */
static __attribute__((noinline)) struct weir_req *turn_reserved(struct stand s)
{
	struct turn turn = {.slot = NODE_RESERVED};

	if (!turn_pick(s.g, &turn, s.now))
		return NULL;
	s.sole = false;
	s.at = s.now;
	return turn_pass(&s, &turn);
}
