/* SPDX-License-Identifier: BSD-3-Clause */
/* pshift-cluster: keys of a cluster in a scenario, and their effect. */
#include "fixture.h"

#define TOP "duration: 6100ms\ncluster: {%s}\n"

static void refused(const char *map, const char *why)
{
	fixture_refused(TOP, map, "", why);
}

static struct metrics *run_cluster(const char *map, uint64_t seed)
{
	return fixture_run(TOP, map, "", seed);
}

static void test_the_map(void)
{
	refused("servers: 2", "'reserved' or 'reservation'");
	refused("servers: 2, reserved: 1, reservation: 5 iops", "'reserved' or 'reservation'");
	refused("servers: 2, reserved: 1", "'demand' or 'outstanding'");
	refused("servers: 2, reserved: 1, demand: 1, active: 3", "active: must be");
	refused("servers: 2, reserved: 1, demand: 1, active: [2, 1]", "active: must be");
	refused("servers: 2, reserved: 1, demand: 1, active: [1]", "list of two");
	refused("servers: 2, reserved: 1, demand: 1, slot: 1s", "20 slots");
	refused("servers: 2, reserved: 1, demand: 1, period: 61s", "must be from 100 ms to 60 s");
	refused("servers: 2, reserved: 1, demand: 1, interval: 0s", "or auto");
	refused("servers: 2, reserved: 1, demand: 1, stand_in: [\"unix:x\"]",
		"stand_in: names more");
	refused("servers: 2, reserved: 1, demand: 1, kill: [2s, 1s]", "from, to");
	refused("servers: 2, reserved: 1, demand: 1, cut: [3, 1s, 2s]", "server, from, to");
	refused("servers: 2, reserved: 1, demand: 1, cut: [1s, 2s]", "server, from, to");
	refused("servers: 2, reserved: 1, demand: 1, cut: [1, 2s, 2s]", "server, from, to");
	refused("servers: 2, reserved: 1, demand: 1, without: tokens", "without");
	refused("servers: 2, reserved: 1, demand: 1, skew: 11", "at most 10");
	refused("servers: 2, reserved: 1, demand: 1, loss: 2", "at most 1");
	refused("servers: 2, reserved: 1, demand: 1, arrivals: often", "arrivals");
	refused("servers: 2, reserved: 1, demand: 1, capacity: 1 MB/s", "must be in iops");
	refused("servers: 20000, buckets: 1M, limit: 2, reserved: 1, demand: 1", "more than");
	refused("servers: 2, reserved: 1, demand: 1, colour: red", "colour");
}

#define NESTED                                                                                     \
	"servers: 3, buckets: 3, capacity: 2k iops, period: 1s, slot: 1ms, settle: 1500ms, "       \
	"reservation: 1k iops, outstanding: 5, nested: true"

/* Served in turn, bucket 1 gets a third of server 1; with tokens it gets its reservation. */
static void test_reservation(void)
{
	struct metrics *none = run_cluster(NESTED ", control: false", 1);
	struct metrics *tokens = run_cluster(NESTED, 1);

	CHECK_NEAR(fixture_get(none, "bucket.1.iops"), 667, 0.02);
	CHECK(fixture_get(tokens, "bucket.1.least") >= 990);
	CHECK(fixture_get(tokens, "pshift.able99") == 1);
	CHECK(fixture_get(tokens, "pshift.throughput") >=
		0.98 * fixture_get(none, "pshift.throughput"));
	metrics_free(none);
	metrics_free(tokens);
}

/* No limit is exceeded, not by one, with messages lost and the controller down for a while. */
static void test_limit(void)
{
	struct metrics *m =
		run_cluster(NESTED ", limit: 1.5, loss: 0.2, kill: [2200ms, 3900ms]", 2);

	CHECK(fixture_get(m, "pshift.over") == 0);
	CHECK(fixture_get(m, "pshift.most_of_limit") <= 1);
	CHECK(fixture_get(m, "bucket.3.most") <= 1500 && fixture_get(m, "bucket.3.least") >= 1200);
	CHECK(fixture_get(m, "bucket.1.least") >= 950);
	metrics_free(m);
}

