/* SPDX-License-Identifier: BSD-3-Clause */
/* The law of gate.h, one sentence per function, in small exact cases; buckets are in limits.c,
 * random cases in law-*.c. */
#include "device.h"

static void empty_gate_is_idle(void)
{
	struct bench b = bench_new((struct weir_gate_config){0});

	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, 0), WEIR_NEVER);
	weir_gate_free(b.g);
}

static void fifo_within_a_tenant(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *r[10];

	for (int i = 0; i < 10; i++)
		r[i] = submit(&b, n, 1);
	for (int i = 0; i < 10; i++)
		CHECK(pass(&b) == r[i]);
	CHECK(!pass(&b));
	weir_gate_free(b.g);
}

static void window_limits_requests_inside(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 3});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *r[5];

	for (int i = 0; i < 5; i++)
		r[i] = submit(&b, n, 1);
	struct weir_req *out[8];

	CHECK_INT(weir_gate_next(b.g, 0, out, 8), 3);
	CHECK_INT(weir_gate_wakeup(b.g, 0), WEIR_NEVER);
	b.now = 10;
	weir_gate_done(b.g, 10, out, 1);
	CHECK(pass(&b) == r[3]);
	CHECK(!pass(&b));
	weir_gate_free(b.g);
}

static void a_window_not_said_is_32(void)
{
	struct bench b = bench_new((struct weir_gate_config){0});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *out[64];

	for (int i = 0; i < 40; i++)
		submit(&b, n, 1);
	CHECK_INT(weir_gate_next(b.g, 0, out, 64), 32);
	weir_gate_free(b.g);
}

static void fractional_window_averages(void)
{
	static const double sizes[] = {0.25, 0.5, 1.5, 2.25};

	for (unsigned k = 0; k < 4; k++) {
		struct bench b = bench_new((struct weir_gate_config){.window = sizes[k]});
		weir_node n = leaf(&b, WEIR_ROOT, 1);
		struct weir_req req[8], *inside[8];
		weir_time since[8];
		unsigned inside_n = 0, spare = 8;
		const weir_time service = WEIR_MS;

		memset(req, 0, sizeof req);
		for (unsigned i = 0; i < spare; i++) {
			struct weir_req *r = &req[i];

			r->tenant = n;
			CHECK_INT(weir_gate_submit(b.g, 0, &r, 1), 0);
		}
		while (b.now < 10 * WEIR_SEC) {
			weir_time next = weir_gate_wakeup(b.g, b.now);

			for (unsigned i = 0; i < inside_n; i++)
				if (since[i] + service < next)
					next = since[i] + service;
			CHECK(next != WEIR_NEVER);
			b.now = next;
			while (inside_n && since[0] + service <= b.now) {
				struct weir_req *r = inside[0];

				weir_gate_done(b.g, b.now, &r, 1);
				inside_n--;
				memmove(inside, inside + 1, inside_n * sizeof *inside);
				memmove(since, since + 1, inside_n * sizeof *since);
				CHECK_INT(weir_gate_submit(b.g, b.now, &r, 1), 0);
			}
			struct weir_req *r;

			while ((r = pass(&b))) {
				since[inside_n] = b.now;
				inside[inside_n++] = r;
			}
		}
		struct weir_gate_stats s;

		CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
		CHECK_NEAR(s.device_ns / (double)b.now, sizes[k], 0.01);
		weir_gate_free(b.g);
	}
}

static void weights_share_by_cost(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1, .cost = WEIR_UNIT_BYTES});
	weir_node small = leaf(&b, WEIR_ROOT, 1), large = leaf(&b, WEIR_ROOT, 3);
	unsigned counts[8] = {0};

	for (int i = 0; i < 200; i++)
		submit(&b, small, 4096);
	for (int i = 0; i < 200; i++)
		submit(&b, large, 16384);
	serve(&b, WEIR_MS, 140, counts); /* bytes 1:3 with sizes 1:4 is requests 4:3 */
	CHECK_INT(counts[small], 80);
	CHECK_INT(counts[large], 60);
	weir_gate_free(b.g);
}

