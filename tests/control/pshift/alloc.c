/* SPDX-License-Identifier: BSD-3-Clause */
/* The paper's examples, each promise of the header, and unusual inputs of every kind. */
#include "bench/reference/maxflow.h"
#include "bench/reference/pshift-dense.h"
#include "bench/reference/pshift-make.h"
#include "test.h"
#include <errno.h>

#define MOST 64

static struct pshift *pshift;
static struct pshift_result result;
static int64_t rtokens[MOST], ltokens[MOST];

#define INPUT(s, b, ...)                                                                           \
	{                                                                                          \
		.servers = (s), .buckets = (b), __VA_ARGS__                                        \
	}
#define SET(in, ...) ((in) = (struct pshift_input)INPUT(__VA_ARGS__))
#define I64(...)     ((const int64_t[]){__VA_ARGS__})
#define U32(...)     ((const uint32_t[]){__VA_ARGS__})

static void allocate(const struct pshift_input *in, const struct pshift_options *o)
{
	CHECK_INT(pshift_check(pshift, in, NULL, NULL), 0);
	CHECK_INT(pshift_allocate(pshift, in, o, rtokens, ltokens, &result), 0);
}

static void tokens(const int64_t *got, size_t n, const int64_t *want)
{
	for (size_t e = 0; e < n; e++) {
		if (got[e] != want[e])
			FAIL("entry %zu has %lld, not %lld", e, (long long)got[e],
				(long long)want[e]);
	}
}

/* ---- §III */

static const struct pshift_input example2 =
	INPUT(2, 2, .capacity = I64(100, 100), .reservation = I64(100, 100), .first = U32(0, 2, 4),
		.server = U32(0, 1, 0, 1), .demand = I64(150, 50, 50, 50));
static const struct pshift_input example3 = INPUT(3, 3, .capacity = I64(100, 100, 100),
	.reservation = I64(100, 100, 100), .first = U32(0, 2, 4, 6),
	.server = U32(0, 1, 1, 2, 0, 2), .demand = I64(150, 50, 150, 50, 50, 50));

static void examples_of_the_paper(void)
{
	struct pshift_input in = example2;

	allocate(&in, NULL);
	CHECK_INT(result.phi, 200);
	CHECK_INT(result.asked, 200);
	CHECK_INT(result.before, 25);
	tokens(rtokens, 4, I64(50, 50, 50, 50));
	in = example3;
	allocate(&in, NULL);
	CHECK_INT(result.phi, 300);
	tokens(rtokens, 6, I64(50, 50, 50, 50, 50, 50));
	for (int j = 0; j < 3; j++)
		CHECK_INT(result.excess[j], 0);
}

static void movement_map_of_table_3(void)
{
	struct pshift_input in = example3;
	int64_t map[9], phi;

	CHECK_INT(pshift_dense(&in, NULL, rtokens, map, &phi), 0);
	tokens(map, 9, I64(0, 25, 0, 25, 0, 25, 0, 25, 0));
	CHECK_INT(phi, 300);
	tokens(rtokens, 6, I64(50, 50, 50, 50, 50, 50));
}

/* ---- the split */

static void largest_remainders(void)
{
	struct pshift_input in = INPUT(3, 2, .capacity = I64(100, 100, 100),
		.reservation = I64(10, 7), .first = U32(0, 3, 6), .server = U32(0, 1, 2, 2, 1, 0),
		.demand = I64(5, 5, 5, 1, 8, 3));

	allocate(&in, NULL);
	/* 7/12 of 1, 8 and 3: 0.58, 4.67, 1.75. */
	tokens(rtokens, 6, I64(4, 3, 3, 0, 5, 2));
}

