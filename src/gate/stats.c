/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters, waiting times by cause, and histograms.
 *
 * METHOD  How long requests waited for a cause is a sum over requests of (a clock at dispatch −
 *         the same clock at submit), where the clock runs only while that cause holds. So a submit subtracts the
 *         clock from an area (the request joins the clock) and a dispatch adds it (the request leaves), and no queue
 *         is walked. The clocks: now; and `above`, while an inner node above the leaf is stopped. The state of a
 *         leaf's queue says which clocks its requests have joined:
 *           held      now → max
 *           tokens    above → above; now − above → tokens
 *           neither   above → above
 *         When the state changes, all waiting requests leave the old clocks and join the new ones. One request at a
 *         time waits for the window: the one that would pass next, while the window is full; weir_gate_next finds
 *         it. The rest of the waiting time is counted as turn.
 * EXAMPLE Two requests submitted at 10 and 20 and dispatched at 50: area = −10 − 20 + 50 + 50 = 70.
 */
#include "gate/kind.h"
#include <errno.h>
#include <stdlib.h>

/* ---- clocks */

static weir_time stats_above(
	const struct weir_gate *g, const struct node *node, unsigned kind, weir_time now);

/* Return the time so far during which an inner node above this one was stopped for a kind. */
static weir_time stats_above_of(
	const struct weir_gate *g, const struct node *node, unsigned kind, weir_time now)
{
	if (!g->above || node == &g->nodes[WEIR_ROOT])
		return 0;
	return stats_above(g, &g->nodes[node->parent], kind, now);
}

/* The same, including an inner node itself. */
static weir_time stats_above(
	const struct weir_gate *g, const struct node *node, unsigned kind, weir_time now)
{
	const struct node_inner *in = node->inner;

	if (in->stopped[kind])
		return in->above[kind] + (now - in->since);
	return in->above[kind] + (stats_above_of(g, node, kind, now) - in->above0[kind]);
}

void stats_turn(struct weir_gate *g, struct node *node, weir_time now)
{
	struct node_inner *in = node->inner;

	for (unsigned k = 0; k < NODE_KIND_N; k++) {
		in->above[k] = stats_above(g, node, k, now);
		in->above0[k] = stats_above_of(g, node, k, now);
	}
	if (node->flags & NODE_STOPPED)
		in->held += now - in->since;
	in->since = now;
}

void stats_sign(const struct weir_gate *g, struct node *node, unsigned queue, uint8_t state,
	weir_time now, int64_t times)
{
	node_area n = times;

	if (state & NODE_HELD) {
		node_area_add(&node->held_area, &node->held_high, n * now);
		return;
	}
	if (!g->above && !state)
		return; /* no clock runs */
	weir_time above = stats_above_of(g, node, queue, now);

	node_area_add(&node->above_area, &node->above_high, n * above);
	if (state & NODE_TOKENS)
		node_area_add(&node->tokens_area, &node->tokens_high, n * (now - above));
}

void stats_wait(struct weir_gate *g, uint32_t n, unsigned queue, weir_time now, int times)
{
	struct node *node = &g->nodes[n];

	node_area_add(&node->wait_area, &node->wait_high, (node_area)times * now);
	stats_sign(g, node, queue, node_state(g, n, queue), now, times);
}

/* Return the number of requests that wait in a queue of a leaf. */
static uint32_t stats_queued(const struct weir_gate *g, uint32_t n, unsigned queue)
{
	const struct node_apart *apart = &g->apart[n];
	const struct node *node = &g->nodes[n];

	if (!(node->flags & NODE_KINDS)) /* (without reading node_apart) */
		return queue ? 0 : node->queued;
	return queue ? apart->n[queue - 1] : node->queued - apart->n[0] - apart->n[1];
}

/* Return true if some head of the leaf waits for its hold buckets. */
static bool stats_held(const struct weir_gate *g, uint32_t n)
{
	if (!(g->nodes[n].flags & NODE_KINDS))
		return g->nodes[n].flags & NODE_HELD;
	return (node_state(g, n, 0) | node_state(g, n, 1) | node_state(g, n, 2)) & NODE_HELD;
}

/* stats_state for a leaf with one queue that begins or ceases to be held, where no clock runs above. */
static void stats_turn_held(struct node *node, weir_time now)
{
	bool held = node->flags & NODE_HELD;
	int64_t queued = node->queued;

	node_area_add(
		&node->held_area, &node->held_high, (node_area)(held ? queued : -queued) * now);
	node->held += held ? now : -now;
	node->flags ^= NODE_HELD;
}

