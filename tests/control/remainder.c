/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/remainder.h"
#include "base/rng.h"
#include "test.h"

#define N 300

static void parts_are_near_and_add_up(void)
{
	struct remainder_ratio r = remainder_ratio(100 << REMAINDER_BITS, 3);

	CHECK_INT(remainder_part(r, 3), 100 << REMAINDER_BITS);
	CHECK_INT(remainder_part(r, 1), (100 << REMAINDER_BITS) / 3);
	CHECK_INT(remainder_part(r, 0), 0);
	/* The largest values allowed. */
	r = remainder_ratio(((uint64_t)1 << 62) - 1, (remainder_wide)1 << 77);
	CHECK_NEAR((double)remainder_part(r, (uint64_t)1 << 57), ldexp(1, 62 + 57 - 77), 1e-12);
	r = remainder_ratio(((uint64_t)1 << 62) - 1, 1);
	CHECK_INT(remainder_part(r, 1), ((int64_t)1 << 62) - 1);
	r = remainder_ratio(0, 7);
	CHECK_INT(remainder_part(r, 7), 0);
}

static int down(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void the_k_largest(void)
{
	uint32_t keys[N], sorted[N];
	struct rng rng;

	rng_init(&rng, 1, "remainder");
	for (int round = 0; round < 2000; round++) {
		size_t n = 1 + rng_below(&rng, N), k = 1 + rng_below(&rng, n), above = 0;
		uint32_t range = round % 3 ? REMAINDER_KEYS : 5; /* many ties */
		struct remainder_pick p;

		for (size_t i = 0; i < n; i++)
			keys[i] = sorted[i] = (uint32_t)rng_below(&rng, range);
		qsort(sorted, n, sizeof(*sorted), down);
		p = remainder_pick(keys, n, k);
		for (size_t i = 0; i < n; i++)
			above += keys[i] > p.above;
		CHECK_INT(p.above, sorted[k - 1]);
		CHECK_INT(above + p.ties, k);
	}
}

static void thirds_take_turns(void)
{
	int64_t share[3], whole[3];
	int32_t rest[3] = {0};
	uint32_t keys[3];
	int64_t want[3][3] = {{4, 3, 3}, {3, 4, 3}, {3, 3, 4}};

	for (int i = 0; i < 3; i++)
		share[i] = 10 * REMAINDER_ONE / 3;
	for (int round = 0; round < 9; round++) {
		remainder_round(10, 0, 3, share, rest, whole, keys);
		for (int i = 0; i < 3; i++)
			CHECK_INT(whole[i], want[round % 3][i]);
	}
}

static void too_much_is_taken_from_the_smallest(void)
{
	/* With 0.6 and 0.7 carried over, three shares pass the floor, where only two tokens
	 * exist. */
	int64_t share[3] = {REMAINDER_ONE, REMAINDER_ONE / 2, REMAINDER_ONE / 2}, whole[3];
	int32_t rest[3] = {0, (int32_t)(REMAINDER_ONE * 6 / 10), (int32_t)(REMAINDER_ONE * 7 / 10)};
	uint32_t keys[3];

	remainder_round(2, 0, 3, share, rest, whole, keys);
	CHECK_INT(whole[0], 0); /* its remainder was 0 */
	CHECK_INT(whole[1], 1);
	CHECK_INT(whole[2], 1);
	CHECK_INT(rest[0], REMAINDER_ONE);
}

static void always_the_total(void)
{
	int64_t share[N], whole[N];
	int32_t rest[N] = {0};
	uint32_t keys[N];
	struct rng rng;

	rng_init(&rng, 2, "remainder");
	for (int round = 0; round < 20000; round++) {
		size_t n = 1 + rng_below(&rng, N);
		int64_t least = (int64_t)rng_below(&rng, 2), sum = 0, total;
		int64_t each = (int64_t)rng_below(&rng, 50);

		total = (int64_t)n * (least + each);
		for (size_t i = 0; i < n; i++) {
			/* Any shares at all, near the total or far from it. */
			share[i] = (int64_t)rng_below(&rng, 60) *
				   (int64_t)rng_below(&rng, REMAINDER_ONE);
			if (round % 100 == 0)
				rest[i] = (int32_t)((int64_t)rng_below(&rng, 2 * REMAINDER_ONE) -
						    REMAINDER_ONE);
		}
		remainder_round(total, least, n, share, rest, whole, keys);
		for (size_t i = 0; i < n; i++) {
			CHECK(whole[i] >= least);
			CHECK(rest[i] <= 9 * REMAINDER_ONE && rest[i] >= -9 * REMAINDER_ONE);
			sum += whole[i];
		}
		CHECK_INT(sum, total);
	}
}

int main(void)
{
	RUN(parts_are_near_and_add_up);
	RUN(the_k_largest);
	RUN(thirds_take_turns);
	RUN(too_much_is_taken_from_the_smallest);
	RUN(always_the_total);
	return 0;
}
