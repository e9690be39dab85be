/* SPDX-License-Identifier: BSD-3-Clause */
/* The hot path: submit, next, done, wakeup. The law is in gate.h, the parts in node.h. */
#include "gate/node.h"
#include <errno.h>
#include <math.h>
#include <string.h>

/* A cost counts in fair queueing up to this many of the largest, so that one absurd request does
 * not put its tenant years behind. */
#define GATE_COST_CAP 64.0
#define GATE_BATCH    32 /* how many are fetched ahead of need at once */

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

static struct lane *gate_lane(struct weir_gate *g, uint32_t inner, unsigned slot)
{
	return &g->lanes[*node_lane_of(g->inner[inner], slot)];
}

static bool gate_stopped(const struct weir_gate *g, uint32_t n, unsigned slot)
{
	return (g->nodes[n].flags & NODE_STOPPED) && slot >= g->inner[n]->stopped;
}

/* Entry e, of node n, enters the lane of its parent; a lane that was empty enters its own parent's,
 * and so on up. Nothing happens to an entry that is inside already: its tag is right. */
static void gate_join(struct weir_gate *g, uint32_t e, uint32_t n, unsigned slot)
{
	for (;;) {
		struct lane_entry *entry = &g->entries[e];
		const struct node *node = &g->nodes[n];
		struct lane *lane = gate_lane(g, node->parent, slot);
		double start = lane->now - g->credit * node->per_weight;

		if (entry->next != LANE_NIL)
			return;
		if (entry->tag < start)
			entry->tag = start;
		lane_insert(lane, g->entries, e);
		if (lane->members > 1)
			return;
		n = node->parent;
		if (n == WEIR_ROOT) {
			gate_ready(g, slot, true);
			return;
		}
		if (gate_stopped(g, n, slot))
			return; /* gate_release will see to it */
		e = lane->entry;
	}
}

/* The same for the orders FIFO and EDF: the least key below is the key of a lane. */
static void gate_join_keyed(struct weir_gate *g, uint32_t e, uint32_t n, unsigned slot, double key)
{
	for (;;) {
		struct lane_entry *entry = &g->entries[e];
		const struct node *node = &g->nodes[n];
		struct lane *lane = gate_lane(g, node->parent, slot);
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

static inline void gate_enter(struct weir_gate *g, uint32_t n, unsigned slot)
{
	struct node *node = &g->nodes[n];
	unsigned class = node_entry_of(slot);
	uint32_t e = node->entry[class];

	node->may |= (uint8_t)(1u << class);
	if (g->order != WEIR_FAIR)
		gate_join_keyed(g, e, n, slot, gate_key(g, n, node->head));
	else if (g->entries[e].next == LANE_NIL)
		gate_join(g, e, n, slot);
}

/* ---- a leaf's head against its own buckets */

static inline void gate_state(struct weir_gate *g, uint32_t n, enum node_state state, weir_time now)
{
	if (g->nodes[n].state == state)
		return;
	stats_turn(g, n, now);
	g->nodes[n].state = (uint8_t)state;
}

/* How long until the last (all) or the first (any) of n buckets admits a request of these costs;
 * those that do not count it apart. Of none: all admit at once, any never. */
static inline weir_time gate_wait_all(
	const struct bucket *b, unsigned n, const struct node_cost *cost, unsigned op)
{
	weir_time wait = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!(b[i].ops & op))
			continue;
		weir_time t = bucket_wait(&b[i], cost->in[b[i].unit]);

		if (t > wait)
			wait = t;
	}
	return wait;
}

static inline weir_time gate_wait_any(
	const struct bucket *b, unsigned n, const struct node_cost *cost, unsigned op)
{
	weir_time wait = WEIR_NEVER;

	for (unsigned i = 0; i < n; i++) {
		if (!(b[i].ops & op) || cost->in[b[i].unit] == 0)
			continue;
		weir_time t = bucket_wait(&b[i], cost->in[b[i].unit]);

		if (t < wait)
			wait = t;
	}
	return wait;
}

/* To be looked at again after `wait`. */
static void gate_later(struct weir_gate *g, uint32_t n, weir_time wait, weir_time now)
{
	if (wait < WEIR_NEVER - now)
		timer_set(&g->timer, n, now + wait);
}

