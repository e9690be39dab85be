/* SPDX-License-Identifier: BSD-3-Clause */
/* A head that would be next when its tenant is examined passes at once, without entering a lane
 * (turn.h). Later requests must pass as if that head had stood in a lane. (law-flat checks that
 * the same requests pass in a tree.) */
#include <weir/gate.h>
#include "test.h"

static struct weir_gate *g;
static struct weir_req reqs[64], *out[64];
static unsigned n_reqs;

/* Start with leaves 1 … n, each with these buckets, or with the max alone, and with an inner
 * node if `tree`. */
static void start(uint32_t n, double max, double min, bool tree)
{
	struct weir_gate_config config = {.nodes = n + 2, .window = 1};
	struct weir_bucket_spec buckets[] = {
		{.kind = WEIR_HOLD, .rate = max, .size = min > 0 ? 8 : 1},
		{.kind = WEIR_RTOKENS, .rate = min, .size = 1}};
	weir_node node;

	n_reqs = 0;
	CHECK_INT(weir_gate_new(&config, &g), 0);
	for (uint32_t i = 1; i <= n; i++) {
		CHECK_INT(weir_gate_add(g, WEIR_ROOT, &node), 0);
		struct weir_knob k = {.node = node,
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = buckets,
			.n_buckets = min > 0 ? 2 : 1};

		CHECK_INT(weir_gate_set(g, 0, &k, 1, NULL), 0);
	}
	if (!tree)
		return;
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &node), 0);
	CHECK_INT(weir_gate_add(g, node, &node), 0);
}

static void submit_of(weir_node leaf, weir_time now, enum weir_op op, uint32_t bytes)
{
	struct weir_req *r = &reqs[n_reqs++];

	CHECK(n_reqs <= 64);
	*r = (struct weir_req){.tenant = leaf, .op = (uint8_t)op, .bytes = bytes};
	CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
}

static void submit(weir_node leaf, weir_time now)
{
	submit_of(leaf, now, WEIR_READ, 0);
}

/* Check which request passes next, and in which class. It completes at once. */
static void pass(weir_node leaf, enum weir_class class, weir_time now)
{
	CHECK_INT(weir_gate_next(g, now, out, 64), 1);
	CHECK_INT(out[0]->tenant, leaf);
	CHECK_INT(out[0]->class_, class);
	weir_gate_done(g, now, out, 1);
}

/* The first request of a tenant passes at once by its R-token; the second as one of the rest,
 * also at once; the third waits, and passes by the next token, before the requests of other
 * tenants. */
static void the_next_token_is_seen(bool tree)
{
	start(2, 1e6, 1000, tree);
	submit(1, 0);
	pass(1, WEIR_CLASS_RESERVED, 0);
	submit(1, 100 * WEIR_US);
	submit(1, 100 * WEIR_US);
	pass(1, WEIR_CLASS_REST, 100 * WEIR_US);
	submit(2, 200 * WEIR_US);
	pass(2, WEIR_CLASS_RESERVED, 200 * WEIR_US);
	submit(2, 300 * WEIR_US);
	/* Tenant 1 has a token from 1 ms on, tenant 2 from 1.2 ms. */
	pass(1, WEIR_CLASS_RESERVED, 1100 * WEIR_US);
	pass(2, WEIR_CLASS_REST, 1100 * WEIR_US);
	weir_gate_free(g);
}

/* The same if the first passes by a token, and the second waits for the next one. */
static void a_token_after_a_token(bool tree)
{
	start(1, 1e6, 1000, tree);
	submit(1, 0);
	submit(1, 0);
	pass(1, WEIR_CLASS_RESERVED, 0);
	pass(1, WEIR_CLASS_RESERVED, 1100 * WEIR_US);
	weir_gate_free(g);
}

/* With a max and no min, each request passes when the max admits it, and its held time is
 * counted. */
