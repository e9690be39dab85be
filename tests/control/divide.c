/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide: the parts of a limit never add up to more than the limit, however late gates apply them;
 * all of a binding limit is used where there is demand; quickly; and parts stay as they are while
 * nothing changes.
 */
#include "control/divide.h"
#include "base/rng.h"
#include "test.h"

enum { GATES = 9, FLOWS = 2 * GATES };

static struct divide_gate gate[GATES];
static struct divide_flow flow[FLOWS];
static struct divide_part part[DIVIDE_LIMITS * GATES];
static struct divide d;

static void start(size_t gates, size_t flows, size_t limits)
{
	memset(gate, 0, sizeof(gate));
	memset(flow, 0, sizeof(flow));
	d = (struct divide){gates, flows, limits, gate, flow, part};
	for (size_t l = 0; l < limits; l++)
		divide_start(&part[l * gates], gates);
	for (size_t f = 0; f < flows; f++)
		flow[f].gate = f % gates;
}

/* A gate that has not yet applied its new part may be anywhere between the old one and the new
 * one. */
static void check_in_force(void)
{
	for (size_t l = 0; l < d.limits; l++) {
		double sum = 0;

		for (size_t g = 0; g < d.gates; g++) {
			const struct divide_part *p = &part[l * d.gates + g];

			sum += fmax(p->applied, p->told);
			CHECK(p->told > 0); /* no gate gets nothing */
		}
		CHECK(sum <= 1);
	}
}

static bool step(void)
{
	bool told;

	divide_targets(&d);
	told = divide_tell(&d);
	check_in_force();
	return told;
}

/* The gate applies its part. */
static void apply(size_t g)
{
	for (size_t l = 0; l < d.limits; l++)
		part[l * d.gates + g].applied = part[l * d.gates + g].told;
	gate[g].busy = false;
}

static unsigned settle(unsigned most)
{
	for (unsigned k = 0; k < most; k++) {
		if (!step())
			return k;
		for (size_t g = 0; g < d.gates; g++)
			apply(g);
	}
	return most;
}

static void test_one_wants_all(void)
{
	start(2, 2, 1);
	gate[0].present = gate[1].present = true;
	CHECK_NEAR(part[0].applied, 0.5, 1e-9);
	flow[0].want[0] = 5;
	CHECK(step());
	CHECK_NEAR(part[0].told, 0.5, 1e-6); /* the other gate has not given up its part yet */
	CHECK_NEAR(part[1].told, 1.0 / 128, 1e-9);
	gate[1].busy = true; /* has not applied its part yet */
	for (int i = 0; i < 5; i++) {
		step();
		CHECK_NEAR(part[0].told, 0.5, 1e-6);
		apply(0);
	}
	apply(1);
	CHECK(step());
	CHECK_NEAR(part[0].told, 1 - 1.0 / 128, 1e-6);
	apply(0);
	/* The other gate becomes busy: it gets a little at once, and its half two steps later. */
	flow[1].want[0] = 5;
	step();
	apply(0);
	apply(1);
	step();
	CHECK_NEAR(part[0].told, 0.5, 1e-6);
	CHECK_NEAR(part[1].told, 0.5, 1e-6);
}

static void test_fair(void)
{
	start(4, 4, 1);
	for (int i = 0; i < 3; i++)
		gate[i].present = true;
	flow[0].want[0] = 0.1;
	flow[1].want[0] = 9e6;
	flow[2].want[0] = 0.6;
	CHECK(settle(10) <= 3);
	/* 1/1024 stays at the idle gate, 0.1 at the first; the other two share the rest. */
	CHECK_NEAR(part[0].applied, 0.1, 1e-6);
	CHECK_NEAR(part[1].applied, (1 - 1.0 / 1024 - 0.1) / 2, 1e-6);
	CHECK_NEAR(part[2].applied, part[1].applied, 1e-6);
	CHECK_NEAR(part[3].applied, 1.0 / 1024, 1e-6);
}

/* Demand is low: the rest is spread over the gates, so that each can start to use more at once. */
static void test_spread(void)
{
	start(3, 3, 1);
	gate[0].present = gate[1].present = true;
	flow[0].want[0] = 0.1;
	settle(10);
	CHECK(part[0].applied > 0.5 && part[1].applied > 0.4);
	CHECK_NEAR(part[0].applied + part[1].applied + part[2].applied, 1, 1e-6);
	CHECK_NEAR(part[2].applied, 1.0 / 1024, 1e-3);
}

static void test_no_demand(void)
{
	start(3, 3, 1);
	CHECK(!step());
	for (int i = 0; i < 3; i++)
		CHECK_NEAR(part[i].told, 1.0 / 3, 1e-9);
}

