/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate's functions for requests: next, done, wakeup, cancel. The law is in gate.h; node.h lists the files. */
#include "gate/ahead.h"
#include "gate/check.h"
#include "gate/pending.h"
#include "gate/turn.h"

#define GATE_FEW  2 /* requests passed between one prefetch and the next */
#define GATE_MORE 8 /* leaves that may wait to be checked; and see GATE_LOOKS */

/* Return true if some node waits to be checked since an earlier call. */
POOL_HOT bool gate_waits(const struct weir_gate *g)
{
	return g->due_from < g->n_due;
}

/* Return true if the node that gate_expire has just checked is due again by now. */
POOL_HOT bool gate_is_again(const struct stand *s)
{
	return s->g->timer.asked <= (uint64_t)s->now >> TIMER_TICK_BITS;
}

/* Check a leaf that was idle, or whose timer is due. Return its head if that has passed, or NULL. */
POOL_HOT struct weir_req *gate_look(const struct stand *s, uint32_t n, bool due)
{
	struct node *node = &s->nodes[n];
	bool open = stand_open(s);
	struct weir_req *r = open && s->flat ? turn_alone(s, n, node) : NULL;

	if (r)
		return r;
	if (due)
		stand_due(s, n, node);
	else
		stand_wake(s, n, node);
	if (!open || !s->reserved || !s->reserved->waits)
		return NULL;
	/* (A leaf that is due again is to be checked before: an older head of it may get a token by now.) */
	return due && gate_is_again(s) ? NULL : turn_reserved(*s);
}

/* Check up to `most` leaves that were idle, and return how many requests, up to `max`, passed at once. First
 * prefetch all the nodes, and then their heads: if many leaves were submitted to since, none is in the cache any
 * more. */
POOL_HOT size_t gate_activate(
	struct stand *s, bool at_once, uint32_t most, struct weir_req **ret, size_t max)
{
	uint32_t woken[AHEAD_BATCH], n = pending_take(s->g, woken, most);
	size_t passed = 0;

	s->g->looks += n;
	s->at_once = at_once && max;
	s->sole = s->g->looks == 1 && !s->rest->waits && stand_open(s);
	s->at = s->now;
	s->seen = s->sole ? s->now : timer_coarse(s->now); /* (a sole head passes now) */
	for (uint32_t i = 0; n > 1 && i < n; i++)
		__builtin_prefetch(s->nodes[woken[i]].head, 1);
	for (uint32_t i = 0; i < n; i++) {
		struct weir_req *r = gate_look(s, woken[i], false);

		if (r)
			ret[passed++] = r;
		s->at_once = at_once && passed < max;
	}
	return passed;
}

/* due[i − 1] has been checked as of when it was due, and is due again by now: put it among those to be checked yet,
 * up to due[n − 1], in the order of time. Return the new n. */
static __attribute__((noinline)) uint32_t gate_again(struct weir_gate *g, uint32_t i, uint32_t n)
{
	int64_t tick = (int64_t)g->timer.asked;
	uint32_t *due = g->due, node = due[i - 1], at = n;

	if (n == AHEAD_BATCH)
		return n; /* the next call checks it */
	timer_clear(&g->timer, node);
	g->nodes[node].timer.tick = ~tick;
	for (; at > i && ~g->nodes[due[at - 1]].timer.tick > tick; at--)
		due[at] = due[at - 1];
	due[at] = node;
	return n + 1;
}

/* Prefetch for n nodes that are due now. */
POOL_HOT void gate_fetch(struct weir_gate *g, const uint32_t *due, uint32_t n)
{
	if (n <= TIMER_CELLS && ahead_slot(g))
		return;
	for (uint32_t i = 0; i < n; i++)
		ahead_due(&g->nodes[due[i]]);
	for (uint32_t i = 0; g->ranked && i < n; i++)
		ahead_rank(&g->nodes[due[i]]);
	ahead_due_heads(g, due, n);
}

/* Return true if a leaf that is due can wait until there is room for its head: that is not held, so that it counts
 * under the same cause meanwhile, and mostly holds an R-token by which it passes at once then. */
POOL_HOT bool gate_can_wait(const struct stand *s, const struct node *node)
{
	return !(node->flags & (NODE_INNER | NODE_KINDS)) && node->may >> WEIR_CLASS_REST & 1 &&
	       !(s->reserved && s->reserved->waits);
}