static void long_rows(void)
{
	enum { N = 300 };
	static int64_t capacity[N], demand[N], r[N];
	static const int64_t d[] = {5, 0, 9, 1}, whole[] = {2, 0, 4, 0};
	static uint32_t server[N];
	struct pshift_input in = INPUT(N, 1, .capacity = capacity, .reservation = I64(500),
		.first = U32(0, N), .server = server, .demand = demand);
	int64_t sum = 0;

	for (uint32_t j = 0; j < N; j++) {
		server[j] = j;
		capacity[j] = 1000;
		demand[j] = d[j % 4];
	}
	/* 500 of 1125: 2.22, 0, 4 and 0.44 each; 450 whole ones, and 50 of the 75 with 0.44. */
	CHECK_INT(pshift_allocate(pshift, &in, NULL, r, NULL, &result), 0);
	for (int j = 0; j < N; j++) {
		CHECK_INT(r[j], whole[j % 4] + (j % 4 == 3 && j / 4 < 50));
		sum += r[j];
	}
	CHECK_INT(sum, 500);
}

/* Rows whose total demand exceeds 64 bits, with some servers full and some not. */
static void widest_rows(void)
{
	enum { N = 2100, B = 3 };
	static int64_t capacity[N], demand[B * N], r[B * N], l[B * N];
	static uint32_t server[B * N];
	struct pshift_input in = INPUT(N, B, .capacity = capacity,
		.reservation = I64(PSHIFT_MOST, PSHIFT_MOST - 1, 3 * (PSHIFT_MOST / 7)),
		.limit = I64(PSHIFT_MOST, PSHIFT_MOST, PSHIFT_MOST),
		.first = U32(0, N, 2 * N, 3 * N), .server = server, .demand = demand);
	struct pshift_cut cut;
	struct maxflow g;

	for (uint32_t e = 0; e < B * N; e++) {
		server[e] = e % N;
		demand[e] = PSHIFT_MOST - e % 7;
		capacity[e % N] = e % 3 ? PSHIFT_MOST / N : e % 5;
	}
	CHECK_INT(pshift_check(pshift, &in, NULL, NULL), 0);
	CHECK_INT(pshift_allocate(pshift, &in, NULL, r, l, &result), 0);
	for (size_t i = 0; i < B; i++) {
		int64_t sum = 0;

		for (uint32_t e = in.first[i]; e < in.first[i + 1]; e++) {
			CHECK(r[e] >= 0 && r[e] <= demand[e] && l[e] >= 0);
			sum += r[e];
		}
		CHECK_INT(sum, in.reservation[i]);
	}
	CHECK_INT(maxflow_new(&in, &g), 0);
	CHECK_INT(result.phi, maxflow_push_relabel(&g));
	maxflow_free(&g);
	CHECK_INT(pshift_explain(pshift, &in, r, &cut), 0);
	CHECK_INT(cut.n, 1);
	CHECK_INT(cut.groups[0].needed - cut.groups[0].capacity, result.asked - result.phi);
}

/* ---- odd input */

static void nothing_at_all(void)
{
	struct pshift_input in = INPUT(0, 0, .first = U32(0));
	struct pshift_cut cut;

	allocate(&in, NULL);
	CHECK_INT(result.phi, 0);
	CHECK_INT(pshift_explain(pshift, &in, rtokens, &cut), 0);
	CHECK_INT(cut.n, 0);
	SET(in, 2, 0, .capacity = I64(1, 2), .first = U32(0));
	allocate(&in, NULL);
	SET(in, 0, 2, .reservation = I64(5, 6), .first = U32(0, 0, 0));
	allocate(&in, NULL);
	CHECK_INT(result.asked, 0);
	CHECK_INT(result.unasked, 11);
}

static void no_demand_or_no_capacity(void)
{
	struct pshift_input in = INPUT(2, 2, .capacity = I64(0, 100), .reservation = I64(50, 60),
		.first = U32(0, 2, 3), .server = U32(0, 1, 0), .demand = I64(40, 20, 0));

	allocate(&in, NULL);
	CHECK_INT(result.asked, 50);
	CHECK_INT(result.unasked, 60);
	CHECK_INT(result.phi, 20);
	tokens(rtokens, 3, I64(30, 20, 0));
	CHECK_INT(result.excess[0], 30);
}