static void idle_share_goes_to_siblings_first(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node prod = leaf(&b, WEIR_ROOT, 1), batch = leaf(&b, WEIR_ROOT, 1);
	weir_node db, web;

	CHECK_INT(weir_gate_add(b.g, prod, &db), 0);
	CHECK_INT(weir_gate_add(b.g, prod, &web), 0);
	unsigned counts[8] = {0};

	for (int i = 0; i < 100; i++) {
		submit(&b, db, 1);
		submit(&b, batch, 1);
	}
	serve(&b, WEIR_MS, 100, counts);
	CHECK_INT(counts[db], 50); /* web idle: its share is db's, not batch's */
	for (int i = 0; i < 50; i++)
		submit(&b, web, 1);
	memset(counts, 0, sizeof counts);
	serve(&b, WEIR_MS, 80, counts);
	CHECK_INT(counts[db], 20);
	CHECK_INT(counts[web], 20);
	CHECK_INT(counts[batch], 40);
	CHECK_INT(weir_gate_submit(
			  b.g, b.now, &(struct weir_req *){&(struct weir_req){.tenant = prod}}, 1),
		-EINVAL);
	weir_gate_free(b.g);
}

static void credit_lets_the_idle_catch_up(void)
{
	for (unsigned credit = 0; credit <= 5; credit += 5) {
		struct bench b =
			bench_new((struct weir_gate_config){.window = 1, .credit = credit});
		weir_node busy = leaf(&b, WEIR_ROOT, 1), idle = leaf(&b, WEIR_ROOT, 1);
		unsigned counts[8] = {0};

		for (int i = 0; i < 100; i++)
			submit(&b, busy, 1);
		serve(&b, 1, 50, counts);
		for (int i = 0; i < 20; i++)
			submit(&b, idle, 1);
		memset(counts, 0, sizeof counts);
		serve(&b, 1, 10, counts);
		/* It is served until it has caught up, and then every second time. */
		CHECK(counts[idle] >= 5 + credit / 2 - 1 && counts[idle] <= 5 + credit / 2 + 1);
		weir_gate_free(b.g);
	}
}

static void runs_of_near_requests(void)
{
	struct bench b = bench_new((struct weir_gate_config){
		.window = 1, .run = 4, .run_distance = 4096, .cost = WEIR_UNIT_REQUESTS});
	weir_node x = leaf(&b, WEIR_ROOT, 1), y = leaf(&b, WEIR_ROOT, 1);
	weir_node order[16];

	for (uint64_t i = 0; i < 8; i++) {
		submit(&b, x, 4096)->offset = i * 4096;
		submit(&b, y, 4096)->offset = (1 << 30) + i * 1000000; /* far apart */
	}
	for (int i = 0; i < 16; i++) {
		struct weir_req *r = pass(&b);

		order[i] = r->tenant;
		finish(&b, r);
	}
	for (int i = 0; i < 4; i++)
		CHECK_INT(order[i], x);
	for (int i = 4; i < 8; i++)
		CHECK_INT(order[i], y);    /* caught up one by one */
	int again = order[8] == x ? 8 : 9; /* both have had the same service: either may be next */

	for (int i = again; i < again + 4; i++)
		CHECK_INT(order[i], x);
	weir_gate_free(b.g);
}

static void knobs_are_all_or_nothing(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_err err = {""};
	const struct weir_knob set[] = {{.node = WEIR_ROOT, .kind = WEIR_KNOB_WINDOW, .value = 7},
		{.node = n, .kind = WEIR_KNOB_WEIGHT, .value = 0}};
	struct weir_gate_totals t;

	CHECK_INT(weir_gate_set(b.g, 0, set, 2, &err), -EINVAL);
	CHECK(strstr(err.text, "weight must be"));
	weir_gate_get_totals(b.g, 0, &t);
	CHECK_NEAR(t.window, 1, 0);
	CHECK_INT(weir_gate_set(b.g, 0, set, 1, &err), 0);
	weir_gate_get_totals(b.g, 0, &t);
	CHECK_NEAR(t.window, 7, 0);
	CHECK_INT(weir_gate_set(b.g, 0,
			  &(struct weir_knob){.node = 99, .kind = WEIR_KNOB_WEIGHT, .value = 1}, 1,
			  &err),
		-EINVAL);
	CHECK_INT(weir_gate_set(b.g, 0,
			  &(struct weir_knob){.node = n, .kind = WEIR_KNOB_RGRANT, .value = 1}, 1,
			  &err),
		-EINVAL);
	weir_gate_free(b.g);
}

/* A request that costs more than the size of a profile bucket never fits, full as the buckets may be: not of those that are read one by
 * one, of several units, nor of those computed two at a time. It takes nothing from the next. */
