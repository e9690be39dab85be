/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that were set are read back: knobs, buckets and their levels, the tree. */
#include "device.h"

static double value(const struct bench *b, weir_node n, enum weir_knob_kind kind)
{
	double v = NAN;

	CHECK_INT(weir_gate_get(b->g, n, kind, &v), 0);
	return v;
}

static void no_value(const struct bench *b, weir_node n, enum weir_knob_kind kind)
{
	double v = 77;

	CHECK_INT(weir_gate_get(b->g, n, kind, &v), -EINVAL);
	CHECK(v == 77);
}

/* ---- knobs */

static void knobs_of_the_whole_gate(void)
{
	struct bench b = bench_new((struct weir_gate_config){
		.window = 2.5, .window_bytes = 65536, .run = 3, .run_distance = 4096, .credit = 7});
	static const struct {
		enum weir_knob_kind kind;
		double before, after;
	} cases[] = {
		{WEIR_KNOB_WINDOW, 2.5, 1000.0625},
		{WEIR_KNOB_WINDOW_BYTES, 65536, 0x1p52},
		{WEIR_KNOB_RUN, 3, 0},
		{WEIR_KNOB_DISTANCE, 4096, 1e12},
		{WEIR_KNOB_CREDIT, 7, 0.5},
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		CHECK(value(&b, WEIR_ROOT, cases[i].kind) == cases[i].before);
		knob(&b, WEIR_ROOT, cases[i].kind, cases[i].after);
		CHECK(value(&b, WEIR_ROOT, cases[i].kind) == cases[i].after);
	}
	no_value(&b, WEIR_ROOT, WEIR_KNOB_WEIGHT);
	no_value(&b, WEIR_ROOT, WEIR_KNOB_PRIORITY);
	no_value(&b, WEIR_ROOT, WEIR_KNOB_BUCKETS);
	no_value(&b, WEIR_ROOT, (enum weir_knob_kind)99);
	weir_gate_free(b.g);
}

/* The gate stores weights with 24 bits. */
static void weights(void)
{
	struct bench b = bench_new((struct weir_gate_config){0});
	weir_node inner = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, inner, 1);
	static const double some[] = {1.0 / 1024, 0.1, 0.3, 1.0 / 3, 2.75, 98.6, 1048576};

	CHECK(value(&b, n, WEIR_KNOB_WEIGHT) == 1);
	for (int w = 1; w <= 4096; w++) {
		knob(&b, n, WEIR_KNOB_WEIGHT, w);
		CHECK(value(&b, n, WEIR_KNOB_WEIGHT) == w);
	}
	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
		knob(&b, inner, WEIR_KNOB_WEIGHT, some[i]);
		CHECK_NEAR(value(&b, inner, WEIR_KNOB_WEIGHT), some[i], 1e-7);
	}
	weir_gate_free(b.g);
}

static void knobs_of_leaves(void)
{
	struct bench b = bench_new((struct weir_gate_config){.order = WEIR_EDF});
	weir_node inner = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, inner, 1);

	CHECK(value(&b, n, WEIR_KNOB_PRIORITY) == -1);
	knob(&b, n, WEIR_KNOB_PRIORITY, 5);
	CHECK(value(&b, n, WEIR_KNOB_PRIORITY) == 5);
	knob(&b, n, WEIR_KNOB_PRIORITY, -1);
	buckets(&b, n, &(struct weir_bucket_spec){.kind = WEIR_PROFILE, .rate = 1, .size = 1}, 1);
	CHECK(value(&b, n, WEIR_KNOB_PRIORITY) == 63);
	CHECK(value(&b, n, WEIR_KNOB_DEADLINE) == 0);
	knob(&b, n, WEIR_KNOB_DEADLINE, 2e6);
	CHECK(value(&b, n, WEIR_KNOB_DEADLINE) == 2e6);
	no_value(&b, inner, WEIR_KNOB_PRIORITY);
	no_value(&b, inner, WEIR_KNOB_DEADLINE);
	no_value(&b, n, WEIR_KNOB_WINDOW);
	no_value(&b, n, WEIR_KNOB_CREDIT);
	no_value(&b, n, WEIR_KNOB_RGRANT);
	no_value(&b, n + 1, WEIR_KNOB_WEIGHT);
	CHECK_INT(weir_gate_remove(b.g, n), 0);
	no_value(&b, n, WEIR_KNOB_WEIGHT);
	weir_gate_free(b.g);
	b = bench_new((struct weir_gate_config){0});
	no_value(&b, leaf(&b, WEIR_ROOT, 1), WEIR_KNOB_DEADLINE);
	weir_gate_free(b.g);
}

/* ---- buckets */

