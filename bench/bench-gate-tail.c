/* SPDX-License-Identifier: BSD-3-Clause */
/* weir bench gate: the slowest of single calls. */
#include "base/rng.h"
#include "bench/gate-load.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- of one call at a million, all of which fall due and are woken together
 *
 * What else a machine does takes 50 µs here and there, more often than once in ten thousand calls. So all is done several
 * times over, from the beginning, and of each call the shortest time counts: what the call itself takes. */

#define CROWD   (UINT32_C(1) << 20)
#define KNOBS   16 /* batches between one set of a knob and the next */
#define REPLAYS 3  /* at least */
#define CALLS   (UINT32_C(1) << 20)

struct crowd {
	struct weir_gate *gate;
	struct weir_req *reqs;  /* one a tenant, */
	struct weir_req **turn; /* in the order in which they are submitted */
	weir_time now;
	struct rng rng;
	uint32_t *times;          /* [CALLS] ns of each call; the least of all replays */
	uint32_t calls;           /* so far, in this one; */
	uint32_t batches, passed; /* the same of batches; and requests in this round */
};

/* Its max is one a second, saved for one second. */
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

/* A call ends that began at `start`; the next begins. */
static weir_time crowd_note(struct crowd *c, weir_time start)
{
	uint32_t took = (uint32_t)(bench_clock() - start), *least = &c->times[c->calls++ % CALLS];

	*least = took < *least ? took : *least;
	return bench_clock();
}

/* One knob of a tenant, and one tenant less and one more. */
static int crowd_knobs(struct crowd *c, struct weir_req *idle)
{
	struct weir_knob weight = {.node = c->reqs[rng_below(&c->rng, CROWD)].tenant,
		.kind = WEIR_KNOB_WEIGHT,
		.value = 1 + (double)rng_below(&c->rng, 100)};
	weir_time start = bench_clock();
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

/* One batch passes, if it may. */
static int crowd_next(struct crowd *c, weir_time *ret_wake)
{
	struct weir_req *reqs[GATE_LOAD_BATCH];
	weir_time start = bench_clock();
	size_t n = weir_gate_next(c->gate, c->now, reqs, GATE_LOAD_BATCH);

	start = crowd_note(c, start);
	weir_gate_done(c->gate, c->now, reqs, n);
	start = crowd_note(c, start);
	*ret_wake = weir_gate_wakeup(c->gate, c->now);
	crowd_note(c, start);
	c->passed += (uint32_t)n;
	return n && ++c->batches % KNOBS == 0 ? crowd_knobs(c, reqs[0]) : 0;
}

/* Everybody becomes busy in one moment; with `look` the gate looks at each batch at once, so that timers, too, are in this
 * order. */
static int crowd_submit(struct crowd *c, bool look)
{
	weir_time start, wake;
	int r = 0;

	crowd_shuffle(c);
	for (uint32_t i = 0; !r && i < CROWD; i += GATE_LOAD_BATCH) {
		start = bench_clock();
		weir_gate_submit(c->gate, c->now, c->turn + i, GATE_LOAD_BATCH);
		crowd_note(c, start);
		if (look)
			r = crowd_next(c, &wake);
	}
	return r;
}

/* Everybody passes once, as soon as he may. -EIO: somebody never does. */
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

/* The first round empties the buckets, so that in the others all have to wait. */
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
	struct bench_samples s = {.n = 0};
	int r = c.reqs && c.turn && c.times && h ? 0 : -ENOMEM;

	if (c.times)
		memset(c.times, 0xff, CALLS * sizeof *c.times);
	for (unsigned i = 0; !r && i < (b->runs > REPLAYS ? b->runs : REPLAYS); i++)
		r = crowd_replay(&c);
	for (uint32_t i = 0; !r && i < c.calls && i < CALLS; i++)
		weir_hist_record(h, c.times[i]);
	if (!r) {
		bench_sample(&s, (double)weir_hist_percentile(h, 99.99) / 1000);
		struct bench_row *row =
			bench_add(b, "p99.99 of one call at 1M tenants", "us", &s, NULL, NULL);

		bench_target(row, "<= 20 us", row->value <= 20);
	}
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