/*
 * When the head fits its profile: the first time from its submit on at which all profile buckets
 * admit it. They are filled up to that time and no further, and charged as of it, so that what a
 * conforming request loses by waiting for others it does not lose of its profile as well, and a
 * bucket does not overflow while somebody waits.
 */
static weir_time gate_fits(
	struct node_limits *l, const struct weir_req *r, const struct node_cost *cost)
{
	struct bucket *b = l->b + l->n_hold;

	if (r->submitted > l->profile_stamp) {
		for (unsigned i = 0; i < l->n_profile; i++)
			bucket_fill(&b[i], r->submitted - l->profile_stamp);
		l->profile_stamp = r->submitted;
	}
	weir_time wait = gate_wait_all(b, l->n_profile, cost, WEIR_OPS(r->op));

	return wait < WEIR_NEVER - l->profile_stamp ? l->profile_stamp + wait : WEIR_NEVER;
}

/* The levels are true: where does the head stand? */
static inline void gate_update_limited(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct node *node = &g->nodes[n];
	struct node_limits *l = node->limits;
	const struct node_cost cost = node_cost(node->head);
	unsigned op = WEIR_OPS(node->head->op);
	const struct bucket *b = l->b;
	weir_time wait = gate_wait_all(b, l->n_hold, &cost, op);

	if (wait > 0) {
		gate_state(g, n, NODE_HELD, now);
		gate_later(g, n, wait, now);
		return;
	}
	b += l->n_hold + l->n_profile;
	weir_time unreserved = gate_wait_any(b, l->n_r, &cost, op);

	if (l->n_l && unreserved > 0) {
		wait = gate_wait_all(b + l->n_r, l->n_l, &cost, op);
		if (wait > 0) {
			gate_state(g, n, NODE_TOKENS, now);
			gate_later(g, n, wait < unreserved ? wait : unreserved, now);
			return;
		}
	}
	gate_state(g, n, NODE_OK, now);
	gate_enter(g, n, NODE_REST);
	if (unreserved == 0)
		gate_enter(g, n, NODE_RESERVED);
	else if (unreserved != WEIR_NEVER)
		gate_later(g, n, unreserved, now);
	if (node->priority == NODE_NO_PRIORITY)
		return;
	weir_time fits = gate_fits(l, node->head, &cost);

	if (fits <= now)
		gate_enter(g, n, node->priority);
	else if (fits != WEIR_NEVER)
		timer_set(&g->timer, n, fits);
}

void gate_update(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct node *node = &g->nodes[n];

	node->may = 0;
	if (!node->head) {
		gate_state(g, n, NODE_OK, now);
		return;
	}
	if (node->limits) {
		node_fill(node->limits, now);
		gate_update_limited(g, n, now);
		return;
	}
	gate_enter(g, n, NODE_REST);
	if (node->priority != NODE_NO_PRIORITY)
		gate_enter(g, n, node->priority);
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
	gate_later(g, n, wait, now);
}

/* Do all ancestors' buckets admit r now? The first that does not is stopped. */
static bool gate_admitted(
	struct weir_gate *g, uint32_t leaf, const struct weir_req *r, unsigned slot, weir_time now)
{
	uint32_t n = leaf;

	if (!(g->nodes[n].flags & NODE_ABOVE))
		return true;
	const struct node_cost cost = node_cost(r);

