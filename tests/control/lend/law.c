/* SPDX-License-Identifier: BSD-3-Clause */
/* The equations one by one, and each of our choices where the paper leaves one open. */
#include "control/lend/law.h"
#include "test.h"

#define MOST 64

struct jobs {
	size_t n;
	uint32_t weight[MOST];
	uint64_t demand[MOST];
	int64_t tokens[MOST], record[MOST], initial[MOST];
	int32_t remainder[MOST], reclaim[MOST];
	int64_t floor;
};
static struct lend_space space;
static struct lend_sums sums;

static void step(struct jobs *j, int64_t tokens)
{
	struct lend_jobs a = {j->n, j->weight, j->demand, j->tokens, j->record, j->remainder,
		j->reclaim, j->initial, j->floor};
	int64_t sum = 0, records = 0, before = 0;

	CHECK_INT(lend_space_grow(&space, j->n), 0);
	for (size_t i = 0; i < j->n; i++)
		before += j->record[i];
	lend_allocate(&a, tokens, &space, &sums);
	for (size_t i = 0; i < j->n; i++) {
		CHECK(j->tokens[i] >= 0);
		sum += j->tokens[i];
		records += j->record[i];
	}
	if (j->n)
		CHECK_INT(sum, tokens);
	CHECK_INT(records, before);
}

static struct jobs make(size_t n, const uint32_t *weight, const uint64_t *demand)
{
	struct jobs j = {.n = n};

	for (size_t i = 0; i < n; i++) {
		j.weight[i] = weight[i];
		j.demand[i] = demand[i];
		j.tokens[i] = LEND_NEW;
	}
	return j;
}
#define MAKE(n, ...) make(n, (const uint32_t[n])__VA_ARGS__, demands)

static void tokens_of_a_period(void)
{
	int32_t carry = 0;
	int64_t sum = 0;

	CHECK_INT(lend_tokens(1000, 0.1, &carry), 100);
	CHECK_INT(carry, 0);
	for (int i = 0; i < 10; i++)
		sum += lend_tokens(333, 0.1, &carry);
	CHECK_INT(sum, 333);
	sum = 0;
	for (int i = 0; i < 1000; i++) /* less than one a period */
		sum += lend_tokens(0.5, 0.1, &carry);
	CHECK_INT(sum, 50);
	carry = 0;
	CHECK_INT(lend_tokens(-1, 0.1, &carry), 0);
	CHECK_INT(lend_tokens(NAN, 0.1, &carry), 0);
	CHECK_INT(lend_tokens(1e300, 1e3, &carry), LEND_TOKENS);
}

static void by_priority(void)
{
	uint64_t demands[4] = {1000, 1000, 1000, 1000};
	struct jobs j = MAKE(4, {10, 10, 30, 50});

	for (int i = 0; i < 5; i++) { /* the demand of all is above the rate: nothing is lent */
		step(&j, 100);
		CHECK_INT(j.tokens[0], 10);
		CHECK_INT(j.tokens[1], 10);
		CHECK_INT(j.tokens[2], 30);
		CHECK_INT(j.tokens[3], 50);
		CHECK_INT(j.record[3], 0);
	}
	CHECK_INT(sums.surplus, 0);
}

static void the_example_of_the_header(void)
{
	uint64_t demands[2] = {60, 15};
	struct jobs j = MAKE(2, {1, 3});

	j.tokens[0] = 25;
	j.tokens[1] = 75;
	step(&j, 100);
	CHECK_INT(j.initial[0], 25);
	CHECK_INT(sums.surplus, 60);
	CHECK_INT(j.tokens[0], 82);
	CHECK_INT(j.tokens[1], 18);
	CHECK_INT(j.record[0], -57);
	CHECK_INT(j.record[1], 57);
	CHECK_NEAR((double)j.remainder[0] / REMAINDER_ONE, 0.1429, 1e-3);
	CHECK_NEAR((double)j.remainder[1] / REMAINDER_ONE, -0.1429, 1e-3);
}