/* Check a leaf or an inner node that is due. Return its head if that has passed, or NULL. */
POOL_HOT struct weir_req *gate_check(struct stand *s, uint32_t n)
{
	const struct node *node = &s->nodes[n];

	s->at = timer_was(&node->timer);
	s->seen = timer_coarse(s->at);
	s->g->timer.asked = TIMER_NEVER;
	s->g->looks++;
	if (node->flags & NODE_INNER)
		above_due(s->g, n, s->at, s->now);
	else if (!s->g->n_pending || !pending_has(s->g, n)) /* (else as of now) */
		return gate_look(s, n, true);
	return NULL;
}

/* The same for those that are due, of which the ones before `old` have waited since an earlier call. Each is checked as
 * of when it was due: how late weir_gate_next is called must not change what passes. If `at_once`, leave some for
 * when there is room for them. */
POOL_HOT size_t gate_expire(
	struct stand *s, bool at_once, uint32_t old, struct weir_req **ret, size_t max)
{
	struct weir_gate *g = s->g;
	uint32_t i = g->due_from, n = g->n_due;
	size_t passed = 0;

	s->at_once = at_once && max;
	s->sole = !s->rest->waits && n - i == 1 && !g->n_pending && stand_open(s);
	while (i < n && (passed < max || !at_once)) {
		struct weir_req *r = gate_check(s, g->due[i++]);

		if (__builtin_expect(gate_is_again(s), 0))
			n = gate_again(g, i, n);
		if (r) /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): there is room for max */
			ret[passed++] = r;
		s->at_once = at_once && passed < max;
	}
	g->due_from = i;
	/* There is no more room. */
	uint32_t kept = i = i < old ? old : i;

	while (i < n) {
		uint32_t node = g->due[i++];

		if (kept - g->due_from < GATE_MORE && gate_can_wait(s, &s->nodes[node])) {
			g->due[kept++] = node;
			continue;
		}
		(void)gate_check(s, node);
		if (__builtin_expect(gate_is_again(s), 0))
			n = gate_again(g, i, n);
	}
	g->n_due = kept;
	return passed;
}

#define GATE_TRIES                                                                                 \
	8 /* requests refused above that a call may find, besides one for each
	     request asked for */
#define GATE_LOOKS                                                                                 \
	24 /* leaves that a call checks at least, of those due and of the pending
	      ones; and GATE_MORE of the latter than may pass, so that no
	      backlog stays */

/* Add up to `most` nodes whose timers are due to those that wait since an earlier call, and return where they begin. */
POOL_HOT uint32_t gate_due(struct weir_gate *g, weir_time now, uint32_t most)
{
	if (!timer_due(&g->timer, now))
		return g->n_due;
	uint32_t old = g->n_due - g->due_from;

	for (uint32_t i = 0; i < old; i++)
		g->due[i] = g->due[g->due_from + i];
	g->due_from = 0;
	g->n_due = old + timer_expire(&g->timer, now, g->due + old, most);
	if (g->n_due > old)
		gate_fetch(g, g->due + old, g->n_due - old);
	return old;
}

void gate_catch_up(struct weir_gate *g, weir_time now)
{
	struct stand s = stand_at(g, now, false);

	(void)gate_due(g, now, GATE_LOOKS);
	if (gate_waits(g))
		(void)gate_expire(&s, false, g->n_due, NULL, 0);
}

/* Check the leaves whose timers are due and the pending ones, as many as a call may, and put them where they belong.
 * Checking many more than can pass is of no use: they would have left the cache when their turn comes. Return how
 * many requests have passed at once. */
POOL_HOT size_t gate_prepare(
	struct weir_gate *g, weir_time now, bool flat, struct weir_req **ret, size_t max)
{
	/* (Not copied from the caller's: a copy waits for the stores of the original.) */
	struct stand s = stand_at(g, now, flat);
	uint32_t most = (uint32_t)(max < GATE_LOOKS ? GATE_LOOKS : max), old;
	bool at_once = (flat || g->simple) && !g->ranked;
	size_t passed = 0;

	most = most < AHEAD_BATCH - GATE_MORE ? most : AHEAD_BATCH - GATE_MORE;
	g->looks = 0;
	old = gate_due(g, now, most);
	if (gate_waits(g))
		passed = gate_expire(&s, at_once, old, ret, max);
	if (g->n_pending)
		passed += gate_activate(&s, at_once, most + GATE_MORE, ret + passed, max - passed);
	return passed;
}

/* The same for a flat gate. (Not inline: for small batches there is mostly nothing to do.) */
static __attribute__((noinline)) size_t gate_prepare_flat(
	struct weir_gate *g, weir_time now, struct weir_req **ret, size_t max)
{
	return gate_prepare(g, now, true, ret, max);
}