static void larger_than_a_profile(void)
{
	static const unsigned units[][2] = {
		{WEIR_UNIT_BYTES, WEIR_UNIT_BYTES}, {WEIR_UNIT_BYTES, WEIR_UNIT_REQUESTS}};

	for (int i = 0; i < 2; i++) {
		struct bench b = bench_new((struct weir_gate_config){.window = 100});
		weir_node n = leaf(&b, WEIR_ROOT, 1);
		const struct weir_bucket_spec pairs[] = {
			{.kind = WEIR_PROFILE, .unit = units[i][0], .rate = 1e6, .size = 4096},
			{.kind = WEIR_PROFILE, .unit = units[i][1], .rate = 1e5, .size = 65536}};
		const uint32_t bytes[] = {8192, 1 << 20, 4097, 4096};
		struct weir_req *r;

		buckets(&b, n, pairs, 2);
		for (int k = 0; k < 4; k++) {
			struct weir_req *next = submit(&b, n, bytes[k]);

			r = pass(&b);
			CHECK(r == next);
			CHECK_INT(r->class_, k < 3 ? WEIR_CLASS_REST : WEIR_CLASS_PRIORITY);
		}
		weir_gate_free(b.g);
	}
}

/* While such a request waits, nothing is due that would let it fit. */
static void never_fits(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec pair = {
		.kind = WEIR_PROFILE, .unit = WEIR_UNIT_BYTES, .rate = 1e6, .size = 2};
	struct weir_req *first, *large;

	buckets(&b, n, &pair, 1);
	first = submit(&b, n, 1);
	large = submit(&b, n, 3);
	CHECK(pass(&b) == first);
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, b.now), WEIR_NEVER);
	b.now = WEIR_SEC;
	finish(&b, first);
	CHECK(pass(&b) == large);
	CHECK_INT(large->class_, WEIR_CLASS_REST);
	weir_gate_free(b.g);
}

/* A window that was full for no time has served nothing in it, even if requests complete at that
 * moment. */
static void full_for_no_time(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 2});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *first = submit(&b, n, 1), *second;
	struct weir_gate_totals t;

	CHECK(pass(&b) == first);
	b.now = 10;
	second = submit(&b, n, 1);
	CHECK(pass(&b) == second);
	finish(&b, second);
	finish(&b, first);
	weir_gate_get_totals(b.g, 10, &t);
	CHECK_INT(t.full, 0);
	CHECK_INT(t.full_served, 0);
	CHECK_INT(t.served, 2);
	weir_gate_free(b.g);
}

/* Requests that complete while the window is full are counted with that time, so that the two
 * give a rate. */
static void served_while_it_was_full(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 2});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *r[6];
	struct weir_gate_totals t;

	for (int i = 0; i < 5; i++)
		submit(&b, n, 1);
	CHECK_INT(weir_gate_next(b.g, 0, r, 6), 2);
	weir_gate_done(b.g, 10, &r[0], 1); /* full for 10 */
	weir_gate_done(b.g, 10, &r[1], 1); /* at the same moment */
	CHECK_INT(weir_gate_next(b.g, 10, r, 6), 2);
	weir_gate_get_totals(b.g, 10, &t);
	CHECK_INT(t.full, 10);
	CHECK_INT(t.full_served, 2);
	weir_gate_done(b.g, 10, &r[0], 1); /* at once: full for no time */
	CHECK_INT(weir_gate_next(b.g, 10, r, 1), 1);
	weir_gate_done(b.g, 25, &r[0], 1); /* full for 15 more */
	weir_gate_done(b.g, 30, &r[1], 1); /* one was inside: the window was not full */
	weir_gate_get_totals(b.g, 40, &t);
	CHECK_INT(t.full, 25);
	CHECK_INT(t.full_served, 3);
	CHECK_INT(t.served, 5);
	weir_gate_free(b.g);
}

static void raising_a_limit_takes_effect_at_once(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n, &(struct weir_bucket_spec){.rate = 0.01, .size = 1}, 1);
	for (int i = 0; i < 3; i++)
		submit(&b, n, 1);
	CHECK(pass(&b));
	CHECK(!pass(&b));
	b.now += WEIR_MS;
	buckets(&b, n, &(struct weir_bucket_spec){.rate = 1e6, .size = 1}, 1);
	CHECK(weir_gate_wakeup(b.g, b.now) <= b.now + 3 * WEIR_US);
	b.now += 3 * WEIR_US;
	CHECK(pass(&b));
	buckets(&b, n, NULL, 0); /* no limit at all */
	CHECK(pass(&b));
	weir_gate_free(b.g);
}

/* A knob finds that a new request is held; the next call, less than a tick after the hold ended
 * and before the timer fires, finds that it is not. */
