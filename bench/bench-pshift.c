/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench pshift: the cost of placing the tokens of buckets that are spread over servers.
 *
 * METHOD  Inputs as pShift's evaluation draws them (bench/reference/pshift-make.h): buckets active
 *         at 8 servers each unless said otherwise, all capacity reserved, demand 1.1 times the
 *         reservation; in Zipf rows most of the load is on a few servers, in chains a bucket's
 *         servers are neighbours. Each method gets the same input and returns tokens for each
 *         entry, and its time is from the one to the other: for push-relabel that is graph, flow
 *         and tokens. All run in turn in one process, equally often, on memory that has been
 *         touched before; processor time is measured, so that other processes count less.
 */
#include "bench/reference/pshift-dense.h"
#include "bench/bench-pshift.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pshift_shape bench_pshift_shape(size_t servers, size_t buckets)
{
	return (struct pshift_shape){.servers = servers,
		.buckets = buckets,
		.active = 8,
		.capacity = 100000,
		.reserved = 1,
		.demand = 1.1,
		.zipf = 0.5};
}

int bench_pshift_new(struct bench_pshift *b, const struct pshift_shape *shape)
{
	size_t n = shape->buckets * shape->active;
	int r;

	*b = (struct bench_pshift){.made = {.capacity = NULL}};
	r = pshift_make(shape, 1, &b->made);
	if (r == 0)
		r = pshift_new(&b->pshift);
	b->rtokens = malloc(n * sizeof(*b->rtokens));
	b->ltokens = malloc(n * sizeof(*b->ltokens));
	if (r == 0 && (!b->rtokens || !b->ltokens))
		r = -ENOMEM;
	/* Run once without measuring, to touch the memory and fill the caches. */
	if (r == 0)
		r = pshift_allocate(b->pshift, &b->made.in, NULL, b->rtokens, NULL, &b->result);
	if (r)
		bench_pshift_free(b);
	return r;
}

void bench_pshift_free(struct bench_pshift *b)
{
	pshift_made_free(&b->made);
	pshift_free(b->pshift);
	maxflow_free(&b->graph);
	free(b->rtokens);
	free(b->ltokens);
}

int bench_pshift_ours(
	struct bench_pshift *b, const struct pshift_options *o, unsigned times, double *ret_ms)
{
	weir_time begin = bench_cpu_clock();
	int r = 0;

	for (unsigned i = 0; r == 0 && i < times; i++)
		r = pshift_allocate(b->pshift, &b->made.in, o, b->rtokens,
			b->made.in.limit ? b->ltokens : NULL, &b->result);
	*ret_ms = (double)(bench_cpu_clock() - begin) / 1e6 / times;
	return r;
}

int bench_pshift_maxflow(struct bench_pshift *b, int64_t (*method)(struct maxflow *g),
	unsigned times, double *ret_ms)
{
	weir_time begin;
	int64_t phi = 0;
	int r = b->graph.memory ? 0 : maxflow_new(&b->made.in, &b->graph);

	if (r)
		return r;
	begin = bench_cpu_clock();
	for (unsigned i = 0; i < times; i++) {
		maxflow_again(&b->made.in, &b->graph);
		phi = method(&b->graph);
		maxflow_tokens(&b->made.in, &b->graph, b->rtokens);
	}
	*ret_ms = (double)(bench_cpu_clock() - begin) / 1e6 / times;
	return phi == b->result.phi ? 0 : -EPROTO; /* else one of them is wrong */
}

static int measure_dense(struct bench_pshift *b, bool changed_only, double *ret_ms)
{
	struct pshift_dense_options o = {.changed_only = changed_only};
	weir_time begin = bench_cpu_clock();
	int64_t phi;
	int r = pshift_dense(&b->made.in, &o, b->rtokens, NULL, &phi);

	*ret_ms = (double)(bench_cpu_clock() - begin) / 1e6;
	return r ? r : phi == b->result.phi ? 0 : -EPROTO;
}

/* Add a row with the ratio of the medians: how many times as fast ours is. */
static void add_times(struct bench *bench, const char *name, const char *key,
	const struct bench_samples *ours, const struct bench_samples *theirs, const char *target)
{
	bench_add_value(bench, name, "times", bench_median(theirs) / bench_median(ours), target)
		->key = key;
}

/* ---- 64 × 10k: against the paper's */

static int bench_dense(struct bench *bench, struct bench_pshift *b, struct bench_samples *ours)
{
	struct bench_samples whole = {.n = 0}, changed = {.n = 0};
	int r = 0;

	/* They take a second or more each: at most three runs. */
	for (unsigned i = 0; r == 0 && i < (bench->runs < 3 ? bench->runs : 3); i++) {
		double ms;

		r = measure_dense(b, false, &ms);
		bench_sample(&whole, ms);
		if (r == 0)
			r = measure_dense(b, true, &ms);
		bench_sample(&changed, ms);
	}
	if (r)
		return r;
	add_times(bench, "64 x 10k, 8 active: as fast as the paper's, dense", "pshift.64.dense",
		ours, &whole, ">= 100");
	bench_add(bench, "64 x 10k: the paper's, whole vectors", "ms", &whole, NULL);
	bench_add(bench, "64 x 10k: the paper's, changed buckets only", "ms", &changed, NULL);
	return 0;
}