static void largest_numbers(void)
{
	int64_t m = PSHIFT_MOST;
	struct pshift_input in = INPUT(3, 2, .capacity = I64(m, m, m), .reservation = I64(m, m),
		.limit = I64(m, m), .first = U32(0, 3, 5), .server = U32(0, 1, 2, 0, 1),
		.demand = I64(m, m, m, m, m));

	allocate(&in, NULL);
	CHECK_INT(result.phi, 2 * m);
	/* A third of 2⁵³ leaves 2, which go to the first entries. */
	tokens(rtokens, 5, I64(m / 3 + 1, m / 3 + 1, m / 3, m / 2, m / 2));
	in.demand = I64(m, m - 1, m - 2, m - 1, 1);
	allocate(&in, NULL);
	CHECK_INT(result.phi, 2 * m);
}

static void sums_that_do_not_fit(void)
{
	enum { N = 300 };
	static int64_t reservation[N], demand[N];
	static uint32_t first[N + 1], server[N];
	struct pshift_input in = INPUT(1, N, .capacity = I64(1), .reservation = reservation,
		.first = first, .server = server, .demand = demand);
	size_t bucket = 0, entry = 0;

	for (uint32_t i = 0; i < N; i++) {
		first[i + 1] = i + 1;
		reservation[i] = demand[i] = PSHIFT_MOST;
	}
	CHECK_INT(pshift_check(pshift, &in, &bucket, &entry), -ERANGE);
	CHECK_INT(bucket, 256);
	CHECK(entry == SIZE_MAX);
}

static void input_that_is_wrong(void)
{
	struct pshift_input good = example2, in = good;
	size_t bucket, entry;

	in.server = U32(0, 1, 1, 1);
	CHECK_INT(pshift_check(pshift, &in, &bucket, &entry), -EINVAL);
	CHECK_INT(bucket, 1);
	CHECK_INT(entry, 3);
	in.server = U32(0, 2, 0, 1);
	CHECK_INT(pshift_check(pshift, &in, &bucket, &entry), -EINVAL);
	CHECK_INT(entry, 1);
	in = good;
	in.demand = I64(1, 1, -1, 1);
	CHECK_INT(pshift_check(pshift, &in, &bucket, &entry), -EINVAL);
	CHECK_INT(entry, 2);
	in = good;
	in.reservation = I64(1, PSHIFT_MOST + 1);
	CHECK_INT(pshift_check(pshift, &in, &bucket, &entry), -EINVAL);
	CHECK_INT(bucket, 1);
	CHECK(entry == SIZE_MAX);
	in = good;
	in.capacity = I64(-1, 1);
	CHECK_INT(pshift_check(pshift, &in, &bucket, &entry), -EINVAL);
	CHECK(bucket == SIZE_MAX);
	in = good;
	in.first = U32(0, 1000000, 4); /* past the end: must not be read */
	CHECK_INT(pshift_check(pshift, &in, NULL, NULL), -EINVAL);
	in.first = U32(1, 2, 4);
	CHECK_INT(pshift_check(pshift, &in, NULL, NULL), -EINVAL);
	in = good;
	in.limit = I64(5, -5);
	CHECK_INT(pshift_check(pshift, &in, &bucket, NULL), -EINVAL);
	CHECK_INT(bucket, 1);
}

/* ---- L-tokens */

