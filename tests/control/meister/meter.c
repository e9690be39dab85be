/* SPDX-License-Identifier: BSD-3-Clause */
/* meter: in profile or out, since when, by how much and over which span; in virtual time. */
#include "control/meister/meter.h"
#include "base/rng.h"
#include "test.h"
#include <math.h>

#define S ((double)WEIR_SEC)

static struct meister_meter m;

static void start(const struct weir_bucket_spec *pairs, unsigned n)
{
	meister_meter_start(&m, pairs, n, 0, 100 * WEIR_SEC);
}

/* Send `load` seconds of work a second in requests of 1 ms, evenly; return the sum of the ticks. */
static int send(weir_time *now, weir_time span, double load)
{
	weir_time end = *now + span, gap = (weir_time)((double)WEIR_MS / load), tick = *now;
	int said = 0;

	for (; *now < end; *now += gap) {
		meister_meter_add(&m, *now, (double)WEIR_MS);
		for (; tick <= *now; tick += WEIR_SEC)
			said += meister_meter_tick(&m, tick);
	}
	return said;
}

static const struct weir_bucket_spec one[] = {{.rate = 0.1 * S, .size = 10 * (double)WEIR_MS}};

static void test_in_profile(void)
{
	weir_time now = 100 * WEIR_SEC;

	start(one, 1);
	CHECK_INT(send(&now, 200 * WEIR_SEC, 0.099), 0);
	CHECK_INT(m.out, 0);
	CHECK(m.in > 19000);
	CHECK_INT(m.since, 0);
}

/* The example of the header. */
static void test_three_times(void)
{
	weir_time now = 100 * WEIR_SEC, quiet;
	int said;

	start(one, 1);
	CHECK_INT(send(&now, 120 * WEIR_SEC, 0.31), 1);
	CHECK(m.since > 100 * WEIR_SEC && m.since < 101 * WEIR_SEC);
	CHECK_INT(m.broke, 0);
	CHECK_NEAR(m.excess, 3.1, 0.02);
	CHECK_INT(m.over, 60 * WEIR_SEC);
	/* a request that the buckets admit is in profile */
	CHECK_NEAR((double)m.in, 0.1 * 120 * 1000, 200);
	quiet = now;
	said = send(&now, 30 * WEIR_SEC, 0.05);
	CHECK_INT(said, -1);
	CHECK_INT(m.since, 0);
	CHECK(m.out_at < quiet + WEIR_SEC);
}

/* A burst breaks the pair of the highest rate, a long load that of the least. */
static void test_pairs(void)
{
	const struct weir_bucket_spec two[] = {{.rate = 1 * S, .size = 4 * (double)WEIR_MS},
		{.rate = 0.1 * S, .size = 50 * (double)WEIR_MS}};
	weir_time now = 100 * WEIR_SEC;

	start(two, 2);
	for (int i = 0; i < 20; i++)
		meister_meter_add(&m, now, (double)WEIR_MS);
	CHECK_INT(m.broke, 0);
	CHECK_INT(m.in, 4);
	/* 20 ms of work at once, where 4 were planned */
	CHECK_NEAR(m.excess, 5, 1e-6);
	CHECK_INT(m.over, 0);
	start(two, 2);
	send(&now, 5 * WEIR_SEC, 0.5);
	CHECK_INT(m.broke, 1);
}

/* A request beyond a bucket's size is larger than any in the trace: out of profile at once, even if the slack would make up for it.
 * The gate does not charge it, so it takes nothing from the next. */
static void test_large(void)
{
	start(one, 1);
	meister_meter_add(&m, 100 * WEIR_SEC, 30 * (double)WEIR_MS);
	CHECK_INT(m.in, 0);
	CHECK_INT(m.out, 1);
	CHECK_NEAR(m.excess, 3, 1e-6);
	CHECK_INT(m.since, 100 * WEIR_SEC);
	meister_meter_add(&m, 100 * WEIR_SEC, 10 * (double)WEIR_MS);
	CHECK_INT(m.in, 1);
	start(one, 1);
	meister_meter_add(&m, 100 * WEIR_SEC, 10.5 * (double)WEIR_MS);
	CHECK_INT(m.out, 1);
}

