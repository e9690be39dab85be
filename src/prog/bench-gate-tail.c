/* SPDX-License-Identifier: BSD-3-Clause */
/* weir bench gate: the slowest of single calls. */
#include "base/rng.h"
#include "prog/gate-load.h"
#include <errno.h>
#include <stdlib.h>

/* ---- of one request at 10k tenants */

static int row_tail(struct bench *b)
{
	struct bench_samples s = {.n = 0};
	struct weir_hist *h = malloc(sizeof *h);
	struct gate_load *l;
	int r = h ? gate_load_new(10000, GATE_LOAD_LIMITS | GATE_LOAD_SINGLE, 0, &l) : -ENOMEM;

	if (r) {
		free(h);
		return r;
	}
	gate_load_time(l, 100000);
	for (unsigned run = 0; run < b->runs; run++) {
		weir_hist_clear(h);
		for (unsigned i = 0; i < (b->quick ? 50000u : 500000u); i++) {
			weir_time start = bench_clock();

			gate_load_drive(l, 1);
			weir_hist_record(h, (uint64_t)(bench_clock() - start));
		}
		bench_sample(&s, (double)weir_hist_percentile(h, 99.9));
	}
	struct bench_row *row =
		bench_add(b, "p99.9 of one submit + next + done at 10k", "ns", &s, NULL, NULL);

	bench_target(row, "< 1 us", row->value < 1000);
	free(h);
	gate_load_free(l);
	return 0;
}

/* ---- of one call at a million, all of which fall due and are woken together */

#define CROWD (UINT32_C(1) << 20)
#define KNOBS 16 /* batches between one set of a knob and the next */

struct crowd {
	struct weir_gate *gate;
	struct weir_req *reqs;  /* one a tenant, */
	struct weir_req **turn; /* in the order in which they are submitted */
	struct weir_hist *hist;
	weir_time now;
	struct rng rng;
};

static void crowd_free(struct crowd *c)
{
	weir_gate_free(c->gate);
	free(c->reqs);
	free(c->turn);
	free(c->hist);
}

/* Its max is one a second, saved for one second. */
static int crowd_limit(struct crowd *c, weir_node n)
{
	const struct weir_bucket_spec max = {.kind = WEIR_HOLD, .rate = 1, .size = 1};

	return weir_gate_set(c->gate, c->now,
		&(struct weir_knob){
			.node = n, .kind = WEIR_KNOB_BUCKETS, .buckets = &max, .n_buckets = 1},
		1, NULL);
}

static int crowd_new(struct crowd *c)
{
	const struct weir_gate_config config = {.nodes = CROWD + 1, .window = 2 * GATE_LOAD_BATCH};
	int r = weir_gate_new(&config, &c->gate);

	c->reqs = calloc(CROWD, sizeof *c->reqs);
	c->turn = calloc(CROWD, sizeof *c->turn);
	c->hist = calloc(1, sizeof *c->hist);
	if (!r && (!c->reqs || !c->turn || !c->hist))
		r = -ENOMEM;
	rng_init(&c->rng, 1, "bench/gate/crowd");
	for (uint32_t i = 0; !r && i < CROWD; i++) {
		c->turn[i] = &c->reqs[i];
		c->reqs[i].bytes = 4096;
		r = weir_gate_add(c->gate, WEIR_ROOT, &c->reqs[i].tenant);
		if (!r)
			r = crowd_limit(c, c->reqs[i].tenant);
	}
	return r;
}

static void crowd_shuffle(struct crowd *c)
{
	for (uint32_t i = CROWD - 1; i > 0; i--) {
		uint32_t j = (uint32_t)rng_below(&c->rng, i + 1);
		struct weir_req *t = c->turn[i];

		c->turn[i] = c->turn[j];
		c->turn[j] = t;
	}
}

/* A call ends that began at `start`; the next begins. */
static weir_time crowd_note(struct crowd *c, weir_time start)
{
	weir_hist_record(c->hist, (uint64_t)(bench_cpu_clock() - start));
	return bench_cpu_clock();
}

/* One knob of a tenant, and one tenant less and one more. */
static int crowd_knobs(struct crowd *c, struct weir_req *idle)
{
	struct weir_knob weight = {.node = c->reqs[rng_below(&c->rng, CROWD)].tenant,
		.kind = WEIR_KNOB_WEIGHT,
		.value = 1 + (double)rng_below(&c->rng, 100)};
	weir_time start = bench_cpu_clock();
	int r = weir_gate_set(c->gate, c->now, &weight, 1, NULL);

	start = crowd_note(c, start);
	if (!r)
		r = weir_gate_remove(c->gate, idle->tenant);
	crowd_note(c, start);
	if (!r)
		r = weir_gate_add(c->gate, WEIR_ROOT, &idle->tenant);
	if (!r)
		r = crowd_limit(c, idle->tenant);
	return r;
}

/* Everybody becomes busy at once. */
static void crowd_submit(struct crowd *c)
{
	crowd_shuffle(c);
	weir_time start = bench_cpu_clock();

	for (uint32_t i = 0; i < CROWD; i += GATE_LOAD_BATCH) {
		weir_gate_submit(c->gate, c->now, c->turn + i, GATE_LOAD_BATCH);
		start = crowd_note(c, start);
	}
}

/* Everybody passes once, as soon as he may. -EIO: somebody never does. */
static int crowd_pass(struct crowd *c)
{
	struct weir_req *reqs[GATE_LOAD_BATCH];
	uint32_t passed = 0, batches = 0;
	int r = 0;

	while (!r && passed < CROWD) {
		weir_time start = bench_cpu_clock();
		size_t n = weir_gate_next(c->gate, c->now, reqs, GATE_LOAD_BATCH);

		start = crowd_note(c, start);
		weir_gate_done(c->gate, c->now, reqs, n);
		start = crowd_note(c, start);
		weir_time wake = weir_gate_wakeup(c->gate, c->now);

		crowd_note(c, start);
		passed += (uint32_t)n;
		if (n && ++batches % KNOBS == 0)
			r = crowd_knobs(c, reqs[0]);
		if (!n && wake == WEIR_NEVER)
			r = -EIO;
		if (!n && wake > c->now)
			c->now = wake;
	}
	return r;
}

static int row_crowd(struct bench *b)
{
	struct bench_samples s = {.n = 0};
	struct crowd c = {.now = 0};
	int r = crowd_new(&c);

	/* The first two rounds touch the memory and empty the buckets. */
	for (unsigned run = 0; !r && run < b->runs + 2; run++) {
		weir_hist_clear(c.hist);
		crowd_submit(&c);
		r = crowd_pass(&c);
		if (!r && run >= 2)
			bench_sample(&s, (double)weir_hist_percentile(c.hist, 99.99) / 1000);
	}
	crowd_free(&c);
	if (r)
		return r;
	struct bench_row *row =
		bench_add(b, "p99.99 of one call at 1M tenants", "us", &s, NULL, NULL);

	bench_target(row, "<= 20 us", row->value <= 20);
	return 0;
}

int bench_gate_tail(struct bench *b)
{
	int r = row_tail(b);

	return r ? r : row_crowd(b);
}