/* A bucket that could use all of its limit at one server has its reservation there, however many
 * servers there are, also where that is nearly or quite its limit; and of the limit all but what is
 * kept ready at the others. */
static void test_limit_at_one_server(void)
{
#define ALONE(limit, more)                                                                         \
	"buckets: 4, capacity: 1k iops, period: 1s, settle: 1500ms, active: 1, outstanding: 32, "  \
	"limit: " limit ", " more
	static const struct {
		const char *map;
		double reservation, least;
	} cases[] = {
		{ALONE("1.2", "servers: 64, reservation: 75 iops"), 75, 0.97 * 90},
		{ALONE("1.2", "servers: 64, reservation: 200 iops"), 200, 0.97 * 240},
		{ALONE("1.2", "servers: 12, reservation: 40 iops"), 40, 0.97 * 48},
		{ALONE("1", "servers: 16, reservation: 50 iops"), 50, 50},
		{ALONE("1", "servers: 8, reservation: 500 iops"), 500, 500},
		{ALONE("2", "servers: 8, reservation: 300 iops"), 300, 600.0 * 15 / 16},
		{ALONE("1.5", "servers: 5, reservation: 8 iops"), 8, 0.9 * 12},
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct metrics *m = run_cluster(cases[k].map, 1);

		for (int i = 1; i <= 4; i++) {
			char least[32], mean[32];

			snprintf(least, sizeof(least), "bucket.%d.least", i);
			snprintf(mean, sizeof(mean), "bucket.%d.iops", i);
			CHECK(fixture_get(m, least) >= cases[k].reservation);
			CHECK(fixture_get(m, mean) >= cases[k].least);
		}
		CHECK(fixture_get(m, "pshift.over") == 0);
		metrics_free(m);
	}
}

/* Buckets that do not move while the controller is down keep their reservation; those that move
 * get it from a stand-in, and miss it without one. */
static void test_steady(void)
{
#define MOVING                                                                                     \
	"servers: 4, buckets: 40, capacity: 2k iops, period: 1s, slot: 1ms, settle: 1500ms, "      \
	"reserved: 0.8, limit: 1.5, outstanding: 5, active: 2, changes: 0.17"
	struct metrics *m = run_cluster(MOVING ", kill: [2300ms, 4900ms]", 1);
	struct metrics *alone = run_cluster(MOVING ", kill: [2300ms, 4900ms], stand_in: false", 1);
	struct metrics *none = run_cluster(MOVING ", kill: [2300ms, 4900ms], control: false", 1);
	struct metrics *alive = run_cluster(MOVING, 1);

	CHECK(fixture_get(m, "pshift.steady") >= 40 && fixture_get(m, "pshift.steady") < 160);
	CHECK(fixture_get(m, "pshift.steady99") == 1 && fixture_get(m, "pshift.over") == 0);
	CHECK(fixture_get(alone, "pshift.steady99") == 1 && fixture_get(alone, "pshift.over") == 0);
	CHECK(fixture_get(alone, "pshift.able99") < fixture_get(m, "pshift.able99"));
	CHECK(fixture_get(none, "pshift.steady99") < 0.9);
	CHECK(fixture_get(alive, "pshift.steady") == 0);
	metrics_free(m);
	metrics_free(alone);
	metrics_free(none);
	metrics_free(alive);
}

/* Random arrivals are as many, and are not taken for a closed loop. */
static void test_random(void)
{
	struct metrics *m =
		run_cluster("servers: 4, buckets: 40, capacity: 1k iops, period: 1s, slot: 1ms, "
			    "settle: 1500ms, reserved: 0.8, limit: 1.5, demand: 1.5, active: 4, "
			    "arrivals: poisson",
			1);

	CHECK(fixture_get(m, "pshift.able95") == 1 && fixture_get(m, "pshift.over") == 0);
	CHECK(fixture_get(m, "pshift.throughput") >= 0.98 * 4000);
	metrics_free(m);
}

