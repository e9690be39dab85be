/* SPDX-License-Identifier: BSD-3-Clause */
/* hist: percentiles against the sorted data, merging, and the ends of the scale. */
#include <weir/hist.h>
#include "base/rng.h"
#include "test.h"

#define N 200000
static uint64_t data[N];
static struct weir_hist hist, other, both;

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Return the value at rank ⌈percent · n⌉, with percent in hundredths of a percent: integers
 * only. */
static uint64_t exact(size_t n, unsigned percent_x100)
{
	size_t rank = ((size_t)percent_x100 * n + 9999) / 10000;

	return data[rank ? rank - 1 : 0];
}

static void check_percentiles(const char *what, size_t n)
{
	static const unsigned points[] = {
		0, 1, 100, 1000, 2500, 5000, 7500, 9000, 9500, 9900, 9990, 9999, 10000};
	double sum = 0;

	weir_hist_clear(&hist);
	for (size_t i = 0; i < n; i++) {
		weir_hist_record(&hist, data[i]);
		sum += (double)data[i];
	}
	qsort(data, n, sizeof(data[0]), ascending);
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		uint64_t want = exact(n, points[i]);
		uint64_t got = weir_hist_percentile(&hist, points[i] / 100.0);
		double off = fabs((double)got - (double)want);
		if (want < 128 ? got != want : off > 0.01 * (double)want)
			FAIL("%s: p%g is %llu, not %llu", what, points[i] / 100.0,
				(unsigned long long)got, (unsigned long long)want);
	}
	CHECK_INT(hist.count, n);
	CHECK_INT(hist.min, data[0]);
	CHECK_INT(hist.max, data[n - 1]);
	CHECK_NEAR(weir_hist_mean(&hist), sum / (double)n, 1e-12);
}

static void percentiles_of_known_shapes(void)
{
	struct rng r;

	rng_init(&r, 1, "hist");
	for (size_t i = 0; i < N; i++)
		data[i] = rng_below(&r, 50000000);
	check_percentiles("uniform", N);
	for (size_t i = 0; i < N; i++)
		data[i] = (uint64_t)rng_exp(&r, 3e7);
	check_percentiles("exponential", N);
	for (size_t i = 0; i < N; i++)
		data[i] = (uint64_t)exp(14 + 2 * rng_normal(&r));
	check_percentiles("log-normal", N);
	for (size_t i = 0; i < N; i++)
		data[i] = 123456789;
	check_percentiles("constant", N);
	for (size_t i = 0; i < N; i++)
		data[i] = rng_below(&r, 128);
	check_percentiles("tiny", N);
	for (size_t i = 0; i < N; i++)
		data[i] = UINT64_C(1) << rng_below(&r, 39);
	check_percentiles("powers of two", N);
}

static void percentiles_of_few_values(void)
{
	for (size_t n = 1; n <= 300; n++) {
		for (size_t i = 0; i < n; i++)
			data[i] = i + 1;
		check_percentiles("few", n);
	}
}

/* 99.9 % of 1,000 is the 999th, although 99.9 / 100 · 1000 is more than 999 in binary. */
static void ranks_are_not_rounded_up(void)
{
	for (size_t n = 1000; n <= 100000; n *= 10) {
		weir_hist_clear(&hist);
		for (size_t i = 0; i < n; i++)
			weir_hist_record(&hist, i < n / 1000 * 999 ? 7 : 90);
		CHECK_INT(weir_hist_percentile(&hist, 99.9), 7);
		CHECK_INT(weir_hist_percentile(&hist, 99.9 + 0.0001), 90);
	}
	weir_hist_clear(&hist);
	for (size_t i = 0; i < 10000; i++)
		weir_hist_record(&hist, i < 9999 ? 7 : 90);
	CHECK_INT(weir_hist_percentile(&hist, 99.99), 7);
	CHECK_INT(weir_hist_percentile(&hist, 99.995), 90);
}

static void every_value_is_read_back_within_one_percent(void)
{
	for (unsigned bit = 0; bit < 39; bit++)
		for (int part = -2; part <= 66; part++) {
			uint64_t step = bit > 6 ? UINT64_C(1) << (bit - 6) : 1;
			uint64_t v = (UINT64_C(1) << bit) + (uint64_t)part * step;
			if (v > WEIR_HIST_MAX) /* below zero, too */
				continue;
			/* Two other values far away, so that min and max do not help. */
			weir_hist_clear(&hist);
			weir_hist_record(&hist, 0);
			weir_hist_record(&hist, v);
			weir_hist_record(&hist, WEIR_HIST_MAX);
			CHECK(fabs((double)weir_hist_percentile(&hist, 50) - (double)v) <=
				(double)v / 128);
		}
}

