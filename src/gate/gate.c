/* SPDX-License-Identifier: BSD-3-Clause */
/* The hot path: submit, next, done, wakeup. The law is in gate.h, the parts in node.h. */
#include "gate/ahead.h"
#include "gate/node.h"
#include <errno.h>
#include <string.h>

/* On the way of every request: inlined wherever it is used, though that is in several places. */
#define GATE_HOT static inline __attribute__((always_inline))

static weir_time gate_time(struct weir_gate *g, weir_time now)
{
	if (now > g->now)
		g->now = now;
	return g->now;
}

/* ---- lanes */

static void gate_ready(struct weir_gate *g, unsigned slot, bool ready)
{
	if (slot == NODE_REST)
		g->ready_rest = ready;
	else if (slot == NODE_RESERVED)
		g->ready_reserved = ready;
	else if (ready)
		g->ready_priority |= UINT64_C(1) << slot;
	else
		g->ready_priority &= ~(UINT64_C(1) << slot);
}

static bool gate_stopped(const struct weir_gate *g, uint32_t n, unsigned slot)
{
	return (g->nodes[n].flags & NODE_STOPPED) && slot >= g->inner[n]->stopped;
}

/* Lane `slot` of inner node n was empty and no longer is: it enters the lane above, and so on up. */
static void gate_join_above(struct weir_gate *g, uint32_t n, unsigned slot);

/* Entry e of node n enters the lane of its parent, unless it is inside already: then its tag is
 * right, and has been since it entered. */
GATE_HOT void gate_join(struct weir_gate *g, uint32_t e, uint32_t n, unsigned slot)
{
	struct lane_entry *entry = &g->entries[e];

	if (entry->next != LANE_NIL)
		return;
	const struct node *node = &g->nodes[n];
	struct lane *lane = node_lane(g, node->parent, slot);
	double start = lane->now - g->credit * node->per_weight;

	if (entry->tag < start)
		entry->tag = start;
	lane_insert(lane, g->entries, e);
	if (lane->members == 1)
		gate_join_above(g, node->parent, slot);
}

static void gate_join_above(struct weir_gate *g, uint32_t n, unsigned slot)
{
	if (n == WEIR_ROOT)
		gate_ready(g, slot, true);
	else if (!gate_stopped(g, n, slot)) /* else gate_release will see to it */
		gate_join(g, node_lane(g, n, slot)->entry, n, slot);
}

/* The same for the orders FIFO and EDF: the least key below is the key of a lane. */
static void gate_join_keyed(struct weir_gate *g, uint32_t e, uint32_t n, unsigned slot, double key)
{
	for (;;) {
		struct lane_entry *entry = &g->entries[e];
		const struct node *node = &g->nodes[n];
		struct lane *lane = node_lane(g, node->parent, slot);
		bool inside = entry->next != LANE_NIL;

		if (inside && entry->tag <= key) {
			if (!(entry->owner & LANE_OF_LANE))
				entry->tag = key; /* it grew: found at the front */
			return;
		}
		entry->tag = key;
		if (inside)
			lane_lower(lane, g->entries, e);
		else
			lane_insert(lane, g->entries, e);
		n = node->parent;
		if (n == WEIR_ROOT) {
			gate_ready(g, slot, true);
			return;
		}
		if (gate_stopped(g, n, slot))
			return;
		e = lane->entry;
	}
}

/* A time as a tag: its bits, which order as the time does. */
static double gate_key(const struct weir_gate *g, uint32_t n, const struct weir_req *r)
{
	weir_time key = r->submitted;
	double tag;

	if (g->order == WEIR_EDF)
		key += r->deadline ? r->deadline * WEIR_US : g->deadline[n];
	memcpy(&tag, &key, sizeof tag);
	return tag;
}

/* The leaf's head may pass in this slot. */
GATE_HOT void gate_enter(struct weir_gate *g, uint32_t n, unsigned slot)
{
	struct node *node = &g->nodes[n];
	unsigned class = node_entry_of(slot);
	uint32_t e = node->entry[class];

	node->may |= (uint8_t)(1u << class);
	if (g->order == WEIR_FAIR)
		gate_join(g, e, n, slot);
	else
		gate_join_keyed(g, e, n, slot, gate_key(g, n, node->head));
}