	do {
		n = g->nodes[n].parent;
		struct node_limits *l = g->nodes[n].limits;

		if (!l)
			continue;
		node_fill(l, now);
		weir_time wait = gate_wait_all(l->b, l->n_hold, &cost, WEIR_OPS(r->op));

		if (wait > 0) {
			gate_stop(g, n, slot, wait, now);
			return false;
		}
	} while (n != WEIR_ROOT);
	return true;
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

static void gate_drop(struct weir_gate *g, struct lane *lane, uint32_t e)
{
	lane_pop(lane, g->entries);
	if (g->entries[e].owner == NODE_ORPHAN)
		tree_entry_free(g, e);
}

/* Goes down one slot from the root to the leaf at the front. What does not belong at the front of
 * a lane on the way is dropped from it: then NODE_ORPHAN, and the caller tries again. NODE_NIL: the
 * slot is empty. */
static uint32_t gate_descend(struct weir_gate *g, unsigned slot)
{
	struct lane *above = NULL, *lane = gate_lane(g, WEIR_ROOT, slot);
	uint32_t above_e = LANE_NIL;

	for (;;) {
		uint32_t e = lane_first(lane, g->entries);

		if (e == LANE_NIL) {
			if (!above)
				return NODE_NIL;
			gate_drop(g, above, above_e); /* an empty lane */
			return NODE_ORPHAN;
		}
		if (lane->keyed && above && g->entries[above_e].tag < g->entries[e].tag) {
			g->entries[above_e].tag = g->entries[e].tag; /* found at the front */
			return NODE_ORPHAN;
		}
		uint32_t owner = g->entries[e].owner;

		if (!(owner & LANE_OF_LANE)) {
			if (owner != NODE_ORPHAN &&
				(g->nodes[owner].may >> node_entry_of(slot) & 1))
				return owner;
			gate_drop(g, lane, e);
			return NODE_ORPHAN;
		}
		struct lane *below = &g->lanes[owner & ~LANE_OF_LANE];

		if (gate_stopped(g, below->node, slot)) {
			gate_drop(g, lane, e);
			return NODE_ORPHAN;
		}
		above = lane;
		above_e = e;
		lane = below;
	}
}

static uint32_t gate_pick(struct weir_gate *g, unsigned slot, weir_time now)
{
	while (!gate_stopped(g, WEIR_ROOT, slot)) {
		uint32_t n = gate_descend(g, slot);

		if (n == NODE_NIL) {
			gate_ready(g, slot, false);
			return NODE_NIL;
		}
		if (n != NODE_ORPHAN && gate_admitted(g, n, g->nodes[n].head, slot, now))
			return n;
	}
	return NODE_NIL;
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
	return gate_admitted(g, g->run_node, node->head, slot, now);
}

/* The slots that are ready, first to last, from `from` on; NODE_REST + 1: none. */
static unsigned gate_slot(const struct weir_gate *g, unsigned from)
{
	if (from < NODE_PRIORITIES) {
		uint64_t ready = g->ready_priority & (~UINT64_C(0) << from);

		if (ready)
			return (unsigned)__builtin_ctzll(ready);
	}
	if (from <= NODE_RESERVED && g->ready_reserved)
		return NODE_RESERVED;
	return g->ready_rest && from <= NODE_REST ? NODE_REST : NODE_REST + 1;
}

static uint32_t gate_choose(struct weir_gate *g, weir_time now, unsigned *ret_slot, bool *ret_run)
{
	for (unsigned slot = gate_slot(g, 0); slot <= NODE_REST; slot = gate_slot(g, slot + 1)) {
		*ret_slot = slot;
		*ret_run = g->run_left && gate_runs(g, slot, now);
		if (*ret_run)
			return g->run_node;
		uint32_t n = gate_pick(g, slot, now);

		if (n != NODE_NIL)
			return n;
	}
	return NODE_NIL;
}

/* ---- one passes */

/* Moves the tags along the path. In turn: everything on the path is at the front of its lane and
 * leaves it. In a run: it stays where it is, and its greater tag is found at the front. */
static void gate_tags(struct weir_gate *g, uint32_t n, unsigned slot, double cost, bool run)
{
	uint32_t e = g->nodes[n].entry[node_entry_of(slot)];

	while (n != WEIR_ROOT) {
		const struct node *node = &g->nodes[n];
		struct lane *lane = gate_lane(g, node->parent, slot);

		if (!run) {
			lane_serve(lane, g->entries[e].tag);
			lane_pop(lane, g->entries);
		}
		g->entries[e].tag += cost * node->per_weight;
		e = lane->entry;
		n = node->parent;
	}
}

/* After a pass: every lane on the path that is not empty stands in its parent's again. */
static void gate_return(struct weir_gate *g, uint32_t n, unsigned slot)
{
	for (n = g->nodes[n].parent; n != WEIR_ROOT; n = g->nodes[n].parent)
		if (!gate_stopped(g, n, slot))
			gate_rejoin(g, n, slot);
}

static inline void gate_charge(
	struct bucket *b, unsigned n, const struct node_cost *cost, unsigned op)
{
	for (unsigned i = 0; i < n; i++)
		if (b[i].ops & op)
			bucket_take(&b[i], cost->in[b[i].unit]);
}

/* Law 3: if any R-bucket holds enough, all that count the request pay for it, so that several
 * guarantees together are worth the largest and not their sum. One that cannot pay goes into debt,
 * but by no more than its size: a tenant that changes from small requests to large has its bytes
 * guaranteed again that soon. */
static inline bool gate_charge_reserved(
	struct bucket *b, unsigned n, const struct node_cost *cost, unsigned op)
{
	bool any = false;

