/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was measured.
 *
 * METHOD  How long requests waited for a cause is a sum over requests of (a clock at dispatch −
 *         the same clock at submit), where the clock runs only while that cause holds. So a submit
 *         subtracts the clock from an area and a dispatch adds it, and nobody walks a queue. The
 *         clocks: now; `full`, while the window is full; and, for nodes that have buckets, `held`,
 *         `tokens` and `above` (node.h). Who is held also when the window is full waits for its
 *         max: `masked` takes that time from `full`. What is left over is turn.
 * EXAMPLE Two requests submitted at 10 and 20 and dispatched at 50: area = −10 − 20 + 50 + 50 = 70.
 */
#include "gate/node.h"
#include <errno.h>
#include <stdlib.h>

static struct node_clock stats_plus(struct node_clock a, struct node_clock b)
{
	return (struct node_clock){a.time + b.time, a.full + b.full};
}

static struct node_clock stats_minus(struct node_clock a, struct node_clock b)
{
	return (struct node_clock){a.time - b.time, a.full - b.full};
}

/* Of all time. */
static struct node_clock stats_now(const struct weir_gate *g, weir_time now)
{
	return (struct node_clock){(uint64_t)now, stats_full(g, now)};
}

/* Stopped above n, itself apart. */
static struct node_clock stats_above_of(const struct weir_gate *g, uint32_t n, weir_time now)
{
	if (!(g->nodes[n].flags & NODE_ABOVE))
		return (struct node_clock){0, 0};
	return stats_above(g, g->nodes[n].parent, now);
}

struct node_clock stats_above(const struct weir_gate *g, uint32_t n, weir_time now)
{
	if (!g->nodes[n].limits)
		return stats_above_of(g, n, now);
	const struct node_clocks *c = limits_clocks(g->nodes[n].limits);

	if (g->nodes[n].flags & NODE_STOPPED)
		return stats_plus(c->above, stats_minus(stats_now(g, now), c->since));
	return stats_plus(c->above, stats_minus(stats_above_of(g, n, now), c->above0));
}

/* A leaf's clocks as of now. */
struct stats_clocks {
	uint64_t held, tokens, both, masked, above;
};

static struct stats_clocks stats_clocks(const struct weir_gate *g, uint32_t n, weir_time now)
{
	struct node_clock above = stats_above_of(g, n, now);
	struct stats_clocks c = {.above = above.time, .masked = above.full};

	if (!g->nodes[n].limits)
		return c;
	const struct node_clocks *l = limits_clocks(g->nodes[n].limits);
	struct node_clock span = stats_minus(stats_now(g, now), l->since);
	struct node_clock span_above = stats_minus(above, l->above0);

	c.held = l->held;
	c.tokens = l->tokens;
	c.both = l->both;
	c.masked = l->masked + (g->nodes[n].state == NODE_OK ? span_above.full : span.full);
	if (g->nodes[n].state == NODE_HELD) {
		c.held += span.time;
		c.both += span_above.time;
	} else if (g->nodes[n].state == NODE_TOKENS) {
		c.tokens += span.time - span_above.time;
	}
	return c;
}

/* The clocks go on from here. */
static void stats_mark(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct node_clocks *l = limits_clocks(g->nodes[n].limits);

	l->since = stats_now(g, now);
	l->above0 = stats_above_of(g, n, now);
}

void stats_start(struct weir_gate *g, uint32_t n, weir_time now)
{
	struct node_clocks *l = limits_clocks(g->nodes[n].limits);

	stats_mark(g, n, now);
	if (g->nodes[n].flags & NODE_INNER)
		l->above = l->above0;
	else
		l->masked = l->above0.full; /* as it was without buckets */
}

void stats_turn(struct weir_gate *g, uint32_t n, weir_time now)
{
	if (!g->nodes[n].limits)
		return;
	struct node_clocks *l = limits_clocks(g->nodes[n].limits);

	g->nodes[n].flags |= NODE_CLOCKS; /* those who wait signed on when the clocks stood at 0 */
	if (g->nodes[n].flags & NODE_INNER) {
		struct node_clock above = stats_above(g, n, now);

		if (g->nodes[n].flags & NODE_STOPPED)
			l->held += (uint64_t)now - l->since.time;
		l->above = above;
	} else {
		struct stats_clocks c = stats_clocks(g, n, now);

		l->held = c.held;
		l->tokens = c.tokens;
		l->both = c.both;
		l->masked = c.masked;
	}
	stats_mark(g, n, now);
}

void stats_wait_slow(struct weir_gate *g, uint32_t n, weir_time now, int64_t sign)
{
	struct node *node = &g->nodes[n];
	struct stats_clocks c = stats_clocks(g, n, now);
	uint64_t times = (uint64_t)sign;

	node->above_area += times * c.above;
	node->full_area -= times * c.masked;
	if (!node->limits)
		return;
	struct node_clocks *l = limits_clocks(node->limits);

	l->held_area += times * c.held;
	l->tokens_area += times * c.tokens;
	l->both_area += times * c.both;
}

/* ---- reading */