void stats_state(struct weir_gate *g, uint32_t n, unsigned queue, uint8_t state, weir_time now)
{
	struct node *node = &g->nodes[n];
	uint8_t before = node_state(g, n, queue);

	if (before == state)
		return;
	if (!queue && !g->above && !(node->flags & NODE_KINDS) && (before | state) == NODE_HELD) {
		stats_turn_held(node, now);
		return;
	}
	int64_t queued = stats_queued(g, n, queue);
	bool held = stats_held(g, n);

	stats_sign(g, node, queue, before, now, queued);
	stats_sign(g, node, queue, state, now, -queued);
	if (queue)
		g->apart[n].state[queue - 1] = state;
	else
		node->flags = (uint8_t)((node->flags & ~NODE_STATE) | state);
	if (held != stats_held(g, n))
		node->held += held ? now : -now;
}

/* Add the time up to now to the account of a leaf, or of a copy, that is the first behind the window. */
static void stats_first(const struct weir_gate *g, struct node *node, weir_time now)
{
	node->window_area += (int64_t)(stats_full(g, now) - g->first_since);
}

void stats_first_close(struct weir_gate *g, weir_time now)
{
	stats_first(g, &g->nodes[g->first], now);
	g->first = NODE_NIL;
}

/* ---- reading */

/* Set the cause for which the oldest head waits. */
static void stats_cause(const struct weir_gate *g, weir_node n, struct weir_gate_stats *s)
{
	const struct node *node = &g->nodes[n];

	s->blocker = n;
	s->cause = WEIR_WAIT_TURN;
	s->oldest = WEIR_NEVER;
	if (!node->queued)
		return;
	uint8_t state = 0;
	const struct weir_req *head = kind_oldest(g, n, &state);

	s->oldest = head->submitted;
	if (state & NODE_HELD) {
		s->cause = WEIR_WAIT_MAX;
		return;
	}
	for (uint32_t p = n; p != WEIR_ROOT;) {
		p = g->nodes[p].parent;
		if (!g->nodes[p].inner->stopped[kind_of(head)])
			continue;
		s->cause = WEIR_WAIT_ABOVE;
		s->blocker = p;
		return;
	}
	if (state & NODE_TOKENS)
		s->cause = WEIR_WAIT_TOKENS;
	else if (g->full && g->first == n)
		s->cause = WEIR_WAIT_WINDOW;
}

/* Return a copy of the leaf as if all waiting requests left their clocks now. */
static struct node stats_settled(const struct weir_gate *g, weir_node leaf, weir_time now)
{
	struct node settled = g->nodes[leaf];

	node_area_add(&settled.wait_area, &settled.wait_high, (node_area)now * settled.queued);
	for (unsigned q = 0; q < NODE_KIND_N; q++)
		stats_sign(g, &settled, q, node_state(g, leaf, q), now, stats_queued(g, leaf, q));
	if (g->first == leaf)
		stats_first(g, &settled, now);
	node_area_add(
		&settled.device_area, &settled.device_high, (node_area)now * settled.in_flight);
	return settled;
}

static void stats_waits(const struct node *settled, double *ret_wait)
{
	node_area held = node_area_of(settled->held_area, settled->held_high);
	node_area above = node_area_of(settled->above_area, settled->above_high);
	node_area tokens = node_area_of(settled->tokens_area, settled->tokens_high);
	node_area all = node_area_of(settled->wait_area, settled->wait_high);

	ret_wait[WEIR_WAIT_WINDOW] = (double)settled->window_area;
	ret_wait[WEIR_WAIT_MAX] = (double)held;
	ret_wait[WEIR_WAIT_ABOVE] = (double)above;
	ret_wait[WEIR_WAIT_TOKENS] = (double)tokens;
	ret_wait[WEIR_WAIT_TURN] = (double)(all - settled->window_area - held - above - tokens);
}

int weir_gate_get_stats(
	struct weir_gate *g, weir_time now, weir_node leaf, struct weir_gate_stats *ret_stats)
{
	struct weir_gate_stats s = {0};

	if (leaf >= g->n_nodes || !(g->nodes[leaf].flags & NODE_LEAF))
		return -EINVAL;
	if (now > g->now)
		g->now = now;
	const struct node node = stats_settled(g, leaf, g->now);

	s.queued = node.queued;
	s.in_flight = node.in_flight;
	for (unsigned i = 0; i < 3; i++) {
		s.by_class[i] = node.passed[i];
		s.dispatched += node.passed[i];
	}
	s.arrivals = s.dispatched + node.queued;
	s.served = s.dispatched - node.in_flight;
	s.bytes = node.bytes;
	s.device_ns = (double)node_area_of(node.device_area, node.device_high);
	stats_waits(&node, s.wait_ns);
	stats_cause(g, leaf, &s);
	*ret_stats = s;
	return 0;
}

