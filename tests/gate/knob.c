/* SPDX-License-Identifier: BSD-3-Clause */
/* Knobs: which values are accepted, and that a knob set while requests wait takes effect at
 * once. */
#include "device.h"

static int try_set(struct bench *b, weir_node n, enum weir_knob_kind kind, double value)
{
	return weir_gate_set(b->g, b->now,
		&(struct weir_knob){.node = n, .kind = kind, .value = value}, 1, NULL);
}

static int try_buckets(
	struct bench *b, weir_node n, const struct weir_bucket_spec *specs, uint32_t count)
{
	struct weir_knob k = {
		.node = n, .kind = WEIR_KNOB_BUCKETS, .buckets = specs, .n_buckets = count};

	return weir_gate_set(b->g, b->now, &k, 1, NULL);
}

/* The first and the last value of each knob, and the values next to them, which are refused. */
static void first_and_last_values(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec tokens = {.kind = WEIR_RTOKENS, .rate = 1, .size = 1};
	const struct {
		weir_node node;
		enum weir_knob_kind kind;
		double first, last, before, after;
	} values[] = {{WEIR_ROOT, WEIR_KNOB_WINDOW, 0, 1e6, -0.5, 1e6 + 1},
		{WEIR_ROOT, WEIR_KNOB_WINDOW_BYTES, 0, 0x1p52, -1, 0x1p52 + 1},
		{WEIR_ROOT, WEIR_KNOB_WINDOW_BYTES, 0, 1, 0.5, 1.5},
		{n, WEIR_KNOB_WEIGHT, 1.0 / 1024, 0x1p20, 1.0 / 1025, 0x1p20 + 1},
		{n, WEIR_KNOB_PRIORITY, -1, 63, -2, 64}, {n, WEIR_KNOB_PRIORITY, 0, 1, -0.5, 0.5},
		{n, WEIR_KNOB_RGRANT, -0x1p52, 0x1p52, -0x1p53, 0x1p53},
		{WEIR_ROOT, WEIR_KNOB_RUN, 0, 65536, -1, 65537},
		{WEIR_ROOT, WEIR_KNOB_DISTANCE, 0, 1e18, -1, 1e19},
		{WEIR_ROOT, WEIR_KNOB_CREDIT, 0, 1e18, -1, 1e19}};

	buckets(&b, n, &tokens, 1);
	for (unsigned i = 0; i < sizeof values / sizeof values[0]; i++) {
		CHECK_INT(try_set(&b, values[i].node, values[i].kind, values[i].first), 0);
		CHECK_INT(try_set(&b, values[i].node, values[i].kind, values[i].last), 0);
		CHECK_INT(try_set(&b, values[i].node, values[i].kind, values[i].before), -EINVAL);
		CHECK_INT(try_set(&b, values[i].node, values[i].kind, values[i].after), -EINVAL);
	}
	CHECK_INT(try_set(&b, WEIR_ROOT, WEIR_KNOB_WEIGHT, 1), -EINVAL);
	CHECK_INT(try_set(&b, n, WEIR_KNOB_WINDOW, 1), -EINVAL);
	CHECK_INT(try_set(&b, n, WEIR_KNOB_LGRANT, 1), -EINVAL); /* it has R-tokens only */
	weir_gate_free(b.g);
}

static void first_and_last_buckets(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);
	struct weir_bucket_spec many[65];

	for (unsigned i = 0; i < 65; i++)
		many[i] = (struct weir_bucket_spec){.rate = 1, .size = 1};
	CHECK_INT(try_buckets(&b, n, many, 64), 0);
	CHECK_INT(try_buckets(&b, n, many, 65), -EINVAL);
	for (unsigned kind = WEIR_HOLD; kind <= WEIR_LTOKENS; kind++) {
		many[0].kind = (enum weir_bucket_kind)kind;
		CHECK_INT(try_buckets(&b, n, many, 1), 0);
		CHECK_INT(try_buckets(&b, group, many, 1), kind == WEIR_HOLD ? 0 : -EINVAL);
	}
	weir_gate_free(b.g);
}