static void a_max_alone(bool tree)
{
	struct weir_gate_stats s;

	start(1, 1000, 0, tree);
	submit(1, 0);
	submit(1, 0);
	submit(1, 0);
	pass(1, WEIR_CLASS_REST, 0);
	CHECK_INT(weir_gate_next(g, WEIR_MS - 1, out, 1), 0);
	CHECK(weir_gate_wakeup(g, WEIR_MS - 1) <= WEIR_MS + 1024);
	pass(1, WEIR_CLASS_REST, WEIR_MS + 1024);
	CHECK_INT(weir_gate_next(g, WEIR_MS + 2048, out, 1), 0);
	pass(1, WEIR_CLASS_REST, 2 * WEIR_MS + 1024);
	CHECK_INT(weir_gate_wakeup(g, 2 * WEIR_MS + 1024), WEIR_NEVER);
	CHECK_INT(weir_gate_get_stats(g, 3 * WEIR_MS, 1, &s), 0);
	CHECK(s.wait_ns[WEIR_WAIT_MAX] == 3 * WEIR_MS + 2048);
	CHECK(s.wait_ns[WEIR_WAIT_TURN] == 0);
	weir_gate_free(g);
}

/* ---- a device with a fixed service time, and tenants that always have requests */

static uint64_t passed[3];

static void serve(weir_time each, weir_time until)
{
	for (weir_time now = 0; now < until; now += each) {
		CHECK_INT(weir_gate_next(g, now, out, 1), 1);
		passed[out[0]->tenant]++;
		weir_gate_done(g, now, out, 1);
		CHECK_INT(weir_gate_submit(g, now, out, 1), 0);
	}
}

/* The min is served first, and the rest is shared by weight on top of it, even if a token lasts
 * for less time than a timer's tick: 20,000 requests a second, of which one tenant has a min of
 * 10,000. */