static void limits(void)
{
	struct pshift_input in =
		INPUT(2, 3, .capacity = I64(100, 100), .reservation = I64(100, 60, 0),
			.limit = I64(150, PSHIFT_NO_LIMIT, 10), .first = U32(0, 2, 4, 5),
			.server = U32(0, 1, 0, 1, 0), .demand = I64(150, 50, 50, 50, 90));

	allocate(&in, NULL);
	/* 100 of 150 + 50: 75 and 25; 60: 30 and 30. Then 105 and 55 at the servers: 5 move. */
	CHECK_INT(result.phi, 160);
	tokens(rtokens, 5, I64(70, 30, 30, 30, 0));
	/* 50 more, over what is left of 80 and 20; 10 over 90. */
	tokens(ltokens, 5, I64(40 - 10, 10 + 10, 0, 0, 10));
	CHECK_INT(result.lphi, 20);
}

static void floors(void)
{
	struct pshift_input in = INPUT(4, 3, .capacity = I64(100, 100, 100, 100),
		.reservation = I64(10, 0, 0), .limit = I64(50, 6, PSHIFT_NO_LIMIT),
		.first = U32(0, 4, 8, 9), .server = U32(0, 1, 2, 3, 3, 2, 1, 0, 0),
		.demand = I64(20, 20, 0, 0, 0, 0, 0, 0, 5), .floor = 4);

	allocate(&in, NULL);
	tokens(rtokens, 9, I64(5, 5, 0, 0, 0, 0, 0, 0, 0));
	/* 40 left: 4 at each; 24 over the remaining demands of 11 and 11. And 6 in four parts. */
	tokens(ltokens, 9, I64(15, 15, 4, 4, 2, 2, 1, 1, 0));
}

static void limit_below_reservation(void)
{
	struct pshift_input in = INPUT(1, 1, .capacity = I64(100), .reservation = I64(50),
		.limit = I64(20), .first = U32(0, 1), .server = U32(0), .demand = I64(80));

	allocate(&in, NULL);
	CHECK_INT(rtokens[0], 20);
	CHECK_INT(ltokens[0], 0);
	CHECK_INT(result.unasked, 0);
}

/* ---- explanations */

static const char *server_name(void *arg, size_t i)
{
	return ((const char *[]){"s1", "s2", "s3", "s4", "s5"})[i];
}

static const char *bucket_name(void *arg, size_t i)
{
	return ((const char *[]){"red", "blue", "green", "grey", "pink", "lime"})[i];
}

static void cut_in_words(void)
{
	/* red and blue have s1 only; grey, pink, lime and green s3 and s4; the rest has enough. */
	struct pshift_input in = INPUT(5, 6, .capacity = I64(100, 50, 30, 30, 9),
		.reservation = I64(80, 80, 20, 20, 20, 20), .first = U32(0, 2, 3, 5, 7, 9, 11),
		.server = U32(0, 1, 0, 2, 3, 2, 3, 3, 2, 3, 2),
		.demand = I64(80, 30, 90, 30, 30, 30, 30, 30, 30, 30, 30));
	struct pshift_cut cut;
	char text[256];

	allocate(&in, NULL);
	CHECK_INT(result.asked - result.phi, 30 + 20);
	CHECK_INT(pshift_explain(pshift, &in, rtokens, &cut), 0);
	CHECK_INT(cut.n, 2);
	CHECK_STR(pshift_words(&in, &cut, 0, server_name, bucket_name, NULL, text, sizeof text),
		"red and blue need 130 at s1, which can do 100: 30 short");
	CHECK_STR(pshift_words(&in, &cut, 1, server_name, bucket_name, NULL, text, sizeof text),
		"green, grey, pink and 1 more need 80 at s3 and s4, which can do 60: 20 short");
	CHECK_STR(pshift_words(&in, &cut, 0, server_name, bucket_name, NULL, text, 13),
		"red and blue");
	CHECK_INT(cut.server[1], 2);
	CHECK_INT(cut.server[4], 2);
}

/* ---- tokens that have to move far: along paths from the few overloaded servers, or by the
 * general algorithm */

