/* SPDX-License-Identifier: BSD-3-Clause */
/* rng: the published sequence, independent streams, and the shape of each distribution. */
#include "base/rng.h"
#include "test.h"

static void follows_the_published_definition(void)
{
	/* Computed by hand from the definition, state 1, 2, 3, 4. */
	static const uint64_t want[] = {11520, 0, 1509978240, UINT64_C(1215971899390074240),
		UINT64_C(1216172134540287360), UINT64_C(607988272756665600)};
	struct rng r = {{1, 2, 3, 4}};

	for (int i = 0; i < 6; i++)
		CHECK(rng_u64(&r) == want[i]);
}

static void same_seed_same_numbers(void)
{
	/* Golden: a change here changes every published result. */
	static const uint64_t want[] = {UINT64_C(0x00f198a82b5ddae8), UINT64_C(0xb2f0f2ea0fa1b2f1),
		UINT64_C(0x71a94e8ccb28fcdd), UINT64_C(0x78a927b209833ec7)};
	struct rng a, b;

	rng_init(&a, 42, "host3/vm1/arrivals");
	rng_init(&b, 42, "host3/vm1/arrivals");
	for (int i = 0; i < 4; i++) {
		CHECK(rng_u64(&a) == want[i]);
		CHECK(rng_u64(&b) == want[i]);
	}
}

/* Return the share of equal bits, which is ½ for independent streams. */
static double equal_bits(struct rng a, struct rng b)
{
	unsigned long same = 0;

	for (int i = 0; i < 10000; i++)
		same += 64 - (unsigned long)__builtin_popcountll(rng_u64(&a) ^ rng_u64(&b));
	return (double)same / 640000.0;
}

static double correlation(struct rng a, struct rng b)
{
	double sum = 0;

	for (int i = 0; i < 100000; i++)
		sum += (rng_double(&a) - 0.5) * (rng_double(&b) - 0.5);
	return sum / 100000 * 12; /* a uniform's variance is 1/12 */
}

static void near_names_and_seeds_are_independent(void)
{
	static const char *const names[] = {"", "a", "b", "ab", "ba", "host1", "host2", "host11"};
	struct rng streams[16];

	for (int i = 0; i < 16; i++)
		rng_init(&streams[i], (uint64_t)i / 8, names[i % 8]);
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < i; j++) {
			CHECK(fabs(equal_bits(streams[i], streams[j]) - 0.5) < 5 * 0.5 / 800);
			CHECK(fabs(correlation(streams[i], streams[j])) < 5 / sqrt(100000));
		}
}

static void doubles_are_uniform(void)
{
	struct rng r;
	double sum = 0, square = 0;
	unsigned cells[100] = {0};

	rng_init(&r, 1, "double");
	for (int i = 0; i < 1000000; i++) {
		double u = rng_double(&r);
		CHECK(u >= 0 && u < 1);
		sum += u;
		square += u * u;
		cells[(int)(u * 100)]++;
	}
	CHECK_NEAR(sum / 1e6, 0.5, 0.003);
	CHECK_NEAR(square / 1e6, 1.0 / 3, 0.003);
	for (int i = 0; i < 100; i++)
		CHECK(abs((int)cells[i] - 10000) < 500);
}

