/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontier: b(r) equals a replay of the trace at every rate; odd traces are ordinary input; the loss of pruning is as stated, and
 * no choice of as many pairs is better.
 */
#include "base/rng.h"
#include "control/meister/frontier.h"
#include "test.h"

/* The greatest use of an unbounded bucket, as the paper replays it. */
static double replay(const struct meister_arrival *a, size_t n, double rate)
{
	double used = 0, most = 0;

	for (size_t i = 0; i < n; i++) {
		used = i ? fmax(0, used - rate * (a[i].t - a[i - 1].t)) : 0;
		used += a[i].work;
		most = fmax(most, used);
	}
	return most;
}

static size_t random_trace(struct rng *r, struct meister_arrival *a, size_t n)
{
	double t = rng_double(r), burst = 0;
	unsigned shape = (unsigned)rng_below(r, 4);

	for (size_t i = 0; i < n; i++) {
		if (burst-- <= 0) {
			t += rng_exp(r, shape == 0 ? 0 : 1);
			burst = shape == 1 ? 0 : rng_exp(r, 20);
		} else if (shape == 3) {
			t += rng_exp(r, 0.001);
		}
		a[i] = (struct meister_arrival){t, shape == 2 ? 1 : rng_exp(r, 1) + 1e-3};
	}
	return n;
}

static void check_frontier(const struct meister_arrival *a, size_t n, struct rng *r)
{
	struct meister_frontier f;
	double largest = 0, sum = 0, span = a[n - 1].t - a[0].t;

	CHECK_INT(meister_frontier(a, n, &f), 0);
	for (size_t i = 0; i < n; i++) {
		largest = fmax(largest, a[i].work);
		sum += a[i].work;
	}
	CHECK_NEAR(f.mean, span > 0 ? sum / span : 0, 1e-12);
	CHECK(f.pairs[f.n - 1].rate == f.mean);
	for (size_t i = 0; i < f.n; i++) {
		CHECK(f.pairs[i].size >= largest * (1 - 1e-9));
		CHECK(!i || f.pairs[i].rate < f.pairs[i - 1].rate);
		CHECK_NEAR(f.pairs[i].size, replay(a, n, f.pairs[i].rate), 1e-9);
	}
	for (int k = 0; k < 50; k++) {
		double rate = f.mean * pow(1000, rng_double(r)) + (span > 0 ? 0 : k);

		CHECK_NEAR(meister_frontier_size(&f, rate), replay(a, n, rate), 1e-9);
	}
	meister_frontier_free(&f);
}

static void equals_replay(void)
{
	static struct meister_arrival a[3000];
	struct rng r;

	rng_init(&r, 1, "frontier");
	for (int round = 0; round < 400; round++) {
		size_t n = random_trace(&r, a, 1 + rng_below(&r, round % 10 ? 60 : 3000));

		check_frontier(a, n, &r);
	}
}

static void odd_traces(void)
{
	struct meister_arrival one = {5, 2}, same[] = {{1, 1}, {1, 2}, {1, 3}};
	struct meister_arrival far[] = {{0, 4294967295.0}, {1e9, 1}, {1e9 + 1e-9, 1}};
	struct meister_frontier f;
	struct rng r;

	rng_init(&r, 2, "frontier");
	check_frontier(&one, 1, &r);
	check_frontier(same, 3, &r);
	check_frontier(far, 3, &r);
	CHECK_INT(meister_frontier(same, 3, &f), 0);
	CHECK_INT(f.n, 1);
	CHECK_NEAR(f.pairs[0].size, 6, 0);
	meister_frontier_free(&f);
}

static double least(const struct meister_pair *p, size_t n, double t)
{
	double y = HUGE_VAL;

	for (size_t i = 0; i < n; i++)
		y = fmin(y, p[i].size + p[i].rate * t);
	return y;
}

/* The greatest ratio, at 0 and at every crossing of two of the chosen lines. */
static double ratio_of(const struct meister_frontier *f, const struct meister_pair *p, size_t n)
{
	double most = least(p, n, 0) / least(f->pairs, f->n, 0);

	for (size_t i = 0; i + 1 < n; i++) {
		double t = (p[i + 1].size - p[i].size) / (p[i].rate - p[i + 1].rate);

		most = fmax(most, least(p, n, t) / least(f->pairs, f->n, t));
	}
	return most;
}

static void prunes_best(void)
{
	static struct meister_arrival a[400];
	struct meister_pair chosen[4], other[3];
	struct meister_frontier f;
	struct rng r;
	double loss;

	rng_init(&r, 3, "frontier");
	for (int round = 0; round < 60; round++) {
		int n;

		CHECK_INT(meister_frontier(a, random_trace(&r, a, 400), &f), 0);
		n = meister_frontier_prune(&f, 3, chosen, &loss);
		CHECK(n >= 1 && n <= 3);
		CHECK(chosen[n - 1].rate == f.mean);
		CHECK_NEAR(ratio_of(&f, chosen, (size_t)n), 1 + loss, 1e-9);
		other[2] = f.pairs[f.n - 1];
		for (size_t i = 0; i + 1 < f.n; i++) {
			for (size_t j = i + 1; j + 1 < f.n; j++) {
				other[0] = f.pairs[i];
				other[1] = f.pairs[j];
				CHECK(ratio_of(&f, other, 3) >= (1 + loss) * (1 - 1e-12));
			}
		}
		meister_frontier_free(&f);
	}
}

static void peaks(void)
{
	const struct meister_arrival a[] = {{0, 1}, {0.5, 1}, {1, 1}, {10, 2}, {10, 3}};

	CHECK_NEAR(meister_peak(a, 5, 1), 5, 1e-12);
	CHECK_NEAR(meister_peak(a, 5, 0.01), 500, 1e-12);
	CHECK_NEAR(
		meister_peak(a, 3, 1), 2, 1e-12); /* the third is a whole second after the first */
	CHECK_NEAR(meister_peak(a, 5, 100), 0.08, 1e-12);
}

/* A trace whose hull has a corner for every request. */
static void many_corners(void)
{
	enum { N = 20000 };
	static struct meister_arrival a[N];
	struct meister_pair chosen[4];
	struct meister_frontier f;
	double loss, t = 0;

	for (size_t i = 0; i < N; i++) {
		a[i] = (struct meister_arrival){t, 1};
		t += 1 + (double)i * 0.001;
	}
	CHECK_INT(meister_frontier(a, N, &f), 0);
	CHECK(f.n > N / 4);
	CHECK_INT(meister_frontier_prune(&f, 4, chosen, &loss), 4);
	CHECK(loss > 0 && loss < 0.5);
	CHECK_NEAR(ratio_of(&f, chosen, 4), 1 + loss, 1e-9);
	meister_frontier_free(&f);
}

int main(void)
{
	RUN(equals_replay);
	RUN(odd_traces);
	RUN(prunes_best);
	RUN(many_corners);
	RUN(peaks);
	return 0;
}