static void remainders_are_carried(void) /* 3 */
{
	uint64_t demands[3] = {50, 50, 50};
	struct jobs j = MAKE(3, {14, 14, 2});
	int64_t got[3] = {0};

	for (int i = 0; i < 30; i++) {
		step(&j, 3); /* 1.4, 1.4, 0.2; the last is raised to 1 */
		for (int k = 0; k < 3; k++)
			got[k] += j.tokens[k];
	}
	CHECK_INT(got[2], 30);
	CHECK_INT(got[0], 30);
	demands[0] = 0;
	j = MAKE(3, {14, 14, 2});
	j.demand[0] = 50;
	memset(got, 0, sizeof(got));
	for (int i = 0; i < 30; i++) {
		step(&j, 2); /* fewer than jobs: 0.93, 0.93, 0.13 */
		for (int k = 0; k < 3; k++)
			got[k] += j.tokens[k];
	}
	CHECK_INT(got[0], 28);
	CHECK_INT(got[1], 28);
	CHECK_INT(got[2], 4);
}

static void no_demand(void) /* 5 */
{
	uint64_t demands[2] = {0, 0};
	struct jobs j = MAKE(2, {1, 3});

	step(&j, 100);
	CHECK_INT(j.tokens[0], 25);
	CHECK_INT(j.tokens[1], 75);
	CHECK_INT(j.record[1], 0);
}

static void few_tokens_for_many(void) /* 11 */
{
	uint64_t demands[4] = {0, 0, 0, 1000};
	struct jobs j = MAKE(4, {1, 1, 1, 1000000});

	step(&j, 4);
	for (int i = 0; i < 4; i++)
		CHECK_INT(j.tokens[i], 1);
	step(&j, 100);
	CHECK_INT(j.tokens[0], 1);
	CHECK_INT(j.tokens[3], 97);
	CHECK_INT(j.record[3], 0); /* tokens of small jobs above their share are no loan */
	step(&j, 3);
	CHECK_INT(j.tokens[3], 3);
	step(&j, 0);
	CHECK_INT(j.tokens[3], 0);
	/* Raising some jobs makes others small; the rest share in proportion. */
	j = MAKE(4, {1, 24, 300, 900});
	for (int i = 0; i < 4; i++)
		j.demand[i] = 1000;
	step(&j, 50);
	CHECK_INT(j.tokens[0], 1);
	CHECK_INT(j.tokens[1], 1);
	CHECK_INT(j.tokens[2], 12);
	CHECK_INT(j.tokens[3], 36);
}

static void the_coefficient_is_at_most_one(void) /* 6 */
{
	uint64_t demands[4] = {90, 90, 90, 90};
	struct jobs j = MAKE(4, {30, 30, 30, 10});

	for (int i = 0; i < 3; i++) {
		j.record[i] = 100;
		j.tokens[i] = 8; /* u = 11 */
	}
	j.record[3] = -300;
	j.tokens[3] = 76;
	step(&j, 100);
	CHECK_INT(sums.coefficient, REMAINDER_ONE);
	CHECK_INT(j.tokens[3], 1); /* all but the one token that it keeps */
	CHECK_INT(sums.reclaimed, 9);
	CHECK_INT(j.tokens[0] + j.tokens[1] + j.tokens[2], 99);
}

static void records_do_not_cross_zero(void) /* 7, 8 */
{
	uint64_t demands[2] = {100, 100};
	struct jobs j = MAKE(2, {50, 50});

	j.tokens[0] = j.tokens[1] = 50;
	j.record[0] = 3;
	j.record[1] = -3;
	step(&j, 100);
	CHECK_INT(j.record[0], 0);
	CHECK_INT(j.record[1], 0);
	CHECK_INT(j.tokens[0], 53);
	step(&j, 100);
	CHECK_INT(j.tokens[0], 50);
}

static void a_lender_gets_its_demand_at_most(void) /* 8 */
{
	uint64_t demands[2] = {51, 100};
	struct jobs j = MAKE(2, {50, 50});

	j.tokens[0] = j.tokens[1] = 50;
	j.record[0] = 1000;
	j.record[1] = -1000;
	step(&j, 100);
	CHECK_INT(j.tokens[0], 51);
	CHECK_INT(j.record[0], 999);
	CHECK_INT(sums.reclaimed, 1);
}

static void a_lenders_surplus_goes_to_others(void) /* 8 */
{
	uint64_t demands[4] = {26, 90, 90, 90};
	struct jobs j = MAKE(4, {25, 25, 25, 25});

	for (int i = 0; i < 4; i++)
		j.tokens[i] = 25;
	j.record[0] = 1000;
	j.record[1] = 5;
	j.record[2] = 1000;
	j.record[3] = -2005;
	step(&j, 100);
	CHECK(sums.reclaimed > 10);
	CHECK_INT(j.tokens[0], 26); /* its demand */
	CHECK_INT(j.tokens[1], 30); /* its record */
	CHECK_INT(j.tokens[2], 25 + sums.reclaimed - 6);
	CHECK_INT(j.tokens[3], 25 - sums.reclaimed);
}

