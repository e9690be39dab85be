/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The figures of pShift's §IV-C and §IV-D and the examples of §III, for experiments: rows with a
 * key, which a claim can name. Inputs and timing are those of bench-pshift.c.
 */
#include "bench/reference/pshift-dense.h"
#include "serve/loop/parallel.h"
#include "bench/bench-pshift.h"
#include "serve/loop/loop.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Names and keys of rows that are made in loops; they stay valid until the program ends. */
__attribute__((format(printf, 1, 2))) static const char *row_text(const char *fmt, ...)
{
	static char texts[2 * COUNT(((struct bench *)0)->rows)][64];
	static size_t next;
	char *t = texts[next++ % COUNT(texts)];
	va_list args;

	va_start(args, fmt);
	vsnprintf(t, sizeof(texts[0]), fmt, args);
	va_end(args);
	return t;
}

static void add_value(
	struct bench *b, const char *name, const char *unit, const char *key, double value)
{
	bench_add_value(b, name, unit, value, NULL)->key = key;
}

/* ---- Examples 1 to 3 */

#define I64(...) ((const int64_t[]){__VA_ARGS__})
#define U32(...) ((const uint32_t[]){__VA_ARGS__})

static const struct pshift_input tables[] = {
	{.servers = 2,
		.buckets = 2,
		.capacity = I64(100, 100),
		.reservation = I64(100, 100),
		.first = U32(0, 2, 4),
		.server = U32(0, 1, 0, 1),
		.demand = I64(150, 50, 50, 50)},
	{.servers = 3,
		.buckets = 3,
		.capacity = I64(100, 100, 100),
		.reservation = I64(100, 100, 100),
		.first = U32(0, 2, 4, 6),
		.server = U32(0, 1, 1, 2, 0, 2),
		.demand = I64(150, 50, 150, 50, 50, 50)},
};
static const char *const colours[] = {"red", "blue", "green"};

static int run_example(struct bench *b, int table, const char *key)
{
	const struct pshift_input *in = &tables[table];
	struct pshift_result result;
	int64_t tokens[6] = {0}, map[9], phi;
	struct pshift *p;
	struct maxflow g;
	int r = pshift_new(&p);

	if (r)
		return r;
	r = pshift_allocate(p, in, NULL, tokens, NULL, &result);
	if (r == 0)
		r = pshift_dense(in, NULL, NULL, map, &phi);
	if (r == 0)
		r = maxflow_new(in, &g);
	pshift_free(p);
	if (r)
		return r;
	add_value(b, row_text("%s: phi of the split", key), "", row_text("%s.split", key),
		(double)(result.asked - result.before));
	add_value(b, row_text("%s: phi", key), "", row_text("%s.phi", key), (double)result.phi);
	add_value(b, row_text("%s: phi of a max-flow", key), "", row_text("%s.most", key),
		(double)maxflow_edmonds_karp(&g));
	add_value(b, row_text("%s: phi of the paper's", key), "", row_text("%s.dense", key),
		(double)phi);
	maxflow_free(&g);
	for (size_t i = 0; i < in->buckets; i++) {
		for (uint32_t e = in->first[i]; e < in->first[i + 1]; e++)
			/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): one colour per bucket */
			add_value(b, row_text("%s: %s at %u", key, colours[i], in->server[e] + 1),
				"", row_text("%s.%s.s%u", key, colours[i], in->server[e] + 1),
				(double)tokens[e]);
	}
	for (size_t x = 0; x < in->servers * in->servers; x++) {
		size_t j = x / in->servers, k = x % in->servers;

		if (j != k)
			add_value(b, row_text("%s: movable from %zu to %zu", key, j + 1, k + 1), "",
				row_text("%s.map.s%zu_s%zu", key, j + 1, k + 1), (double)map[x]);
	}
	return 0;
}

int bench_pshift_ex123(struct bench *b, struct weir_err *err)
{
	int r = run_example(b, 0, "ex2");

	return r ? r : run_example(b, 1, "ex3");
}

/* ---- Figure 5: over m and r, and threads */

/* Measure wall-clock time, which threads are to reduce. */
static int measure_threaded(
	struct bench_pshift *b, struct parallel *pool, unsigned loops, double *ret_ms)
{
	struct pshift_parallel parallel = {parallel_run, pool};
	struct pshift_options o = {.parallel = &parallel};
	weir_time begin = loop_clock();
	int r = 0;

	for (unsigned i = 0; r == 0 && i < loops; i++)
		r = pshift_allocate(b->pshift, &b->made.in, &o, b->rtokens, NULL, &b->result);
	*ret_ms = (double)(loop_clock() - begin) / 1e6 / loops;
	return r;
}

static int fig5_point(struct bench *b, struct parallel *pool, int reserved, int demand)
{
	struct pshift_shape shape = bench_pshift_shape(64, 10000);
	struct bench_samples one = {.n = 0}, two = {.n = 0};
	unsigned loops = b->quick ? 2 : 20;
	struct bench_pshift made;
	int r;

	shape.reserved = reserved / 10.0;
	shape.demand = demand / 100.0;
	r = bench_pshift_new(&made, &shape);
	if (r)
		return r;
	for (unsigned i = 0; r == 0 && i < b->runs; i++) {
		double ms;

		r = bench_pshift_ours(&made, NULL, loops, &ms);
		bench_sample(&one, ms);
		if (r == 0)
			r = measure_threaded(&made, pool, loops, &ms);
		bench_sample(&two, ms);
	}
	bench_pshift_free(&made);
	if (r)
		return r;
	bench_add(b, row_text("r = %.1f, m = %.2f", shape.reserved, shape.demand), "ms", &one, NULL)
		->key = row_text("r%d.m%d", reserved, demand);
	bench_add(b, row_text("r = %.1f, m = %.2f, two threads", shape.reserved, shape.demand),
		"ms", &two, NULL)
		->key = row_text("r%d.m%d.two", reserved, demand);
	return 0;
}

