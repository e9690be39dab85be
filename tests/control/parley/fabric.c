/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric: a limit over racks is divided by what they use and kept; racks come, fall silent and return; of two leaders one counts. */
#include "control/parley/fabric.h"
#include "base/rng.h"
#include "test.h"
#include <errno.h>
#include <math.h>

#define MBIT  125000.
#define RACKS 8
#define CHILD 2

static const uint32_t ids[] = {7, 4000000000u, 9};
static const char *const names[RACKS] = {"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"};
static weir_time now;

/* Services: one with a max in the fabric, a parent with one, its child. */
static struct fabric *open_fabric(double max)
{
	static struct parley_service s[3];
	struct fabric *f;

	for (int i = 0; i < 3; i++)
		s[i] = (struct parley_service){0, INFINITY, 1, 0, INFINITY, 1, -1};
	s[0].max = max;
	s[0].leaf_min = 3 * MBIT;
	s[1].max = 60 * MBIT;
	s[CHILD].parent = 1;
	now = WEIR_SEC;
	CHECK_INT(fabric_new(&(struct fabric_config){ids, {s, s}, 3, FABRIC_PERIOD}, &f), 0);
	return f;
}

static double limit(const struct fabric *f, size_t rack, size_t service, int dir)
{
	uint64_t words[3];

	CHECK_INT(fabric_limits(f, rack, words), 3);
	for (int i = 0; i < 3; i++) {
		struct usage u = usage_unpack(words[i]);

		if (u.service == ids[service])
			return dir == FABRIC_IN ? u.in : u.out;
	}
	return -1;
}

static int report(struct fabric *f, int rack, const char *machine, size_t service, double out)
{
	uint64_t word = usage_pack(&(struct usage){ids[service], 0, out});

	return fabric_hear(f, names[rack], machine, &word, 1, now);
}

/* Racks that all want more: each round they use what they are allowed, up to `most`. */
static double run(struct fabric *f, int racks, size_t service, double most, int rounds)
{
	double sum = 0;

	for (int i = 0; i < rounds; i++) {
		sum = 0;
		for (int r = 0; r < racks; r++) {
			size_t at = fabric_find(f, names[r]);
			double may = at != SIZE_MAX ? limit(f, at, service, FABRIC_OUT) : INFINITY;
			double use = fmin(may, most);

			sum += use;
			CHECK_INT(report(f, r, "m1", service, use), FABRIC_TAKEN);
		}
		CHECK_INT(fabric_step(f, now), 0);
		now += FABRIC_PERIOD;
	}
	return sum;
}

static void shares_one_limit(void)
{
	struct fabric *f = open_fabric(100 * MBIT);

	CHECK(run(f, 4, 0, 80 * MBIT, 6) <= 100.1 * MBIT);
	for (size_t r = 0; r < 4; r++)
		CHECK(fabs(limit(f, r, 0, FABRIC_OUT) - 25 * MBIT) < MBIT / 10);
	CHECK_INT(limit(f, 0, 0, FABRIC_IN) == USAGE_MAX, 1); /* nothing arrives: not limited */
	/* More racks: what the first ones have falls. */
	CHECK(run(f, RACKS, 0, 80 * MBIT, 6) <= 100.1 * MBIT);
	for (size_t r = 0; r < RACKS; r++)
		CHECK(fabs(limit(f, r, 0, FABRIC_OUT) - 12.5 * MBIT) < MBIT / 10);
	/* A child under its parent's max. */
	CHECK(run(f, 3, CHILD, 80 * MBIT, 6) <= 60.1 * MBIT);
	fabric_free(f);
}

