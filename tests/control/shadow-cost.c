/* SPDX-License-Identifier: BSD-3-Clause */
/* shadow-cost: the part of a request's cost that depends on its size is found within its error. */
#include "control/shadow-cost.h"
#include "base/rng.h"
#include "test.h"
#include <math.h>

struct busy { /* a device that always has a queue: a request takes fixed + page · pages, ± noise */
	double fixed, page, noise;
	uint32_t most; /* pages */
};

static void run(const struct busy *b, struct shadow_cost *c)
{
	weir_time now = WEIR_SEC;
	struct rng g;

	rng_init(&g, 1, "cost");
	memset(c, 0, sizeof(*c));
	for (int i = 0; i < 20000; i++) {
		struct shadow_work own = {1, (double)(1 + rng_below(&g, b->most))};
		double ns = b->fixed + b->page * own.pages;

		now += (weir_time)(ns * (1 - b->noise) + rng_exp(&g, ns * b->noise));
		shadow_cost_learn(c, now, &own, true);
	}
}

static double part_of(const struct busy *b)
{
	return b->page * (b->most + 1) / 2 / (b->fixed + b->page * (b->most + 1) / 2);
}

static void test_devices(void)
{
	static const struct busy all[] = {{1e6, 0, 0, 16}, {0, 1e5, 0, 16}, {5e5, 1e5, 0, 8},
		{1e6, 0, 1, 16}, {0, 1e5, 1, 16}, {5e5, 1e5, 1, 8}};
	struct shadow_cost c;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		run(&all[i], &c);
		printf("  part %.2f, is %.2f ± %.2f\n", part_of(&all[i]), c.part, c.error);
		CHECK(fabs(c.part - part_of(&all[i])) <= 2 * c.error + 0.01);
		CHECK(c.error <= 0.15); /* 312 blocks whose pages vary by 7 %, and times by 16 % */
	}
}

/* One size: nothing is learned, any unit is right for that size, and others have a wide error. */
static void test_one_size(void)
{
	struct busy b = {5e5, 1e5, 1, 1};
	struct shadow_work same = {10, 10}, large = {10, 160};
	struct shadow_cost c;

	run(&b, &c);
	CHECK(c.error >= 0.25);
	CHECK_NEAR(shadow_cost_of(&c, &same), 10, 0.001);
	CHECK_NEAR(shadow_cost_error(&c, &same), 1, 0.001);
	CHECK(shadow_cost_error(&c, &large) > 1.5);
}

/* A device without a queue says nothing about costs. */
static void test_idle(void)
{
	struct shadow_work own = {1, 4};
	struct shadow_cost c;

	memset(&c, 0, sizeof(c));
	for (weir_time i = 0; i < 1000; i++)
		shadow_cost_learn(&c, WEIR_SEC + i * WEIR_MS, &own, false);
	CHECK(c.n < 1);
	CHECK(c.error >= 0.25);
}

int main(void)
{
	RUN(test_devices);
	RUN(test_one_size);
	RUN(test_idle);
	return 0;
}