/* A grant needs a bucket that exists after the preceding knobs of the set. */
static void grants_in_a_set(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec tokens = {.kind = WEIR_RTOKENS, .rate = 0, .size = 10};
	struct weir_knob set[] = {
		{.node = n, .kind = WEIR_KNOB_BUCKETS, .buckets = &tokens, .n_buckets = 1},
		{.node = n, .kind = WEIR_KNOB_RGRANT, .value = 2.6}};
	double level;

	CHECK_INT(weir_gate_set(b.g, 0, set, 2, NULL), 0);
	CHECK_INT(weir_gate_get_buckets(b.g, 0, n, NULL, &level, 1), 1);
	CHECK_NEAR(level, 3, 0); /* whole tokens */
	set[0].n_buckets = 0;
	CHECK_INT(weir_gate_set(b.g, 0, set, 2, NULL), -EINVAL);
	CHECK_INT(weir_gate_get_buckets(b.g, 0, n, NULL, &level, 1), 1);
	weir_gate_free(b.g);
}

/* Tokens granted beyond the size can be used. */
static void granted_beyond_the_size(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec pair[] = {
		{.rate = 1e6, .size = 1000}, {.kind = WEIR_RTOKENS, .rate = 0.1, .size = 10}};
	double levels[2];

	buckets(&b, n, pair, 2);
	knob(&b, n, WEIR_KNOB_RGRANT, 40);
	for (unsigned i = 0; i < 52; i++)
		submit(&b, n, 1);
	for (unsigned i = 0; i < 52; i++)
		CHECK_INT(pass(&b)->class_, i < 50 ? WEIR_CLASS_RESERVED : WEIR_CLASS_REST);
	CHECK_INT(weir_gate_get_buckets(b.g, b.now, n, NULL, levels, 2), 2);
	CHECK_NEAR(levels[1] + 1, 1, 1e-9);
	weir_gate_free(b.g);
}

/* A bucket without a rate passes as much as its level allows, which may be set at any time. */
static void level_of_a_hold_bucket(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 100});
	weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);
	const struct weir_bucket_spec none = {.rate = 0, .size = 1}, some = {.rate = 10, .size = 4};
	struct weir_knob set = {.node = n, .kind = WEIR_KNOB_LEVEL, .n_buckets = 0};
	double level;

	CHECK_INT(weir_gate_set(b.g, b.now, &set, 1, NULL), -EINVAL); /* it has no bucket */
	buckets(&b, n, &none, 1);
	buckets(&b, group, &some, 1);
	CHECK_INT(weir_gate_set(b.g, b.now, &set, 1, NULL), 0);
	for (unsigned i = 0; i < 8; i++)
		submit(&b, n, 1);
	CHECK(pass(&b) == NULL);
	CHECK_INT(weir_gate_wakeup(b.g, b.now), WEIR_NEVER);
	set.value = 3;
	CHECK_INT(weir_gate_set(b.g, b.now, &set, 1, NULL), 0);
	for (unsigned i = 0; i < 3; i++)
		CHECK(pass(&b) != NULL);
	CHECK(pass(&b) == NULL);
	CHECK_INT(weir_gate_set(b.g, b.now, &set, 1, NULL), 0);
	CHECK(pass(&b) != NULL); /* the group's fourth */
	CHECK(pass(&b) == NULL);
	set.node = group;
	set.value = -1;
	CHECK_INT(weir_gate_set(b.g, b.now, &set, 1, NULL), 0);
	b.now += 150 * WEIR_MS;
	CHECK_INT(weir_gate_get_buckets(b.g, b.now, group, NULL, &level, 1), 1);
	CHECK_NEAR(level, 0.5, 1e-9);
	CHECK(pass(&b) == NULL);
	b.now += 50 * WEIR_MS + 2000; /* (timers are rounded) */
	CHECK(pass(&b) != NULL);
	set.n_buckets = 1;
	CHECK_INT(weir_gate_set(b.g, b.now, &set, 1, NULL), -EINVAL);
	weir_gate_free(b.g);
}