static void merging_is_recording_both(void)
{
	struct rng r;

	rng_init(&r, 2, "merge");
	weir_hist_clear(&hist);
	weir_hist_clear(&other);
	weir_hist_clear(&both);
	for (size_t i = 0; i < 50000; i++) {
		uint64_t v = (uint64_t)rng_exp(&r, i % 3 ? 1e6 : 1e9);
		weir_hist_record(i % 3 ? &hist : &other, v);
		weir_hist_record(&both, v);
	}
	weir_hist_merge(&hist, &other);
	CHECK(memcmp(&hist, &both, sizeof(hist)) == 0);

	weir_hist_clear(&other); /* an empty one adds nothing, in either direction */
	weir_hist_merge(&hist, &other);
	CHECK(memcmp(&hist, &both, sizeof(hist)) == 0);
	weir_hist_merge(&other, &hist);
	CHECK(memcmp(&other, &both, sizeof(hist)) == 0);
}

static void empty_reads_zero(void)
{
	weir_hist_clear(&hist);
	CHECK_INT(weir_hist_percentile(&hist, 50), 0);
	CHECK_INT(weir_hist_percentile(&hist, 100), 0);
	CHECK(weir_hist_mean(&hist) == 0);
	CHECK(hist.min == UINT64_MAX);
	CHECK_INT(hist.max, 0);
}

static void beyond_the_scale(void)
{
	weir_hist_clear(&hist);
	weir_hist_record(&hist, 10);
	weir_hist_record(&hist, WEIR_HIST_MAX);
	CHECK_NEAR((double)weir_hist_percentile(&hist, 100), (double)WEIR_HIST_MAX, 0.01);
	weir_hist_record(&hist, WEIR_HIST_MAX + 1);
	weir_hist_record(&hist, UINT64_MAX);
	CHECK_INT(hist.count, 4);
	CHECK_INT(hist.bucket[WEIR_HIST_BUCKETS - 1], 3);
	CHECK(hist.max == UINT64_MAX);
	CHECK(hist.sum == UINT64_MAX); /* stops, does not wrap */
	CHECK(weir_hist_percentile(&hist, 99) == UINT64_MAX);
	CHECK_INT(weir_hist_percentile(&hist, 25), 10);
}

static void a_full_bucket_stops_counting(void)
{
	weir_hist_clear(&hist);
	weir_hist_record(&hist, 5);
	weir_hist_record(&hist, 9);
	hist.bucket[5] = UINT32_MAX;
	hist.count = UINT32_MAX;
	weir_hist_record(&hist, 5);
	CHECK_INT(hist.bucket[5], UINT32_MAX);
	CHECK_INT(hist.count, INT64_C(1) << 32);
	CHECK_INT(weir_hist_percentile(&hist, 100), 9);
	CHECK_INT(weir_hist_percentile(&hist, 99.9), 5);
	other = hist;
	weir_hist_merge(&hist, &other);
	CHECK_INT(hist.bucket[5], UINT32_MAX);
	CHECK_INT(hist.bucket[9], 2);
}

static void percents_outside_are_the_ends(void)
{
	weir_hist_clear(&hist);
	for (uint64_t v = 20; v <= 30; v++)
		weir_hist_record(&hist, v);
	CHECK_INT(weir_hist_percentile(&hist, -5), 20);
	CHECK_INT(weir_hist_percentile(&hist, 0), 20);
	CHECK_INT(weir_hist_percentile(&hist, 100), 30);
	CHECK_INT(weir_hist_percentile(&hist, 250), 30);
	CHECK_INT(weir_hist_percentile(&hist, (double)NAN), 20);
}

int main(void)
{
	RUN(percentiles_of_known_shapes);
	RUN(percentiles_of_few_values);
	RUN(ranks_are_not_rounded_up);
	RUN(every_value_is_read_back_within_one_percent);
	RUN(merging_is_recording_both);
	RUN(empty_reads_zero);
	RUN(beyond_the_scale);
	RUN(a_full_bucket_stops_counting);
	RUN(percents_outside_are_the_ends);
	return 0;
}
