/* SPDX-License-Identifier: BSD-3-Clause */
/* hist-small: equals weir_hist after any sequence of record, merge and clear. */
#include "base/hist-small.h"
#include "base/rng.h"
#include "test.h"

static void check_same(const struct hist_small *small, const struct weir_hist *large)
{
	static struct weir_hist read;

	hist_small_read(small, &read);
	CHECK(memcmp(&read, large, sizeof(read)) == 0);
}

/* Draw values of every magnitude, sometimes the largest. */
static uint64_t draw(struct rng *r)
{
	return rng_below(r, 50) ? rng_u64(r) >> rng_below(r, 64) : UINT64_MAX;
}

static void it_equals_hist(void)
{
	struct hist_small small[2];
	static struct weir_hist large[2];
	struct rng r;

	rng_init(&r, 1, "hist-small");
	for (int k = 0; k < 2; k++) {
		hist_small_init(&small[k]);
		weir_hist_clear(&large[k]);
		check_same(&small[k], &large[k]);
	}
	for (int i = 0; i < 20000; i++) {
		uint64_t value = draw(&r);
		int k = (int)rng_below(&r, 2);

		CHECK_INT(hist_small_record(&small[k], value), 0);
		weir_hist_record(&large[k], value);
		if (rng_below(&r, 500) == 0) {
			CHECK_INT(hist_small_merge(&small[1 - k], &small[k]), 0);
			weir_hist_merge(&large[1 - k], &large[k]);
			hist_small_clear(&small[k]);
			weir_hist_clear(&large[k]);
		}
		if (i % 100 == 0) {
			check_same(&small[0], &large[0]);
			check_same(&small[1], &large[1]);
		}
	}
	hist_small_free(&small[0]);
	weir_hist_clear(&large[0]);
	check_same(&small[0], &large[0]);
	hist_small_free(&small[1]);
}

/* Merge with itself repeatedly: a bucket stops at 2³² − 1. */
static void counts_stop_at_their_end(void)
{
	struct hist_small a, b;
	static struct weir_hist la, lb;

	hist_small_init(&a);
	hist_small_init(&b);
	weir_hist_clear(&la);
	weir_hist_clear(&lb);
	CHECK_INT(hist_small_record(&a, UINT64_C(1) << 36), 0);
	weir_hist_record(&la, UINT64_C(1) << 36);
	for (int i = 0; i < 36; i++) {
		CHECK_INT(hist_small_merge(&b, &a), 0);
		CHECK_INT(hist_small_merge(&a, &b), 0);
		weir_hist_merge(&lb, &la);
		weir_hist_merge(&la, &lb);
		check_same(&a, &la);
	}
	CHECK(la.sum == UINT64_MAX);
	hist_small_free(&a);
	hist_small_free(&b);
}

static void memory_follows_the_spread(void)
{
	struct hist_small h;

	hist_small_init(&h);
	for (uint64_t v = UINT64_C(1) << 24; v < UINT64_C(1) << 26; v += 1000)
		CHECK_INT(hist_small_record(&h, v), 0);
	CHECK_INT(h.n, 8); /* two octaves of 64 buckets */
	CHECK(h.room < 8 + 8);
	hist_small_free(&h);
}

int main(void)
{
	RUN(it_equals_hist);
	RUN(counts_stop_at_their_end);
	RUN(memory_follows_the_spread);
	return 0;
}