static void chains_of(uint32_t length, bool general)
{
	enum { N = 36 };
	static int64_t capacity[N], reservation[N], demand[2 * N], r[2 * N];
	static uint32_t first[N + 1], server[2 * N];
	struct pshift_input in = INPUT(N, 0, .capacity = capacity, .reservation = reservation,
		.first = first, .server = server, .demand = demand);
	uint32_t n = 0;

	/* In each chain a bucket has demand at servers i and i + 1, with all of its tokens at i;
	 * the first server is full with its own bucket, so that each server has to pass one
	 * token to the next. */
	for (uint32_t i = 0; i < N; i++) {
		bool last = i % length == length - 1;

		capacity[i] = i % length == 0 ? 9 : last ? 1 : 10;
		if (last)
			continue;
		reservation[n] = 10;
		first[n] = 2 * n;
		server[2 * n] = i;
		server[2 * n + 1] = i + 1;
		demand[2 * n] = 1000000;
		demand[2 * n + 1] = 1;
		n++;
	}
	first[n] = 2 * n;
	in.buckets = n;
	CHECK_INT(pshift_allocate(pshift, &in, NULL, r, NULL, &result), 0);
	CHECK_INT(result.asked, 10 * n);
	CHECK_INT(result.phi, 10 * n);
	CHECK_INT(result.general, general);
	for (uint32_t i = 0; i < n; i++) {
		CHECK_INT(r[2 * i], 9);
		CHECK_INT(r[2 * i + 1], 1);
	}
}

static void long_chain(void)
{
	chains_of(36, false);
	chains_of(6, true);
}

/* ---- shapes: each input is read a few times only, however far its tokens move */

static void few_passes(const struct pshift_shape *shape, uint64_t seed)
{
	struct pshift_made m;
	struct maxflow g;
	int64_t *r;

	CHECK_INT(pshift_make(shape, seed, &m), 0);
	CHECK_INT(pshift_check(pshift, &m.in, NULL, NULL), 0);
	r = malloc(m.first[shape->buckets] * sizeof(*r));
	CHECK(r);
	CHECK_INT(pshift_allocate(pshift, &m.in, NULL, r, NULL, &result), 0);
	CHECK_INT(maxflow_new(&m.in, &g), 0);
	CHECK_INT(result.phi, maxflow_push_relabel(&g));
	CHECK(result.passes <= 12);
	maxflow_free(&g);
	pshift_made_free(&m);
	free(r);
}

static void every_shape(void)
{
	static const size_t active[] = {2, 3, 4, 8, 9, 16, 64};
	struct pshift_shape shape = {
		.servers = 64, .buckets = 2000, .capacity = 100000, .reserved = 1, .zipf = 0.5};

	for (size_t x = 0; x < sizeof(active) / sizeof(active[0]) * 12; x++) {
		shape.active = active[x / 12];
		shape.chain = x % 2;
		shape.skew = (double)(x / 2 % 3) / 2;
		shape.demand = x / 6 % 2 ? 2 : 1.1;
		few_passes(&shape, 1 + x);
	}
}

/* ---- §IV */

static void as_the_evaluation_draws(void)
{
	struct pshift_shape shape = {.servers = 64,
		.buckets = 2000,
		.active = 8,
		.capacity = 100000,
		.reserved = 1,
		.demand = 1.1,
		.zipf = 0.5,
		.limit = 1.5};
	struct pshift_made m;
	int64_t sum = 0;

	CHECK_INT(pshift_make(&shape, 1, &m), 0);
	CHECK_INT(pshift_check(pshift, &m.in, NULL, NULL), 0);
	for (size_t i = 0; i < shape.buckets; i++) {
		int64_t demand = 0;

		sum += m.reservation[i];
		for (uint32_t e = m.first[i]; e < m.first[i + 1]; e++)
			demand += m.demand[e];
		CHECK(llabs(demand - llround(1.1 * (double)m.reservation[i])) == 0);
		CHECK_INT(m.limit[i], llround(1.5 * (double)m.reservation[i]));
	}
	CHECK_INT(sum, 6400000);
	pshift_made_free(&m);
	shape.active = 65;
	CHECK_INT(pshift_make(&shape, 1, &m), -EINVAL);
}