/* An impossible reservation is reported: two thirds of one server's capacity, three times over. */
static void test_intrinsic(void)
{
	struct metrics *m =
		run_cluster("servers: 1, buckets: 3, capacity: 900 iops, period: 1s, slot: 1ms, "
			    "reservation: 600 iops, outstanding: 5, active: 1",
			1);

	CHECK_NEAR(fixture_get(m, "pshift.short"), 0.5, 0.01);
	CHECK(fixture_get(m, "pshift.intrinsic") == 1);
	metrics_free(m);
}

/* Whether a reservation could be met depends on demand alone: badly placed tokens are no excuse. */
static void test_judge(void)
{
#define LOAD                                                                                       \
	"servers: 8, buckets: 100, capacity: 1k iops, period: 1s, slot: 5ms, reserved: 1, "        \
	"demand: 1.2, active: 3, skew: 0.6, changes: 1, afresh: true"
	struct metrics *well = run_cluster(LOAD, 3),
		       *badly = run_cluster(LOAD ", without: placement", 3);
	static const char *const names[] = {
		"pshift.intrinsic", "pshift.intrinsic_error", "pshift.short"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CHECK_NEAR(fixture_get(badly, names[i]), fixture_get(well, names[i]), 0);
	CHECK(fixture_get(well, "pshift.short") > 0.01);
	CHECK(fixture_get(badly, "pshift.error") > fixture_get(well, "pshift.error") + 0.05);
	metrics_free(well);
	metrics_free(badly);
}

/* Constant demand is not reported again and again. */
static void test_quiet(void)
{
	struct metrics *m =
		run_cluster("servers: 4, buckets: 40, capacity: 2k iops, period: 1s, slot: 5ms, "
			    "settle: 2500ms, reserved: 0.5, demand: 1, active: 2",
			1);

	CHECK(fixture_get(m, "pshift.reports_each") <= 6);
	CHECK(fixture_get(m, "pshift.grants_each") <= 4);
	CHECK(fixture_get(m, "pshift.interval") >= 490);
	metrics_free(m);
}

static void test_same_again(void)
{
	static const char map[] =
		"servers: 4, buckets: 50, capacity: 1k iops, period: 1s, "
		"reserved: 0.9, demand: 1.5, active: [1, 4], changes: 2, noise: 0.2";
	struct metrics *a = run_cluster(map, 7), *b = run_cluster(map, 7), *c = run_cluster(map, 8);

	fixture_same(a, b);
	CHECK(fixture_get(a, "bucket.1.iops") != fixture_get(c, "bucket.1.iops"));
	metrics_free(a);
	metrics_free(b);
	metrics_free(c);
}

/* A controller is gone while half of the buckets move; the next one moves tokens away from servers that these crowd, late
 * in a period. Buckets that stay, also large ones, which have most of their tokens yet to use, keep their reservations
 * (pshift-exp5, `killed`). */
static void test_takeover_late_in_a_period(void)
{
	struct metrics *m = fixture_run("duration: 25200ms\ncluster: {servers: 8, buckets: 200, "
					"capacity: 1k iops, noise: 0.1, "
					"period: 5s, slot: 5ms, settle: 7500ms, reserved: 0.8, "
					"limit: 1.5, zipf: 0.5, demand: 1.5, "
					"active: 4, arrivals: even, changes: 0.2, kill: [11s, "
					"18s], skew: 0.5, stand_in: false%s}\n",
		"", "", 2);

	CHECK(fixture_get(m, "pshift.steady") > 250);
	CHECK(fixture_get(m, "pshift.steady99") >= 0.995);
	CHECK(fixture_get(m, "pshift.over") == 0);
	metrics_free(m);
}

int main(void)
{
	RUN(test_the_map);
	RUN(test_reservation);
	RUN(test_limit);
	RUN(test_limit_at_one_server);
	RUN(test_steady);
	RUN(test_random);
	RUN(test_intrinsic);
	RUN(test_judge);
	RUN(test_quiet);
	RUN(test_same_again);
	RUN(test_takeover_late_in_a_period);
	return 0;
}