/* ---- the window */

/* Setting a window of half a slot again keeps its saved credit: one request was inside for 1 ms,
 * so the next passes at 2 ms. */
static void half_a_slot_is_set_again(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 0.5});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	struct weir_req *r = submit(&b, n, 1);

	submit(&b, n, 1);
	CHECK(pass(&b) == r);
	b.now = WEIR_MS;
	finish(&b, r);
	b.now = 1500 * WEIR_US;
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW, 0.5);
	CHECK_INT(weir_gate_wakeup(b.g, b.now), 2 * WEIR_MS);
	weir_gate_free(b.g);
}

static weir_time full(struct bench *b)
{
	struct weir_gate_totals t;

	weir_gate_get_totals(b->g, b->now, &t);
	return t.full;
}

/* The clock of the full window starts and stops with the knob. */
static void full_from_then_on(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 4, .window_bytes = 10});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	submit(&b, n, 8);
	submit(&b, n, 1);
	CHECK(pass(&b) && pass(&b));
	b.now = 100;
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW, 2);
	b.now = 150;
	CHECK_INT(full(&b), 50);
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW, 4);
	b.now = 200;
	CHECK_INT(full(&b), 50);
	submit(&b, n, 8);
	CHECK(!pass(&b)); /* too many bytes */
	b.now = 300;
	CHECK_INT(full(&b), 150);
	knob(&b, WEIR_ROOT, WEIR_KNOB_WINDOW_BYTES, 0);
	b.now = 400;
	CHECK_INT(full(&b), 150);
	weir_gate_free(b.g);
}

/* The next request waits for the window, until a new max holds it. */
static void no_longer_for_the_window(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	const struct weir_bucket_spec none[] = {
		{.rate = 0, .size = 1}, {.kind = WEIR_LTOKENS, .rate = 0, .size = 1}};
	struct weir_gate_stats s;

	submit(&b, n, 1);
	submit(&b, n, 1);
	CHECK(pass(&b));
	b.now = 100;
	buckets(&b, n, none, 2);
	b.now = 300;
	CHECK_INT(weir_gate_get_stats(b.g, b.now, n, &s), 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_WINDOW], 100, 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TOKENS], 200, 0);
	CHECK_NEAR(s.wait_ns[WEIR_WAIT_TURN], 0, 0);
	weir_gate_free(b.g);
}

/* A request is too large for the window in bytes; then a knob makes another tenant next, whose
 * request fits. */
static void another_that_fits(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 8, .window_bytes = 10});
	weir_node x = leaf(&b, WEIR_ROOT, 100), y = leaf(&b, WEIR_ROOT, 1);

	submit(&b, x, 8);
	submit(&b, x, 8);
	CHECK(pass(&b));
	submit(&b, y, 1);
	CHECK(!pass(&b));
	CHECK_INT(weir_gate_wakeup(b.g, b.now), WEIR_NEVER);
	knob(&b, y, WEIR_KNOB_PRIORITY, 0);
	CHECK_INT(weir_gate_wakeup(b.g, b.now), b.now);
	CHECK(pass(&b)->tenant == y);
	weir_gate_free(b.g);
}

int main(void)
{
	RUN(first_and_last_values);
	RUN(first_and_last_buckets);
	RUN(grants_in_a_set);
	RUN(granted_beyond_the_size);
	RUN(level_of_a_hold_bucket);
	RUN(half_a_slot_is_set_again);
	RUN(full_from_then_on);
	RUN(no_longer_for_the_window);
	RUN(another_that_fits);
	return 0;
}
