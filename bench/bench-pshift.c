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
	const struct bench_samples *ours, const struct bench_samples *theirs, double least,
	const char *target)
{
	struct bench_samples times = {.n = 0};
	struct bench_row *row;

	bench_sample(&times, bench_median(theirs) / bench_median(ours));
	row = bench_add(bench, name, "times", &times, NULL, NULL);
	row->key = key;
	bench_target(row, target, row->value >= least);
}

/* ---- 64 × 10k: against push-relabel and the paper's */

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
		ours, &whole, 100, ">= 100");
	bench_add(bench, "64 x 10k: the paper's, whole vectors", "ms", &whole, NULL, NULL);
	bench_add(bench, "64 x 10k: the paper's, changed buckets only", "ms", &changed, NULL, NULL);
	return 0;
}

struct size {
	const char *name, *key, *times, *times_key;
	struct pshift_shape shape;
	unsigned loops; /* per run */
	double most;    /* ms; 0: no target */
	const char *target;
	double least; /* least ratio to push-relabel */
	const char *least_target;
};

/* Add the rows of one shape, both methods in turn. *ret_times: how many times as fast as
 * push-relabel. */
static int bench_size(struct bench *bench, const struct size *s, bool also_dense, double *ret_times)
{
	struct bench_samples ours = {.n = 0}, push = {.n = 0}, memory = {.n = 0};
	struct bench_pshift b;
	struct bench_row *row;
	int r = bench_pshift_new(&b, &s->shape);

	if (r)
		return r;
	for (unsigned i = 0; r == 0 && i < bench->runs; i++) {
		double ms;

		r = bench_pshift_ours(&b, NULL, s->loops, &ms);
		bench_sample(&ours, ms);
		if (r == 0)
			r = bench_pshift_maxflow(&b, maxflow_push_relabel, s->loops, &ms);
		bench_sample(&push, ms);
	}
	if (r == 0) {
		row = bench_add(bench, s->name, "ms", &ours, "push-relabel", &push);
		row->key = s->key;
		if (s->most > 0)
			bench_target(row, s->target, row->value <= s->most);
		add_times(bench, s->times, s->times_key, &ours, &push, s->least, s->least_target);
		*ret_times = bench_median(&push) / bench_median(&ours);
	}
	if (r == 0 && s->shape.buckets == 1000000) {
		bench_sample(&memory, (double)pshift_memory(b.pshift) / 1e6);
		row = bench_add(bench, "memory beside input and tokens", "MB", &memory, NULL, NULL);
		row->key = "pshift.memory";
		bench_target(row, "<= 200", row->value <= 200);
	}
	if (r == 0 && also_dense)
		r = bench_dense(bench, &b, &ours);
	bench_pshift_free(&b);
	return r;
}

/* ---- number and choice of the servers at which a bucket is active */

#define ROW(title, name) title, name, title ": as fast as push-relabel", name ".push"
#define AT_LEAST(x)      x, ">= " #x

/* Add each row beside push-relabel, and the geometric mean of the ratios. */
static int bench_shapes(struct bench *bench)
{
	const struct pshift_shape usual = bench_pshift_shape(64, 10000);
	struct size shapes[] = {
		{ROW("64 x 10k, 2 active", "pshift.64.active2"), usual, 0, 1.5, "<= 1.5",
			AT_LEAST(1.5)},
		{ROW("64 x 10k, 3 active", "pshift.64.active3"), usual, 0, 1.5, "<= 1.5",
			AT_LEAST(1.5)},
		{ROW("64 x 10k, 4 active", "pshift.64.active4"), usual, 0, 1.5, "<= 1.5",
			AT_LEAST(1.5)},
		{ROW("64 x 10k, 8 active", "pshift.64.active8"), usual, 0, 1.5, "<= 1.5",
			AT_LEAST(5)},
		{ROW("64 x 10k, 9 active", "pshift.64.active9"), usual, 0, 0, NULL, AT_LEAST(1.5)},
		{ROW("64 x 10k, 16 active", "pshift.64.active16"), usual, 0, 0, NULL, AT_LEAST(1)},
		{ROW("64 x 10k, 64 active", "pshift.64.active64"), usual, 0, 0, NULL, AT_LEAST(1)},
		{ROW("64 x 10k, Zipf", "pshift.64.zipf"), usual, 0, 3, "<= 3", AT_LEAST(1)},
		{ROW("1000 x 100k, Zipf", "pshift.1000.zipf"), bench_pshift_shape(1000, 100000), 1,
			0, NULL, AT_LEAST(1)},
		{ROW("1000 x 100k, chains of 2", "pshift.chain2"), bench_pshift_shape(1000, 100000),
			1, 0, NULL, AT_LEAST(1)},
		{ROW("1000 x 100k, chains of 3", "pshift.chain3"), bench_pshift_shape(1000, 100000),
			1, 0, NULL, AT_LEAST(1)},
	};
	static const size_t active[] = {2, 3, 4, 8, 9, 16, 64, 8, 8, 2, 3};
	const size_t n = sizeof(shapes) / sizeof(shapes[0]);
	struct bench_samples mean = {.n = 0};
	struct bench_row *row;
	double logs = 0, times = 1;
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct pshift_shape *s = &shapes[i].shape;

		s->active = active[i];
		s->skew = i == 7 || i == 8;
		s->chain = i >= 9;
		s->demand = s->chain ? 2 : s->demand; /* so that tokens can move far */
		if (shapes[i].loops == 0)
			shapes[i].loops = 1 + (bench->quick ? 40 : 240) / (unsigned)(8 + s->active);
		r = bench_size(bench, &shapes[i], i == 3, &times);
		logs += log(times);
	}
	if (r)
		return r;
	bench_sample(&mean, exp(logs / (double)n));
	row = bench_add(bench, "geometric mean of these: as fast as push-relabel", "times", &mean,
		NULL, NULL);
	row->key = "pshift.mean";
	bench_target(row, ">= 4", row->value >= 4);
	return 0;
}