/* Long silence, and time that goes back: nothing is negative or counted twice. */
static void test_any_time(void)
{
	struct rng rng;
	weir_time now = 100 * WEIR_SEC;

	rng_init(&rng, 1, "meter");
	start(one, 1);
	for (int i = 0; i < 200000; i++) {
		now += (weir_time)(rng_below(&rng, 1000) ? rng_exp(&rng, 1e7)
							 : 1e12 * rng_double(&rng));
		meister_meter_add(
			&m, now - (weir_time)rng_below(&rng, 2) * WEIR_MS, rng_exp(&rng, 1e6));
		if (rng_below(&rng, 50) == 0)
			meister_meter_tick(&m, now);
		CHECK(m.level[0] <= one[0].size && isfinite(m.excess) && m.excess < 1000);
	}
	CHECK_INT(m.in + m.out, 200000);
}

/* A trace that follows its border, with arrivals that jitter by less than the slack: nothing is said. Without a slack half of them are
 * out; beyond the slack they are out, and by how much is known from the first on. */
static void test_jitter(void)
{
	const struct weir_bucket_spec border[] = {{.rate = S, .size = (double)WEIR_MS},
		{.rate = 0.5 * S, .size = 10 * (double)WEIR_MS}};
	const weir_time slack[] = {0, 60 * WEIR_US, 60 * WEIR_US}, jitter[] = {50, 50, 900};
	struct rng rng;

	rng_init(&rng, 1, "jitter");
	for (int k = 0; k < 3; k++) {
		weir_time now = 100 * WEIR_SEC, at;
		int said = 0;

		meister_meter_start(&m, border, 2, slack[k], now);
		for (int i = 0; i < 20000; i++) {
			at = now + (weir_time)rng_below(&rng, (uint64_t)(jitter[k] * WEIR_US) + 1);
			meister_meter_add(&m, at, (double)WEIR_MS);
			/* 15 in a row, then as long a pause */
			now += i % 15 == 14 ? 16 * WEIR_MS : WEIR_MS;
			if (i % 500 == 0)
				said += meister_meter_tick(&m, at);
		}
		CHECK_INT(said, k == 1 ? 0 : 1);
		CHECK(k == 1 ? m.out == 0 && !m.since : m.out > 1000 && m.since);
		CHECK(k == 1 || (m.excess > 1 && m.excess < 2));
	}
}

/* Requests of one time that are added up count as if the bucket had paid for each at once: a tick before every request keeps the
 * other meter from adding any. */
static void test_one_time(void)
{
	const struct weir_bucket_spec two[] = {{.rate = 4 * S, .size = 6 * (double)WEIR_MS},
		{.rate = 0.5 * S, .size = 40 * (double)WEIR_MS}};
	struct meister_meter each;
	weir_time now = 100 * WEIR_SEC;
	uint64_t covered = 0;
	struct rng rng;

	rng_init(&rng, 1, "one time");
	start(two, 2);
	each = m;
	for (int i = 0; i < 50000; i++) {
		double cost = floor(rng_exp(&rng, 5e5));

		now += rng_below(&rng, 4) ? 0 : (weir_time)rng_exp(&rng, 5e6);
		covered += now <= m.last && cost <= m.room;
		meister_meter_add(&m, now, cost);
		meister_meter_tick(&each, each.last);
		meister_meter_add(&each, now, cost);
		CHECK_INT(m.in, each.in);
		CHECK_INT(m.out, each.out);
		CHECK_INT(m.since, each.since);
	}
	CHECK(m.out > 1000 && covered > 10000);
	meister_meter_tick(&m, now);
	meister_meter_tick(&each, now);
	CHECK_NEAR(m.excess, each.excess, 1e-6);
	CHECK_NEAR(m.level[1], each.level[1], 1);
	CHECK_NEAR(m.work[1], each.work[1], 1);
	CHECK_NEAR(m.bins[1].work, each.bins[1].work, 1);
}

int main(void)
{
	RUN(test_one_time);
	RUN(test_in_profile);
	RUN(test_three_times);
	RUN(test_pairs);
	RUN(test_large);
	RUN(test_any_time);
	RUN(test_jitter);
	return 0;
}
