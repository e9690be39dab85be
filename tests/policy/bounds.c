/* SPDX-License-Identifier: BSD-3-Clause */
/* bounds: trees computed by hand, and random ones against the law. */
#include "base/rng.h"
#include "policy/policy.h"
#include "policy-parse.h"

static struct weir_bounds b[64];

static void bounds_of(const char *text)
{
	struct weir_policy *p = parse(text);

	CHECK(p->n_tenants <= 64);
	CHECK_INT(weir_policy_bounds(p, b), 0);
	weir_policy_free(p);
}

enum { IOPS = 0, IOPS_READS = 1, IOPS_WRITES = 2, BYTES = 3 };

static void test_worked_example(void)
{
	bounds_of("tenants: [{name: prod, min: 2k iops, children: [{name: db, weight: 3, "
		  "min: 800 iops}, {name: web}]}, {name: batch}]");
	CHECK_NEAR(b[0].min[IOPS], 2000, 1e-9);
	CHECK_NEAR(b[1].min[IOPS], 1700, 1e-9);
	CHECK_NEAR(b[2].min[IOPS], 300, 1e-9);
	CHECK(b[3].min[IOPS] == 0 && b[1].min[BYTES] == 0);
	CHECK(isinf(b[0].max[IOPS]));
}

static void test_sum_goes_up(void)
{
	bounds_of("tenants: [{name: a, children: [{name: b, children: [{name: c, min: 5 iops}, "
		  "{name: d, min: 6 iops}]}, {name: e, min: 1 iops}]}]");
	CHECK_NEAR(b[0].min[IOPS], 12, 1e-12);
	CHECK_NEAR(b[1].min[IOPS], 11, 1e-12);
	CHECK_NEAR(b[2].min[IOPS], 5, 1e-12);
}

/* A parent's max holds for its children; a capped child leaves its part to the others. */
static void test_caps(void)
{
	bounds_of("tenants: [{name: a, min: 1k iops, max: 5k iops, children: [{name: b, max: 100 "
		  "iops}, "
		  "{name: c, weight: 2}, {name: d, max: {reads: 1k iops}}]}]");
	CHECK_NEAR(b[1].min[IOPS], 100, 1e-9);
	CHECK_NEAR(b[2].min[IOPS], 600, 1e-9);
	CHECK_NEAR(b[3].min[IOPS], 300, 1e-9);
	CHECK_NEAR(b[1].max[IOPS], 100, 0);
	CHECK_NEAR(b[2].max[IOPS], 5000, 0);
	CHECK_NEAR(b[3].max[IOPS_READS], 1000, 0);
	CHECK_NEAR(b[3].max[IOPS], 5000, 0);
}

static void test_all_capped(void)
{
	bounds_of("tenants: [{name: a, min: 1k iops, children: [{name: b, max: 100 iops}, "
		  "{name: c, max: {reads: 50 iops, writes: 60 iops}}]}]");
	CHECK_NEAR(b[1].min[IOPS], 100, 1e-9);
	CHECK_NEAR(b[2].min[IOPS], 110, 1e-9);
}

static void test_classes(void)
{
	bounds_of("tenants: [{name: a, min: {reads: 300 iops, writes: 10 iops}, children: "
		  "[{name: b, min: {reads: 100 iops}}, {name: c}]}]");
	CHECK_NEAR(b[0].min[IOPS], 310, 1e-9);
	CHECK_NEAR(b[1].min[IOPS_READS], 200, 1e-9);
	CHECK_NEAR(b[2].min[IOPS_READS], 100, 1e-9);
	CHECK_NEAR(b[1].min[IOPS_WRITES], 5, 1e-9);
	CHECK_NEAR(b[1].min[IOPS], 205, 1e-9);
	CHECK_NEAR(b[2].min[IOPS], 105, 1e-9);
	/* `all` is more than reads and writes together: the rest is divided in addition */
	bounds_of("tenants: [{name: a, min: {all: 500 iops, reads: 300 iops}, children: "
		  "[{name: b}, {name: c}, {name: d, weight: 2}]}]");
	CHECK_NEAR(b[1].min[IOPS_READS], 75, 1e-9);
	CHECK_NEAR(b[1].min[IOPS], 125, 1e-9);
	CHECK_NEAR(b[3].min[IOPS], 250, 1e-9);
}