/* ---- few servers are overloaded, and tokens go far */

static int bench_few(struct bench *bench)
{
	struct size rows[] = {
		{ROW("1000 x 2k, chains of 3, 0.3 reserved", "pshift.few.chain3"),
			bench_pshift_shape(1000, 2000), 8, 0, NULL, AT_LEAST(1)},
		{ROW("300 x 2k, 3 active, skewed", "pshift.few.skew3"),
			bench_pshift_shape(300, 2000), 8, 0, NULL, AT_LEAST(1)},
		{ROW("1000 x 10k, chains of 4, 0.6 reserved", "pshift.few.chain4"),
			bench_pshift_shape(1000, 10000), 8, 0, NULL, AT_LEAST(1)},
		{ROW("1000 x 20k, chains of 3, 0.6 reserved", "pshift.few.long3"),
			bench_pshift_shape(1000, 20000), 8, 0, NULL, AT_LEAST(1)},
		{ROW("3000 x 2k, chains of 2, 0.3 reserved", "pshift.few.chain2"),
			bench_pshift_shape(3000, 2000), 8, 0, NULL, AT_LEAST(1)},
		{ROW("32 x 2k, chains of 4, 0.8 reserved", "pshift.few.path4"),
			bench_pshift_shape(32, 2000), 8, 0, NULL, AT_LEAST(1)},
	};
	static const struct {
		size_t active;
		double reserved, demand, skew;
	} of[] = {{3, 0.3, 1.5, 0}, {3, 0.5, 1.5, 0.5}, {4, 0.6, 2, 0}, {3, 0.6, 2, 0},
		{2, 0.3, 3, 0}, {4, 0.8, 1.5, 0}};
	double times;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(of) / sizeof(of[0]); i++) {
		struct pshift_shape *s = &rows[i].shape;

		s->active = of[i].active;
		s->reserved = of[i].reserved;
		s->demand = of[i].demand;
		s->skew = of[i].skew;
		s->chain = of[i].skew == 0;
		r = bench_size(bench, &rows[i], false, &times);
	}
	return r;
}

/* ---- more servers and buckets */

static int bench_sizes(struct bench *bench)
{
	struct size sizes[] = {
		{ROW("256 x 100k", "pshift.256"), bench_pshift_shape(256, 100000), 1, 40, "<= 40",
			AT_LEAST(10)},
		{ROW("1000 x 1M", "pshift.1000"), bench_pshift_shape(1000, 1000000), 1, 300,
			"<= 300", AT_LEAST(10)},
	};
	double times;
	int r;

	if (bench->quick) { /* a tenth of the buckets, as the name says */
		sizes[1].name = "1000 x 100k";
		sizes[1].times = "1000 x 100k: as fast as push-relabel";
		sizes[1].shape.buckets = 100000;
	}
	r = bench_size(bench, &sizes[0], false, &times);
	return r ? r : bench_size(bench, &sizes[1], false, &times);
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
	struct bench_row *row;
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
	if (r == 0) {
		row = bench_add(bench, "64 x 10k, from the last, 1 % of buckets moved", "ms", &warm,
			"from nothing", &cold);
		row->key = "pshift.64.warm";
		bench_target(row, "<= 0.4", row->value <= 0.4);
	}
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
		bench_add(bench, "64 x 10k, R- and L-tokens", "ms", &ours, NULL, NULL)->key =
			"pshift.64.limits";
	bench_pshift_free(&b);
	return r;
}

int bench_pshift(struct bench *bench)
{
	int r = bench_shapes(bench);

	if (r == 0)
		r = bench_few(bench);
	if (r == 0)
		r = bench_sizes(bench);
	if (r == 0)
		r = bench_warm(bench);
	return r ? r : bench_limits(bench);
}