static double level(const struct bench *b, weir_node n, uint32_t i)
{
	double levels[64];

	CHECK(weir_gate_get_buckets(b->g, b->now, n, NULL, levels, 64) > (int)i);
	return levels[i];
}

/* Check that `count` specs are read back as they were set, or as the gate rounds them. */
static void specs_are(
	const struct bench *b, weir_node n, const struct weir_bucket_spec *want, int count)
{
	struct weir_bucket_spec got[64];

	CHECK_INT(weir_gate_get_buckets(b->g, b->now, n, got, NULL, 64), count);
	for (int i = 0; i < count; i++) {
		CHECK_INT(got[i].kind, want[i].kind);
		CHECK_INT(got[i].unit, want[i].unit);
		CHECK_INT(got[i].ops, want[i].ops);
		CHECK(got[i].rate == want[i].rate);
		CHECK(got[i].size == want[i].size);
	}
}

static void specs_of_all_kinds(void)
{
	struct bench b = bench_new((struct weir_gate_config){0});
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	static const struct weir_bucket_spec set[] = {
		{WEIR_LTOKENS, WEIR_UNIT_REQUESTS, 0, 0, 9},
		{WEIR_RTOKENS, WEIR_UNIT_BYTES, WEIR_OPS(WEIR_READ), 1e6, 65536},
		{WEIR_PROFILE, WEIR_UNIT_REQUESTS, 0, 100, 10},
		{WEIR_HOLD, WEIR_UNIT_TIME, 0, 5e8, 1e7},
		{WEIR_HOLD, WEIR_UNIT_BYTES, WEIR_OPS(WEIR_WRITE), 2.7e11, 4503599627370496},
		{WEIR_PROFILE, WEIR_UNIT_BYTES, 0, 1.0 / 1024, 3.5},
	};
	static const struct weir_bucket_spec want[] = {
		{WEIR_HOLD, WEIR_UNIT_TIME, WEIR_OPS_ALL, 5e8, 1e7},
		{WEIR_HOLD, WEIR_UNIT_BYTES, WEIR_OPS(WEIR_WRITE), 2.7e11, 4503599627370496},
		{WEIR_PROFILE, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL, 100, 10},
		{WEIR_PROFILE, WEIR_UNIT_BYTES, WEIR_OPS_ALL, 1.0 / 1024, 4},
		{WEIR_RTOKENS, WEIR_UNIT_BYTES, WEIR_OPS(WEIR_READ), 1e6, 65536},
		{WEIR_LTOKENS, WEIR_UNIT_REQUESTS, WEIR_OPS_ALL, 0, 9},
	};

	specs_are(&b, n, NULL, 0);
	buckets(&b, n, set, 6);
	specs_are(&b, n, want, 6);
	for (uint32_t i = 0; i < 5; i++)
		CHECK(level(&b, n, i) == want[i].size);
	CHECK(level(&b, n, 5) == 0); /* filled by grants only */
	buckets(&b, n, want, 6);
	specs_are(&b, n, want, 6);
	CHECK_INT(weir_gate_get_buckets(b.g, 0, n + 1, NULL, NULL, 0), -EINVAL);
	weir_gate_free(b.g);
}

static void no_more_than_there_is_room_for(void)
{
	struct bench b = bench_new((struct weir_gate_config){0});
	struct weir_bucket_spec set[64], got[3] = {{0}};
	weir_node n = leaf(&b, WEIR_ROOT, 1);
	double levels[3] = {0};

	for (unsigned i = 0; i < 64; i++)
		set[i] = (struct weir_bucket_spec){
			.kind = i % 2 ? WEIR_HOLD : WEIR_PROFILE, .rate = 1, .size = 64 - i};
	buckets(&b, n, set, 64);
	CHECK_INT(weir_gate_get_buckets(b.g, 0, n, got, levels, 2), 64);
	CHECK(got[0].size == 63 && got[1].size == 61 && got[2].size == 0);
	CHECK(levels[0] == 63 && levels[1] == 61 && levels[2] == 0);
	CHECK_INT(weir_gate_get_buckets(b.g, 0, n, NULL, NULL, 0), 64);
	weir_gate_free(b.g);
}