static void test_three_levels(void)
{
	bounds_of("tenants: [{name: a, min: 120 iops, children: [{name: b, weight: 2, children: "
		  "[{name: c, weight: 3}, {name: d}]}, {name: e}]}]");
	CHECK_NEAR(b[1].min[IOPS], 80, 1e-9);
	CHECK_NEAR(b[2].min[IOPS], 60, 1e-9);
	CHECK_NEAR(b[3].min[IOPS], 20, 1e-9);
	CHECK_NEAR(b[4].min[IOPS], 40, 1e-9);
}

/* One parent with random children: the parts add up, no cap is exceeded, and children below
 * their cap have g + λ·w with one λ, which is at least that of the capped ones. */
static void test_random_against_the_law(void)
{
	struct rng rng;

	rng_init(&rng, 7, "bounds");
	for (int round = 0; round < 2000; round++) {
		struct weir_tenant t[21] = {{0}};
		struct weir_policy p = {.tenants = t, .n_tenants = 2 + rng_below(&rng, 20)};
		double lambda = -1, sum = 0, room = 0;

		for (size_t i = 0; i < p.n_tenants; i++) {
			t[i].parent = i ? 0 : -1;
			t[i].first_child = i ? -1 : 1;
			t[i].next_sibling = i && i + 1 < p.n_tenants ? (int)i + 1 : -1;
			t[i].weight = 0.1 + 10 * rng_double(&rng);
			if (i && rng_below(&rng, 2)) {
				t[i].n_min = 1;
				t[i].min[0] = (struct weir_limit){
					.ops = WEIR_OPS_ALL, .rate = 1 + 100 * rng_double(&rng)};
				sum += t[i].min[0].rate;
			}
			if (i && rng_below(&rng, 2)) {
				t[i].n_max = 1;
				t[i].max[0] = (struct weir_limit){.ops = WEIR_OPS_ALL,
					.rate = (t[i].n_min ? t[i].min[0].rate : 0) +
						50 * rng_double(&rng)};
				room += t[i].max[0].rate;
			} else if (i) {
				room = INFINITY;
			}
		}
		t[0].n_min = 1;
		t[0].min[0] = (struct weir_limit){
			.ops = WEIR_OPS_ALL, .rate = sum + 300 * rng_double(&rng)};
		CHECK_INT(weir_policy_bounds(&p, b), 0);
		sum = 0;
		for (size_t i = 1; i < p.n_tenants; i++) {
			double g = t[i].n_min ? t[i].min[0].rate : 0;
			double level = (b[i].min[IOPS] - g) / t[i].weight;

			sum += b[i].min[IOPS];
			CHECK(b[i].min[IOPS] >= g);
			CHECK(b[i].min[IOPS] <= b[i].max[IOPS] * (1 + 1e-9));
			if (b[i].min[IOPS] < b[i].max[IOPS] * (1 - 1e-9)) {
				if (lambda < 0)
					lambda = level;
				CHECK(fabs(level - lambda) <= 1e-6 * (1 + lambda));
			}
		}
		for (size_t i = 1; i < p.n_tenants && lambda >= 0; i++) {
			double g = t[i].n_min ? t[i].min[0].rate : 0;

			CHECK((b[i].min[IOPS] - g) / t[i].weight <= lambda * (1 + 1e-6) + 1e-6);
		}
		CHECK_NEAR(sum, fmin(t[0].min[0].rate, room), 1e-5);
	}
}

int main(void)
{
	RUN(test_worked_example);
	RUN(test_sum_goes_up);
	RUN(test_caps);
	RUN(test_all_capped);
	RUN(test_classes);
	RUN(test_three_levels);
	RUN(test_random_against_the_law);
	return 0;
}