void weir_gate_get_totals(struct weir_gate *g, weir_time now, struct weir_gate_totals *ret)
{
	if (now > g->now)
		g->now = now;
	*ret = (struct weir_gate_totals){
		.submitted = g->submitted,
		.dispatched = g->dispatched,
		.served = g->served,
		.queued = g->queued,
		.in_flight = g->in_flight,
		.in_flight_bytes = g->inside,
		.window_bytes = g->window_bytes,
		.window = (double)g->window.size / (double)WINDOW_ONE,
		.full = (weir_time)stats_full(g, g->now),
		.full_served = g->full_served,
	};
}

weir_time weir_gate_held(struct weir_gate *g, weir_time now, weir_node n)
{
	if (n >= g->n_nodes || !g->nodes[n].flags)
		return 0;
	if (now > g->now)
		g->now = now;
	const struct node *node = &g->nodes[n];

	if (node->flags & NODE_INNER)
		return node->inner->held +
		       (node->flags & NODE_STOPPED ? g->now - node->inner->since : 0);
	return node->held + (stats_held(g, n) ? g->now : 0);
}

/* ---- histograms */

static bool stats_pair(struct stats *s, uint32_t n)
{
	if (s->of[n] != NODE_NIL)
		return true;
	if (!s->spare)
		return false;
	s->spare--;
	s->of[n] = s->used++;
	return true;
}

#define STATS_AHEAD 12 /* records: four lines each, as many as a core can have outstanding */

/* Prefetch the lines that a later record will touch: histograms are far too large for any cache. */
static inline void stats_fetch(const struct stats *s, uint32_t i)
{
	uint32_t of = i < s->n ? s->of[s->ring[i].node] : NODE_NIL;

	if (of == NODE_NIL)
		return;
	weir_hist_fetch(&s->pairs[of]->wait, (uint64_t)s->ring[i].wait);
	weir_hist_fetch(&s->pairs[of]->device, (uint64_t)s->ring[i].device);
}

static void stats_empty(struct stats *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct stats_record *r = &s->ring[i];

		stats_fetch(s, i + STATS_AHEAD);
		if (!stats_pair(s, r->node)) {
			s->unrecorded++;
			continue;
		}
		struct hist_pair *pair = s->pairs[s->of[r->node]];

		weir_hist_record(&pair->wait, (uint64_t)r->wait);
		weir_hist_record(&pair->device, (uint64_t)r->device);
	}
	s->n = 0;
}

void stats_record(struct weir_gate *g, struct weir_req *const *reqs, size_t n, weir_time now)
{
	struct stats *s = g->stats;

	for (size_t i = 0; i < n; i++) {
		const struct weir_req *r = reqs[i];

		if (s->n == STATS_RING)
			stats_empty(s);
		s->ring[s->n++] = (struct stats_record){.node = r->tenant,
			.wait = r->dispatched - r->submitted,
			.device = now - r->dispatched};
	}
}

static void stats_refill(struct stats *s)
{
	while (s->spare < STATS_SPARE && s->used + s->spare < s->most) {
		struct hist_pair *pair = malloc(sizeof *pair);

		if (!pair)
			return; /* tried again at the next drain; `unrecorded` counts the missed
			           ones */
		weir_hist_clear(&pair->wait);
		weir_hist_clear(&pair->device);
		s->pairs[s->used + s->spare++] = pair;
	}
}

void weir_gate_drain(struct weir_gate *g)
{
	if (!g->stats)
		return;
	stats_refill(g->stats);
	stats_empty(g->stats);
	stats_refill(g->stats);
}

static const struct hist_pair *stats_of(const struct weir_gate *g, weir_node leaf)
{
	if (!g->stats || leaf >= g->n_nodes || g->stats->of[leaf] == NODE_NIL)
		return NULL;
	return g->stats->pairs[g->stats->of[leaf]];
}

const struct weir_hist *weir_gate_hist_wait(const struct weir_gate *g, weir_node leaf)
{
	const struct hist_pair *pair = stats_of(g, leaf);

	return pair ? &pair->wait : NULL;
}

const struct weir_hist *weir_gate_hist_device(const struct weir_gate *g, weir_node leaf)
{
	const struct hist_pair *pair = stats_of(g, leaf);

	return pair ? &pair->device : NULL;
}

uint64_t weir_gate_unrecorded(const struct weir_gate *g)
{
	return g->stats ? g->stats->unrecorded : 0;
}