/* ---- a leaf's head against its own buckets */

static inline void gate_state(struct weir_gate *g, uint32_t n, enum node_state state, weir_time now)
{
	if (g->nodes[n].state == state)
		return;
	stats_turn(g, n, now);
	g->nodes[n].state = (uint8_t)state;
}

/* To be looked at again at from + wait. */
static void gate_later(struct weir_gate *g, uint32_t n, weir_time from, weir_time wait)
{
	if (wait < WEIR_NEVER - from)
		timer_set(&g->timer, n, from + wait);
}

/* The head waits for its own hold buckets, or for a token. */
static void gate_held(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct node_limits *l = g->nodes[n].limits;

	gate_state(g, n, NODE_HELD, now);
	gate_later(g, n, l->stamp, limits_wait_all(l->b, l->n_hold, g->nodes[n].head));
}

static void gate_tokenless(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct node_limits *l = g->nodes[n].limits;
	weir_time any = limits_wait_any(&l->b[l->r], l->n_r, g->nodes[n].head);
	weir_time all = limits_wait_all(&l->b[l->l], l->n_l, g->nodes[n].head);

	gate_state(g, n, NODE_TOKENS, now);
	gate_later(g, n, l->stamp, any < all ? any : all);
}

/* An R-token is worth no haste: its bucket holds what comes in 20 ms or more, and a coarse timer is
 * cheap. So it is seen as of the coarse time, whoever looks and when: how often somebody looks must
 * not change who passes. */
GATE_HOT void gate_promote_r(struct weir_gate *g, uint32_t n, weir_time now)
{
	weir_time reserved = g->nodes[n].limits->reserved;

	if (reserved <= timer_coarse(now) || reserved <= g->nodes[n].limits->stamp)
		gate_enter(g, n, NODE_RESERVED);
	else if (reserved != WEIR_NEVER)
		timer_set_coarse(&g->timer, n, reserved);
}

static void gate_promote_profile(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct node *node = &g->nodes[n];
	weir_time fits = node->limits->fits;

	if (fits <= now)
		gate_enter(g, n, node->priority);
	else if (fits != WEIR_NEVER)
		timer_set(&g->timer, n, fits);
}

/* The head may pass as one of the rest: may it pass as better? */
GATE_HOT void gate_promote(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct node *node = &g->nodes[n];

	if (node->limits->n_r && !(node->may & 1u << WEIR_CLASS_RESERVED))
		gate_promote_r(g, n, now);
	if (node->priority != NODE_NO_PRIORITY && !(node->may & 1u << WEIR_CLASS_PRIORITY))
		gate_promote_profile(g, n, now);
}

/* Where does the head stand? */
GATE_HOT void gate_look(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct node *node = &g->nodes[n];
	struct node_limits *l = node->limits;

	node->may = 0;
	if (!l) {
		gate_enter(g, n, NODE_REST);
		if (node->priority != NODE_NO_PRIORITY)
			gate_enter(g, n, node->priority);
		return;
	}
	weir_time span = now - l->stamp;

	if (!limits_admit(l, node->head, span)) {
		gate_held(g, n, now);
		return;
	}
	if (l->n_l && !limits_any(&l->b[l->r], l->n_r, node->head, span) &&
		!limits_all(&l->b[l->l], l->n_l, node->head, span)) {
		gate_tokenless(g, n, now);
		return;
	}
	if (node->state != NODE_OK)
		gate_state(g, n, NODE_OK, now);
	gate_enter(g, n, NODE_REST);
	if (l->n_r)
		l->reserved = limits_reserved(l, node->head);
	if (node->priority != NODE_NO_PRIORITY)
		l->fits = limits_fits(l, node->head);
	gate_promote(g, n, now);
}

/* A queue that is empty stands nowhere. */
static void gate_rest(struct weir_gate *g, uint32_t n, weir_time now)
{
	g->nodes[n].may = 0;
	gate_state(g, n, NODE_OK, now);
}

void gate_update(struct weir_gate *g, uint32_t n, weir_time now)
{
	if (g->nodes[n].head)
		gate_look(g, n, now);
	else
		gate_rest(g, n, now);
}

