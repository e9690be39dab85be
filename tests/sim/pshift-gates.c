/* SPDX-License-Identifier: BSD-3-Clause */
/* pshift-gates: servers with gates keep reservations and limits, whatever happens to the
 * controller. */
#include "fixture.h"

#define TOP "duration: 8100ms\ncluster: {%s, gates: true}\n"
#define NESTED                                                                                     \
	"servers: 3, buckets: 3, capacity: 2k iops, period: 1s, interval: 200ms, slot: 1ms, "      \
	"settle: 1500ms, reservation: 600 iops, outstanding: 5, nested: true"

static struct metrics *run_cluster(const char *map, uint64_t seed)
{
	return fixture_run(TOP, map, "", seed);
}

static void test_the_map(void)
{
	fixture_refused(TOP, NESTED ", afresh: true", "", "not with gates");
}

/* In turn: 1/3, 1/3 + 1/2, 1/3 + 1/2 + 1 of a server. */
static void test_in_turn(void)
{
	struct metrics *m = run_cluster(NESTED ", control: false", 1);

	CHECK_NEAR(fixture_get(m, "bucket.1.iops"), 2000 / 3.0, 0.01);
	CHECK_NEAR(fixture_get(m, "bucket.2.iops"), 2000 * (1 / 3.0 + 0.5), 0.01);
	CHECK_NEAR(fixture_get(m, "bucket.3.iops"), 2000 * (1 / 3.0 + 0.5 + 1), 0.01);
	metrics_free(m);
}

/* Half more than its share in turn. */
static void test_reservation(void)
{
	struct metrics *m =
		fixture_run("duration: 8100ms\ncluster: {servers: 3, buckets: 3, "
			    "capacity: 2k iops, period: 1s, interval: 200ms, slot: 1ms, "
			    "settle: 1500ms, reservation: 1k iops, outstanding: 5, "
			    "nested: true, gates: true%s}\n",
			"", "", 1);

	CHECK(fixture_get(m, "bucket.1.least") >= 990);
	CHECK(fixture_get(m, "pshift.able99") == 1);
	CHECK(fixture_get(m, "pshift.throughput") >= 5880);
	metrics_free(m);
}

/* Not by one, with messages lost and the controller down; a bucket that stays keeps its
 * reservation. */
static void test_limit(void)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct metrics *m =
			run_cluster(NESTED ", limit: 2, loss: 0.2, kill: [3300ms, 4900ms]", seed);

		CHECK(fixture_get(m, "pshift.over") == 0);
		CHECK(fixture_get(m, "pshift.most_of_limit") <= 1);
		CHECK(fixture_get(m, "bucket.1.least") >= 0.99 * 600);
		CHECK(fixture_get(m, "bucket.3.most") <= 1200);
		metrics_free(m);
	}
}

/* The waiting requests of a tenant that leaves are dropped: nothing of it is served there any
 * more, and all else goes on. */
static void test_moves(void)
{
	struct metrics *m =
		run_cluster("servers: 4, buckets: 12, capacity: 2k iops, period: 1s, slot: 1ms, "
			    "settle: 1500ms, reservation: 400 iops, limit: 2, outstanding: 5, "
			    "active: [1, 3], changes: 2",
			3);

	CHECK(fixture_get(m, "pshift.over") == 0);
	CHECK(fixture_get(m, "pshift.throughput") > 5000);
	metrics_free(m);
}

/* An open loop is served as it arrives; different slots change little. */
static void test_open(void)
{
	struct metrics *m =
		run_cluster("servers: 2, buckets: 4, capacity: 1k iops, noise: 0.2, period: 1s, "
			    "slot: 5ms, settle: 1500ms, reserved: 0.5, demand: 1, active: 2",
			1);

	CHECK_NEAR(fixture_get(m, "pshift.throughput"), 1000, 0.02);
	CHECK(fixture_get(m, "pshift.able99") == 1);
	metrics_free(m);
}

static void test_same_again(void)
{
	static const char map[] = NESTED ", limit: 2, noise: 0.1, loss: 0.1";
	struct metrics *a = run_cluster(map, 7), *b = run_cluster(map, 7);

	fixture_same(a, b);
	metrics_free(a);
	metrics_free(b);
}

int main(void)
{
	RUN(test_the_map);
	RUN(test_in_turn);
	RUN(test_reservation);
	RUN(test_limit);
	RUN(test_moves);
	RUN(test_open);
	RUN(test_same_again);
	return 0;
}
