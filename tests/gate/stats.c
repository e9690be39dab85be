/* SPDX-License-Identifier: BSD-3-Clause */
/* Histograms: completed requests pass through a ring, and all of them are counted. */
#include "gate/node.h"
#include "test.h"

/* Several times as many as the ring holds, without a drain. */
static void a_full_ring_loses_nothing(void)
{
	struct weir_gate_config config = {.window = 2, .histograms = 4};
	struct weir_req reqs[2] = {{0}}, *r;
	weir_node leaves[2];
	struct weir_gate *g;
	weir_time now = 0;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	for (unsigned i = 0; i < 2; i++)
		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &leaves[i]), 0);
	for (unsigned i = 0; i < 5 * STATS_RING + 7; i++) {
		r = &reqs[i % 2];
		r->tenant = leaves[i % 3 == 0];
		CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
		now += WEIR_MS;
		CHECK_INT(weir_gate_next(g, now, &r, 1), 1);
		now += 2 * WEIR_MS;
		weir_gate_done(g, now, &r, 1);
	}
	weir_gate_drain(g);
	CHECK_INT(weir_gate_unrecorded(g), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct weir_hist *wait = weir_gate_hist_wait(g, leaves[i]);
		const struct weir_hist *device = weir_gate_hist_device(g, leaves[i]);
		struct weir_gate_stats s;

		CHECK_INT(weir_gate_get_stats(g, now, leaves[i], &s), 0);
		CHECK(s.served > STATS_RING);
		CHECK_INT(wait->count, s.served);
		CHECK_INT(device->count, s.served);
		CHECK_NEAR((double)weir_hist_percentile(wait, 50), 1e6, 0.01);
		CHECK_NEAR((double)weir_hist_percentile(device, 50), 2e6, 0.01);
	}
	weir_gate_free(g);
}

/* A node that reuses the number of a removed one has none of its records, whether they were drained
 * or not. */
static void a_new_node_has_no_records(void)
{
	struct weir_gate_config config = {.window = 2, .histograms = 4};
	struct weir_req req = {0}, *r = &req;
	const struct weir_hist *wait;
	struct weir_gate *g;
	weir_node leaf, next;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &leaf), 0);
	req.tenant = leaf;
	CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	CHECK_INT(weir_gate_next(g, WEIR_MS, &r, 1), 1);
	weir_gate_done(g, 2 * WEIR_MS, &r, 1);
	CHECK_INT(weir_gate_remove(g, leaf), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &next), 0);
	CHECK_INT(next, leaf);
	weir_gate_drain(g);
	wait = weir_gate_hist_wait(g, next);
	CHECK_INT(wait ? wait->count : 0, 0);
	weir_gate_free(g);
}

/* The age of the oldest request is known while requests wait, and only then. */
static void the_oldest_that_waits(void)
{
	struct weir_gate_config config = {.window = 1};
	struct weir_req reqs[3] = {{0}}, *r;
	struct weir_gate_stats s;
	weir_node leaf, other;
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &leaf), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &other), 0);
	CHECK_INT(weir_gate_get_stats(g, 0, leaf, &s), 0);
	CHECK_INT(s.oldest, WEIR_NEVER);
	for (unsigned i = 0; i < 3; i++) {
		r = &reqs[i];
		r->tenant = leaf;
		CHECK_INT(weir_gate_submit(g, (weir_time)(10 + i), &r, 1), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		weir_time now = 20 + i;

		CHECK_INT(weir_gate_get_stats(g, now, leaf, &s), 0);
		CHECK_INT(s.oldest, 10 + i);
		CHECK_INT(weir_gate_get_stats(g, now, other, &s), 0);
		CHECK_INT(s.oldest, WEIR_NEVER);
		CHECK_INT(weir_gate_next(g, now, &r, 1), 1);
		weir_gate_done(g, now, &r, 1);
	}
	CHECK_INT(weir_gate_get_stats(g, 30, leaf, &s), 0);
	CHECK_INT(s.oldest, WEIR_NEVER);
	weir_gate_free(g);
}

/* ---- long waits: 1,001 requests waiting for years are more request·ns than 64 bits hold */

#define LONG_N  1001
#define LONG_AT (INT64_C(54) * 365 * 86400 * WEIR_SEC) /* as a wall clock might start */
#define LONG    (INT64_C(20) * 365 * 86400 * WEIR_SEC)