/* ---- rows beside push-relabel */

struct size {
	const char *name, *key, *times, *times_key;
	size_t servers, buckets, active;
	double reserved, demand; /* 0: the usual */
	double skew;
	bool chain;
	unsigned loops;           /* per run; 0: as many as take the usual time */
	const char *most, *least; /* targets: ms; times as fast as push-relabel */
	bool counts;              /* in the geometric mean of the ratios */
};

#define ROW(title, name) title, name, title ": as fast as push-relabel", name ".push"

static const struct size sizes[] = {
	/* number and choice of the servers at which a bucket is active */
	{ROW("64 x 10k, 2 active", "pshift.64.active2"), 64, 10000, 2, .most = "<= 1.5",
		.least = ">= 1.5", .counts = true},
	{ROW("64 x 10k, 3 active", "pshift.64.active3"), 64, 10000, 3, .most = "<= 1.5",
		.least = ">= 1.5", .counts = true},
	{ROW("64 x 10k, 4 active", "pshift.64.active4"), 64, 10000, 4, .most = "<= 1.5",
		.least = ">= 1.5", .counts = true},
	{ROW("64 x 10k, 8 active", "pshift.64.active8"), 64, 10000, 8, .most = "<= 1.5",
		.least = ">= 5", .counts = true},
	{ROW("64 x 10k, 9 active", "pshift.64.active9"), 64, 10000, 9, .least = ">= 1.5",
		.counts = true},
	{ROW("64 x 10k, 16 active", "pshift.64.active16"), 64, 10000, 16, .least = ">= 1",
		.counts = true},
	{ROW("64 x 10k, 64 active", "pshift.64.active64"), 64, 10000, 64, .least = ">= 1",
		.counts = true},
	{ROW("64 x 10k, Zipf", "pshift.64.zipf"), 64, 10000, 8, .skew = 1, .most = "<= 3",
		.least = ">= 1", .counts = true},
	{ROW("1000 x 100k, Zipf", "pshift.1000.zipf"), 1000, 100000, 8, .skew = 1, .loops = 1,
		.least = ">= 1", .counts = true},
	/* a demand of 2, so that tokens can move far */
	{ROW("1000 x 100k, chains of 2", "pshift.chain2"), 1000, 100000, 2, .demand = 2,
		.chain = true, .loops = 1, .least = ">= 1", .counts = true},
	{ROW("1000 x 100k, chains of 3", "pshift.chain3"), 1000, 100000, 3, .demand = 2,
		.chain = true, .loops = 1, .least = ">= 1", .counts = true},
	/* few servers are overloaded, and tokens go far */
	{ROW("1000 x 2k, chains of 3, 0.3 reserved", "pshift.few.chain3"), 1000, 2000, 3,
		.reserved = 0.3, .demand = 1.5, .chain = true, .loops = 8, .least = ">= 1"},
	{ROW("300 x 2k, 3 active, skewed", "pshift.few.skew3"), 300, 2000, 3, .reserved = 0.5,
		.demand = 1.5, .skew = 0.5, .loops = 8, .least = ">= 1"},
	{ROW("1000 x 10k, chains of 4, 0.6 reserved", "pshift.few.chain4"), 1000, 10000, 4,
		.reserved = 0.6, .demand = 2, .chain = true, .loops = 8, .least = ">= 1"},
	{ROW("1000 x 20k, chains of 3, 0.6 reserved", "pshift.few.long3"), 1000, 20000, 3,
		.reserved = 0.6, .demand = 2, .chain = true, .loops = 8, .least = ">= 1"},
	{ROW("3000 x 2k, chains of 2, 0.3 reserved", "pshift.few.chain2"), 3000, 2000, 2,
		.reserved = 0.3, .demand = 3, .chain = true, .loops = 8, .least = ">= 1"},
	{ROW("32 x 2k, chains of 4, 0.8 reserved", "pshift.few.path4"), 32, 2000, 4,
		.reserved = 0.8, .demand = 1.5, .chain = true, .loops = 8, .least = ">= 1"},
	/* more servers and buckets */
	{ROW("256 x 100k", "pshift.256"), 256, 100000, 8, .loops = 1, .most = "<= 40",
		.least = ">= 10"},
	{ROW("1000 x 1M", "pshift.1000"), 1000, 1000000, 8, .loops = 1, .most = "<= 300",
		.least = ">= 10"},
};
/* The last one with --quick: a tenth of the buckets, as the name says. */
static const struct size quick_size = {ROW("1000 x 100k", "pshift.1000"), 1000, 100000, 8,
	.loops = 1, .most = "<= 300", .least = ">= 10"};

static struct pshift_shape shape_of(const struct size *s)
{
	struct pshift_shape shape = bench_pshift_shape(s->servers, s->buckets);

