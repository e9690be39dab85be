/* SPDX-License-Identifier: BSD-3-Clause */
/* Buckets are exact for any rate, steps and span, against 128-bit integers. */
#include "gate/bucket.h"
#include "law.h"

__extension__ typedef __int128 i128;

/* Whole units, without a fraction. */
#define CHECK_LEVEL(b, units) CHECK(bucket_level(&(b)) == (i128)(units) * (i128)BUCKET_UNIT)

static struct bucket make(double rate, double size)
{
	struct weir_bucket_spec spec = {.rate = rate, .size = size};
	struct bucket b;

	CHECK(!bucket_check(&spec));
	bucket_init(&b, &spec);
	return b;
}

/* Return rates that would show rounding errors first. */
static double any_rate(void)
{
	static const double odd[] = {1.0 / 3, 0.01, 1.0 / 1024, 1e11, 2.7e11, 3, 1e9, 999999937};

	return law_chance(0.5) ? odd[law_below(8)] : law_log(1.0 / 1024, 2.7e11);
}

static void example_of_the_header(void)
{
	struct bucket b = make(3, 2);

	bucket_take(&b, 2);
	CHECK_INT(bucket_wait(&b, 1), 333333334);
	bucket_fill(&b, 333333334);
	bucket_take(&b, 1);
	CHECK_INT(bucket_wait(&b, 1), 666666667 - 333333334);
	bucket_fill(&b, 666666667 - 333333334);
	bucket_take(&b, 1);
	CHECK_INT(bucket_wait(&b, 1), 1000000000 - 666666667);
}

static void small_steps_are_one_large(void)
{
	for (unsigned k = 0; k < 20; k++) {
		double rate = any_rate();
		struct bucket steps = make(rate, 4503599627370496.0), once = steps;
		weir_time span = 0, most = (weir_time)law_log(2, 1e9);
		int64_t debt = INT64_C(1) << 53;

		bucket_take(&steps, debt);
		bucket_take(&once, debt);
		for (unsigned i = 0; i < 50000; i++) {
			weir_time t = (weir_time)law_between(1, (uint64_t)most);

			bucket_fill(&steps, t);
			span += t;
			law_operations++;
		}
		bucket_fill(&once, span);
		CHECK(bucket_level(&steps) == bucket_level(&once));
	}
}

static void as_whole_numbers_say(void)
{
	for (unsigned k = 0; k < 60; k++) {
		double size = ceil(law_log(1, law_chance(0.5) ? 100 : 4e15));
		struct bucket b = make(any_rate(), size);
		i128 level = bucket_level(&b), full = level;

		for (unsigned i = 0; i < 3000; i++) {
			/* From a nanosecond to a century. */
			weir_time span = (weir_time)law_log(1, law_chance(0.1) ? 3e18 : 1e10);
			int64_t cost = (int64_t)law_log(1, 2 * size);

			bucket_fill(&b, span);
			if (level < full) {
				level += (i128)b.rate * span;
				level = level < full ? level : full;
			}
			CHECK(bucket_level(&b) == level);
			bool admits =
				level >= (i128)(cost < b.size ? cost : b.size) * (i128)BUCKET_UNIT;

			CHECK_INT(bucket_admits(&b, cost), admits);
			CHECK_INT(bucket_wait(&b, cost) == 0, admits);
			if (admits && law_chance(0.9)) {
				bucket_take(&b, cost);
				level -= (i128)cost * (i128)BUCKET_UNIT;
			}
			law_operations++;
		}
	}
}

static void waits_to_the_nanosecond(void)
{
	for (unsigned i = 0; i < 50000; i++) {
		double size = ceil(law_log(1, law_chance(0.5) ? 100 : 4e15));
		struct bucket b = make(any_rate(), size), early;
		int64_t cost = (int64_t)law_log(1, size + 1);

		bucket_take(&b, (int64_t)law_log(1, 2 * size));
		if (law_chance(0.5))
			bucket_fill(&b, (weir_time)law_log(1, 1e6));
		weir_time wait = bucket_wait(&b, cost);

		law_operations++;
		if (wait == 0 || wait == WEIR_NEVER) {
			CHECK(wait != 0 || bucket_admits(&b, cost));
			continue;
		}
		early = b;
		if (wait > 1)
			bucket_fill(&early, wait - 1);
		CHECK(!bucket_admits(&early, cost));
		bucket_fill(&b, wait);
		CHECK(bucket_admits(&b, cost));
	}
}