/* Why the head waits. */
static void stats_cause(const struct weir_gate *g, weir_node n, struct weir_gate_stats *s)
{
	const struct node *node = &g->nodes[n];

	s->blocker = n;
	s->cause = WEIR_WAIT_TURN;
	if (!node->queued)
		return;
	if (node->state == NODE_HELD) {
		s->cause = WEIR_WAIT_MAX;
		return;
	}
	for (uint32_t p = n; p != WEIR_ROOT;) {
		p = g->nodes[p].parent;
		if (!(g->nodes[p].flags & NODE_STOPPED))
			continue;
		s->cause = WEIR_WAIT_ABOVE;
		s->blocker = p;
		return;
	}
	if (node->state == NODE_TOKENS)
		s->cause = WEIR_WAIT_TOKENS;
	else if (g->full)
		s->cause = WEIR_WAIT_WINDOW;
}

static double stats_area(uint64_t area, uint64_t waiting, uint64_t clock)
{
	return (double)(int64_t)(area + waiting * clock);
}

int weir_gate_stats(
	struct weir_gate *g, weir_time now, weir_node leaf, struct weir_gate_stats *ret_stats)
{
	struct weir_gate_stats s = {0};

	if (leaf >= g->n_nodes || !(g->nodes[leaf].flags & NODE_LEAF))
		return -EINVAL;
	if (now > g->now)
		g->now = now;
	now = g->now;
	const struct node *node = &g->nodes[leaf];
	const struct node_clocks *l = node->limits ? limits_clocks(node->limits) : NULL;
	struct stats_clocks c = stats_clocks(g, leaf, now);
	double total = stats_area(node->wait_area, node->queued, (uint64_t)now);
	bool clocks = node->flags & NODE_CLOCKS; /* else they all stand at 0 */
	uint64_t q = clocks ? node->queued : 0;

	s.queued = node->queued;
	s.in_flight = node->in_flight;
	s.dispatched = node->dispatched;
	s.arrivals = node->dispatched + node->queued;
	s.served = node->dispatched - node->in_flight;
	s.bytes = node->bytes;
	s.by_class[WEIR_CLASS_PRIORITY] = node->passed[0];
	s.by_class[WEIR_CLASS_RESERVED] = node->passed[1];
	s.by_class[WEIR_CLASS_REST] = node->dispatched - node->passed[0] - node->passed[1];
	s.wait_ns[WEIR_WAIT_WINDOW] =
		stats_area(node->full_area, node->queued, stats_full(g, now)) -
		(double)(int64_t)(q * c.masked);
	s.wait_ns[WEIR_WAIT_ABOVE] = stats_area(node->above_area, q, c.above);
	if (l) {
		s.wait_ns[WEIR_WAIT_MAX] = stats_area(l->held_area, q, c.held);
		s.wait_ns[WEIR_WAIT_TOKENS] = stats_area(l->tokens_area, q, c.tokens);
		s.wait_ns[WEIR_WAIT_ABOVE] -= stats_area(l->both_area, q, c.both);
	}
	s.wait_ns[WEIR_WAIT_TURN] = total;
	for (unsigned i = 0; i < WEIR_WAIT_TURN; i++)
		s.wait_ns[WEIR_WAIT_TURN] -= s.wait_ns[i];
	s.device_ns = stats_area(node->device_area, node->in_flight, (uint64_t)now);
	stats_cause(g, leaf, &s);
	*ret_stats = s;
	return 0;
}

void weir_gate_totals(struct weir_gate *g, weir_time now, struct weir_gate_totals *ret)
{
	if (now > g->now)
		g->now = now;
	*ret = (struct weir_gate_totals){
		.submitted = g->submitted,
		.dispatched = g->dispatched,
		.served = g->served,
		.queued = g->queued,
		.in_flight = g->in_flight,
		.window = (double)g->window.size / (double)WINDOW_ONE,
		.full = (weir_time)stats_full(g, g->now),
	};
}

weir_time weir_gate_held(struct weir_gate *g, weir_time now, weir_node n)
{
	if (n >= g->n_nodes || !g->nodes[n].limits)
		return 0;
	if (now > g->now)
		g->now = now;
	const struct node *node = &g->nodes[n];
	bool held =
		node->flags & NODE_INNER ? node->flags & NODE_STOPPED : node->state == NODE_HELD;

	const struct node_clocks *l = limits_clocks(node->limits);

	return (weir_time)(l->held + (held ? (uint64_t)g->now - l->since.time : 0));
}

double weir_gate_quantum(const struct weir_gate *g, weir_node n)
{
	if (n >= g->n_nodes || !(g->nodes[n].flags & NODE_INNER))
		return 0;
	const struct lane *lane = &g->lanes[*node_lane_of(g->inner[n], NODE_REST)];

	return lane->tail ? lane->quantum : 0;
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

#define STATS_AHEAD 8 /* records */

/* Histograms are far too large for any cache: asks for the lines that a record to come will touch. */
static inline void stats_fetch(const struct stats *s, uint32_t i)
{
	uint32_t of = i < s->n ? s->of[s->ring[i].node] : NODE_NIL;

	if (of == NODE_NIL)
		return;
	__builtin_prefetch(&s->pairs[of]->wait, 1);
	__builtin_prefetch(&s->pairs[of]->device, 1);
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

void stats_record(struct weir_gate *g, const struct weir_req *r, weir_time now)
{
	struct stats *s = g->stats;

	if (s->n == STATS_RING)
		stats_empty(s);
	s->ring[s->n++] = (struct stats_record){.node = r->tenant,
		.wait = r->dispatched - r->submitted,
		.device = now - r->dispatched};
}

static void stats_refill(struct stats *s)
{
	while (s->spare < STATS_SPARE && s->used + s->spare < s->most) {
		struct hist_pair *pair = malloc(sizeof *pair);

		if (!pair)
			return; /* tried again at the next drain; unrecorded says what was missed */
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