static void forgets_no_silent_rack(void)
{
	struct fabric *f = open_fabric(100 * MBIT);

	run(f, 4, 0, 80 * MBIT, 6);
	for (int i = 0; i < FABRIC_STALE - 1; i++) { /* the last one is silent */
		run(f, 3, 0, 80 * MBIT, 1);
		CHECK(fabs(limit(f, 0, 0, FABRIC_OUT) - 25 * MBIT) < MBIT / 10);
	}
	run(f, 3, 0, 80 * MBIT, 8); /* it counts with its min of 3 */
	CHECK(fabs(limit(f, 0, 0, FABRIC_OUT) - 97 * MBIT / 3) < MBIT / 10);
	run(f, 4, 0, 80 * MBIT, 6);
	CHECK(fabs(limit(f, 3, 0, FABRIC_OUT) - 25 * MBIT) < MBIT / 10);
	fabric_free(f);
}

static void hears_one_leader(void)
{
	struct fabric *f = open_fabric(100 * MBIT);
	struct fabric_rack k;

	CHECK_INT(report(f, 0, "m2", 0, 10 * MBIT), FABRIC_TAKEN);
	CHECK_INT(report(f, 0, "m1", 0, 20 * MBIT), FABRIC_TAKEN); /* lower */
	CHECK_INT(report(f, 0, "m2", 0, 30 * MBIT), FABRIC_LED);
	CHECK(fabs(fabric_usage(f, FABRIC_OUT, 0) - 20 * MBIT) < MBIT / 10);
	now += 2 * FABRIC_PERIOD + 1;
	CHECK_INT(report(f, 0, "m2", 0, 30 * MBIT), FABRIC_TAKEN); /* m1 is silent */
	fabric_rack(f, 0, &k);
	CHECK_STR(k.leader, "m2");
	CHECK_INT(k.led, 1);
	fabric_free(f);
}

static void adopts_what_was_heard(void)
{
	struct fabric *f = open_fabric(100 * MBIT), *next = open_fabric(40 * MBIT);

	run(f, 4, 0, 80 * MBIT, 6);
	CHECK_INT(fabric_adopt(next, f), 0);
	CHECK_INT(fabric_racks(next), 4);
	CHECK_INT(fabric_step(next, now), 0);
	for (size_t r = 0; r < 4; r++)
		CHECK(fabs(limit(next, r, 0, FABRIC_OUT) - 10 * MBIT) < MBIT / 10);
	fabric_free(f);
	fabric_free(next);
}

/* Whatever racks report, limits of a service that is used are never more than its max together. */
static void never_over(void)
{
	struct rng rng;
	struct fabric *f = open_fabric(100 * MBIT);

	rng_init(&rng, 1, "usage");
	for (int i = 0; i < 300; i++) {
		double used = 0, may = 0;
		bool all = true;

		for (int r = 0; r < RACKS; r++) {
			double out = rng_double(&rng) * 60 * MBIT;

			used += out;
			report(f, r, "m", 0, out);
		}
		CHECK_INT(fabric_step(f, now), 0);
		for (size_t r = 0; r < RACKS; r++) {
			may += limit(f, r, 0, FABRIC_OUT);
			all = all && limit(f, r, 0, FABRIC_OUT) < USAGE_MAX;
		}
		CHECK(used < 51 * MBIT || (all && may < 100.1 * MBIT));
		now += FABRIC_PERIOD;
	}
	fabric_free(f);
}

static void refuses(void)
{
	const uint32_t twins[] = {7, 7};
	struct parley_service s[2] = {
		{0, INFINITY, 1, 0, INFINITY, 1, 1}, {0, INFINITY, 1, 0, INFINITY, 1, -1}};
	struct fabric *f;

	CHECK_INT(fabric_new(&(struct fabric_config){twins, {s, s}, 2, 1}, &f), -EINVAL);
	s[0].parent = -1;
	CHECK_INT(fabric_new(&(struct fabric_config){twins, {s, s}, 2, 1}, &f), -EEXIST);
}

int main(void)
{
	RUN(shares_one_limit);
	RUN(forgets_no_silent_rack);
	RUN(hears_one_leader);
	RUN(adopts_what_was_heard);
	RUN(never_over);
	RUN(refuses);
	return 0;
}