/* Return the bytes of the largest request for which the window in bytes has room beside `in_flight` requests. */
static int64_t gate_bytes_room(const struct weir_gate *g, size_t in_flight)
{
	if (!g->window_bytes || !in_flight)
		return INT64_MAX;
	return g->inside < g->window_bytes ? (int64_t)(g->window_bytes - g->inside) : 0;
}

/* Return true if the window in bytes holds the request whose turn it is, as of the last weir_gate_next. */
static bool gate_bytes_full(const struct weir_gate *g)
{
	return g->too_large > gate_bytes_room(g, g->in_flight);
}

static __attribute__((noinline)) void gate_window_change(
	struct weir_gate *g, weir_time now, bool full)
{
	if (full)
		g->full_since = now;
	else
		g->full_time += now - g->full_since;
	if (!full && now > g->full_since)
		g->full_until = now;
	g->full = full;
}

/* gate_window, inline. */
POOL_HOT void gate_window_look(struct weir_gate *g, weir_time now)
{
	bool full = g->in_flight >= g->window.limit || (g->too_large && gate_bytes_full(g));

	if (__builtin_expect(full != g->full, 0))
		gate_window_change(g, now, full);
}

void gate_window(struct weir_gate *g, weir_time now)
{
	gate_window_look(g, now);
}

/* Dispatch up to `max` requests and return how many. Check the leaves even if none may pass: the causes of waiting
 * are counted from now on. */
static size_t gate_pass_tree(
	struct weir_gate *g, weir_time now, struct weir_req **ret_reqs, size_t max)
{
	const struct stand s = stand_at(g, now, false);
	size_t n = gate_prepare(g, now, false, ret_reqs, max);
	struct turn turn = {0};

	ahead_soon(g, now);
	g->too_large = 0;
	while (n < max) {
		turn.room = gate_bytes_room(g, g->in_flight + n);
		if (!turn_choose(g, &turn, now))
			break;
		if (turn.req->bytes > turn.room) {
			g->too_large = turn.req->bytes;
			break;
		}
		ret_reqs[n++] = turn_pass(&s, &turn);
	}
	ahead_rest(g);
	return n;
}

/* Dispatch requests from the lanes of a flat gate until there are `max`, of which n have passed, and return how many.
 * Prefetches are issued a few at a time, since a processor can have only so many outstanding. */
POOL_HOT size_t gate_pass_lanes(struct weir_gate *g, weir_time now, struct weir_req **ret_reqs,
	size_t n, size_t max, size_t fetch)
{
	const struct stand s = stand_at(g, now, true);

	while (n < max) {
		struct weir_req *r;

		if (n == fetch) {
			fetch = max - n < GATE_FEW ? max : n + GATE_FEW;
			ahead_some(g, fetch, max);
		}
		if (g->ready_priority)
			r = turn_flat(&s, (unsigned)__builtin_ctzll(g->ready_priority));
		else if (s.reserved && s.reserved->waits)
			r = turn_flat(&s, NODE_RESERVED);
		else if (s.rest->waits)
			r = turn_flat(&s, NODE_REST);
		else
			break;
		ret_reqs[n] = r;
		n += r != NULL;
	}
	return n;
}

/* gate_pass_tree with only leaves below the root. */
static size_t gate_pass_flat(
	struct weir_gate *g, weir_time now, struct weir_req **ret_reqs, size_t max)
{
	size_t n = 0, fetch = max; /* number passed at which the next prefetch is due */

	g->looks = 0;
	if ((int)timer_due(&g->timer, now) | (int)gate_waits(g) | (int)(g->n_pending > 0))
		n = gate_prepare_flat(g, now, ret_reqs, max);
	ahead_soon(g, now);
	if (g->ahead.soon)
		fetch = n;
	if (n < max)
		n = gate_pass_lanes(g, now, ret_reqs, n, max, fetch);
	ahead_rest(g);
	return n;
}