/* Levels fall by what passes, below 0 too, rise with time, and stop at the size. */
static void levels_of_hold_buckets(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 99});
	weir_node group = leaf(&b, WEIR_ROOT, 1), n = leaf(&b, group, 1);

	buckets(&b, n,
		(struct weir_bucket_spec[]){
			{.unit = WEIR_UNIT_REQUESTS, .rate = 10, .size = 2},
			{.unit = WEIR_UNIT_BYTES, .rate = 1000, .size = 500},
		},
		2);
	buckets(&b, group,
		&(struct weir_bucket_spec){.unit = WEIR_UNIT_BYTES, .rate = 500, .size = 4000}, 1);
	b.now = WEIR_SEC;
	submit(&b, n, 1500);
	CHECK(level(&b, n, 0) == 2 && level(&b, n, 1) == 500); /* not yet */
	CHECK(pass(&b));
	CHECK(level(&b, n, 0) == 1);
	CHECK(level(&b, n, 1) == -1000);
	CHECK(level(&b, group, 0) == 2500);
	b.now += 50 * WEIR_MS;
	CHECK(level(&b, n, 0) == 1.5);
	CHECK(level(&b, n, 1) == -950);
	CHECK(level(&b, group, 0) == 2525);
	b.now = 0; /* time never goes back, and reading does not advance it */
	CHECK(level(&b, n, 1) == -1000);
	b.now = 2 * WEIR_SEC;
	CHECK(level(&b, n, 0) == 2);
	CHECK(level(&b, n, 1) == 0);
	CHECK(level(&b, group, 0) == 3000);
	b.now = 100 * WEIR_SEC;
	CHECK(level(&b, n, 1) == 500);
	CHECK(level(&b, group, 0) == 4000);
	weir_gate_free(b.g);
}

static void grants_are_read_back(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 99});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n,
		(struct weir_bucket_spec[]){
			{.kind = WEIR_RTOKENS, .size = 5},
			{.kind = WEIR_LTOKENS, .size = 5},
		},
		2);
	knob(&b, n, WEIR_KNOB_RGRANT, 3);
	knob(&b, n, WEIR_KNOB_LGRANT, 20);
	CHECK(level(&b, n, 0) == 3);
	CHECK(level(&b, n, 1) == 20); /* beyond its size */
	submit(&b, n, 0);
	CHECK(pass(&b));
	CHECK(level(&b, n, 0) == 2); /* R-tokens are charged first */
	CHECK(level(&b, n, 1) == 20);
	knob(&b, n, WEIR_KNOB_RGRANT, -6);
	CHECK(level(&b, n, 0) == -4);
	b.now += 1000 * WEIR_SEC;
	CHECK(level(&b, n, 0) == -4);
	weir_gate_free(b.g);
}

/* A negative grant takes an R-bucket deep into debt. Requests that it does not count do not
 * change that. */
static void a_debt_stays_while_others_pay(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 99});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n,
		(struct weir_bucket_spec[]){
			{.kind = WEIR_RTOKENS, .size = 5},
			{.kind = WEIR_RTOKENS, .size = 5, .ops = WEIR_OPS(WEIR_WRITE)},
			{.kind = WEIR_RTOKENS, .size = 5, .unit = WEIR_UNIT_BYTES},
		},
		3);
	knob(&b, n, WEIR_KNOB_RGRANT, -20);
	buckets(&b, n,
		(struct weir_bucket_spec[]){
			{.kind = WEIR_RTOKENS, .size = 5, .rate = 1, .ops = WEIR_OPS(WEIR_READ)},
			{.kind = WEIR_RTOKENS, .size = 5, .ops = WEIR_OPS(WEIR_WRITE)},
			{.kind = WEIR_RTOKENS, .size = 5, .unit = WEIR_UNIT_BYTES},
		},
		3);
	submit(&b, n, 0);
	CHECK_INT(pass(&b)->class_, WEIR_CLASS_RESERVED);
	CHECK(level(&b, n, 0) == 4);
	CHECK(level(&b, n, 1) == -20);
	CHECK(level(&b, n, 2) == -20);
	weir_gate_free(b.g);
}

/* A profile is charged for requests that fit it; narrow buckets (few, small) and wide ones are
 * stored separately. */
static void levels_of_profiles(double size)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 99});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n,
		(struct weir_bucket_spec[]){
			{.kind = WEIR_PROFILE, .rate = 10, .size = size},
			{.kind = WEIR_PROFILE, .rate = 100, .size = 1},
		},
		2);
	submit(&b, n, 0);
	submit(&b, n, 0);
	CHECK(pass(&b) && pass(&b)); /* the second one does not fit, and is not charged */
	CHECK(level(&b, n, 0) == size - 1);
	CHECK(level(&b, n, 1) == 0);
	b.now = 5 * WEIR_MS;
	CHECK_NEAR(level(&b, n, 0), size - 0.95, 1e-15);
	CHECK(level(&b, n, 1) == 0.5);
	weir_gate_free(b.g);
}

static void levels_of_narrow_profiles(void)
{
	levels_of_profiles(3);
}