static void min_on_top_of_its_share(bool tree)
{
	/* Tokens of 20 ms, as a policy makes of a min. */
	struct weir_bucket_spec min = {.kind = WEIR_RTOKENS, .rate = 10000, .size = 200};
	struct weir_knob k[] = {{.node = 1, .kind = WEIR_KNOB_BUCKETS},
		{.node = 2, .kind = WEIR_KNOB_BUCKETS, .buckets = &min, .n_buckets = 1}};

	start(2, 1e6, 0, tree);
	CHECK_INT(weir_gate_set(g, 0, k, 2, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		submit(1, 0);
		submit(2, 0);
	}
	passed[1] = passed[2] = 0;
	serve(50 * WEIR_US, WEIR_SEC);
	/* (A full bucket at first: 200 more.) */
	CHECK(passed[1] >= 4890 && passed[1] <= 4910);
	CHECK(passed[2] >= 15090 && passed[2] <= 15110);
	weir_gate_free(g);
}

/* A max of 400,000 a second with a bucket of one is delivered in full, though timers expire at whole ticks. */
static void a_fast_max_is_delivered(bool tree)
{
	const weir_time until = 50 * WEIR_MS;
	unsigned n = 0;

	start(1, 4e5, 0, tree);
	for (unsigned i = 0; i < 4; i++)
		submit(1, 0);
	for (weir_time now = 0; now < until; now = weir_gate_wakeup(g, now))
		while (weir_gate_next(g, now, out, 1)) {
			n++;
			weir_gate_done(g, now, out, 1);
			CHECK_INT(weir_gate_submit(g, now, out, 1), 0);
		}
	CHECK_NEAR(n, 20000, 1e-3);
	weir_gate_free(g);
}

/* Costs that move a tag beyond its range. */
static void huge_costs(bool tree)
{
	struct weir_knob k[] = {{.node = 1, .kind = WEIR_KNOB_BUCKETS},
		{.node = 2, .kind = WEIR_KNOB_BUCKETS},
		{.node = 1, .kind = WEIR_KNOB_WEIGHT, .value = 1.0 / 1024}};

	start(2, 1e6, 0, tree);
	CHECK_INT(weir_gate_set(g, 0, k, 3, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		submit(1, 0);
		submit(2, 0);
		reqs[n_reqs - 2].requests = 4000000000u;
	}
	passed[1] = passed[2] = 0;
	serve(WEIR_US, 20 * WEIR_MS);
	CHECK(passed[1] >= 1 && passed[2] >= 19000);
	weir_gate_free(g);
}

/* A read gets an R-token while the window is full, and later the older write of its tenant does, which a max held. With
 * room both have one: the older passes, whether or not the gate was asked meanwhile. */
static void the_older_of_two_tokens(bool tree)
{
	struct weir_bucket_spec buckets[] = {
		{.kind = WEIR_HOLD, .ops = WEIR_OPS(WEIR_WRITE), .rate = 1000, .size = 1},
		{.kind = WEIR_RTOKENS, .unit = WEIR_UNIT_BYTES, .rate = 1e6, .size = 1000}};
	struct weir_knob k = {
		.node = 1, .kind = WEIR_KNOB_BUCKETS, .buckets = buckets, .n_buckets = 2};

	for (unsigned asked = 0; asked < 2; asked++) {
		start(1, 1e6, 0, tree);
		CHECK_INT(weir_gate_set(g, 0, &k, 1, NULL), 0);
		submit_of(1, 0, WEIR_WRITE, 1000);
		submit_of(1, 0, WEIR_WRITE, 1000);
		submit_of(1, 0, WEIR_READ, 500);
		CHECK_INT(weir_gate_next(g, 0, out, 1), 1);
		for (weir_time now = 0; asked && now < 2 * WEIR_MS; now += WEIR_MS / 10)
			CHECK_INT(weir_gate_next(g, now, out + 1, 1), 0);
		weir_gate_done(g, 2 * WEIR_MS, out, 1);
		CHECK_INT(weir_gate_next(g, 2 * WEIR_MS, out, 1), 1);
		CHECK_INT(out[0]->op, WEIR_WRITE);
		CHECK_INT(out[0]->class_, WEIR_CLASS_RESERVED);
		weir_gate_free(g);
	}
}

/* Tenants whose tokens come in together pass one after the other as these were noticed, whatever their weights, and
 * whether one call takes them all, or each call one, or the window was full and the gate was asked meanwhile. */
static void one_by_one_or_together(bool tree)
{
	const struct weir_knob knobs[] = {{.kind = WEIR_KNOB_WINDOW, .value = 3},
		{.node = 2, .kind = WEIR_KNOB_WEIGHT, .value = 10},
		{.node = 3, .kind = WEIR_KNOB_WEIGHT, .value = 100}};
	const weir_time later = WEIR_MS + 100 * WEIR_US;

	for (unsigned way = 0; way < 3; way++) {
		start(3, 1e6, 1000, tree);
		CHECK_INT(weir_gate_set(g, 0, knobs, 3, NULL), 0);
		for (weir_node n = 1; n <= 3; n++)
			for (unsigned i = 0; i < 4; i++)
				submit(n, 0);
		CHECK_INT(weir_gate_next(g, 0, out, 3), 3);
		if (way == 2)
			CHECK_INT(weir_gate_next(g, later, out + 3, 3), 0);
		weir_gate_done(g, later, out, 3);
		CHECK_INT(weir_gate_wakeup(g, later), later);
		for (size_t n = 0; n < 3;)
			n += weir_gate_next(g, later, out + n, way == 0 ? 3 : 1);
		for (weir_node n = 1; n <= 3; n++) {
			CHECK_INT(out[n - 1]->tenant, n);
			CHECK_INT(out[n - 1]->class_, WEIR_CLASS_RESERVED);
		}
		weir_gate_free(g);
	}
}

/* A tenant that was noticed and waits for room may be cancelled, removed, and get other knobs meanwhile. */
static bool all(const struct weir_req *r, void *arg)
{
	return true;
}
static void forget(struct weir_req *r, void *arg)
{
}
static void gone_while_it_waits_for_room(bool tree)
{
	const struct weir_knob knobs[] = {{.kind = WEIR_KNOB_WINDOW, .value = 3},
		{.node = 3, .kind = WEIR_KNOB_PRIORITY, .value = 1}};
	const weir_time later = WEIR_MS + 100 * WEIR_US;

	start(3, 1e6, 1000, tree);
	CHECK_INT(weir_gate_set(g, 0, knobs, 1, NULL), 0);
	for (weir_node n = 1; n <= 3; n++)
		for (unsigned i = 0; i < 4; i++)
			submit(n, 0);
	CHECK_INT(weir_gate_next(g, 0, out, 3), 3);
	weir_gate_done(g, 0, out, 3);
	CHECK_INT(weir_gate_next(g, later, out, 1), 1);
	CHECK_INT(out[0]->tenant, 1);
	weir_gate_done(g, later, out, 1);
	CHECK_INT(weir_gate_cancel(g, later, 2, all, forget, NULL), 3);
	CHECK_INT(weir_gate_remove(g, 2), 0);
	CHECK_INT(weir_gate_set(g, later, &knobs[1], 1, NULL), 0);
	CHECK_INT(weir_gate_next(g, later, out, 1), 1);
	CHECK_INT(out[0]->tenant, 3);
	CHECK_INT(out[0]->class_, WEIR_CLASS_PRIORITY);
	weir_gate_done(g, later, out, 1);
	weir_gate_free(g);
}

/* While the window is full, the tenant that was noticed first is the one that waits for it. */
static void waits_for_the_window(bool tree)
{
	const struct weir_knob window = {.kind = WEIR_KNOB_WINDOW, .value = 1};
	const weir_time later = WEIR_MS + 100 * WEIR_US;
	struct weir_gate_stats s;

	start(2, 1e6, 1000, tree);
	for (weir_node n = 1; n <= 2; n++)
		for (unsigned i = 0; i < 2; i++)
			submit(n, 0);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(weir_gate_next(g, 0, out, 1), 1);
		weir_gate_done(g, 0, out, 1);
	}
	CHECK_INT(weir_gate_set(g, 0, &window, 1, NULL), 0);
	CHECK_INT(weir_gate_next(g, later, out, 1), 1);
	CHECK_INT(out[0]->tenant, 1);
	CHECK_INT(weir_gate_next(g, later + WEIR_MS, out + 1, 1), 0);
	CHECK_INT(weir_gate_get_stats(g, later + WEIR_MS, 2, &s), 0);
	CHECK_INT(s.wait_ns[WEIR_WAIT_WINDOW], WEIR_MS);
	CHECK_INT(s.wait_ns[WEIR_WAIT_TURN], later);
	weir_gate_done(g, later + WEIR_MS, out, 1);
	weir_gate_free(g);
}

/* Without an R-bucket there is no wakeup while the window in bytes is full. */
static void nothing_to_wake_for(void)
{
	struct weir_gate_config config = {.nodes = 2, .window = 8, .window_bytes = 4096};
	struct weir_req r[] = {{.bytes = 4096}, {.bytes = 4096}, {.op = WEIR_FLUSH}, {.bytes = 1}};
	weir_node node;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	CHECK_INT(weir_gate_add(g, WEIR_ROOT, &node), 0);
	for (unsigned i = 0; i < 4; i++) {
		out[i] = &r[i];
		r[i].tenant = node;
	}
	CHECK_INT(weir_gate_submit(g, 0, out, 4), 0);
	while (weir_gate_next(g, 0, out, 1) == 1)
		;
	CHECK_INT(weir_gate_wakeup(g, 0), WEIR_NEVER);
	weir_gate_free(g);
}

/* A call returns no more than it is asked for, even if more are due at once. */
static void no_more_than_asked(void)
{
	start(8, 1e6, 1000, false);
	CHECK_INT(weir_gate_set(g, 0, &(struct weir_knob){.kind = WEIR_KNOB_WINDOW, .value = 64}, 1,
			  NULL),
		0);
	for (weir_node n = 1; n <= 8; n++)
		submit(n, 0);
	out[3] = NULL;
	CHECK_INT(weir_gate_next(g, 0, out, 3), 3);
	CHECK(!out[3]);
	CHECK_INT(weir_gate_next(g, 0, out, 64), 5);
	weir_gate_free(g);
}

int main(void)
{
	for (unsigned tree = 0; tree < 2; tree++) {
		the_next_token_is_seen(tree);
		a_token_after_a_token(tree);
		a_max_alone(tree);
		a_fast_max_is_delivered(tree);
		min_on_top_of_its_share(tree);
		huge_costs(tree);
		the_older_of_two_tokens(tree);
		one_by_one_or_together(tree);
		gone_while_it_waits_for_room(tree);
		waits_for_the_window(tree);
	}
	RUN(nothing_to_wake_for);
	RUN(no_more_than_asked);
	return 0;
}