/* Its timer has expired. Who is eligible stays so, and may only have become better. */
GATE_HOT void gate_due(struct weir_gate *g, uint32_t n, weir_time now)
{
	const struct node *node = &g->nodes[n];

	if ((node->may & 1u << WEIR_CLASS_REST) && node->limits)
		gate_promote(g, n, now);
	else
		gate_update(g, n, now);
}

/* ---- the buckets above */

static void gate_stop(struct weir_gate *g, uint32_t n, unsigned slot, weir_time wait, weir_time now)
{
	struct node *node = &g->nodes[n];

	if (!(node->flags & NODE_STOPPED)) {
		stats_turn(g, n, now);
		node->flags |= NODE_STOPPED;
		g->inner[n]->stopped = (uint8_t)slot;
	} else if (slot < g->inner[n]->stopped) {
		g->inner[n]->stopped = (uint8_t)slot;
	}
	gate_later(g, n, now, wait);
}

/* Do all ancestors' buckets admit r now? The first that does not is stopped. */
static bool gate_admitted(
	struct weir_gate *g, uint32_t leaf, const struct weir_req *r, unsigned slot, weir_time now)
{
	uint32_t n = leaf;

	do {
		n = g->nodes[n].parent;
		struct node_limits *l = g->nodes[n].limits;

		if (!l)
			continue;
		limits_fill(l, now);
		if (!limits_all(l->b, l->n_hold, r, 0)) {
			gate_stop(g, n, slot, limits_wait_all(l->b, l->n_hold, r), now);
			return false;
		}
	} while (n != WEIR_ROOT);
	return true;
}

/* The leaf at the front of inner node n's slot; NODE_NIL: none, or one that no longer waits there. */
static uint32_t gate_front(struct weir_gate *g, uint32_t n, unsigned slot)
{
	uint32_t l = *node_lane_of(g->inner[n], slot);

	while (l != NODE_NIL) {
		uint32_t e = lane_first(&g->lanes[l], g->entries);
		uint32_t owner = e == LANE_NIL ? NODE_NIL : g->entries[e].owner;

		if (owner < NODE_ORPHAN)
			return g->nodes[owner].may >> node_entry_of(slot) & 1 ? owner : NODE_NIL;
		l = owner != NODE_NIL && (owner & LANE_OF_LANE) ? owner & ~LANE_OF_LANE : NODE_NIL;
	}
	return NODE_NIL;
}

/* The window is full, so that nobody is tried; but whom an ancestor's bucket would stop waits for
 * that bucket. It is stopped now, as it would be at the next try. */
static void gate_probe(struct weir_gate *g, uint32_t leaf, weir_time now)
{
	for (uint32_t n = leaf; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		struct node_limits *l = g->nodes[n].limits;

		if (!l || !l->n_hold || (g->nodes[n].flags & NODE_STOPPED))
			continue;
		unsigned slot = g->inner[n]->lane_priority ? 0 : NODE_RESERVED;
		uint32_t front = NODE_NIL;

		for (; slot <= NODE_REST && front == NODE_NIL; slot++)
			front = gate_front(g, n, slot);
		if (front == NODE_NIL)
			continue;
		limits_fill(l, now);
		if (!limits_all(l->b, l->n_hold, g->nodes[front].head, 0))
			gate_stop(g, n, slot - 1,
				limits_wait_all(l->b, l->n_hold, g->nodes[front].head), now);
	}
}

static void gate_rejoin(struct weir_gate *g, uint32_t n, unsigned slot)
{
	uint32_t l = *node_lane_of(g->inner[n], slot);

	if (l == NODE_NIL || g->lanes[l].members == 0)
		return;
	if (g->order == WEIR_FAIR) {
		gate_join(g, g->lanes[l].entry, n, slot);
	} else {
		uint32_t first = lane_first(&g->lanes[l], g->entries);

		gate_join_keyed(g, g->lanes[l].entry, n, slot, g->entries[first].tag);
	}
}