	for (unsigned i = 0; i < n; i++)
		any |= (b[i].ops & op) && cost->in[b[i].unit] &&
		       bucket_admits(&b[i], cost->in[b[i].unit]);
	if (!any)
		return false;
	gate_charge(b, n, cost, op);
	for (unsigned i = 0; i < n; i++)
		if (b[i].level < -b[i].size)
			b[i].level = -b[i].size;
	return true;
}

/* As of the time from which it fit. */
static void gate_charge_profile(
	struct node_limits *l, const struct weir_req *r, const struct node_cost *cost)
{
	struct bucket *b = l->b + l->n_hold;
	weir_time fits = gate_fits(l, r, cost);

	if (fits > l->profile_stamp) {
		for (unsigned i = 0; i < l->n_profile; i++)
			bucket_fill(&b[i], fits - l->profile_stamp);
		l->profile_stamp = fits;
	}
	gate_charge(b, l->n_profile, cost, WEIR_OPS(r->op));
}

static inline void gate_charge_own(struct node_limits *l, const struct weir_req *r,
	const struct node_cost *cost, unsigned slot, weir_time now)
{
	unsigned op = WEIR_OPS(r->op);
	struct bucket *b = l->b;

	node_fill(l, now);
	gate_charge(b, l->n_hold, cost, op);
	if (slot < NODE_PRIORITIES && l->n_profile)
		gate_charge_profile(l, r, cost);
	b += l->n_hold + l->n_profile;
	if (!gate_charge_reserved(b, l->n_r, cost, op))
		gate_charge(b + l->n_r, l->n_l, cost, op);
}

/* gate_admitted has filled them. */
static void gate_charge_above(
	struct weir_gate *g, uint32_t n, const struct node_cost *cost, unsigned op)
{
	while (n != WEIR_ROOT) {
		n = g->nodes[n].parent;
		if (g->nodes[n].limits)
			gate_charge(g->nodes[n].limits->b, g->nodes[n].limits->n_hold, cost, op);
	}
}

static void gate_note_run(struct weir_gate *g, uint32_t n, unsigned slot, const struct weir_req *r)
{
	if (g->run < 2 || g->order != WEIR_FAIR)
		return;
	if (g->run_left && g->run_node == n && g->run_slot == slot)
		g->run_left--;
	else
		g->run_left = g->run - 1;
	g->run_node = n;
	g->run_slot = (uint8_t)slot;
	g->run_end = r->offset + r->bytes;
}

static inline void gate_count(
	struct weir_gate *g, uint32_t n, const struct weir_req *r, weir_time now)
{
	struct node *node = &g->nodes[n];

	node->wait_area += (uint64_t)now;
	node->full_area += stats_full(g, now);
	if (node->flags & NODE_CLOCKS)
		stats_wait_slow(g, n, now, 1);
	node->queued--;
	node->in_flight++;
	node->dispatched++;
	node->bytes += r->bytes;
	if (r->class_ < WEIR_CLASS_REST)
		node->passed[r->class_]++;
	node->device_area -= (uint64_t)now;
	g->queued--;
	g->in_flight++;
	g->dispatched++;
}

static inline struct weir_req *gate_pass(
	struct weir_gate *g, uint32_t n, unsigned slot, bool run, weir_time now)
{
	struct node *node = &g->nodes[n];
	struct weir_req *r = node->head;
	const struct node_cost cost = node_cost(r);
	double tag = fmin((double)cost.in[g->cost], g->cost_max * GATE_COST_CAP);

