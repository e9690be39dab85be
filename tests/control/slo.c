/* SPDX-License-Identifier: BSD-3-Clause */
/* slo: sliding windows, against a list of all recorded requests; met or missed, to the request. */
#include "control/slo.h"
#include "base/rng.h"
#include "test.h"

static struct slo_view judge(struct slo *s, weir_time now, enum slo_window w)
{
	struct slo_view v;

	slo_look(s, now, w, &v);
	return v;
}

static void add(struct slo *s, weir_time now, unsigned n, weir_time latency, weir_time bound)
{
	struct slo_batch b = {0};

	for (unsigned i = 0; i < n; i++)
		slo_record(&b, latency, bound);
	slo_add(s, now, &b, true);
}

/* 999 of 1,000 within the bound are 99.9 %, and 998 are not: exactly, even if the rest is just
 * above the bound. */
static void to_the_request(void)
{
	weir_time bound = 10 * WEIR_MS;
	struct slo_view v;
	struct slo *s;

	CHECK_INT(slo_new(99.9, bound, &s), 0);
	v = judge(s, 0, SLO_MINUTE);
	CHECK(!v.known && v.value == -1 && v.total == 0);
	add(s, 0, 999, bound, bound); /* exactly the bound is good */
	add(s, 0, 1, bound + 1, bound);
	v = judge(s, WEIR_SEC, SLO_MINUTE);
	CHECK(v.known && v.met);
	CHECK_INT(v.good, 999);
	CHECK_INT(v.total, 1000);
	CHECK(v.value <= bound && v.value > bound * 31 / 32);
	add(s, WEIR_SEC, 1, bound + 1, bound);
	v = judge(s, WEIR_SEC, SLO_MINUTE);
	CHECK(v.known && !v.met);
	CHECK(v.value > bound && v.value < bound * 33 / 32);
	v = judge(s, WEIR_SEC, SLO_HOUR);
	CHECK(!v.met && v.total == 1001);
	slo_free(s);
}

/* Requests that left the window do not count; the counters only grow. */
static void slides(void)
{
	weir_time bound = WEIR_MS, t = 1000 * WEIR_SEC;
	uint64_t good, total;
	struct slo *s;

	CHECK_INT(slo_new(99, bound, &s), 0);
	add(s, t, 10, 2 * bound, bound);
	add(s, t + 30 * WEIR_SEC, 10, bound / 2, bound);
	CHECK(!judge(s, t + 54 * WEIR_SEC, SLO_MINUTE).met);
	CHECK(judge(s, t + 61 * WEIR_SEC, SLO_MINUTE).met);
	CHECK_INT(judge(s, t + 61 * WEIR_SEC, SLO_MINUTE).total, 10);
	CHECK_NEAR((double)judge(s, t + 61 * WEIR_SEC, SLO_MINUTE).value, 0.5e6, 1.0 / 32);
	CHECK(!judge(s, t + 61 * WEIR_SEC, SLO_HOUR).met);
	CHECK(!judge(s, t + 100 * WEIR_SEC, SLO_MINUTE).known);
	CHECK(!judge(s, t + 3000 * WEIR_SEC, SLO_HOUR).met);
	CHECK(slo_has_histograms(s));
	CHECK(!judge(s, t + 3700 * WEIR_SEC, SLO_HOUR).known);
	CHECK(!slo_has_histograms(s)); /* an idle tenant frees its memory */
	slo_totals(s, &good, &total);
	CHECK_INT(good, 10);
	CHECK_INT(total, 20);
	/* With another slo, the good requests are counted anew. */
	add(s, t + 3700 * WEIR_SEC, 5, 2 * bound, bound);
	slo_set(s, 99, bound);
	CHECK_INT(judge(s, t + 3701 * WEIR_SEC, SLO_MINUTE).total, 5);
	slo_set(s, 99, 3 * bound);
	CHECK_INT(judge(s, t + 3701 * WEIR_SEC, SLO_MINUTE).total, 0);
	slo_totals(s, &good, &total);
	CHECK_INT(total, 25);
	slo_free(s);
}

/* Random loads for two hours, against all recorded requests, slot by slot. */
enum { MOST = 200000 };
static struct {
	weir_time at, latency;
} all[MOST];