/* Noise does not change the parts. */
static void test_quiet(void)
{
	start(2, 2, 1);
	gate[0].present = gate[1].present = true;
	flow[0].want[0] = 0.5;
	flow[1].want[0] = 0.9;
	settle(10);
	for (int i = 0; i < 100; i++) {
		flow[0].want[0] = 0.5 + 0.0004 * (i % 3 - 1);
		CHECK(!step());
	}
}

/* 4k iops and 40 MiB/s, 4 KiB at one gate and 64 KiB at the other, as in divide.c's example. */
static void test_two_limits(void)
{
	double requests[2] = {1e6, 1e5}, bytes[2] = {4096, 65536};

	start(2, 2, 2);
	for (int i = 0; i < 2; i++) {
		gate[i].present = true;
		flow[i].want[0] = requests[i] / 4000;
		flow[i].want[1] = requests[i] * bytes[i] / (40 << 20);
	}
	CHECK(settle(10) <= 3);
	CHECK_NEAR(part[2].applied * (40 << 20) / 4096, 2876, 0.001);
	CHECK_NEAR(part[3].applied * (40 << 20) / 65536, 460, 0.001);
	/* Each gets the requests that it can use, and half of the rest. */
	CHECK_NEAR(part[0].applied * 4000, 2876 + 332, 0.001);
	CHECK_NEAR(part[1].applied * 4000, 460 + 332, 0.001);
}

/* Reads at one gate and writes at the other: each gets all of its own limit but the other's
 * floor. */
static void test_apart(void)
{
	start(2, 2, 2);
	gate[0].present = gate[1].present = true;
	flow[0].want[0] = 3;
	flow[1].want[1] = 7;
	settle(10);
	CHECK_NEAR(part[0].applied, 1 - 1.0 / 128, 1e-6);
	CHECK_NEAR(part[3].applied, 1 - 1.0 / 128, 1e-6);
}

/* ---- random demand, and gates that apply parts late and in any order */

/* Return the part of its demand that flow f can use: its gate's parts, shared with the other
 * flows there. */
static double served(size_t f)
{
	double part_of = 1;

	for (size_t l = 0; l < d.limits; l++) {
		double wants = 0;

		for (size_t k = 0; k < d.flows; k++)
			wants += flow[k].gate == flow[f].gate ? flow[k].want[l] : 0;
		if (flow[f].want[l] > 0)
			part_of = fmin(part_of, part[l * d.gates + flow[f].gate].applied / wants);
	}
	return part_of;
}

/* With one flow per gate: no flow lacks anything while all of its limits have something left. */
static void check_used(void)
{
	double used[DIVIDE_LIMITS] = {0};

	for (size_t f = 0; f < d.flows; f++)
		for (size_t l = 0; l < d.limits; l++)
			used[l] += served(f) * flow[f].want[l];
	for (size_t f = 0; f < d.flows; f++) {
		bool bound = served(f) >= 1 - 1e-6;

		for (size_t l = 0; l < d.limits; l++) {
			CHECK(used[l] <= 1);
			bound |= flow[f].want[l] > 0 && used[l] >= 1 - divide_slack(d.gates);
		}
		CHECK(bound);
	}
}

static void random_wants(struct rng *r)
{
	for (size_t f = 0; f < d.flows; f++)
		for (size_t l = 0; l < d.limits && rng_below(r, 8) == 0; l++)
			flow[f].want[l] = rng_below(r, 3) * rng_double(r);
}

static void random_case(uint64_t seed)
{
	struct rng r;
	size_t n;
	bool two;

	rng_init(&r, seed, "divide");
	n = 1 + rng_below(&r, GATES);
	two = rng_below(&r, 2);
	start(n, two ? 2 * n : n, 1 + rng_below(&r, DIVIDE_LIMITS));
	for (int k = 0; k < 200; k++) {
		random_wants(&r);
		for (size_t g = 0; g < n; g++) {
			if (rng_below(&r, 20) == 0)
				gate[g].present = !gate[g].present;
			if (gate[g].busy && rng_below(&r, 3) == 0)
				apply(g);
		}
		step();
		for (size_t i = 0; i < n * d.limits; i++)
			gate[i % n].busy |= part[i].told != part[i].applied;
	}
	/* When it settles, all demand that fits is met. */
	for (size_t g = 0; g < n; g++)
		apply(g);
	CHECK(settle(20) <= 4);
	if (!two)
		check_used();
}

static void test_random(void)
{
	for (uint64_t seed = 1; seed <= 400; seed++)
		random_case(seed);
}

int main(void)
{
	RUN(test_one_wants_all);
	RUN(test_fair);
	RUN(test_spread);
	RUN(test_no_demand);
	RUN(test_quiet);
	RUN(test_two_limits);
	RUN(test_apart);
	RUN(test_random);
	return 0;
}
