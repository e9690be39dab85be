/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide: never more than the total in force together, whenever gates do what they are told; all of
 * it used where it is wanted; quick; and quiet when nothing changes.
 */
#include "ctl/divide.h"
#include "base/rng.h"
#include "test.h"

#define MOST 9

/* What may be in force: a gate that was told is somewhere between. */
static double worst(const struct divide_gate *g, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fmax(g[i].applied, g[i].told);
	return sum;
}

/* All do at once what they are told. */
static unsigned settle(double total, struct divide_gate *g, size_t n, unsigned most)
{
	for (unsigned k = 0; k < most; k++) {
		if (!divide_step(total, g, n))
			return k;
		CHECK(worst(g, n) <= total);
		for (size_t i = 0; i < n; i++)
			g[i].applied = g[i].told;
	}
	return most;
}

static void test_one_wants_all(void)
{
	struct divide_gate g[2] = {{.present = true}, {.present = true}};

	divide_start(1000, g, 2);
	CHECK_NEAR(g[0].applied, 500, 1e-9);
	g[0].demand = 5000;
	CHECK(divide_step(1000, g, 2));
	CHECK_NEAR(g[0].told, 500, 0.01); /* nothing is free yet */
	CHECK_NEAR(g[1].told, 1000.0 / 128, 1e-9);
	g[1].busy = true; /* has not done it yet */
	for (int i = 0; i < 5; i++) {
		divide_step(1000, g, 2);
		CHECK_NEAR(g[0].told, 500, 0.01);
		g[0].applied = g[0].told;
	}
	g[1].busy = false;
	g[1].applied = g[1].told;
	CHECK(divide_step(1000, g, 2));
	CHECK_NEAR(g[0].told, 1000 - 1000.0 / 128, 1e-6);
	g[0].applied = g[0].told;
	/* The other one wakes up: it has a little at once, and its half two steps later. */
	g[1].demand = 5000;
	divide_step(1000, g, 2);
	g[0].applied = g[0].told;
	g[1].applied = g[1].told;
	divide_step(1000, g, 2);
	CHECK_NEAR(g[0].told, 500, 0.01);
	CHECK_NEAR(g[1].told, 500, 0.01);
}

static void test_fair(void)
{
	struct divide_gate g[4] = {{.demand = 100, .present = true},
		{.demand = 9e9, .present = true}, {.demand = 600, .present = true},
		{.present = false}};

	divide_start(1000, g, 4);
	CHECK(settle(1000, g, 4, 10) <= 3);
	/* 1/1024 stays where nobody is; the rest: 100, and the other two share. */
	CHECK_NEAR(g[0].applied, 100, 0.02);
	CHECK_NEAR(g[1].applied, (1000 - 1000.0 / 1024 - 100) / 2, 0.01);
	CHECK_NEAR(g[2].applied, g[1].applied, 0.01);
	CHECK_NEAR(g[3].applied, 1000.0 / 1024, 1e-6);
}

/* Little is wanted: the rest is there for whoever is first to want more. */
static void test_spread(void)
{
	struct divide_gate g[3] = {
		{.demand = 100, .present = true}, {.present = true}, {.present = false}};

	divide_start(1000, g, 3);
	settle(1000, g, 3, 10);
	CHECK(g[0].applied > 500 && g[1].applied > 400);
	CHECK_NEAR(g[0].applied + g[1].applied + g[2].applied, 1000, 1e-3);
	CHECK_NEAR(g[2].applied, 1000.0 / 1024, 1e-3);
}

static void test_nobody(void)
{
	struct divide_gate g[3] = {{.demand = 0}};

	divide_start(1, g, 3);
	CHECK(!divide_step(1, g, 3));
	for (int i = 0; i < 3; i++)
		CHECK_NEAR(g[i].told, 1.0 / 3, 1e-9);
}

/* Noise is not passed on. */
static void test_quiet(void)
{
	struct divide_gate g[2] = {
		{.demand = 0.5, .present = true}, {.demand = 0.9, .present = true}};

	divide_start(1, g, 2);
	settle(1, g, 2, 10);
	for (int i = 0; i < 100; i++) {
		g[0].demand = 0.5 + 0.0004 * (i % 3 - 1);
		CHECK(!divide_step(1, g, 2));
	}
}

/* ---- random demands, and gates that do things late and in any order */

static void random_case(uint64_t seed)
{
	struct divide_gate g[MOST] = {{.demand = 0}};
	struct rng r;
	double total, sum, wanted;
	size_t n;

	rng_init(&r, seed, "divide");
	n = 1 + rng_below(&r, MOST);
	total = pow(10, (double)rng_below(&r, 10) - 2);
	divide_start(total, g, n);
	for (int step = 0; step < 400; step++) {
		for (size_t i = 0; i < n; i++) {
			if (rng_below(&r, 8) == 0)
				g[i].demand = rng_below(&r, 3) * rng_double(&r) * total;
			if (rng_below(&r, 20) == 0)
				g[i].present = !g[i].present;
			if (g[i].busy && rng_below(&r, 3) == 0) {
				g[i].applied = g[i].told;
				g[i].busy = false;
			}
		}
		divide_step(total, g, n);
		CHECK(worst(g, n) <= total);
		for (size_t i = 0; i < n; i++) {
			CHECK(g[i].told > 0); /* nobody is shut out */
			g[i].busy = g[i].told != g[i].applied;
		}
	}
	/* It becomes quiet: all wanted that fits is given. */
	for (size_t i = 0; i < n; i++) {
		g[i].applied = g[i].told;
		g[i].busy = false;
	}
	CHECK(settle(total, g, n, 20) <= 4);
	sum = wanted = 0;
	for (size_t i = 0; i < n; i++) {
		sum += fmin(g[i].applied, g[i].demand);
		wanted += fmin(g[i].demand, total);
	}
	CHECK(sum >= fmin(wanted, total) - total * divide_slack(n));
}

static void test_random(void)
{
	for (uint64_t seed = 1; seed <= 2000; seed++)
		random_case(seed);
}

int main(void)
{
	RUN(test_one_wants_all);
	RUN(test_fair);
	RUN(test_spread);
	RUN(test_nobody);
	RUN(test_quiet);
	RUN(test_random);
	return 0;
}