static void levels_of_wide_profiles(void)
{
	levels_of_profiles(3e9);
}

/* The pair of min and max has a code path of its own in the gate. */
static void levels_of_a_pair(void)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 99});
	weir_node n = leaf(&b, WEIR_ROOT, 1);

	buckets(&b, n,
		(struct weir_bucket_spec[]){
			{.kind = WEIR_HOLD, .rate = 1000, .size = 5},
			{.kind = WEIR_RTOKENS, .rate = 100, .size = 2},
		},
		2);
	for (int i = 0; i < 4; i++) {
		submit(&b, n, 0);
		CHECK(pass(&b));
	}
	CHECK(level(&b, n, 0) == 1);
	CHECK(level(&b, n, 1) == 0); /* the last two passed without tokens */
	b.now = 2 * WEIR_MS;
	CHECK(level(&b, n, 0) == 3);
	CHECK(level(&b, n, 1) == 0.2);
	submit(&b, n, 0);
	CHECK(pass(&b)); /* this one, too: the two levels have different times */
	b.now = 4 * WEIR_MS;
	CHECK(level(&b, n, 0) == 4);
	CHECK(level(&b, n, 1) == 0.4);
	weir_gate_free(b.g);
}

/* ---- the tree */

static void a_walk_sees_every_node_once(void)
{
	struct bench b = bench_new((struct weir_gate_config){0});
	weir_node nodes[300] = {WEIR_ROOT}, parent;
	bool there[300] = {true}, seen[300] = {false};

	CHECK_INT(weir_gate_next_node(b.g, WEIR_ROOT), WEIR_ROOT);
	for (unsigned i = 1; i < 300; i++) { /* three children each */
		nodes[i] = leaf(&b, nodes[(i - 1) / 3], 1);
		CHECK_INT(nodes[i], i);
		there[i] = true;
	}
	for (unsigned i = 100; i < 300; i += 1 + i % 3) { /* only leaves */
		CHECK_INT(weir_gate_remove(b.g, i), 0);
		there[i] = false;
	}
	weir_node at = WEIR_ROOT;
	do {
		CHECK(there[at] && !seen[at]);
		seen[at] = true;
		unsigned children = 0;

		for (unsigned c = 3 * at + 1; c <= 3 * at + 3 && c < 300; c++)
			children += there[c];
		CHECK_INT(weir_gate_is_leaf(b.g, at), at && !children);
		if (at != WEIR_ROOT) {
			CHECK_INT(weir_gate_get_parent(b.g, at, &parent), 0);
			CHECK_INT(parent, (at - 1) / 3);
		}
	} while ((at = weir_gate_next_node(b.g, at)) != WEIR_ROOT);
	for (unsigned i = 0; i < 300; i++)
		CHECK_INT(seen[i], there[i]);
	parent = 77;
	CHECK_INT(weir_gate_get_parent(b.g, WEIR_ROOT, &parent), -EINVAL);
	CHECK_INT(weir_gate_get_parent(b.g, 100, &parent), -EINVAL);
	CHECK_INT(weir_gate_get_parent(b.g, UINT32_MAX, &parent), -EINVAL);
	CHECK_INT(parent, 77);
	CHECK(!weir_gate_is_leaf(b.g, 100) && !weir_gate_is_leaf(b.g, 300));
	CHECK_INT(weir_gate_next_node(b.g, UINT32_MAX), WEIR_ROOT);
	weir_gate_free(b.g);
}

static void nodes_may_go_during_a_walk(void)
{
	struct bench b = bench_new((struct weir_gate_config){0});
	unsigned n = 0;

	for (unsigned i = 0; i < 50; i++)
		leaf(&b, WEIR_ROOT, 1);
	for (weir_node at = WEIR_ROOT; (at = weir_gate_next_node(b.g, at)) != WEIR_ROOT; n++)
		CHECK_INT(weir_gate_remove(b.g, at), 0);
	CHECK_INT(n, 50);
	CHECK_INT(weir_gate_next_node(b.g, WEIR_ROOT), WEIR_ROOT);
	weir_gate_free(b.g);
}

int main(void)
{
	RUN(knobs_of_the_whole_gate);
	RUN(weights);
	RUN(knobs_of_leaves);
	RUN(specs_of_all_kinds);
	RUN(no_more_than_there_is_room_for);
	RUN(levels_of_hold_buckets);
	RUN(grants_are_read_back);
	RUN(a_debt_stays_while_others_pay);
	RUN(levels_of_narrow_profiles);
	RUN(levels_of_wide_profiles);
	RUN(levels_of_a_pair);
	RUN(a_walk_sees_every_node_once);
	RUN(nodes_may_go_during_a_walk);
	return 0;
}