static void a_small_fraction_is_reclaimed_in_time(void) /* 12 */
{
	uint64_t demands[3] = {90, 3, 1000};
	struct jobs j = MAKE(3, {1, 3, 96});
	int periods = 0;

	/* C is about p = 1 %, of 3 tokens: 0.03 a period. */
	for (int i = 0; i < 3; i++)
		j.tokens[i] = i == 0 ? 1 : i == 1 ? 3 : 96;
	j.record[0] = 2;
	j.record[1] = -2;
	while (j.record[0] > 0 && periods < 1000) {
		step(&j, 100);
		periods++;
	}
	CHECK_INT(j.record[0], 0);
	CHECK_INT(j.record[1], 0);
	CHECK(periods > 1 && periods < 150);
}

/* For any C, a borrower keeps 12 of 24 tokens by its weight, 13 of 25, and its debt does not
 * shrink for it. */
static void a_borrower_keeps_its_floor(void) /* 16 */
{
	uint64_t demands[4] = {1000, 1000, 1000, 1000};
	struct jobs j = MAKE(4, {25, 25, 25, 25});

	j.floor = REMAINDER_ONE / 2;
	for (int i = 0; i < 4; i++)
		j.tokens[i] = 24;
	j.record[0] = 1000;
	j.record[3] = -1000;
	for (int period = 1; period <= 10; period++) {
		j.tokens[0] = 1; /* u is large: C is 1 */
		step(&j, 96);
		CHECK_INT(sums.coefficient, REMAINDER_ONE);
		CHECK_INT(j.tokens[3], 12);
		CHECK_INT(j.tokens[0], 36);
		CHECK_INT(j.record[3], -1000 + 12 * period);
	}
	j.tokens[0] = 1;
	step(&j, 100);
	CHECK_INT(j.tokens[3], 13);
	j.floor = REMAINDER_ONE; /* all of it: nothing is repaid */
	step(&j, 96);
	CHECK_INT(sums.reclaimed, 0);
	CHECK_INT(j.tokens[3], 24);
	/* A job with less demand than its floor gets its demand, and lends the rest. */
	j.floor = REMAINDER_ONE / 2;
	j.demand[3] = 5;
	step(&j, 96);
	CHECK(j.tokens[3] >= 5 && j.tokens[3] < 12);
}

static void any_demand(void) /* 13 */
{
	uint64_t demands[3] = {(uint64_t)1 << 40, UINT64_MAX, 0};
	struct jobs j = MAKE(3, {1, 1, 2});
	struct jobs k;

	step(&j, 1000);
	demands[0] = demands[1] = 1000;
	k = MAKE(3, {1, 1, 2});
	step(&k, 1000);
	for (int i = 0; i < 3; i++)
		CHECK_INT(j.tokens[i], k.tokens[i]);
	CHECK_INT(j.tokens[0], j.tokens[1] + 1); /* 999 for two; ties by position */
	CHECK_INT(j.tokens[2], 1);
}

static void extremes(void)
{
	uint64_t demands[3] = {UINT64_MAX, 1, 0};
	struct jobs j = MAKE(3, {UINT32_MAX, 1, UINT32_MAX});

	for (int i = 0; i < 100; i++) {
		step(&j, LEND_TOKENS);
		j.demand[i % 3] = i % 2 ? UINT64_MAX : (uint64_t)i;
	}
	j = MAKE(1, {1});
	step(&j, 7);
	CHECK_INT(j.tokens[0], 7);
	j.demand[0] = 0;
	step(&j, 7);
	CHECK_INT(j.tokens[0], 7);
	CHECK_INT(j.record[0], 0);
	j.n = 0;
	step(&j, 7);
}

int main(void)
{
	RUN(tokens_of_a_period);
	RUN(by_priority);
	RUN(the_example_of_the_header);
	RUN(remainders_are_carried);
	RUN(no_demand);
	RUN(few_tokens_for_many);
	RUN(the_coefficient_is_at_most_one);
	RUN(records_do_not_cross_zero);
	RUN(a_lender_gets_its_demand_at_most);
	RUN(a_lenders_surplus_goes_to_others);
	RUN(a_small_fraction_is_reclaimed_in_time);
	RUN(a_borrower_keeps_its_floor);
	RUN(any_demand);
	RUN(extremes);
	lend_space_free(&space);
	return 0;
}