int bench_pshift_fig5(struct bench *b, struct weir_err *err)
{
	static const int demands[] = {105, 110, 120, 130, 150};
	struct parallel *pool;
	int r = parallel_new(2, &pool);

	if (r)
		return r;
	for (size_t i = 0; r == 0 && i < 2 * COUNT(demands); i++)
		r = fig5_point(b, pool, i % 2 ? 9 : 10, demands[i / 2]);
	parallel_free(pool);
	return r;
}

/* ---- Figure 6: the approximation */

static int fig6_curve(struct bench *b, int zipf)
{
	static const size_t tops[] = {100, 200, 500, 1000};
	struct pshift_shape shape = bench_pshift_shape(64, 10000);
	struct bench_pshift made;
	int64_t all;
	int r;

	shape.zipf = zipf / 100.0;
	r = bench_pshift_new(&made, &shape);
	if (r)
		return r;
	all = made.result.before - (made.result.asked - made.result.phi);
	for (size_t i = 0; r == 0 && i < COUNT(tops); i++) {
		struct pshift_options o = {.top = tops[i]};
		struct bench_samples time = {.n = 0};
		double ms, part;

		for (unsigned k = 0; r == 0 && k < b->runs; k++) {
			r = bench_pshift_ours(&made, &o, 1, &ms);
			bench_sample(&time, ms);
		}
		part = (double)(made.result.before - (made.result.asked - made.result.phi));
		add_value(b, row_text("s = %.2f, M = %zu: removed", shape.zipf, tops[i]), "%",
			row_text("s%d.m%zu", zipf, tops[i]), 100 * part / (double)all);
		if (zipf == 50)
			bench_add(
				b, row_text("s = 0.50, M = %zu: time", tops[i]), "ms", &time, NULL)
				->key = row_text("time.m%zu", tops[i]);
	}
	bench_pshift_free(&made);
	return r;
}

int bench_pshift_fig6(struct bench *b, struct weir_err *err)
{
	static const int zipfs[] = {0, 10, 25, 50, 100, 200}; /* hundredths */
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(zipfs); i++)
		r = fig6_curve(b, zipfs[i]);
	return r;
}

/* ---- Figure 7: over the number of buckets */

static const size_t buckets7[] = {100, 200, 300, 500, 700, 1000};
enum { OURS, PUSH, WAYS, METHODS };
static const char *const methods[METHODS] = {"ours", "push", "ways"};
static const char *const method_names[METHODS] = {"pShift", "push-relabel", "Edmonds-Karp"};

static int fig7_size(struct bench *b, size_t buckets, double *ret_ms)
{
	struct pshift_shape shape = bench_pshift_shape(64, buckets);
	struct bench_samples time[METHODS] = {{.n = 0}};
	unsigned loops = b->quick ? 10 : 100;
	struct bench_pshift made;
	int r = bench_pshift_new(&made, &shape);

	if (r)
		return r;
	for (unsigned i = 0; r == 0 && i < b->runs; i++) {
		double ms[METHODS];

		r = bench_pshift_ours(&made, NULL, loops, &ms[OURS]);
		if (r == 0)
			r = bench_pshift_maxflow(&made, maxflow_push_relabel, loops, &ms[PUSH]);
		if (r == 0)
			r = bench_pshift_maxflow(&made, maxflow_edmonds_karp, 1, &ms[WAYS]);
		for (int m = 0; r == 0 && m < METHODS; m++)
			bench_sample(&time[m], ms[m]);
	}
	bench_pshift_free(&made);
	for (int m = 0; r == 0 && m < METHODS; m++) {
		bench_add(b, row_text("%zu buckets: %s", buckets, method_names[m]), "ms", &time[m],
			NULL)
			->key = row_text("%s.b%zu", methods[m], buckets);
		ret_ms[m] = bench_median(&time[m]);
	}
	return r;
}

/* Return the slope of log time over log buckets, by least squares. */
static double exponent(double ms[][METHODS], int method)
{
	const size_t sizes = COUNT(buckets7);
	double n = (double)sizes, x = 0, y = 0, xx = 0, xy = 0;

	for (size_t i = 0; i < sizes; i++) {
		double lx = log((double)buckets7[i]), ly = log(ms[i][method]);

		x += lx;
		y += ly;
		xx += lx * lx;
		xy += lx * ly;
	}
	return (n * xy - x * y) / (n * xx - x * x);
}

int bench_pshift_fig7(struct bench *b, struct weir_err *err)
{
	double ms[COUNT(buckets7)][METHODS];
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(buckets7); i++)
		r = fig7_size(b, buckets7[i], ms[i]);
	for (int m = 0; r == 0 && m < METHODS; m++)
		add_value(b, row_text("exponent over buckets: %s", method_names[m]), "",
			row_text("%s.exponent", methods[m]), exponent(ms, m));
	return r;
}