struct waiting {
	struct weir_gate *g;
	weir_node group, leaf;
	struct weir_req reqs[LONG_N];
};

/* Submit all of them at LONG_AT to a leaf of a group, either of which may have a bucket of rate
 * 0. */
static struct waiting waiting_new(double window, const struct weir_bucket_spec *of_leaf,
	const struct weir_bucket_spec *of_group)
{
	struct waiting w = {0};

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 1}, &w.g), 0);
	CHECK_INT(weir_gate_add(w.g, WEIR_ROOT, &w.group), 0);
	CHECK_INT(weir_gate_add(w.g, w.group, &w.leaf), 0);
	struct weir_knob knobs[] = {
		{.node = WEIR_ROOT, .kind = WEIR_KNOB_WINDOW, .value = window},
		{.node = w.leaf,
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = of_leaf,
			.n_buckets = !!of_leaf},
		{.node = w.group,
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = of_group,
			.n_buckets = !!of_group},
	};

	CHECK_INT(weir_gate_set(w.g, LONG_AT, knobs, 3, NULL), 0);
	return w;
}

/* Submit the first n, in some batches, and let pass what may. Return their number. */
static size_t waiting_submit(struct waiting *w, size_t n)
{
	struct weir_req *reqs[LONG_N];

	for (size_t i = 0; i < n; i++) {
		w->reqs[i] = (struct weir_req){.tenant = w->leaf};
		reqs[i] = &w->reqs[i];
	}
	for (size_t i = 0; i < n; i += 100)
		CHECK_INT(weir_gate_submit(w->g, LONG_AT, reqs + i, n - i < 100 ? n - i : 100), 0);
	return weir_gate_next(w->g, LONG_AT, reqs, n);
}

/* Check that `n` requests waited for `cause` alone from LONG_AT until now, when everything
 * passes, and that the sums stay. (For the window one of them waited, and the others for their
 * turn.) */
static void waiting_is(struct waiting *w, enum weir_cause cause, double n, weir_time now)
{
	struct weir_gate_stats s;

	CHECK_INT(weir_gate_get_stats(w->g, now, w->leaf, &s), 0);
	for (unsigned c = 0; c < WEIR_CAUSES; c++) {
		double of = cause == WEIR_WAIT_WINDOW && n > 1 ? c == WEIR_WAIT_WINDOW ? 1
								 : c == WEIR_WAIT_TURN ? n - 1
										       : 0
			    : c == cause                       ? n
							       : 0;
		double want = of * (double)(now - LONG_AT);

		if (!(fabs(s.wait_ns[c] - want) <= 1e-12 * n * (double)LONG))
			FAIL("cause %u: waited %g request·ns, not %g", c, s.wait_ns[c], want);
	}
}

static void waited_long(struct waiting *w, enum weir_cause cause, double n)
{
	struct weir_knob open[] = {
		{.node = WEIR_ROOT, .kind = WEIR_KNOB_WINDOW, .value = 2 * LONG_N},
		{.node = w->leaf, .kind = WEIR_KNOB_BUCKETS},
		{.node = w->group, .kind = WEIR_KNOB_BUCKETS},
	};
	struct weir_req *reqs[LONG_N];

	for (weir_time span = 1; span < LONG; span *= 7)
		waiting_is(w, cause, n, LONG_AT + span);
	waiting_is(w, cause, n, LONG_AT + LONG);
	CHECK_INT(weir_gate_set(w->g, LONG_AT + LONG, open, 3, NULL), 0);
	CHECK_INT(weir_gate_next(w->g, LONG_AT + LONG, reqs, LONG_N), n);
	waiting_is(w, cause, n, LONG_AT + LONG);
	weir_gate_free(w->g);
}

static void long_waits_for_the_window(void)
{
	struct waiting w = waiting_new(0, NULL, NULL);

	CHECK_INT(waiting_submit(&w, LONG_N), 0);
	waited_long(&w, WEIR_WAIT_WINDOW, LONG_N);
}

static void long_waits_for_max(void)
{
	const struct weir_bucket_spec none = {.kind = WEIR_HOLD, .size = 1};
	struct waiting w = waiting_new(10, &none, NULL);

	CHECK_INT(waiting_submit(&w, LONG_N), 1);
	waited_long(&w, WEIR_WAIT_MAX, LONG_N - 1);
}