static void held_between_two_looks(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec pair[] = {
		{.rate = 1000, .size = 1}, {.kind = WEIR_RTOKENS, .rate = 1, .size = 1}};
	struct weir_gate_stats s;

	buckets(&b, n, pair, 2);
	submit(&b, n, 1);
	finish(&b, pass(&b));
	submit(&b, n, 1); /* held until 1 ms */
	knob(&b, n, WEIR_KNOB_WEIGHT, 2);
	CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
	CHECK_INT(s.cause, WEIR_WAIT_MAX);
	b.now = WEIR_MS + 100;
	CHECK_INT(weir_gate_next(b.g, b.now, &(struct weir_req *){NULL}, 0), 0);
	CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
	CHECK_INT(s.cause, WEIR_WAIT_TURN);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_MAX], (double)b.now, 0);
	b.now += 50; /* the device has room, and next is not called */
	CHECK(pass(&b));
	CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_MAX], (double)b.now - 50, 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TURN], 50, 0);
	CHECK(weir_gate_held(b.g, b.now, n) == b.now - 50);
	weir_gate_free(b.g);
}

static void bad_requests_are_refused_whole(void)
{
	struct bench b = bench_new((struct weir_gate_config){.nodes = 2, .window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req good = {.tenant = n}, nobody = {.tenant = n + 1},
			root = {.tenant = WEIR_ROOT}, odd_op = {.tenant = n, .op = WEIR_STATUS + 1};
	struct weir_req *bad[] = {&nobody, &root, &odd_op};

	for (unsigned i = 0; i < 3; i++) {
		struct weir_req *both[] = {&good, bad[i]};

		CHECK_INT(weir_gate_submit(b.g, 0, both, 2), -EINVAL);
		CHECK(!pass(&b));
	}
	CHECK_INT(weir_gate_get_stats(b.g, 0, n + 1, &(struct weir_gate_stats){0}), -EINVAL);
	CHECK_INT(weir_gate_held(b.g, 0, n + 1), 0);
	weir_gate_free(b.g);
}

static bool odd(const struct weir_req *r, void *arg)
{
	return r->bytes % 2;
}
static void count(struct weir_req *r, void *arg)
{
	++*(unsigned *)arg;
}
static void cancel_takes_back(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	unsigned dropped = 0;

	for (uint32_t i = 0; i < 7; i++)
		submit(&b, n, i);
	CHECK_INT(weir_gate_cancel(b.g, 0, n, odd, count, &dropped), 3);
	CHECK_INT(dropped, 3);
	for (uint32_t i = 0; i < 7; i += 2)
		CHECK_INT(pass(&b)->bytes, i);
	CHECK(!pass(&b));
	weir_gate_free(b.g);
}

static void nodes_come_and_go(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node a = leaf(&b, WEIR_ROOT, 1), c;
	struct weir_req *r = submit(&b, a, 1);

	CHECK_INT(weir_gate_add(b.g, a, &c), -EBUSY);
	CHECK_INT(weir_gate_remove(b.g, a), -EBUSY);
	CHECK(pass(&b) == r);
	CHECK_INT(weir_gate_remove(b.g, a), -EBUSY);
	finish(&b, r);
	CHECK_INT(weir_gate_add(b.g, a, &c), 0);
	CHECK_INT(weir_gate_remove(b.g, a), -EBUSY);
	submit(&b, c, 1);
	finish(&b, pass(&b));
	CHECK_INT(weir_gate_remove(b.g, c), 0);
	CHECK_INT(weir_gate_remove(b.g, c), -EINVAL);
	submit(&b, a, 1); /* a leaf again */
	finish(&b, pass(&b));
	CHECK_INT(weir_gate_remove(b.g, a), 0);
	CHECK_INT(weir_gate_remove(b.g, WEIR_ROOT), -EINVAL);
	CHECK_INT(weir_gate_add(b.g, 77, &c), -EINVAL);
	weir_gate_free(b.g);
}

static void edf_and_fifo_for_comparison(void)
{
	for (enum weir_order order = WEIR_FIFO; order <= WEIR_EDF; order++) {
		struct bench b = bench_new((struct weir_gate_config){.window = 1, .order = order});
		weir_node group = leaf(&b, WEIR_ROOT, 1), x, y, z = leaf(&b, WEIR_ROOT, 1);

		CHECK_INT(weir_gate_add(b.g, group, &x), 0);
		CHECK_INT(weir_gate_add(b.g, group, &y), 0);
		if (order == WEIR_EDF) {
			knob(&b, x, WEIR_KNOB_DEADLINE, 1000);
			knob(&b, y, WEIR_KNOB_DEADLINE, 10);
			knob(&b, z, WEIR_KNOB_DEADLINE, 100);
		}
		submit(&b, z, 1);
		b.now = 1;
		submit(&b, x, 1);
		b.now = 2;
		submit(&b, y, 1);
		weir_node want[2][3] = {{z, x, y}, {y, z, x}};

		for (int i = 0; i < 3; i++) {
			struct weir_req *r = pass(&b);

			CHECK_INT(r->tenant, want[order - WEIR_FIFO][i]);
			finish(&b, r);
		}
		weir_gate_free(b.g);
	}
}

static void histograms_of_the_active(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1, .histograms = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1), idle = leaf(&b, WEIR_ROOT, 1);

	for (int i = 0; i < 10; i++)
		submit(&b, n, 1);
	for (int i = 0; i < 10; i++) {
		struct weir_req *r = pass(&b);

		b.now += WEIR_MS;
		finish(&b, r);
	}
	weir_gate_drain(b.g);
	CHECK(!weir_gate_hist_wait(b.g, idle));
	CHECK_INT(weir_gate_hist_wait(b.g, n)->count, 10);
	CHECK_NEAR((double)weir_gate_hist_wait(b.g, n)->max, 9e6, 0.01);
	CHECK_NEAR((double)weir_hist_percentile(weir_gate_hist_device(b.g, n), 50), 1e6, 0.01);
	CHECK_INT(weir_gate_unrecorded(b.g), 0);
	weir_gate_free(b.g);
}

static bool any_request(const struct weir_req *r, void *arg)
{
	return true;
}
static void forget(struct weir_req *r, void *arg)
{
}

/* A leaf whose only request was cancelled before the gate examined it is removed: nothing is
 * left to examine, and the gate sleeps until the other leaf's bucket admits. */
static void removed_before_the_first_look(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 8});
	weir_node y = leaf(&b, WEIR_ROOT, 1), x = y;
	const struct weir_bucket_spec slow = {.kind = WEIR_HOLD, .rate = 1, .size = 1};
	struct weir_req *out;

	while (x < 128) /* in another word of the set */
		x = leaf(&b, WEIR_ROOT, 1);
	CHECK_INT(weir_gate_set(b.g, b.now,
			  &(struct weir_knob){.node = y,
				  .kind = WEIR_KNOB_BUCKETS,
				  .buckets = &slow,
				  .n_buckets = 1},
			  1, NULL),
		0);
	submit(&b, y, 1);
	submit(&b, y, 1);
	CHECK_INT(weir_gate_next(b.g, b.now, &out, 1), 1);
	submit(&b, x, 1);
	CHECK_INT(weir_gate_cancel(b.g, b.now, x, any_request, forget, NULL), 1);
	CHECK_INT(weir_gate_remove(b.g, x), 0);
	CHECK_INT(weir_gate_next(b.g, b.now, &out, 1), 0);
	CHECK(weir_gate_wakeup(b.g, b.now) > b.now);
	weir_gate_free(b.g);
}