static void a_century_without_drift(void)
{
	/* Take one whenever the bucket admits it: after a hundred years the count is exact. */
	struct bucket b = make(1.0 / 3, 1); /* kept as 341/1024 */
	const weir_time century = INT64_C(3155760000) * WEIR_SEC;
	weir_time now = 0;
	uint64_t taken = 0;

	bucket_take(&b, 1);
	for (;;) {
		weir_time wait = bucket_wait(&b, 1) + (weir_time)law_below(2) * 1000;

		/* In steps of a year, and one by one at the end. */
		if (now < century - 1000 * WEIR_SEC) {
			struct bucket large = make(1.0 / 3, 4e15);

			large.lack += bucket_level(&large) - bucket_level(&b);
			bucket_fill(&large, century - 1000 * WEIR_SEC - now);
			now = century - 1000 * WEIR_SEC;
			i128 level = bucket_level(&large);

			taken += (uint64_t)(level / (i128)BUCKET_UNIT);
			b.lack += bucket_level(&b) - level % (i128)BUCKET_UNIT;
			continue;
		}
		if (now + wait > century)
			break;
		now += wait;
		bucket_fill(&b, wait);
		bucket_take(&b, 1);
		taken++;
	}
	/* Calls up to a thousandth late lose nothing unless the bucket is full, which it never
	 * is for long. */
	CHECK(taken <= (uint64_t)(3155760000.0 * 341 / 1024));
	CHECK(taken >= (uint64_t)(3155760000.0 * 341 / 1024) - 1);
}

static void zero_cost_and_zero_rate(void)
{
	struct bucket b = make(0, 5);

	bucket_take(&b, 5);
	CHECK(bucket_admits(&b, 0));
	CHECK_INT(bucket_wait(&b, 0), 0);
	CHECK_INT(bucket_wait(&b, 1), WEIR_NEVER);
	bucket_fill(&b, INT64_MAX);
	CHECK_LEVEL(b, 0);
}

static void large_costs_need_only_the_size(void)
{
	struct bucket b = make(10, 5);

	CHECK(bucket_admits(&b, 1000000));
	bucket_take(&b, 1000000);
	CHECK_LEVEL(b, 5 - 1000000);
	CHECK_INT(bucket_wait(&b, 1), (1000000 - 5 + 1) * (WEIR_SEC / 10));
	bucket_fill(&b, (1000000 - 5) * (WEIR_SEC / 10));
	CHECK_LEVEL(b, 0);
}

static void grants_may_exceed_the_size(void)
{
	struct weir_bucket_spec spec = {.kind = WEIR_RTOKENS, .rate = 0, .size = 10};
	struct bucket b;

	bucket_init(&b, &spec);
	CHECK_LEVEL(b, 0); /* filled by grants only: starts empty */
	bucket_grant(&b, 25);
	CHECK_LEVEL(b, 25);
	spec.rate = 5;
	bucket_init(&b, &spec);
	CHECK_LEVEL(b, 10);
	bucket_grant(&b, 7);
	bucket_fill(&b, WEIR_SEC);
	CHECK_LEVEL(b, 17); /* neither more nor less */
	bucket_grant(&b, -20);
	CHECK_LEVEL(b, -3);
}

static void a_new_one_takes_over_the_level(void)
{
	struct bucket old = make(1000, 100), more = make(7, 200), less = make(7, 20);

	bucket_take(&old, 50);
	bucket_fill(&old, 500);
	bucket_inherit(&more, &old, 0);
	CHECK(bucket_level(&more) == bucket_level(&old));
	bucket_inherit(&less, &old, 0);
	CHECK_LEVEL(less, 20);
}

/* The time since a late level passed at the old rate, whether the new one is lower or higher. */
static void a_late_level_grows_at_the_old_rate(void)
{
	struct bucket old = make(1000, 100), slow = make(10, 100), fast = make(100000, 100);
	weir_time late = 20 * WEIR_MS;

	bucket_take(&old, 50);
	bucket_inherit(&slow, &old, late);
	bucket_inherit(&fast, &old, late);
	bucket_fill(&old, late);
	bucket_fill(&slow, late);
	bucket_fill(&fast, late);
	CHECK_LEVEL(old, 70);
	CHECK_LEVEL(slow, 70);
	CHECK_LEVEL(fast, 70);
}

static void bad_specs_are_refused(void)
{
	const struct weir_bucket_spec good = {.rate = 1, .size = 1};
	struct weir_bucket_spec s;

	CHECK(!bucket_check(&good));
#define REFUSED(field, value)                                                                      \
	do {                                                                                       \
		s = good;                                                                          \
		s.field = value;                                                                   \
		CHECK(bucket_check(&s));                                                           \
	} while (0)
	REFUSED(rate, -1);
	REFUSED(rate, NAN);
	REFUSED(rate, INFINITY);
	REFUSED(rate, 1e12);
	REFUSED(rate, 1e-9);
	REFUSED(size, 0);
	REFUSED(size, 0.5);
	REFUSED(size, -1);
	REFUSED(size, NAN);
	REFUSED(size, 1e16);
	REFUSED(ops, 0x20);
	REFUSED(kind, (enum weir_bucket_kind)4);
	REFUSED(unit, (enum weir_unit)3);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "bucket");
	RUN(example_of_the_header);
	RUN(small_steps_are_one_large);
	RUN(as_whole_numbers_say);
	RUN(waits_to_the_nanosecond);
	RUN(a_century_without_drift);
	RUN(zero_cost_and_zero_rate);
	RUN(large_costs_need_only_the_size);
	RUN(grants_may_exceed_the_size);
	RUN(a_new_one_takes_over_the_level);
	RUN(a_late_level_grows_at_the_old_rate);
	RUN(bad_specs_are_refused);
	return law_end(1000000);
}