void gate_release(struct weir_gate *g, uint32_t n, weir_time now)
{
	if (!(g->nodes[n].flags & NODE_STOPPED))
		return;
	stats_turn(g, n, now);
	g->nodes[n].flags &= (uint8_t)~NODE_STOPPED;
	if (n == WEIR_ROOT)
		return;
	for (unsigned s = 0; g->inner[n]->lane_priority && s < NODE_PRIORITIES; s++)
		gate_rejoin(g, n, s);
	gate_rejoin(g, n, NODE_RESERVED);
	gate_rejoin(g, n, NODE_REST);
}

void gate_release_above(struct weir_gate *g, uint32_t n, weir_time now)
{
	while (n != WEIR_ROOT) {
		n = g->nodes[n].parent;
		gate_release(g, n, now);
	}
}

/* ---- who is next */

/* Whose turn it is. */
struct gate_turn {
	uint32_t leaf;
	uint32_t entry;    /* the leaf's, in ... */
	struct lane *lane; /* of its parent */
	unsigned slot;
	bool run; /* out of turn: it goes on with a run, and stays where it is */
};

static void gate_drop(struct weir_gate *g, struct lane *lane, uint32_t e)
{
	lane_pop(lane, g->entries);
	if (g->entries[e].owner == NODE_ORPHAN)
		tree_entry_free(g, e);
}

/* Goes down one slot from the root to the leaf at the front. What does not belong at the front of
 * a lane on the way is dropped from it: then NODE_ORPHAN, and the caller tries again. NODE_NIL: the
 * slot is empty. */
GATE_HOT uint32_t gate_descend(struct weir_gate *g, struct gate_turn *turn)
{
	struct lane *above = NULL, *lane = node_lane(g, WEIR_ROOT, turn->slot);
	uint32_t above_e = LANE_NIL;

	for (;;) {
		uint32_t e = lane_first(lane, g->entries);

		if (e == LANE_NIL) {
			if (!above)
				return NODE_NIL;
			gate_drop(g, above, above_e); /* an empty lane */
			return NODE_ORPHAN;
		}
		if (above && lane->keyed && g->entries[above_e].tag < g->entries[e].tag) {
			g->entries[above_e].tag = g->entries[e].tag; /* found at the front */
			return NODE_ORPHAN;
		}
		uint32_t owner = g->entries[e].owner;

		if (owner < NODE_ORPHAN && (g->nodes[owner].may >> node_entry_of(turn->slot) & 1)) {
			turn->lane = lane;
			turn->entry = e;
			return owner;
		}
		if (!(owner & LANE_OF_LANE)) {
			gate_drop(g, lane, e);
			return NODE_ORPHAN;
		}
		struct lane *below = &g->lanes[owner & ~LANE_OF_LANE];

		if (gate_stopped(g, below->node, turn->slot)) {
			gate_drop(g, lane, e);
			return NODE_ORPHAN;
		}
		above = lane;
		above_e = e;
		lane = below;
	}
}

GATE_HOT bool gate_pick(struct weir_gate *g, struct gate_turn *turn, weir_time now)
{
	while (!gate_stopped(g, WEIR_ROOT, turn->slot)) {
		uint32_t n = gate_descend(g, turn);

		if (n == NODE_NIL) {
			gate_ready(g, turn->slot, false);
			return false;
		}
		if (n == NODE_ORPHAN)
			continue;
		const struct node *node = &g->nodes[n];

		turn->leaf = n;
		if (!(node->flags & NODE_ABOVE) || gate_admitted(g, n, node->head, turn->slot, now))
			return true;
	}
	return false;
}

/* May the run go on in this slot? */
static bool gate_runs(struct weir_gate *g, unsigned slot, weir_time now)
{
	const struct node *node = &g->nodes[g->run_node];

	if (!g->run_left || slot != g->run_slot || !(node->may >> node_entry_of(slot) & 1))
		return false;
	uint64_t at = node->head->offset;
	uint64_t gap = at > g->run_end ? at - g->run_end : g->run_end - at;

	if (gap > g->run_distance)
		return false;
	for (uint32_t n = g->run_node; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		if (gate_stopped(g, n, slot))
			return false;
	}
	return !(node->flags & NODE_ABOVE) || gate_admitted(g, g->run_node, node->head, slot, now);
}