	shape.active = s->active;
	shape.reserved = s->reserved > 0 ? s->reserved : shape.reserved;
	shape.demand = s->demand > 0 ? s->demand : shape.demand;
	shape.skew = s->skew;
	shape.chain = s->chain;
	return shape;
}

/* Add the rows of one shape, both methods in turn. *ret_times: how many times as fast as
 * push-relabel. */
static int bench_size(struct bench *bench, const struct size *s, double *ret_times)
{
	const struct pshift_shape shape = shape_of(s);
	unsigned loops =
		s->loops ? s->loops : 1 + (bench->quick ? 40 : 240) / (unsigned)(8 + s->active);
	struct bench_samples ours = {.n = 0}, push = {.n = 0};
	struct bench_pshift b;
	int r = bench_pshift_new(&b, &shape);

	if (r)
		return r;
	for (unsigned i = 0; r == 0 && i < bench->runs; i++) {
		double ms;

		r = bench_pshift_ours(&b, NULL, loops, &ms);
		bench_sample(&ours, ms);
		if (r == 0)
			r = bench_pshift_maxflow(&b, maxflow_push_relabel, loops, &ms);
		bench_sample(&push, ms);
	}
	if (r == 0) {
		bench_add_beside(bench, s->name, "ms", &ours, "push-relabel", &push, s->most)->key =
			s->key;
		add_times(bench, s->times, s->times_key, &ours, &push, s->least);
		*ret_times = bench_median(&push) / bench_median(&ours);
	}
	if (r == 0 && s->buckets == 1000000)
		bench_add_value(bench, "memory beside input and tokens", "MB",
			(double)pshift_memory(b.pshift) / 1e6, "<= 200")
			->key = "pshift.memory";
	if (r == 0 && strcmp(s->key, "pshift.64.active8") == 0)
		r = bench_dense(bench, &b, &ours);
	bench_pshift_free(&b);
	return r;
}

static int bench_sizes(struct bench *bench)
{
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);
	double logs = 0, times = 1, counted = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		if (counted > 0 && sizes[i - 1].counts && !sizes[i].counts)
			bench_add_value(bench, "geometric mean of these: as fast as push-relabel",
				"times", exp(logs / counted), ">= 4")
				->key = "pshift.mean";
		r = bench_size(bench, i == n - 1 && bench->quick ? &quick_size : &sizes[i], &times);
		logs += log(times);
		counted++;
	}
	return r;
}

/* ---- starting from the last allocation */

static int bench_warm(struct bench *bench)
{
	struct pshift_shape shape = bench_pshift_shape(64, 10000);
	unsigned steps = bench->quick ? 5 : 50;
	struct bench_samples warm = {.n = 0}, cold = {.n = 0};
	uint32_t changed[100];
	struct pshift_options o = {.warm = true, .changed = changed, .n_changed = 100};
	struct bench_pshift b;
	int r = bench_pshift_new(&b, &shape);

	if (r)
		return r;
	for (unsigned i = 0; r == 0 && i < bench->runs; i++) {
		double sum = 0, ms;

		for (unsigned k = 0; r == 0 && k < steps; k++) {
			for (uint32_t x = 0; x < 100; x++) {
				changed[x] = 100 * x + (i * steps + k) % 100;
				pshift_make_move(&b.made, changed[x]);
			}
			r = bench_pshift_ours(&b, &o, 1, &ms);
			sum += ms;
		}
		bench_sample(&warm, sum / steps);
		/* This leaves the tokens of the same input: the next step starts from an
		 * allocation. */
		if (r == 0)
			r = bench_pshift_ours(&b, NULL, steps, &ms);
		bench_sample(&cold, ms);
	}
	if (r == 0)
		bench_add_beside(bench, "64 x 10k, from the last, 1 % of buckets moved", "ms",
			&warm, "from nothing", &cold, "<= 0.4")
			->key = "pshift.64.warm";
	bench_pshift_free(&b);
	return r;
}

/* ---- with L-tokens */

static int bench_limits(struct bench *bench)
{
	struct pshift_shape shape = bench_pshift_shape(64, 10000);
	struct bench_samples ours = {.n = 0};
	struct bench_pshift b;
	int r;

	shape.limit = 1.05;
	r = bench_pshift_new(&b, &shape);
	if (r)
		return r;
	for (unsigned i = 0; r == 0 && i < bench->runs; i++) {
		double ms;

		r = bench_pshift_ours(&b, NULL, bench->quick ? 5 : 50, &ms);
		bench_sample(&ours, ms);
	}
	if (r == 0)
		bench_add(bench, "64 x 10k, R- and L-tokens", "ms", &ours, NULL)->key =
			"pshift.64.limits";
	bench_pshift_free(&b);
	return r;
}

int bench_pshift(struct bench *bench, struct weir_err *err)
{
	int r = bench_sizes(bench);

	if (r == 0)
		r = bench_warm(bench);
	return r ? r : bench_limits(bench);
}