static void long_waits_above(void)
{
	const struct weir_bucket_spec none = {.kind = WEIR_HOLD, .size = 1};
	struct waiting w = waiting_new(10, NULL, &none);

	CHECK_INT(waiting_submit(&w, LONG_N), 1);
	waited_long(&w, WEIR_WAIT_ABOVE, LONG_N - 1);
}

static void long_waits_for_tokens(void)
{
	const struct weir_bucket_spec none = {.kind = WEIR_LTOKENS, .size = 1};
	struct waiting w = waiting_new(10, &none, NULL);

	CHECK_INT(waiting_submit(&w, LONG_N), 0);
	waited_long(&w, WEIR_WAIT_TOKENS, LONG_N);
}

/* next is not called for a resource: the remaining time is turn. */
static void long_waits_for_the_turn(void)
{
	struct waiting w = waiting_new(1, NULL, NULL);
	struct weir_req *r = &w.reqs[0];

	w.reqs[0] = (struct weir_req){.tenant = w.leaf};
	CHECK_INT(weir_gate_submit(w.g, LONG_AT, &r, 1), 0);
	for (unsigned i = 1; i < LONG_N; i++) {
		r = &w.reqs[i];
		w.reqs[i] = (struct weir_req){.tenant = w.leaf};
		CHECK_INT(weir_gate_submit(w.g, LONG_AT, &r, 1), 0);
	}
	waited_long(&w, WEIR_WAIT_TURN, LONG_N);
}

static void long_in_the_device(void)
{
	struct waiting w = waiting_new(LONG_N, NULL, NULL);
	struct weir_gate_stats s;

	CHECK_INT(waiting_submit(&w, LONG_N), LONG_N);
	CHECK_INT(weir_gate_get_stats(w.g, LONG_AT + LONG, w.leaf, &s), 0);
	CHECK_NEAR(s.device_ns, LONG_N * (double)LONG, 1e-12);
	for (unsigned i = 0; i < LONG_N; i++)
		weir_gate_done(w.g, LONG_AT + LONG, &(struct weir_req *){&w.reqs[i]}, 1);
	CHECK_INT(weir_gate_get_stats(w.g, LONG_AT + LONG, w.leaf, &s), 0);
	CHECK_NEAR(s.device_ns, LONG_N * (double)LONG, 1e-12);
	weir_gate_free(w.g);
}

/* Sums over many requests that come and go. */
static void long_one_after_another(void)
{
	const weir_time year = INT64_C(365) * 86400 * WEIR_SEC;
	struct waiting w = waiting_new(1, NULL, NULL);
	struct weir_gate_stats s;
	weir_time now = LONG_AT;

	w.reqs[0] = (struct weir_req){.tenant = w.leaf};
	for (unsigned i = 0; i < 200; i++) {
		struct weir_req *reqs[1] = {&w.reqs[0]};

		CHECK_INT(weir_gate_submit(w.g, now, reqs, 1), 0);
		now += year / 2;
		CHECK_INT(weir_gate_next(w.g, now, reqs, 1), 1);
		now += year / 2;
		weir_gate_done(w.g, now, reqs, 1);
	}
	CHECK_INT(weir_gate_get_stats(w.g, now, w.leaf, &s), 0);
	CHECK_NEAR(s.device_ns, 100 * (double)year, 1e-12);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TURN], 100 * (double)year, 1e-12);
	weir_gate_free(w.g);
}

/* ---- clocks of held requests, by kind */

