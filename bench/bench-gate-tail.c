/* SPDX-License-Identifier: BSD-3-Clause */
/* weir bench gate: the slowest single calls. */
#include "base/rng.h"
#include "bench/gate-load.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- one request at 10k tenants */

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
			weir_time start = loop_clock();

			gate_load_drive(l, 1);
			weir_hist_record(h, (uint64_t)(loop_clock() - start));
		}
		bench_sample(&s, (double)weir_hist_percentile(h, 99.9));
	}
	bench_add(b, "p99.9 of one submit + next + done at 10k", "ns", &s, "< 1000 ns");
	free(h);
	gate_load_free(l);
	return 0;
}

/* ---- one call at a million tenants, all of which become due and are woken together
 *
 * Other activity of a machine takes 50 µs here and there, more often than once in ten thousand
 * calls. So everything is done several times, from the beginning, and the shortest time of each
 * call counts: the time of the call itself. */

#define CROWD   (UINT32_C(1) << 20)
#define KNOBS   16 /* batches between two settings of knobs */
#define REPLAYS 3  /* minimum */
#define CALLS   (UINT32_C(1) << 20)

struct crowd {
	struct weir_gate *gate;
	struct weir_req *reqs;  /* one per tenant, */
	struct weir_req **turn; /* in the order in which they are submitted */
	weir_time now;
	struct rng rng;
	uint32_t *times;          /* [CALLS] ns of each call; the least over all replays */
	uint32_t calls;           /* calls so far in this replay; */
	uint32_t batches, passed; /* and batches; and requests passed in this round */
};

/* Set the tenant's max to one per second, with a burst of one. */
static int crowd_limit(struct crowd *c, weir_node n)
{
	const struct weir_bucket_spec max = {.kind = WEIR_HOLD, .rate = 1, .size = 1};

	return weir_gate_set(c->gate, c->now,
		&(struct weir_knob){
			.node = n, .kind = WEIR_KNOB_BUCKETS, .buckets = &max, .n_buckets = 1},
		1, NULL);
}

static int crowd_begin(struct crowd *c)
{
	const struct weir_gate_config config = {.nodes = CROWD + 1, .window = 2 * GATE_LOAD_BATCH};
	int r = weir_gate_new(&config, &c->gate);

	c->now = c->calls = c->batches = 0;
	rng_init(&c->rng, 1, "bench/gate/crowd");
	for (uint32_t i = 0; !r && i < CROWD; i++) {
		c->turn[i] = &c->reqs[i];
		c->reqs[i] = (struct weir_req){.bytes = 4096};
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

/* Record the time of a call that began at `start`; return the start of the next. */
static weir_time crowd_note(struct crowd *c, weir_time start)
{
	uint32_t took = (uint32_t)(loop_clock() - start), *least = &c->times[c->calls++ % CALLS];

	*least = took < *least ? took : *least;
	return loop_clock();
}

/* Set one knob of a tenant, and remove and add one tenant. */
static int crowd_knobs(struct crowd *c, struct weir_req *idle)
{
	struct weir_knob weight = {.node = c->reqs[rng_below(&c->rng, CROWD)].tenant,
		.kind = WEIR_KNOB_WEIGHT,
		.value = 1 + (double)rng_below(&c->rng, 100)};
	weir_time start = loop_clock();
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

/* Let one batch pass, if it may. */
static int crowd_next(struct crowd *c, weir_time *ret_wake)
{
	struct weir_req *reqs[GATE_LOAD_BATCH];
	weir_time start = loop_clock();
	size_t n = weir_gate_next(c->gate, c->now, reqs, GATE_LOAD_BATCH);

	start = crowd_note(c, start);
	weir_gate_done(c->gate, c->now, reqs, n);
	start = crowd_note(c, start);
	*ret_wake = weir_gate_wakeup(c->gate, c->now);
	crowd_note(c, start);
	c->passed += (uint32_t)n;
	return n && ++c->batches % KNOBS == 0 ? crowd_knobs(c, reqs[0]) : 0;
}

/* Make all tenants busy at one moment; with `look` the gate checks each batch at once, so that the
 * timers are in this order, too. */
static int crowd_submit(struct crowd *c, bool look)
{
	weir_time start, wake;
	int r = 0;

	crowd_shuffle(c);
	for (uint32_t i = 0; !r && i < CROWD; i += GATE_LOAD_BATCH) {
		start = loop_clock();
		weir_gate_submit(c->gate, c->now, c->turn + i, GATE_LOAD_BATCH);
		crowd_note(c, start);
		if (look)
			r = crowd_next(c, &wake);
	}
	return r;
}

/* Let every tenant pass one request, as soon as it may. -EIO: one never may. */
static int crowd_round(struct crowd *c, bool look)
{
	int r;

	c->passed = 0;
	r = crowd_submit(c, look);
	while (!r && c->passed < CROWD) {
		uint32_t before = c->passed;
		weir_time wake;

		r = crowd_next(c, &wake);
		if (!r && c->passed == before && wake == WEIR_NEVER)
			r = -EIO;
		if (c->passed == before && wake > c->now)
			c->now = wake;
	}
	return r;
}

/* The first round empties the buckets, so that all tenants have to wait in the others. */
static int crowd_replay(struct crowd *c)
{
	int r = crowd_begin(c);

	for (unsigned round = 0; !r && round < 3; round++)
		r = crowd_round(c, round == 2);
	weir_gate_free(c->gate);
	return r;
}

static int row_crowd(struct bench *b)
{
	struct crowd c = {.reqs = calloc(CROWD, sizeof *c.reqs),
		.turn = calloc(CROWD, sizeof *c.turn),
		.times = malloc(CALLS * sizeof *c.times)};
	struct weir_hist *h = calloc(1, sizeof *h);
	int r = c.reqs && c.turn && c.times && h ? 0 : -ENOMEM;

	if (c.times)
		memset(c.times, 0xff, CALLS * sizeof *c.times);
	for (unsigned i = 0; !r && i < (b->runs > REPLAYS ? b->runs : REPLAYS); i++)
		r = crowd_replay(&c);
	for (uint32_t i = 0; !r && i < c.calls && i < CALLS; i++)
		weir_hist_record(h, c.times[i]);
	if (!r)
		bench_add_value(b, "p99.99 of one call at 1M tenants", "us",
			(double)weir_hist_percentile(h, 99.99) / 1000, "<= 20 us");
	free(c.reqs);
	free(c.turn);
	free(c.times);
	free(h);
	return r;
}

int bench_gate_tail(struct bench *b)
{
	int r = row_tail(b);

	return r ? r : row_crowd(b);
}