static void gate_run_turn(struct weir_gate *g, struct gate_turn *turn)
{
	const struct node *node = &g->nodes[g->run_node];

	turn->leaf = g->run_node;
	turn->entry = node->entry[node_entry_of(turn->slot)];
	turn->lane = node_lane(g, node->parent, turn->slot);
	turn->run = true;
}

static inline bool gate_choose(struct weir_gate *g, weir_time now, struct gate_turn *turn)
{
	turn->run = false;
	for (unsigned slot = node_ready(g, 0); slot <= NODE_REST; slot = node_ready(g, slot + 1)) {
		turn->slot = slot;
		if (g->run_left && gate_runs(g, slot, now)) {
			gate_run_turn(g, turn);
			return true;
		}
		if (gate_pick(g, turn, now))
			return true;
	}
	return false;
}

/* ---- one passes */

/* Moves the tags along the path. In turn: everything on the path is at the front of its lane and
 * leaves it. In a run: it stays where it is, and its greater tag is found at the front. */
static inline void gate_tag(
	struct weir_gate *g, struct lane *lane, uint32_t e, double step, bool run)
{
	if (!run) {
		lane_serve(lane, g->entries[e].tag);
		lane_pop(lane, g->entries);
	}
	g->entries[e].tag += step;
}

static void gate_tag_above(struct weir_gate *g, const struct gate_turn *turn, double cost)
{
	uint32_t e = turn->lane->entry;

	for (uint32_t n = turn->lane->node; n != WEIR_ROOT; n = g->nodes[n].parent) {
		struct lane *lane = node_lane(g, g->nodes[n].parent, turn->slot);

		gate_tag(g, lane, e, cost * g->nodes[n].per_weight, turn->run);
		e = lane->entry;
	}
}

/* After a pass: every lane on the path that is not empty stands in its parent's again. */
static void gate_return(struct weir_gate *g, uint32_t n, unsigned slot)
{
	for (; n != WEIR_ROOT; n = g->nodes[n].parent)
		if (!gate_stopped(g, n, slot))
			gate_rejoin(g, n, slot);
}

/* gate_admitted has filled them. */
static void gate_charge_above(struct weir_gate *g, uint32_t n, const struct weir_req *r)
{
	while (n != WEIR_ROOT) {
		n = g->nodes[n].parent;
		if (g->nodes[n].limits)
			limits_take(g->nodes[n].limits->b, g->nodes[n].limits->n_hold, r);
	}
}

static void gate_note_run(
	struct weir_gate *g, const struct gate_turn *turn, const struct weir_req *r)
{
	if (g->order != WEIR_FAIR)
		return;
	if (g->run_left && g->run_node == turn->leaf && g->run_slot == turn->slot)
		g->run_left--;
	else
		g->run_left = g->run - 1;
	g->run_node = turn->leaf;
	g->run_slot = (uint8_t)turn->slot;
	g->run_end = r->offset + r->bytes;
}

static inline void gate_count(
	struct weir_gate *g, uint32_t n, const struct weir_req *r, weir_time now)
{
	struct node *node = &g->nodes[n];

	node->wait_area += (uint64_t)now;
	node->full_area += stats_full(g, now);
	node->device_area -= (uint64_t)now;
	if (node->flags & NODE_CLOCKS)
		stats_wait(g, n, now, 1);
	node->queued--;
	node->in_flight++;
	node->dispatched++;
	node->bytes += r->bytes;
	if (r->class_ < WEIR_CLASS_REST)
		node->passed[r->class_]++;
}

/* What r counts in fair queueing. */
static inline double gate_cost(const struct weir_gate *g, const struct weir_req *r)
{
	double cost = (double)limits_cost(r, g->cost);

	return g->order != WEIR_FAIR ? 0 : cost < g->cost_cap ? cost : g->cost_cap;
}

static inline struct weir_req *gate_pass(
	struct weir_gate *g, const struct gate_turn *turn, weir_time now)
{
	struct node *node = &g->nodes[turn->leaf];
	struct weir_req *r = node->head;
	double cost = gate_cost(g, r);