static bool any(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop(struct weir_req *r, void *arg)
{
}

/* Requests of one kind are held, and then cancelled: the clock stops. */
static void held_until_taken_back(enum weir_op op)
{
	const struct weir_bucket_spec max = {
		.kind = WEIR_HOLD, .ops = WEIR_OPS(op), .rate = 0.01, .size = 1};
	struct weir_req reqs[3] = {{.op = op}, {.op = op}, {.op = op}}, *r;
	struct weir_knob k = {.kind = WEIR_KNOB_BUCKETS, .buckets = &max, .n_buckets = 1};
	struct weir_gate_stats s;
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 8}, &g), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &k.node), 0);
	CHECK_INT(weir_gate_set(g, 0, &k, 1, NULL), 0);
	for (unsigned i = 0; i < 3; i++) {
		r = &reqs[i];
		r->tenant = k.node;
		CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	}
	CHECK_INT(weir_gate_next(g, 100, &r, 1), 1);
	CHECK_INT(weir_gate_next(g, 100, &r, 1), 0);
	CHECK_INT(weir_gate_held(g, 300, k.node), 200);
	CHECK_INT(weir_gate_cancel(g, 500, k.node, any, drop, NULL), 2);
	CHECK_INT(weir_gate_held(g, 500, k.node), 400);
	CHECK_INT(weir_gate_held(g, 900, k.node), 400);
	CHECK_INT(weir_gate_get_stats(g, 900, k.node, &s), 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_MAX], 800, 0);
	CHECK_INT(s.queued, 0);
	weir_gate_free(g);
}

static void held_by_kind(void)
{
	held_until_taken_back(WEIR_READ);
	held_until_taken_back(WEIR_WRITE);
	held_until_taken_back(WEIR_FLUSH);
}

/* Only the leaf whose request would pass next waits for the window. */
static void one_waits_for_the_window(void)
{
	struct weir_req reqs[3] = {{0}}, *r;
	struct weir_gate_stats s;
	struct weir_gate *g;
	weir_node leaves[3];

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 1}, &g), 0);
	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &leaves[i]), 0);
		r = &reqs[i];
		r->tenant = leaves[i];
		CHECK_INT(weir_gate_submit(g, 0, &r, 1), 0);
	}
	CHECK_INT(weir_gate_next(g, 0, &r, 1), 1);
	CHECK_INT(weir_gate_get_stats(g, 10, leaves[1], &s), 0);
	CHECK_INT(s.cause, WEIR_WAIT_WINDOW);
	CHECK_INT(weir_gate_get_stats(g, 10, leaves[2], &s), 0);
	CHECK_INT(s.cause, WEIR_WAIT_TURN);
	weir_gate_free(g);
}

/* ---- more tenants than histograms */

/* Make n leaves, each with a request that is done; then drain the ring. */
static struct weir_gate *done_by(unsigned n, unsigned histograms)
{
	struct weir_gate_config config = {.window = 1, .histograms = histograms};
	struct weir_req req, *r;
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	for (unsigned i = 0; i < n; i++) {
		req = (struct weir_req){0};
		r = &req;
		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &req.tenant), 0);
		CHECK_INT(weir_gate_submit(g, i, &r, 1), 0);
		CHECK_INT(weir_gate_next(g, i, &r, 1), 1);
		weir_gate_done(g, i, &r, 1);
	}
	weir_gate_drain(g);
	return g;
}

/* As many tenants have histograms as configured; the requests of others are still counted. */
static void more_tenants_than_histograms(void)
{
	struct weir_gate *g = done_by(5, 3);

	for (weir_node n = 1; n <= 5; n++)
		CHECK((weir_gate_hist_wait(g, n) != NULL) == (n <= 3));
	CHECK_INT(weir_gate_unrecorded(g), 2);
	CHECK(!weir_gate_hist_wait(g, 6) && !weir_gate_hist_device(g, 6));
	weir_gate_free(g);
}

/* A drain adds histograms for tenants that became active since the last one: STATS_SPARE at a
 * time. */
static void spare_histograms(void)
{
	struct weir_gate *g = done_by(STATS_SPARE + 5, 1000);

	CHECK_INT(weir_gate_unrecorded(g), 5);
	CHECK_INT(g->stats->spare, STATS_SPARE);
	weir_gate_free(g);
}

int main(void)
{
	RUN(the_oldest_that_waits);
	RUN(a_full_ring_loses_nothing);
	RUN(a_new_node_has_no_records);
	RUN(long_waits_for_the_window);
	RUN(long_waits_for_max);
	RUN(long_waits_above);
	RUN(long_waits_for_tokens);
	RUN(long_waits_for_the_turn);
	RUN(long_in_the_device);
	RUN(long_one_after_another);
	RUN(held_by_kind);
	RUN(one_waits_for_the_window);
	RUN(more_tenants_than_histograms);
	RUN(spare_histograms);
	return 0;
}