	gate_tags(g, n, slot, g->order == WEIR_FAIR ? tag : 0, run);
	if (node->limits)
		gate_charge_own(node->limits, r, &cost, slot, now);
	if (node->flags & NODE_ABOVE)
		gate_charge_above(g, n, &cost, WEIR_OPS(r->op));
	gate_note_run(g, n, slot, r);

	node->head = r->next;
	if (!node->head)
		node->tail = NULL;
	r->next = NULL;
	r->dispatched = now;
	r->class_ = (uint8_t)node_entry_of(slot);
	gate_count(g, n, r, now);
	gate_update(g, n, now);
	gate_return(g, n, slot);
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

/* ---- memory ahead of need: what a batch will touch is fetched together, not one after the other */

static void gate_fetch(struct weir_gate *g, const uint32_t *nodes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct node *node = &g->nodes[nodes[i]];

		__builtin_prefetch(node->head);
		__builtin_prefetch(node->limits);
		__builtin_prefetch((const char *)node->limits + 64);
	}
}

static void gate_expire(struct weir_gate *g, weir_time now)
{
	uint32_t due[GATE_BATCH], n;

	do {
		n = timer_expire(&g->timer, now, due, GATE_BATCH);
		for (uint32_t i = 0; i < n; i++)
			__builtin_prefetch(&g->nodes[due[i]]);
		gate_fetch(g, due, n);
		for (uint32_t i = 0; i < n; i++) {
			if (g->nodes[due[i]].flags & NODE_INNER)
				gate_release(g, due[i], now);
			else
				gate_update(g, due[i], now);
		}
	} while (n == GATE_BATCH);
}

/* The leaves that are likely to pass next, in the root's two usual lanes. */
static void gate_ahead(struct weir_gate *g, size_t max)
{
	uint32_t ahead[GATE_BATCH], n = 0, found = 0;
	uint32_t want = max < GATE_BATCH ? (uint32_t)max : GATE_BATCH;

	if (g->ready_reserved)
		found = lane_peek(gate_lane(g, WEIR_ROOT, NODE_RESERVED), g->entries, ahead, want);
	if (g->ready_rest && found < want)
		found += lane_peek(gate_lane(g, WEIR_ROOT, NODE_REST), g->entries, ahead + found,
			want - found);
	for (uint32_t i = 0; i < found; i++) {
		uint32_t owner = g->entries[ahead[i]].owner;

		if (owner >= NODE_ORPHAN) /* a lane of its own, or nobody */
			continue;
		ahead[n++] = owner;
		__builtin_prefetch(&g->nodes[owner]);
		__builtin_prefetch(&g->nodes[owner].dispatched, 1);
		__builtin_prefetch(&g->timer.entries[TIMER_SLOTS + owner], 1);
	}
	gate_fetch(g, ahead, n);
	for (uint32_t i = 0; i < n; i++)
		if (g->nodes[ahead[i]].head)
			__builtin_prefetch(g->nodes[ahead[i]].head->next);
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
		if (reqs[i]->tenant >= g->n_nodes || !(g->nodes[reqs[i]->tenant].flags & NODE_LEAF))
			return -EINVAL;
		__builtin_prefetch(&g->nodes[reqs[i]->tenant].wait_area, 1);
	}
	uint64_t full = stats_full(g, now);

	for (size_t i = 0; i < n; i++) {
		struct weir_req *r = reqs[i];
		struct node *node = &g->nodes[r->tenant];

		r->next = NULL;
		r->submitted = now;
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
			stats_wait_slow(g, r->tenant, now, -1);
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
	gate_expire(
		g, now); /* also when nobody may pass: who waits for what is counted from now on */
	if (g->any_pending)
		gate_activate(g, now);
	if (g->in_flight < g->window.limit && g->queued) {
		gate_ahead(g, max);
		while (n < max && g->in_flight < g->window.limit) {
			unsigned slot = 0;
			bool run = false;
			uint32_t leaf = gate_choose(g, now, &slot, &run);

			if (leaf == NODE_NIL)
				break;
			ret_reqs[n++] = gate_pass(g, leaf, slot, run, now);
		}
	}
	gate_window(g, now);
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
	unsigned slot = gate_slot(g, 0);

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
