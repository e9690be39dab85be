/* SPDX-License-Identifier: BSD-3-Clause */
/* knee: found on curves of different shapes, followed when it moves, not fooled by idle times. */
#include "alg/knee.h"
#include "base/rng.h"
#include "test.h"

struct curve {                 /* throughput by latency: sharp, or bending slowly */
	double capacity, base; /* per second; ns of an empty resource */
	bool sharp;
	double demand; /* at most; 0: no end */
};

static double throughput(const struct curve *c, double latency)
{
	double x = latency < c->base ? 0
		   : c->sharp        ? c->capacity
				     : c->capacity * (1 - exp(-2 * (latency / c->base - 1) - 0.3));

	return c->demand > 0 ? fmin(x, c->demand) : x;
}

/* The least latency with 95 %, by looking everywhere. */
static double sweep(const struct curve *c)
{
	for (double l = c->base; l < 1e10; l *= 1.001) {
		if (throughput(c, l) >= 0.95 * throughput(c, 1e10))
			return l;
	}
	return 0;
}

/* Intervals in which the latency asked for is kept as well as it can be, with noise. */
static void run(struct knee *k, const struct curve *c, struct rng *r, int n)
{
	while (n-- > 0) {
		double latency = fmax(k->asked, c->base), x = throughput(c, latency);

		if (c->demand > 0 && x >= c->demand) /* it is all served, sooner */
			for (latency = c->base; throughput(c, latency) < c->demand;)
				latency *= 1.01;
		latency *= 1 + 0.02 * rng_normal(r);
		knee_step(k, latency, x * (1 + 0.01 * rng_normal(r)));
	}
}

static void test_finds_it(void)
{
	static const struct curve curves[] = {{3200, 5e6, true, 0}, {3200, 5e6, false, 0},
		{200, 9e6, false, 0}, {90000, 0.3e6, false, 0}, {90000, 0.3e6, true, 0}};
	struct knee k;
	struct rng r;

	rng_init(&r, 1, "knee");
	for (size_t i = 0; i < sizeof(curves) / sizeof(*curves); i++) {
		knee_init(&k, NULL);
		CHECK_NEAR(k.asked, 100e6, 0);
		run(&k, &curves[i], &r, 400);
		CHECK_NEAR(k.knee, sweep(&curves[i]), 0.2);
	}
}

static void test_follows_it(void)
{
	struct curve slow = {3200, 5e6, false, 0}, fast = {6400, 2e6, false, 0};
	struct knee_config config = {.memory = 200};
	struct knee k;
	struct rng r;

	rng_init(&r, 2, "knee");
	knee_init(&k, &config);
	run(&k, &slow, &r, 400);
	CHECK_NEAR(k.knee, sweep(&slow), 0.2);
	run(&k, &fast, &r, 600);
	CHECK_NEAR(k.knee, sweep(&fast), 0.2);
	run(&k, &slow, &r, 600);
	CHECK_NEAR(k.knee, sweep(&slow), 0.2);
}

static void test_little_demand(void)
{
	struct curve c = {3200, 5e6, false, 0}, quiet = {3200, 5e6, false, 500};
	struct knee k;
	struct rng r;

	rng_init(&r, 3, "knee");
	knee_init(&k, NULL);
	run(&k, &c, &r, 400);
	run(&k, &quiet, &r, 300);
	knee_step(&k, 0, 0); /* and none at all */
	CHECK_NEAR(k.knee, sweep(&c), 0.2);
}

static void test_bounds(void)
{
	struct knee_config config = {.least = 20e6, .most = 40e6};
	struct curve c = {3200, 5e6, true, 0};
	struct knee k;
	struct rng r;

	rng_init(&r, 4, "knee");
	knee_init(&k, &config);
	for (int i = 0; i < 400; i++) {
		run(&k, &c, &r, 1);
		CHECK(k.asked >= 20e6 && k.asked <= 40e6);
	}
	knee_step(&k, NAN, 1);
	knee_step(&k, 1e30, 1);
	knee_step(&k, 1e-30, 1);
	CHECK(k.asked >= 20e6 && k.asked <= 40e6);
}

int main(void)
{
	RUN(test_finds_it);
	RUN(test_follows_it);
	RUN(test_little_demand);
	RUN(test_bounds);
	return 0;
}
