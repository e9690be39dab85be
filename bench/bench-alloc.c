/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench alloc: the cost of one step of an allocation algorithm.
 *
 * METHOD  AdapTBF: jobs of weights 1 to 100 that ask for 0 to 39 of 20 tokens each, so that about
 *         half lend and half borrow, and records are paid back all the time. The peer is the
 *         cheapest possible allocation: tokens by weight alone, one division per job, without
 *         remainders or records. The whole cycle is that of a server: the counters of a thousand
 *         tenants of a real gate, allocation, ledger, and rates set at the gate; half of the jobs
 *         ask for more than they have, and all but a few rates change every time.
 */
#include "control/lend/law.h"
#include "base/rng.h"
#include "control/adaptbf/gate.h"
#include "base/arena.h"
#include "bench/bench.h"
#include <errno.h>
#include <stdlib.h>

#define DEMANDS    4       /* sets of demands, in turn */
#define WORK       2000000 /* jobs per run: 0.1 s */
#define CYCLE_JOBS 1000

struct jobs {
	struct arena memory;
	struct lend_jobs of;
	uint32_t *weight;
	uint64_t *demand[DEMANDS];
	int64_t *plain; /* the peer's tokens */
	struct lend_space space;
};

static void jobs_free(struct jobs *j)
{
	arena_free(&j->memory);
	lend_space_free(&j->space);
}

static int jobs_new(struct jobs *j, size_t n)
{
	struct arena *m = &j->memory;
	struct rng rng;

	*j = (struct jobs){.of = {.n = n}};
	rng_init(&rng, 1, "bench-alloc");
	j->of.weight = j->weight = arena_take(m, n, sizeof(*j->weight));
	for (int i = 0; i < DEMANDS; i++)
		j->demand[i] = arena_take(m, n, sizeof(*j->demand[i]));
	j->of.tokens = arena_take(m, n, sizeof(*j->of.tokens));
	j->of.record = arena_take(m, n, sizeof(*j->of.record));
	j->of.remainder = arena_take(m, n, sizeof(*j->of.remainder));
	j->of.reclaim = arena_take(m, n, sizeof(*j->of.reclaim));
	j->of.initial = arena_take(m, n, sizeof(*j->of.initial));
	j->plain = arena_take(m, n, sizeof(*j->plain));
	if (m->failed || lend_space_grow(&j->space, n)) {
		jobs_free(j);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		j->weight[i] = (uint32_t)(1 + rng_below(&rng, 100));
		j->of.tokens[i] = LEND_NEW;
		for (int k = 0; k < DEMANDS; k++)
			j->demand[k][i] = rng_below(&rng, 40);
	}
	return 0;
}

/* Return ns per job, over enough steps to be measurable. */
static double measure_adaptbf(struct jobs *j, int steps)
{
	int64_t tokens = 20 * (int64_t)j->of.n;
	struct lend_sums sums;
	weir_time begin = bench_cpu_clock();

	for (int i = 0; i < steps; i++) {
		j->of.demand = j->demand[i % DEMANDS];
		lend_allocate(&j->of, tokens, &j->space, &sums);
	}
	return (double)(bench_cpu_clock() - begin) / steps / (double)j->of.n;
}

static double measure_plain(struct jobs *j, int steps)
{
	weir_time begin = bench_cpu_clock();

	for (int i = 0; i < steps; i++) {
		uint64_t tokens = 20 * j->of.n, weights = 0;

		for (size_t k = 0; k < j->of.n; k++)
			weights += j->weight[k];
		for (size_t k = 0; k < j->of.n; k++)
			j->plain[k] = (int64_t)(tokens * j->weight[k] / weights);
		__asm__ volatile("" : : "r"(j->plain) : "memory"); /* mark it as used */
	}
	return (double)(bench_cpu_clock() - begin) / steps / (double)j->of.n;
}

static const struct step {
	size_t jobs;
	const char *name, *key, *target;
	bool whole; /* ns of the whole step, or per job */
} rows[] = {
	{10, "adaptbf: a step, 10 jobs", "adaptbf.10", "<= 1000", true},
	{1000, "adaptbf: a step, 1k jobs", "adaptbf.1k", "<= 60", false},
	{10000, "adaptbf: a step, 10k jobs", "adaptbf.10k", "<= 60", false},
	{100000, "adaptbf: a step, 100k jobs", "adaptbf.100k", "<= 60", false},
};