static int by_value(const void *a, const void *b)
{
	const weir_time *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void compare(struct slo *s, unsigned n, weir_time now, enum slo_window w, double percentile,
	weir_time bound)
{
	static weir_time values[MOST];
	weir_time slot = w == SLO_MINUTE ? 5 * WEIR_SEC : 300 * WEIR_SEC;
	weir_time from = (now / slot - SLO_SLOTS + 1) * slot;
	struct slo_view v = judge(s, now, w);
	uint64_t good = 0, many = 0, rank;

	for (unsigned i = n; i-- > 0 && all[i].at >= from;) {
		good += all[i].latency <= bound;
		values[many++] = all[i].latency;
	}
	CHECK_INT(v.total, many);
	CHECK_INT(v.good, good);
	if (!many)
		return;
	qsort(values, many, sizeof(*values), by_value);
	rank = (uint64_t)ceil(percentile / 100 * (double)many - 1e-6);
	CHECK(v.met == (values[rank - 1] <= bound));
	CHECK((v.value <= bound) == v.met);
	CHECK_NEAR((double)v.value, (double)values[rank - 1], 1.0 / 32);
}

static void as_the_list(void)
{
	const double percentiles[] = {50, 95, 99.9};
	weir_time now = 7 * WEIR_SEC, bound = 5 * WEIR_MS;
	struct slo *s;

	for (unsigned k = 0; k < 3; k++) {
		struct rng r;
		unsigned n = 0;

		rng_init(&r, 1, "slo");
		CHECK_INT(slo_new(percentiles[k], bound, &s), 0);
		for (unsigned i = 0; i < 2000 && n + 40 < MOST; i++) {
			struct slo_batch b = {0};

			now += (weir_time)rng_below(&r, 4 * WEIR_SEC);
			if (rng_below(&r, 100) == 0)
				now += (weir_time)rng_below(&r, 200 * WEIR_SEC); /* idle */
			for (uint64_t m = rng_below(&r, 40); m; m--, n++) {
				all[n].at = now;
				all[n].latency = (weir_time)(1e4 * exp(12 * rng_double(&r)));
				slo_record(&b, all[n].latency, bound);
			}
			slo_add(s, now, &b, true);
			if (i % 20)
				continue;
			compare(s, n, now, SLO_MINUTE, percentiles[k], bound);
			compare(s, n, now, SLO_HOUR, percentiles[k], bound);
		}
		CHECK(n > 30000);
		slo_free(s);
	}
}

/* Without histograms only whether the slo is met is known. */
static void counters_alone(void)
{
	struct slo_batch b = {0};
	struct slo_view v;
	struct slo *s;

	CHECK_INT(slo_new(50, WEIR_MS, &s), 0);
	slo_record(&b, 2 * WEIR_MS, WEIR_MS);
	slo_add(s, 0, &b, false);
	v = judge(s, 0, SLO_MINUTE);
	CHECK(v.known && !v.met && v.value == -1 && v.total == 1);
	slo_free(s);
}

/* Extreme latencies: below a few microseconds, and beyond a minute. */
static void ends_of_the_scale(void)
{
	struct slo *s;

	CHECK_INT(slo_new(50, WEIR_US, &s), 0);
	add(s, 0, 3, 0, WEIR_US);
	CHECK(judge(s, 0, SLO_MINUTE).met);
	CHECK(judge(s, 0, SLO_MINUTE).value <= WEIR_US);
	add(s, 0, 30, 500 * WEIR_SEC, WEIR_US);
	CHECK_INT(judge(s, 0, SLO_MINUTE).value, 500 * WEIR_SEC);
	slo_free(s);
}

static void wait_for(struct slo *s, unsigned n, weir_time wait, weir_time bound)
{
	struct slo_batch b = {0};

	for (unsigned i = 0; i < n; i++)
		slo_record(&b, wait, bound);
	slo_waits(s, &b);
}

/* Requests that wait beyond the bound count as if they completed now: of 20, 7 are done, 5 of them
 * in time, and 13 wait. */
static void waits(void)
{
	weir_time bound = WEIR_SEC;
	uint64_t good, total;
	struct slo_view v;
	struct slo *s;

	CHECK_INT(slo_new(50, bound, &s), 0);
	slo_waits(s, &(struct slo_batch){0});
	CHECK(!judge(s, 0, SLO_MINUTE).known);
	wait_for(s, 1, bound + 1, bound);
	v = judge(s, 0, SLO_MINUTE);
	CHECK(v.known && !v.met && v.total == 1 && v.good == 0 && v.value == bound + 1);
	slo_waits(s, NULL);
	add(s, 0, 5, bound / 2, bound);
	add(s, 0, 2, bound * 5 / 4, bound);
	CHECK(judge(s, 0, SLO_MINUTE).met);
	wait_for(s, 6, bound * 3 / 2, bound);
	wait_for(s, 7, bound * 3 / 2, bound); /* at another resource */
	for (int w = 0; w < SLO_WINDOWS; w++) {
		v = judge(s, 0, (enum slo_window)w);
		CHECK(v.known && !v.met);
		CHECK_INT(v.good, 5);
		CHECK_INT(v.total, 20);
		CHECK_NEAR((double)v.value, 1.5e9, 1.0 / 32); /* the 10th of 20 */
	}
	slo_totals(s, &good, &total);
	CHECK(good == 5 && total == 7); /* of completed requests */
	slo_waits(s, NULL);
	v = judge(s, 0, SLO_MINUTE);
	CHECK(v.met && v.total == 7);
	slo_free(s);
}

/* Without histograms waiting requests still count. */
static void waits_alone(void)
{
	struct slo_batch b = {0};
	struct slo_view v;
	struct slo *s;

	CHECK_INT(slo_new(50, WEIR_MS, &s), 0);
	slo_record(&b, 1, WEIR_MS);
	slo_add(s, 0, &b, false);
	wait_for(s, 2, 2 * WEIR_MS, WEIR_MS);
	v = judge(s, 0, SLO_MINUTE);
	CHECK(v.known && !v.met && v.value == -1);
	CHECK_INT(v.good, 1);
	CHECK_INT(v.total, 3);
	slo_set(s, 50, 3 * WEIR_MS); /* another bound: they may be good by that */
	CHECK(!judge(s, 0, SLO_MINUTE).known);
	slo_free(s);
}

/* A miss is reported at once and once; its end after a minute without a miss. */
static void said_once(void)
{
	weir_time bound = WEIR_MS, now = 0, last = 0;
	unsigned lines = 0;
	bool missed;
	struct slo *s;

	CHECK_INT(slo_new(50, bound, &s), 0);
	CHECK(!slo_changed(s, now, SLO_MINUTE, &missed));
	add(s, now, 1, 1, bound);
	CHECK(!slo_changed(
		s, now, SLO_MINUTE, &missed)); /* met from the start: nothing to report */
	add(s, now, 5, 2 * bound, bound);
	CHECK(slo_changed(s, now, SLO_MINUTE, &missed) && missed);
	CHECK(!slo_changed(s, now, SLO_MINUTE, &missed));
	for (; now < 600 * WEIR_SEC; now += WEIR_SEC) { /* alternating */
		add(s, now, 1, now / (20 * WEIR_SEC) % 2 ? 1 : 2 * bound, bound);
		last = judge(s, now, SLO_MINUTE).met ? last : now;
		lines += slo_changed(s, now, SLO_MINUTE, &missed);
	}
	CHECK(last > 540 * WEIR_SEC);
	CHECK_INT(lines, 0);
	for (; now < 800 * WEIR_SEC; now += WEIR_SEC) {
		add(s, now, 1, 1, bound);
		if (!slo_changed(s, now, SLO_MINUTE, &missed))
			continue;
		CHECK(!missed && now == last + 60 * WEIR_SEC);
		lines++;
	}
	CHECK_INT(lines, 1);
	slo_free(s);
}

int main(void)
{
	RUN(to_the_request);
	RUN(slides);
	RUN(as_the_list);
	RUN(counters_alone);
	RUN(ends_of_the_scale);
	RUN(waits);
	RUN(waits_alone);
	RUN(said_once);
	return 0;
}