	gate_tag(g, turn->lane, turn->entry, cost * node->per_weight, turn->run);
	if (node->parent != WEIR_ROOT)
		gate_tag_above(g, turn, cost);
	if (node->limits)
		limits_charge(node->limits, r, turn->slot < NODE_PRIORITIES, now);
	if (node->flags & NODE_ABOVE)
		gate_charge_above(g, turn->leaf, r);
	if (g->run >= 2)
		gate_note_run(g, turn, r);

	r->dispatched = now;
	r->class_ = (uint8_t)node_entry_of(turn->slot);
	gate_count(g, turn->leaf, r, now);
	node->head = r->next;
	r->next = NULL;
	if (node->head) {
		gate_look(g, turn->leaf, now);
	} else {
		node->tail = NULL;
		gate_rest(g, turn->leaf, now);
	}
	if (node->parent != WEIR_ROOT)
		gate_return(g, node->parent, turn->slot);
	return r;
}

/* ---- the calls */

static void gate_pend(struct weir_gate *g, uint32_t n)
{
	g->pending[0][n >> 6] |= UINT64_C(1) << (n & 63);
	g->pending[1][n >> 12] |= UINT64_C(1) << (n >> 6 & 63);
	g->pending[2][n >> 18] |= UINT64_C(1) << (n >> 12 & 63);
	g->any_pending = true;
}

/* Leaves that were empty and no longer are, in the order of their numbers, whatever the order of
 * their submits. */
static void gate_activate(struct weir_gate *g, weir_time now)
{
	g->any_pending = false;
	for (uint32_t w2 = 0; w2 <= (g->room - 1) >> 18; w2++) {
		for (; g->pending[2][w2]; g->pending[2][w2] &= g->pending[2][w2] - 1) {
			uint32_t w1 = w2 << 6 | (uint32_t)__builtin_ctzll(g->pending[2][w2]);

			for (; g->pending[1][w1]; g->pending[1][w1] &= g->pending[1][w1] - 1) {
				uint32_t w0 =
					w1 << 6 | (uint32_t)__builtin_ctzll(g->pending[1][w1]);

				for (; g->pending[0][w0];
					g->pending[0][w0] &= g->pending[0][w0] - 1)
					gate_update(g,
						w0 << 6 | (uint32_t)__builtin_ctzll(
								  g->pending[0][w0]),
						now);
			}
		}
	}
}

static void gate_due_all(struct weir_gate *g, const struct ahead_batch *due, weir_time now)
{
	for (uint32_t i = 0; i < due->n; i++) {
		if (g->nodes[due->node[i]].flags & NODE_INNER)
			gate_release(g, due->node[i], now);
		else
			gate_due(g, due->node[i], now);
	}
}

/* Whoever's time has come, and whoever has come, stands where he belongs. */
static void gate_prepare(struct weir_gate *g, struct ahead_walk *walk, size_t max, weir_time now)
{
	struct ahead_batch due, ahead = {.n = 0};

	ahead_start(g, walk);
	do {
		due.n = timer_expire(&g->timer, now, due.node, AHEAD_BATCH);
		ahead_nodes(g, &due);
		if (walk->n == 0 && ahead.n == 0)
			ahead_front(g, walk, &ahead, max);
		ahead_heads(g, &due);
		gate_due_all(g, &due, now);
	} while (due.n == AHEAD_BATCH);
	if (walk->n == 0) {
		ahead_next(g, &due);
		ahead_next(g, &ahead);
	}
	if (g->any_pending)
		gate_activate(g, now);
}

void gate_window(struct weir_gate *g, weir_time now)
{
	bool full = g->in_flight >= g->window.limit;

	if (full == g->full)
		return;
	if (full)
		g->full_since = now;
	else
		g->full_time += now - g->full_since;
	g->full = full;
}