static void backwards(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg)
{
	*(size_t *)pool = parts;
	while (parts > 0)
		part(arg, --parts);
}

/* Large enough to be split in parts; run in another order, as threads might. */
static void same_tokens_in_parts(void)
{
	struct pshift_shape shape = {.servers = 80,
		.buckets = 10000,
		.active = 8,
		.capacity = 100000,
		.reserved = 1,
		.demand = 1.1,
		.zipf = 0.5,
		.limit = 1.05};
	size_t parts = 0, n = 80000;
	struct pshift_parallel parallel = {backwards, &parts};
	struct pshift_options o = {.parallel = &parallel};
	int64_t *r = calloc(4 * n, sizeof(*r)), *l = r + n, *r2 = l + n, *l2 = r2 + n, phi;
	struct pshift_made m;

	CHECK(r);
	CHECK_INT(pshift_make(&shape, 1, &m), 0);
	CHECK_INT(pshift_allocate(pshift, &m.in, NULL, r, l, &result), 0);
	phi = result.phi;
	CHECK_INT(pshift_allocate(pshift, &m.in, &o, r2, l2, &result), 0);
	CHECK(parts > 1);
	CHECK_INT(result.phi, phi);
	CHECK(memcmp(r, r2, n * sizeof(*r)) == 0);
	CHECK(memcmp(l, l2, n * sizeof(*l)) == 0);
	pshift_made_free(&m);
	free(r);
}

/* Warm start: a bucket with wrong tokens is split again, and its neighbours' tokens stay. */
static void warm_start_keeps_correct_tokens(void)
{
	struct pshift_input in =
		INPUT(3, 3, .capacity = I64(100, 100, 100), .reservation = I64(9, 9, 9),
			.first = U32(0, 3, 6, 9), .server = U32(0, 1, 2, 0, 1, 2, 0, 1, 2),
			.demand = I64(10, 10, 10, 10, 10, 10, 10, 10, 10));
	struct pshift_options o = {.warm = true};

	memcpy(rtokens, I64(0, 9, 0, 7, 7, 7, 0, 2, 7), 9 * sizeof(*rtokens));
	allocate(&in, &o);
	tokens(rtokens, 9, I64(0, 9, 0, 3, 3, 3, 0, 2, 7));
	memcpy(rtokens, I64(11, -1, -1, 1, 0, 8, 1, 1, 6), 9 * sizeof(*rtokens));
	o.changed = U32(0, 2);
	o.n_changed = 2;
	allocate(&in, &o);
	tokens(rtokens, 9, I64(3, 3, 3, 1, 0, 8, 3, 3, 3));
}

/* A call whose sizes were seen before allocates no memory. */
static void memory(void)
{
	struct pshift_input in = example3;
	size_t before;

	allocate(&in, NULL);
	before = pshift_memory(pshift);
	allocate(&in, NULL);
	in = example2;
	allocate(&in, NULL);
	CHECK_INT(pshift_memory(pshift), before);
}

int main(void)
{
	CHECK_INT(pshift_new(&pshift), 0);
	RUN(examples_of_the_paper);
	RUN(movement_map_of_table_3);
	RUN(largest_remainders);
	RUN(long_rows);
	RUN(widest_rows);
	RUN(nothing_at_all);
	RUN(no_demand_or_no_capacity);
	RUN(largest_numbers);
	RUN(sums_that_do_not_fit);
	RUN(input_that_is_wrong);
	RUN(limits);
	RUN(floors);
	RUN(limit_below_reservation);
	RUN(cut_in_words);
	RUN(long_chain);
	RUN(every_shape);
	RUN(as_the_evaluation_draws);
	RUN(same_tokens_in_parts);
	RUN(warm_start_keeps_correct_tokens);
	RUN(memory);
	pshift_free(pshift);
	return 0;
}