/* A credit is in the gate's cost unit, for any weight: of 20 served requests, 16 are the share
 * of weight 4, and a fifth of the credit comes on top. */
static void credit_whatever_the_weight(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1, .credit = 5});
	weir_node busy = leaf(&b, WEIR_ROOT, 1), idle = leaf(&b, WEIR_ROOT, 4);
	unsigned counts[8] = {0};

	for (int i = 0; i < 100; i++)
		submit(&b, busy, 1);
	serve(&b, 1, 50, counts);
	for (int i = 0; i < 60; i++)
		submit(&b, idle, 1);
	memset(counts, 0, sizeof counts);
	serve(&b, 1, 20, counts);
	CHECK(counts[idle] >= 16 && counts[idle] <= 18);
	weir_gate_free(b.g);
}

int main(void)
{
	RUN(empty_gate_is_idle);
	RUN(fifo_within_a_tenant);
	RUN(window_limits_requests_inside);
	RUN(a_window_not_said_is_32);
	RUN(fractional_window_averages);
	RUN(weights_share_by_cost);
	RUN(idle_share_goes_to_siblings_first);
	RUN(credit_lets_the_idle_catch_up);
	RUN(runs_of_near_requests);
	RUN(knobs_are_all_or_nothing);
	RUN(larger_than_a_profile);
	RUN(never_fits);
	RUN(served_while_it_was_full);
	RUN(full_for_no_time);
	RUN(raising_a_limit_takes_effect_at_once);
	RUN(held_between_two_looks);
	RUN(bad_requests_are_refused_whole);
	RUN(cancel_takes_back);
	RUN(nodes_come_and_go);
	RUN(edf_and_fifo_for_comparison);
	RUN(histograms_of_the_active);
	RUN(removed_before_the_first_look);
	RUN(credit_whatever_the_weight);
	return 0;
}