int weir_gate_submit(struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	now = gate_time(g, now);
	for (size_t i = 0; i < n; i++) {
		if (reqs[i]->tenant >= g->n_nodes || reqs[i]->op > WEIR_TRIM ||
			!(g->nodes[reqs[i]->tenant].flags & NODE_LEAF))
			return -EINVAL;
		__builtin_prefetch(&g->nodes[reqs[i]->tenant].wait_area, 1);
	}
	uint64_t full = stats_full(g, now);

	for (size_t i = 0; i < n; i++) {
		struct weir_req *r = reqs[i];
		struct node *node = &g->nodes[r->tenant];

		r->next = NULL;
		r->submitted = now;
		if (r->requests == 0)
			r->requests = 1;
		if (node->tail) {
			node->tail->next = r;
		} else {
			node->head = r;
			gate_pend(g, r->tenant);
		}
		node->tail = r;
		node->queued++;
		node->wait_area -= (uint64_t)now;
		node->full_area -= full;
		if (node->flags & NODE_CLOCKS)
			stats_wait(g, r->tenant, now, -1);
	}
	g->queued += (uint32_t)n;
	g->submitted += n;
	return 0;
}

size_t weir_gate_next(struct weir_gate *g, weir_time now, struct weir_req **ret_reqs, size_t max)
{
	size_t n = 0;

	now = gate_time(g, now);
	window_update(&g->window, now, g->in_flight);
	size_t room = g->in_flight < g->window.limit ? g->window.limit - g->in_flight : 0;
	struct ahead_walk walk;
	struct gate_turn turn;

	if (max > room)
		max = room;
	/* Also when nobody may pass: who waits for what is counted from now on. */
	gate_prepare(g, &walk, max, now);
	while (n < max && gate_choose(g, now, &turn)) {
		ret_reqs[n++] = gate_pass(g, &turn, now);
		if (walk.n < AHEAD_BATCH)
			ahead_step(g, &walk);
	}
	g->queued -= (uint32_t)n;
	g->in_flight += (uint32_t)n;
	g->dispatched += n;
	gate_window(g, now);
	for (size_t i = 0; g->full && i < n; i++)
		if (g->nodes[ret_reqs[i]->tenant].flags & NODE_ABOVE)
			gate_probe(g, ret_reqs[i]->tenant, now);
	return n;
}

void weir_gate_done(struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	now = gate_time(g, now);
	window_update(&g->window, now, g->in_flight);
	for (size_t i = 0; i < n; i++) {
		struct node *node = &g->nodes[reqs[i]->tenant];

		node->in_flight--;
		node->device_area += (uint64_t)now;
		if (g->stats)
			stats_record(g, reqs[i], now);
	}
	g->in_flight -= (uint32_t)n;
	g->served += n;
	gate_window(g, now);
}

weir_time weir_gate_wakeup(struct weir_gate *g, weir_time now)
{
	now = gate_time(g, now);
	if (!g->queued)
		return WEIR_NEVER;
	window_update(&g->window, now, g->in_flight);
	gate_window(g, now);
	if (g->in_flight >= g->window.limit)
		return window_next(&g->window);
	unsigned slot = node_ready(g, 0);

	if (g->any_pending || (slot <= NODE_REST && !gate_stopped(g, WEIR_ROOT, slot)))
		return now;
	weir_time next = timer_next(&g->timer);

	return next > now ? next : now;
}

size_t weir_gate_cancel(struct weir_gate *g, weir_time now, weir_node tenant,
	bool (*match)(const struct weir_req *, void *), void (*drop)(struct weir_req *, void *),
	void *arg)
{
	if (tenant >= g->n_nodes || !(g->nodes[tenant].flags & NODE_LEAF))
		return 0;
	now = gate_time(g, now);
	struct node *node = &g->nodes[tenant];
	struct weir_req *keep = NULL, **end = &keep, *r = node->head, *next;
	size_t n = 0;

	node->tail = NULL;
	for (; r; r = next) {
		next = r->next;
		if (!match(r, arg)) {
			*end = node->tail = r;
			end = &r->next;
			continue;
		}
		node->wait_area += (uint64_t)now;
		node->full_area += stats_full(g, now);
		if (node->flags & NODE_CLOCKS)
			stats_wait_slow(g, tenant, now, 1);
		r->next = NULL;
		drop(r, arg);
		n++;
	}
	*end = NULL;
	node->head = keep;
	node->queued -= (uint32_t)n;
	g->queued -= (uint32_t)n;
	g->submitted -= n;
	gate_update(g, tenant, now);
	gate_release_above(g, tenant, now);
	return n;
}