/* The window is full: find the leaf whose head would pass if it had more room. `peek`: nothing has passed. */
static __attribute__((noinline)) void gate_first(struct weir_gate *g, bool peek, weir_time now)
{
	struct turn turn = {.room = TURN_FULL, .peek = peek};

	/* (A leaf that waits to be checked comes first if no other has an R-token: then it passes at once.) */
	if (gate_waits(g) && !node_waits(g, NODE_RESERVED) &&
		g->nodes[g->due[g->due_from]].reserved <= now) {
		g->first = g->due[g->due_from];
		g->first_since = stats_full(g, now);
		return;
	}
	if (!turn_choose(g, &turn, now))
		return;
	/* (If an ancestor is stopped for lower classes, all requests below it count as stopped; and so do writes
	 * with the reads of their queue.) */
	unsigned kind = turn.req == g->nodes[turn.leaf].head ? KIND_READ : kind_of(turn.req);

	for (uint32_t n = turn.leaf; n != WEIR_ROOT;) {
		n = g->nodes[n].parent;
		if (g->nodes[n].inner->stopped[kind])
			return;
	}
	g->first = turn.leaf;
	g->first_since = stats_full(g, now);
}

size_t weir_gate_next(struct weir_gate *g, weir_time now, struct weir_req **ret_reqs, size_t max)
{
	size_t n, tries = max < AHEAD_BATCH ? max : AHEAD_BATCH;

	now = gate_time(g, now);
	stats_first_end(g, now);
	g->tries = GATE_TRIES;
	window_update(&g->window, now, g->in_flight);
	size_t room = g->in_flight < g->window.limit ? g->window.limit - g->in_flight : 0;

	if (max > room)
		max = room;
	if (g->flat) {
		n = gate_pass_flat(g, now, ret_reqs, max);
	} else {
		g->tries += (uint32_t)tries;
		n = gate_pass_tree(g, now, ret_reqs, max);
	}
	check_next(ret_reqs, n);
	g->queued -= (uint32_t)n;
	g->in_flight += (uint32_t)n;
	g->dispatched += n;
	g->looks += (uint32_t)n;
	gate_window_look(g, now);
	/* (Of the last that passed only: the size of a batch must not change what passes.) */
	if (g->above && n && g->in_flight >= g->window.limit)
		turn_probe(g, ret_reqs[n - 1]->tenant, now);
	if (g->full && g->queued)
		gate_first(g, n == 0, now);
	return n;
}

/* weir_gate_done, without what only some gates need. */
POOL_HOT void gate_done(struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	check_done(reqs, n);
	for (size_t i = 0; i < n; i++) {
		struct node *node = &g->nodes[reqs[i]->tenant];

		node->in_flight--;
		g->inside -= reqs[i]->bytes;
		node_area_end(&node->device_area, &node->device_high, (uint64_t)now);
	}
	g->in_flight -= (uint32_t)n;
	g->served += n;
	if (g->full && now > g->full_since)
		g->full_served += n;
	else if (now == g->full_until) /* the other requests done at that moment */
		for (size_t i = 0; i < n; i++)
			g->full_served += reqs[i]->dispatched < now;
	gate_window_look(g, now);
}

static __attribute__((noinline)) void gate_done_many(
	struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	window_update(&g->window, now, g->in_flight);
	if (g->stats)
		stats_record(g, reqs, n, now);
	gate_done(g, now, reqs, n);
}

void weir_gate_done(struct weir_gate *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	now = gate_time(g, now);
	if (n == 1 && !g->stats && !window_fractional(&g->window))
		gate_done(g, now, reqs, 1);
	else
		gate_done_many(g, now, reqs, n);
}

/* Return true if a request waits only for its turn. */
static bool gate_ready(const struct weir_gate *g)
{
	for (unsigned s = node_ready(g, 0); s <= NODE_REST; s = node_ready(g, s + 1)) {
		const struct lane *lane = node_lane(g, WEIR_ROOT, s);
		unsigned kinds = lane->keyed ? KIND_ALL : lane_kinds(lane);

		if (kinds & ~node_stopped(g, WEIR_ROOT, s))
			return true;
	}
	return false;
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
	if (g->n_pending || (gate_ready(g) && !gate_bytes_full(g)))
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
	stats_first_end(g, now);
	gate_catch_up(g, now);
	struct weir_req *keep = NULL, **end = &keep, *next;
	size_t n = 0;

	for (struct weir_req *r = kind_gather(g, tenant, now); r; r = next) {
		next = r->next;
		r->next = NULL;
		if (!match(r, arg)) {
			*end = r;
			end = &r->next;
			continue;
		}
		check_cancel(r);
		drop(r, arg);
		n++;
	}
	kind_spread(g, tenant, keep, now);
	g->queued -= (uint32_t)n;
	g->submitted -= n;
	g->too_large = 0;
	stand_update(g, tenant, now);
	above_release_all(g, tenant, now);
	return n;
}
