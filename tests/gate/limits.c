/* SPDX-License-Identifier: BSD-3-Clause */
/* Effects of buckets on requests: max, min, profiles and tokens, one sentence of gate.h per
 * function. */
#include "device.h"

static void max_holds_and_wakes(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1), free_ = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n,
		&(struct weir_bucket_spec){
			.kind = WEIR_HOLD, .unit = WEIR_UNIT_REQUESTS, .rate = 100, .size = 1},
		1);
	for (int i = 0; i < 3; i++)
		submit(&b, n, 1);
	CHECK(pass(&b));
	CHECK(!pass(&b));
	weir_time t = weir_gate_wakeup(b.g, b.now);

	CHECK(t >= 10 * WEIR_MS && t <= 10 * WEIR_MS + 2 * WEIR_US);
	submit(&b, free_, 1); /* a limit holds only its own tenant */
	CHECK(pass(&b)->tenant == free_);
	b.now = t;
	CHECK(pass(&b)->tenant == n);
	struct weir_gate_stats s;

	CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
	CHECK_INT(s.cause, WEIR_WAIT_MAX);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_MAX], 2.0 * (double)t, 1e-9);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TURN] + 1, 1, 1e-9);
	weir_gate_free(b.g);
}

static void large_request_passes_small_bucket(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n,
		&(struct weir_bucket_spec){.unit = WEIR_UNIT_BYTES, .rate = 1 << 20, .size = 65536},
		1);
	submit(&b, n, 1 << 20);
	submit(&b, n, 4096);
	CHECK(pass(&b));
	CHECK(!pass(&b));
	/* in debt by 1 MiB − 64 KiB, and 4 KiB more are needed */
	double debt = (double)((1 << 20) - 65536 + 4096) / (1 << 20);

	CHECK_NEAR((double)weir_gate_wakeup(b.g, b.now), debt * 1e9, 1e-5);
	weir_gate_free(b.g);
}

static void ancestors_max_admits_too(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node prod = leaf(&b, WEIR_ROOT, 1), a, c, other = leaf(&b, WEIR_ROOT, 1);

	CHECK_INT(weir_gate_add(b.g, prod, &a), 0);
	CHECK_INT(weir_gate_add(b.g, prod, &c), 0);
	buckets(&b, prod, &(struct weir_bucket_spec){.rate = 10, .size = 2}, 1);
	for (int i = 0; i < 10; i++) {
		submit(&b, a, 1);
		submit(&b, c, 1);
		submit(&b, other, 1);
	}
	unsigned counts[8] = {0};
	struct weir_req *out[64];
	size_t n = weir_gate_next(b.g, b.now, out, 64);

	for (size_t i = 0; i < n; i++)
		counts[out[i]->tenant]++;
	CHECK_INT(counts[other], 10);
	CHECK_INT(counts[a] + counts[c], 2);
	b.now = WEIR_SEC;
	CHECK_INT(weir_gate_next(b.g, b.now, out, 64), 2); /* the bucket holds 2 */
	struct weir_gate_stats s;

	CHECK_INT(weir_gate_get_stats(b.g, b.now, a, &s), 0);
	CHECK_INT(s.cause, WEIR_WAIT_ABOVE);
	CHECK_INT(s.blocker, prod);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_ABOVE], 9e9, 1e-9);
	CHECK(weir_gate_held(b.g, b.now, prod) == WEIR_SEC);
	weir_gate_free(b.g);
}