static int bench_step(struct bench *b, const struct step *s)
{
	int steps = (b->quick ? WORK / 10 : WORK) / (int)s->jobs + 1;
	double times = s->whole ? (double)s->jobs : 1;
	struct bench_samples ours = {0}, plain = {0};
	struct jobs j;
	int r = jobs_new(&j, s->jobs);

	if (r)
		return r;
	measure_adaptbf(&j, steps / 10 + 1);
	for (unsigned i = 0; i < b->runs; i++) {
		bench_sample(&ours, times * measure_adaptbf(&j, steps));
		bench_sample(&plain, times * measure_plain(&j, steps));
	}
	bench_add_beside(
		b, s->name, s->whole ? "ns" : "ns/job", &ours, "by weight alone", &plain, s->target)
		->key = s->key;
	jobs_free(&j);
	return 0;
}

/* ---- the whole cycle */

struct cycle {
	struct weir_gate *gate;
	struct site site;
	struct adaptbf_gate *driver;
	struct lend *adaptbf;
	struct weir_req *reqs; /* one per job, reused */
	weir_node *nodes;
	weir_time now;
};

static void cycle_free(struct cycle *c)
{
	adaptbf_gate_free(c->driver);
	lend_free(c->adaptbf);
	weir_gate_free(c->gate);
	free(c->reqs);
	free(c->nodes);
}

static int cycle_new(struct cycle *c)
{
	struct weir_gate_config gate = {.nodes = CYCLE_JOBS + 1, .window = 1000000};
	struct lend_config config = {.rate = 20 * CYCLE_JOBS * 10, .debt = LEND_DEBT};
	struct adaptbf_gate_leaf *leaves = calloc(CYCLE_JOBS, sizeof(*leaves));
	int r = -ENOMEM;

	c->reqs = calloc(CYCLE_JOBS, sizeof(*c->reqs));
	c->nodes = calloc(CYCLE_JOBS, sizeof(*c->nodes));
	if (leaves && c->reqs && c->nodes)
		r = weir_gate_new(&gate, &c->gate);
	for (size_t i = 0; r == 0 && i < CYCLE_JOBS; i++) {
		r = weir_gate_add(c->gate, WEIR_ROOT, &c->nodes[i]);
		leaves[i] = (struct adaptbf_gate_leaf){.node = c->nodes[i],
			.id = i + 1,
			.weight = (uint32_t)(1 + i % 100),
			.share = (double)(1 + i % 100)};
	}
	c->site.gate = c->gate;
	if (r == 0)
		r = adaptbf_gate_new(&c->site, ADAPTBF_GATE_HOLD, 0, &c->driver);
	if (r == 0)
		r = adaptbf_gate_leaves(c->driver, leaves, CYCLE_JOBS);
	if (r == 0)
		r = lend_new(&config, &c->adaptbf);
	free(leaves);
	return r;
}

static bool all(const struct weir_req *r, void *arg)
{
	return true;
}

static void none(struct weir_req *r, void *arg)
{
}

/* Let every job submit some requests, some jobs many: not part of the measured time. */
static void cycle_load(struct cycle *c, struct rng *rng)
{
	for (size_t i = 0; i < CYCLE_JOBS; i++) {
		uint64_t n = 1 + rng_below(rng, 40);

		for (uint64_t k = 0; k < n; k++) {
			struct weir_req *r = &c->reqs[i], *out;

			*r = (struct weir_req){.tenant = c->nodes[i]};
			(void)weir_gate_submit(c->gate, c->now, &r, 1);
			if (!weir_gate_next(c->gate, c->now, &out, 1)) {
				weir_gate_cancel(c->gate, c->now, c->nodes[i], all, none, NULL);
				break; /* held: that is enough */
			}
			weir_gate_done(c->gate, c->now, &out, 1);
		}
	}
}

static int bench_cycle(struct bench *b)
{
	int steps = b->quick ? 10 : 100, r;
	struct bench_samples ours = {0};
	struct cycle c = {0};
	struct rng rng;

	rng_init(&rng, 1, "bench-cycle");
	r = cycle_new(&c);
	for (unsigned i = 0; r == 0 && i < b->runs; i++) {
		weir_time sum = 0;

		for (int k = 0; r == 0 && k < steps; k++) {
			weir_time begin;

			cycle_load(&c, &rng);
			c.now += 100 * WEIR_MS;
			begin = bench_cpu_clock();
			r = lend_step(c.adaptbf, c.now, &adaptbf_gate_ops, c.driver);
			sum += bench_cpu_clock() - begin;
		}
		bench_sample(&ours, (double)sum / steps / 1e6);
	}
	if (r == 0)
		bench_add(b, "adaptbf: a gate's whole cycle, 1000 jobs", "ms", &ours, "<= 0.5")
			->key = "adaptbf.cycle";
	cycle_free(&c);
	return r;
}

int bench_alloc(struct bench *b, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		r = bench_step(b, &rows[i]);
	return r ? r : bench_cycle(b);
}