static void below_is_unbiased(void)
{
	struct rng r;
	unsigned counts[7] = {0};
	/* ¾ of 2⁶⁴: plain remainders would favour the low third, plain scaling every third
	 * value. */
	uint64_t n = UINT64_C(3) << 62;
	unsigned thirds[3] = {0}, remainders[3] = {0};

	rng_init(&r, 1, "below");
	for (int i = 0; i < 700000; i++)
		counts[rng_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		CHECK(abs((int)counts[i] - 100000) < 1500);
	for (int i = 0; i < 300000; i++) {
		uint64_t v = rng_below(&r, n);
		CHECK(v < n);
		thirds[v / (n / 3)]++;
		remainders[v % 3]++;
	}
	for (int i = 0; i < 3; i++) {
		CHECK(abs((int)thirds[i] - 100000) < 1300);
		CHECK(abs((int)remainders[i] - 100000) < 1300);
	}
	for (int i = 0; i < 100; i++)
		CHECK_INT(rng_below(&r, 1), 0);
}

#define KS_N 200000
static double sample[KS_N];

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double exp_cdf(double x)
{
	return 1 - exp(-x / 5.0);
}

static double normal_cdf(double x)
{
	return erfc(-x / sqrt(2)) / 2;
}

/* Return the distance of Kolmogorov and Smirnov times √n: over 1.95 for one in a thousand good
 * generators. */
static double ks_distance(double (*cdf)(double))
{
	double most = 0;

	qsort(sample, KS_N, sizeof(sample[0]), ascending);
	for (int i = 0; i < KS_N; i++) {
		double f = cdf(sample[i]);
		most = fmax(most, fmax(f - i / (double)KS_N, (i + 1) / (double)KS_N - f));
	}
	return most * sqrt(KS_N);
}

static void check_moments(double mean, double variance, double fourth)
{
	double m = 0, v = 0, q = 0;

	for (int i = 0; i < KS_N; i++)
		m += sample[i] / KS_N;
	for (int i = 0; i < KS_N; i++) {
		double d = (sample[i] - m) * (sample[i] - m);
		v += d / KS_N;
		q += d * d / KS_N;
	}
	CHECK(fabs(m - mean) < 0.01 * sqrt(variance));
	CHECK_NEAR(v, variance, 0.02);
	CHECK_NEAR(q, fourth, 0.08);
}

static void exponential_has_its_shape(void)
{
	struct rng r;

	rng_init(&r, 1, "exp");
	for (int i = 0; i < KS_N; i++) {
		sample[i] = rng_exp(&r, 5.0);
		CHECK(sample[i] >= 0 && sample[i] < 5.0 * 37);
	}
	check_moments(5, 25, 9 * 625);
	CHECK(ks_distance(exp_cdf) < 1.95);
}

static void normal_has_its_shape(void)
{
	struct rng r;

	rng_init(&r, 1, "normal");
	for (int i = 0; i < KS_N; i++)
		sample[i] = rng_normal(&r);
	check_moments(0, 1, 3);
	CHECK(ks_distance(normal_cdf) < 1.95);
}

/* Σ k^−s for k = 1 … n: term by term to 10⁵, beyond by Euler and Maclaurin. */
static double harmonic(double n, double s)
{
	double sum = 0, m = fmin(n, 1e5);

	for (double k = m; k >= 1; k--)
		sum += pow(k, -s);
	if (n > m) {
		sum += fabs(s - 1) < 1e-12 ? log(n / m) : (pow(n, 1 - s) - pow(m, 1 - s)) / (1 - s);
		sum += (pow(n, -s) - pow(m, -s)) / 2;
	}
	return sum;
}

#define DRAWS 400000

/* Check Pearson's χ² over the first cells' exact probabilities, the rest pooled. */
static void check_zipf(double n, double s)
{
	enum { MOST = 200 };
	unsigned cells = n < MOST ? (unsigned)n : MOST, used = 0;
	double counts[MOST + 1] = {0}, total = harmonic(n, s), chi2 = 0, rest = DRAWS, left = 0;
	struct rng r;
	struct rng_zipf z;

	rng_init(&r, 3, "zipf");
	rng_zipf_init(&z, (uint64_t)n, s);
	for (int i = 0; i < DRAWS; i++) {
		uint64_t k = rng_zipf_draw(&r, &z);
		CHECK(k < (uint64_t)n);
		counts[k < cells ? k : cells]++;
	}
	for (unsigned k = 0; k < cells; k++) {
		double want = DRAWS * pow(k + 1.0, -s) / total;
		if (want < 20) { /* too few for χ²: pooled */
			left += counts[k];
			continue;
		}
		chi2 += (counts[k] - want) * (counts[k] - want) / want;
		rest -= want;
		used++;
	}
	left += counts[cells];
	if (rest > 20) {
		chi2 += (left - rest) * (left - rest) / rest;
		used++;
	} else {
		CHECK(fabs(left - rest) < 40);
	}
	CHECK(used > 0);
	if (chi2 > used + 4 * sqrt(2.0 * used))
		FAIL("zipf n=%g s=%g: chi2 %g over %u cells", n, s, chi2, used);
}

/* Check the share of draws below n^(1/8), n^(2/8) … n, where a wrong tail would show. */
static void check_zipf_tail(double n, double s)
{
	double below[8] = {0}, total = harmonic(n, s);
	struct rng r;
	struct rng_zipf z;

	rng_init(&r, 4, "zipf");
	rng_zipf_init(&z, (uint64_t)n, s);
	for (int i = 0; i < DRAWS; i++) {
		double k = (double)rng_zipf_draw(&r, &z) + 1;
		for (int j = 0; j < 8; j++)
			below[j] += k <= floor(pow(n, (j + 1) / 8.0) + 0.5);
	}
	for (int j = 0; j < 8; j++) {
		double want = harmonic(floor(pow(n, (j + 1) / 8.0) + 0.5), s) / total;
		double slack = 4.5 * sqrt(want * (1 - want) / DRAWS) + 1e-9;
		if (fabs(below[j] / DRAWS - want) > slack)
			FAIL("zipf n=%g s=%g: share up to n^(%d/8) is %g, not %g", n, s, j + 1,
				below[j] / DRAWS, want);
	}
}

static void zipf_follows_its_law(void)
{
	static const double exponents[] = {0, 0.5, 0.99, 1, 1 + 1e-12, 1.2, 2};
	static const double sizes[] = {2, 3, 10, 1000, 1e6, 0x1p40};

	for (size_t i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++) {
		for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
			check_zipf(sizes[j], exponents[i]);
		check_zipf_tail(1e6, exponents[i]);
		check_zipf_tail(0x1p40, exponents[i]);
	}
}

static void zipf_at_its_ends(void)
{
	struct rng r;
	struct rng_zipf z;

	rng_init(&r, 5, "ends");
	for (int i = 0; i < 3; i++) { /* one value only */
		rng_zipf_init(&z, 1, i);
		for (int j = 0; j < 1000; j++)
			CHECK_INT(rng_zipf_draw(&r, &z), 0);
	}
	for (int i = 0; i < 3; i++) { /* the most values possible */
		unsigned high = 0;
		rng_zipf_init(&z, UINT64_MAX, i);
		for (int j = 0; j < 10000; j++) {
			uint64_t k = rng_zipf_draw(&r, &z);
			CHECK(k < UINT64_MAX);
			high += k >> 63;
		}
		/* Half; log 2 of log 2⁶⁴ is 1/64, near enough; none. */
		CHECK(i == 0     ? high > 4700 && high < 5300
			: i == 1 ? high > 100 && high < 210
				 : high == 0);
	}
	rng_zipf_init(&z, 1000, 50); /* so steep that only the first is ever drawn */
	for (int j = 0; j < 1000; j++)
		CHECK_INT(rng_zipf_draw(&r, &z), 0);
}

int main(void)
{
	RUN(follows_the_published_definition);
	RUN(same_seed_same_numbers);
	RUN(near_names_and_seeds_are_independent);
	RUN(doubles_are_uniform);
	RUN(below_is_unbiased);
	RUN(exponential_has_its_shape);
	RUN(normal_has_its_shape);
	RUN(zipf_follows_its_law);
	RUN(zipf_at_its_ends);
	return 0;
}