/* Behind a window that is always full, a limit is still reported as the cause. */
static void limits_show_behind_a_full_window(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node group = leaf(&b, WEIR_ROOT, 1), own = leaf(&b, WEIR_ROOT, 1),
		  flood = leaf(&b, WEIR_ROOT, 1), member;
	struct weir_gate_stats s;

	CHECK_INT(weir_gate_add(b.g, group, &member), 0);
	buckets(&b, group, &(struct weir_bucket_spec){.rate = 1, .size = 1}, 1);
	buckets(&b, own, &(struct weir_bucket_spec){.rate = 1, .size = 1}, 1);
	for (int i = 0; i < 3; i++) {
		submit(&b, member, 1);
		submit(&b, own, 1);
	}
	for (int i = 0; i < 100; i++)
		submit(&b, flood, 1);
	for (int i = 0; i < 50; i++) { /* half a second: each limit lets one pass */
		struct weir_req *r = pass(&b);

		CHECK(r && !pass(&b));
		b.now += 10 * WEIR_MS;
		finish(&b, r);
	}
	CHECK_INT(weir_gate_get_stats(b.g, b.now, member, &s), 0);
	CHECK_INT(s.queued, 2);
	CHECK(s.wait_ns[WEIR_WAIT_ABOVE] > 10 * s.wait_ns[WEIR_WAIT_WINDOW]);
	CHECK_INT(weir_gate_get_stats(b.g, b.now, own, &s), 0);
	CHECK_INT(s.queued, 2);
	CHECK(s.wait_ns[WEIR_WAIT_MAX] > 10 * s.wait_ns[WEIR_WAIT_WINDOW]);
	CHECK_INT(weir_gate_get_stats(b.g, b.now, flood, &s), 0);
	CHECK(s.wait_ns[WEIR_WAIT_WINDOW] > 0 && s.wait_ns[WEIR_WAIT_MAX] == 0);
	weir_gate_free(b.g);
}

static void min_comes_first_and_weights_share_the_rest(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node with = leaf(&b, WEIR_ROOT, 1), without = leaf(&b, WEIR_ROOT, 1);
	struct weir_req req[8];
	unsigned counts[8] = {0};

	/* capacity 1000/s, min 600: 600 + half of the other 400 */
	buckets(&b, with, &(struct weir_bucket_spec){.kind = WEIR_RTOKENS, .rate = 600, .size = 4},
		1);
	memset(req, 0, sizeof req);
	for (int i = 0; i < 8; i++) {
		req[i].tenant = i % 2 ? with : without;
		CHECK_INT(weir_gate_submit(b.g, 0, &(struct weir_req *){&req[i]}, 1), 0);
	}
	for (int i = 0; i < 10000; i++) {
		struct weir_req *r = pass(&b);

		CHECK(r);
		counts[r->tenant]++;
		b.now += WEIR_MS;
		finish(&b, r);
		CHECK_INT(weir_gate_submit(b.g, b.now, &r, 1), 0);
	}
	CHECK_NEAR(counts[with], 8000, 0.01);
	struct weir_gate_stats s;

	CHECK_INT(weir_gate_get_stats(b.g, b.now, with, &s), 0);
	CHECK_NEAR((double)s.by_class[WEIR_CLASS_RESERVED], 6000, 0.01);
	weir_gate_free(b.g);
}

static void priority_while_it_fits(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node low = leaf(&b, WEIR_ROOT, 1), high = leaf(&b, WEIR_ROOT, 1),
		  none = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, high, &(struct weir_bucket_spec){.kind = WEIR_PROFILE, .rate = 10, .size = 2},
		1);
	knob(&b, high, WEIR_KNOB_PRIORITY, 0);
	knob(&b, low, WEIR_KNOB_PRIORITY, 1);
	for (int i = 0; i < 4; i++) {
		submit(&b, none, 1);
		submit(&b, low, 1);
		submit(&b, high, 1);
	}
	weir_node order[12];

	for (int i = 0; i < 12; i++) {
		struct weir_req *r = pass(&b);

		order[i] = r->tenant;
		finish(&b, r);
	}
	for (int i = 0; i < 2; i++)
		CHECK_INT(order[i], high); /* the profile's tokens */
	for (int i = 2; i < 6; i++)
		CHECK_INT(order[i], low);
	/* requests that do not fit share with the rest */
	CHECK(order[6] != order[7] && order[8] != order[9]);
	submit(&b, none, 1);
	submit(&b, high, 1);
	b.now += 100 * WEIR_MS; /* a token has come back */
	CHECK_INT(pass(&b)->tenant, high);
	weir_gate_free(b.g);
}

