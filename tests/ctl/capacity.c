/* SPDX-License-Identifier: BSD-3-Clause */
/* capacity: right after steps of the true capacity, blind to idle phases, not fooled by noise. */
#include "base/rng.h"
#include "ctl/capacity.h"
#include "test.h"

#define TICK (100 * WEIR_MS)
#define IO   8192

struct world { /* a device that serves `rate` a second while saturated */
	struct capacity c;
	struct capacity_totals totals;
	weir_time now;
	double owed;
	struct rng rng;
};

static void start(struct world *w)
{
	memset(w, 0, sizeof(*w));
	capacity_init(&w->c, NULL);
	w->now = 77 * WEIR_SEC; /* neither clock nor counters start at 0 */
	w->totals = (struct capacity_totals){123456, 99, 5 * WEIR_SEC};
	rng_init(&w->rng, 42, "capacity");
}

/* For `span`: offered `load` (share of the rate) and the window full for the share `full`. */
static void run(
	struct world *w, weir_time span, double rate, double load, double full, double noise)
{
	for (weir_time t = 0; t < span; t += TICK) {
		double n = rate * load * (double)TICK / WEIR_SEC;
		uint64_t whole;

		w->owed += fmax(0, n + noise * sqrt(n) * rng_normal(&w->rng));
		whole = (uint64_t)w->owed;
		w->owed -= (double)whole;
		w->now += TICK;
		w->totals.requests += whole;
		w->totals.bytes += whole * IO;
		w->totals.full += (weir_time)(full * (double)TICK);
		capacity_step(&w->c, w->now, &w->totals);
	}
}

static void test_unknown_until_saturated(void)
{
	struct world w;

	start(&w);
	run(&w, 60 * WEIR_SEC, 1000, 0.5, 0.1, 0);
	CHECK(!capacity_known(&w.c));
	CHECK_INT(w.c.seen, 0);
	run(&w, 2 * WEIR_SEC, 1000, 1, 1, 0);
	CHECK(capacity_known(&w.c));
	CHECK_NEAR(w.c.rate[0], 1000, 0.01);
	CHECK_NEAR(w.c.rate[1], 1000.0 * IO, 0.01);
}

static void test_step_up_at_once(void)
{
	struct world w;

	start(&w);
	run(&w, 20 * WEIR_SEC, 1000, 1, 1, 0);
	run(&w, 3 * WEIR_SEC, 2500, 1, 1, 0);
	CHECK_NEAR(w.c.rate[0], 2500, 0.05);
}

static void test_step_down(void)
{
	struct world w;

	start(&w);
	run(&w, 20 * WEIR_SEC, 2000, 1, 1, 0);
	run(&w, 10 * WEIR_SEC, 1000, 1, 1, 0);
	/* one time constant: 1/e of the way is left */
	CHECK_NEAR(w.c.rate[0], 1000 + 1000 * exp(-1), 0.08);
	run(&w, 25 * WEIR_SEC, 1000, 1, 1, 0);
	CHECK_NEAR(w.c.rate[0], 1000, 0.05);
	CHECK_NEAR(w.c.rate[1], 1000.0 * IO, 0.05);
}

static void test_idle_teaches_nothing(void)
{
	struct world w;

	start(&w);
	run(&w, 20 * WEIR_SEC, 1000, 1, 1, 0);
	run(&w, 600 * WEIR_SEC, 1000, 0, 0, 0);
	CHECK_NEAR(w.c.rate[0], 1000, 0.01);
	run(&w, 600 * WEIR_SEC, 1000, 0.3, 0.3, 0);
	CHECK_NEAR(w.c.rate[0], 1000, 0.01);
	/* busy for half of every second, off the interval's beat */
	for (int i = 0; i < 300; i++) {
		run(&w, 500 * WEIR_MS, 1000, 1, 1, 0);
		run(&w, 700 * WEIR_MS, 1000, 0, 0, 0);
	}
	CHECK_NEAR(w.c.rate[0], 1000, 0.01);
}

/* Full for 85 % of the time, and nearly nothing done in the rest: 0.85 of the capacity is served,
 * and the estimate must not sink to it. */
static void test_bounds_bracket(void)
{
	struct world w;

	start(&w);
	run(&w, 20 * WEIR_SEC, 1000, 1, 1, 0);
	run(&w, 300 * WEIR_SEC, 1000, 0.85, 0.85, 0);
	CHECK_NEAR(w.c.rate[0], 1000, 0.01);
}

static void test_noise(void)
{
	struct world w;

	for (int rate = 100; rate <= 100000; rate *= 10) {
		start(&w);
		run(&w, 60 * WEIR_SEC, rate, 1, 1, 1);
		for (int i = 0; i < 100; i++) {
			run(&w, 3 * WEIR_SEC, rate, 1, 1, 1);
			CHECK_NEAR(w.c.rate[0], rate, 0.08);
		}
		run(&w, 30 * WEIR_SEC, rate * 3, 1, 1, 1);
		CHECK_NEAR(w.c.rate[0], rate * 3, 0.08);
	}
}

static void test_a_hang_and_a_stopped_clock(void)
{
	struct world w;
	struct capacity before;

	start(&w);
	run(&w, 20 * WEIR_SEC, 1000, 1, 1, 0);
	before = w.c;
	run(&w, 30 * WEIR_SEC, 0, 1, 1, 0);
	/* the one interval that was partly busy may lower it a little, the 29 others not at all */
	CHECK_NEAR(w.c.rate[0], before.rate[0], 0.01);
	before = w.c;
	w.totals.requests += 1000000;
	CHECK(!capacity_step(&w.c, w.now, &w.totals));
	CHECK(!capacity_step(&w.c, w.now - 5 * WEIR_SEC, &w.totals));
	CHECK_NEAR(w.c.rate[0], before.rate[0], 1e-12);
}

static void test_config(void)
{
	struct capacity c;
	struct capacity_config config = {
		.interval = 10 * WEIR_MS, .settle = WEIR_SEC, .saturated = 0.5};
	struct capacity_totals t = {0, 0, 0};

	capacity_init(&c, &config);
	CHECK(!capacity_step(&c, 0, &t));
	t = (struct capacity_totals){100, 100 * IO, 6 * WEIR_MS};
	CHECK(!capacity_step(&c, 9 * WEIR_MS, &t));
	CHECK(capacity_step(&c, 10 * WEIR_MS, &t));
	CHECK_NEAR(c.rate[0], 10000, 1e-9);
	CHECK_INT(c.seen, 10 * WEIR_MS);
}

int main(void)
{
	RUN(test_unknown_until_saturated);
	RUN(test_step_up_at_once);
	RUN(test_step_down);
	RUN(test_idle_teaches_nothing);
	RUN(test_bounds_bracket);
	RUN(test_noise);
	RUN(test_a_hang_and_a_stopped_clock);
	RUN(test_config);
	return 0;
}