static void tokens_as_in_algorithm_1(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node x = leaf(&b, WEIR_ROOT, 1), y = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec both[] = {
		{.kind = WEIR_RTOKENS, .size = 1000}, {.kind = WEIR_LTOKENS, .size = 1000}};

	buckets(&b, x, both, 2);
	for (int i = 0; i < 6; i++)
		submit(&b, x, 1);
	submit(&b, y, 1);
	CHECK_INT(pass(&b)->tenant,
		y); /* without a token there is no service; without a limit no token is needed */
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, b.now), WEIR_NEVER);
	struct weir_gate_stats s;

	b.now = 5;
	CHECK_INT(weir_gate_get_stats(b.g, b.now, x, &s), 0);
	CHECK_INT(s.cause, WEIR_WAIT_TOKENS);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TOKENS], 30, 1e-9);
	knob(&b, x, WEIR_KNOB_LGRANT, 2);
	knob(&b, x, WEIR_KNOB_RGRANT, 1);
	submit(&b, y, 1);
	struct weir_req *first = pass(&b);

	CHECK_INT(first->tenant, x); /* an R-token goes first */
	CHECK_INT(first->class_, WEIR_CLASS_RESERVED);
	unsigned of_x = 0;

	for (struct weir_req *r; (r = pass(&b));)
		of_x += r->tenant == x;
	CHECK_INT(of_x, 2); /* then L-tokens, as many as there are */
	weir_gate_free(b.g);
}

/* An R-token that comes in at the moment of a pass is charged, in any class. */
static void a_token_of_this_moment(bool priority)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec pair[] = {
		{.rate = 1e6, .size = 100}, {.kind = WEIR_RTOKENS, .rate = 0.1, .size = 1}};
	double levels[2];

	if (priority)
		knob(&b, n, WEIR_KNOB_PRIORITY, 0);
	buckets(&b, n, pair, 2);
	submit(&b, n, 1);
	submit(&b, n, 1);
	CHECK_INT(pass(&b)->class_, priority ? WEIR_CLASS_PRIORITY : WEIR_CLASS_RESERVED);
	CHECK_INT(weir_gate_get_buckets(b.g, b.now, n, NULL, levels, 2), 2);
	CHECK_NEAR(levels[0], 99, 1e-9);
	CHECK(levels[1] == 0);
	CHECK_INT(pass(&b)->class_, priority ? WEIR_CLASS_PRIORITY : WEIR_CLASS_REST);
	CHECK_INT(weir_gate_get_buckets(b.g, b.now, n, NULL, levels, 2), 2);
	CHECK_NEAR(levels[0], 98, 1e-9);
	CHECK(levels[1] == 0);
	weir_gate_free(b.g);
}

static void tokens_of_this_moment(void)
{
	a_token_of_this_moment(false);
	a_token_of_this_moment(true);
}

/* A request that waits behind the window gets an R-token after 0.1 s, and fits its profile after
 * 1 s, not earlier. */
static void a_token_before_it_fits(void)
{
	for (unsigned late = 0; late < 2; late++) {
		struct bench b = bench_new((struct weir_gate_config){.window = 1});
		weir_node n = leaf(&b, WEIR_ROOT, 1);
		const struct weir_bucket_spec specs[] = {{.rate = 1e6, .size = 100},
			{.kind = WEIR_RTOKENS, .rate = 10, .size = 1},
			{.kind = WEIR_PROFILE, .rate = 1, .size = 1}};
		struct weir_req *r;

		buckets(&b, n, specs, 3);
		submit(&b, n, 1);
		submit(&b, n, 1);
		CHECK((r = pass(&b)));
		CHECK_INT(r->class_, WEIR_CLASS_PRIORITY);
		b.now = late ? WEIR_SEC + 2 * WEIR_US : 200 * WEIR_MS;
		finish(&b, r);
		CHECK_INT(pass(&b)->class_, late ? WEIR_CLASS_PRIORITY : WEIR_CLASS_RESERVED);
		weir_gate_free(b.g);
	}
}

int main(void)
{
	RUN(max_holds_and_wakes);
	RUN(large_request_passes_small_bucket);
	RUN(ancestors_max_admits_too);
	RUN(limits_show_behind_a_full_window);
	RUN(min_comes_first_and_weights_share_the_rest);
	RUN(priority_while_it_fits);
	RUN(tokens_as_in_algorithm_1);
	RUN(tokens_of_this_moment);
	RUN(a_token_before_it_fits);
	return 0;
}
