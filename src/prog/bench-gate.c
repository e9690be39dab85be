/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench gate: what the gate costs a request.
 *
 * METHOD  All tenants are backlogged: two requests each, in shuffled memory. A round takes a batch
 *         from the gate, finishes it and submits it again, in virtual time at a fixed capacity; the
 *         figure is real nanoseconds per request for submit + next + done. The floor is one FIFO
 *         through the same driver and memory. Costs 1–16, weights 1–100, min half a tenant's fair
 *         share: about half of the requests pass by R-token. Max is twice the fair share, so that
 *         weights decide and max rarely binds; or, in the rows that say so, nine tenths of it, so
 *         that the resource idles and nearly every request waits for its tenant's max.
 */
#include "prog/bench.h"
#include "base/rng.h"
#include "gate/gate.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH      32
#define PER_TENANT 2
#define CAPACITY   1e6   /* cost units per virtual second */
#define MAX_SPAN   0.005 /* s: a bucket holds what comes in that time, */
#define MIN_SPAN   0.020 /* s */

/* The driver's view of what it drives. */
struct target {
	int (*submit)(void *, weir_time, struct weir_req *const *, size_t);
	size_t (*next)(void *, weir_time, struct weir_req **, size_t);
	void (*done)(void *, weir_time, struct weir_req *const *, size_t);
	void *object;
};

/* ---- the floor */

struct fifo {
	struct weir_req *head, **tail;
	uint64_t served;
};

static int fifo_submit(void *object, weir_time now, struct weir_req *const *reqs, size_t n)
{
	struct fifo *f = object;

	for (size_t i = 0; i < n; i++) {
		reqs[i]->submitted = now;
		reqs[i]->next = NULL;
		*f->tail = reqs[i];
		f->tail = &reqs[i]->next;
	}
	return 0;
}

static size_t fifo_next(void *object, weir_time now, struct weir_req **ret, size_t max)
{
	struct fifo *f = object;
	size_t n = 0;

	while (n < max && f->head) {
		struct weir_req *r = f->head;

		f->head = r->next;
		if (!f->head)
			f->tail = &f->head;
		r->dispatched = now;
		ret[n++] = r;
	}
	return n;
}

static void fifo_done(void *object, weir_time now, struct weir_req *const *reqs, size_t n)
{
	((struct fifo *)object)->served += n;
}

/* ---- the gate through the same plug */

static int gate_submit(void *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	return weir_gate_submit(g, now, reqs, n);
}
static size_t gate_next(void *g, weir_time now, struct weir_req **ret, size_t max)
{
	return weir_gate_next(g, now, ret, max);
}
static void gate_done(void *g, weir_time now, struct weir_req *const *reqs, size_t n)
{
	weir_gate_done(g, now, reqs, n);
}

/* ---- set-up */

enum features {
	PLAIN = 0,
	LIMITS = 1,     /* min half and max twice the fair share */
	PROFILES = 2,   /* four profile buckets, and eight priorities */
	HISTOGRAMS = 4, /* of every tenant */
	BINDING = 8,    /* max nine tenths of the fair share */
	ACCURATE = 16,  /* max the fair share and min nine tenths of it */
	FLOOD = 32,     /* every second one has neither, and a thousand times its weight */
};

struct load {
	struct target target;
	struct weir_gate *gate; /* NULL: the floor */
	struct fifo fifo;
	struct weir_req *reqs;
	weir_node *nodes;
	double *weights;
	uint32_t tenants;
	double total_weight;
	weir_time now;
	uint32_t cost_max;  /* costs are 1 to that */
	double capacity;    /* cost units per virtual second */
	double per_request; /* virtual ns */
	bool histograms;
	struct rng rng;
};

static void load_free(struct load *l)
{
	weir_gate_free(l->gate);
	free(l->reqs);
	free(l->nodes);
	free(l->weights);
	free(l);
}

/* A bucket's size is what comes in 5 ms for max and 20 ms for min, and two of the largest requests; or,
 * where max is to bind from the start, at least 2, as a policy installs it. */
static double load_size(double rate, double span, unsigned features)
{
	return features & (ACCURATE | BINDING) ? fmax(2, rate * span) : 32 + rate * span;
}

static double load_max(const struct load *l, uint32_t i, unsigned features)
{
	double fair = l->capacity * l->weights[i] / l->total_weight;

	return fair * (features & ACCURATE ? 1 : features & BINDING ? 0.9 : 2);
}

static double load_min(const struct load *l, uint32_t i, unsigned features)
{
	double fair = l->capacity * l->weights[i] / l->total_weight;

	return fair * (features & ACCURATE ? 0.9 : 0.5);
}

static int load_knobs(struct load *l, uint32_t i, unsigned features)
{
	double fair = l->capacity * l->weights[i] / l->total_weight;
	double min = load_min(l, i, features), max = load_max(l, i, features);
	bool floods = (features & FLOOD) && i % 2;
	struct weir_bucket_spec b[8] = {
		{.kind = WEIR_HOLD, .rate = max, .size = load_size(max, MAX_SPAN, features)},
		{.kind = WEIR_RTOKENS, .rate = min, .size = load_size(min, MIN_SPAN, features)},
	};
	uint32_t n = features & LIMITS && !floods ? 2 : 0;

	for (uint32_t k = 0; features & PROFILES && k < 4; k++)
		b[n++] = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
			.unit = WEIR_UNIT_REQUESTS,
			.rate = fair * (1 + k) / 2,
			.size = 64.0 / (1 + k)};
	struct weir_knob set[3] = {
		{.node = l->nodes[i],
			.kind = WEIR_KNOB_WEIGHT,
			.value = l->weights[i] * (floods ? 1000 : 1)},
		{.node = l->nodes[i], .kind = WEIR_KNOB_BUCKETS, .buckets = b, .n_buckets = n},
		{.node = l->nodes[i], .kind = WEIR_KNOB_PRIORITY, .value = (double)(i % 8)},
	};

	return weir_gate_set(l->gate, 0, set, features & PROFILES ? 3 : n ? 2 : 1, NULL);
}

static int load_gate(struct load *l, unsigned features, uint32_t idle)
{
	struct weir_gate_config config = {.nodes = l->tenants + idle + 1,
		.window = 2 * BATCH,
		.histograms = features & HISTOGRAMS ? l->tenants : 0};
	int r = weir_gate_new(&config, &l->gate);

	/* The busy ones are spread among the idle, one at random in each stretch: evenly would put
	 * them into a few sets of the cache. */
	uint32_t apart = 1 + idle / l->tenants, made = 0, pick = 0;

	for (uint32_t i = 0; !r && i < l->tenants + idle; i++) {
		weir_node n;

		if (i % apart == 0)
			pick = i + (uint32_t)rng_below(&l->rng, apart);
		r = weir_gate_add(l->gate, WEIR_ROOT, &n);
		if (!r && i == pick && made < l->tenants)
			l->nodes[made++] = n;
	}
	for (uint32_t i = 0; !r && i < l->tenants; i++)
		r = load_knobs(l, i, features);
	l->target = (struct target){gate_submit, gate_next, gate_done, l->gate};
	return r;
}

/* Requests of all tenants lie in memory in random order, as a busy server's do. */
static int load_requests(struct load *l)
{
	size_t n = (size_t)l->tenants * PER_TENANT;
	uint32_t *order = malloc(n * sizeof *order);

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t j = rng_below(&l->rng, i + 1);
		uint32_t t = order[i];

		order[i] = order[j];
		order[j] = t;
	}
	for (size_t i = 0; i < n; i++) {
		struct weir_req *r = &l->reqs[order[i]];

		r->tenant = l->gate ? l->nodes[i % l->tenants] : 1;
		r->requests = 1 + (uint32_t)rng_below(&l->rng, l->cost_max);
		r->bytes = 4096;
		l->target.submit(l->target.object, 0, &r, 1);
	}
	free(order);
	return 0;
}

static int load_new(
	uint32_t tenants, bool floor, unsigned features, uint32_t idle, struct load **ret)
{
	struct load *l = calloc(1, sizeof *l);
	int r = 0;

	if (!l)
		return -ENOMEM;
	l->tenants = tenants;
	rng_init(&l->rng, 1, "bench/gate");
	l->reqs = aligned_alloc(64, (size_t)tenants * PER_TENANT * sizeof *l->reqs);
	l->nodes = calloc(tenants, sizeof *l->nodes);
	l->weights = calloc(tenants, sizeof *l->weights);
	if (l->reqs)
		memset(l->reqs, 0, (size_t)tenants * PER_TENANT * sizeof *l->reqs);
	if (!l->reqs || !l->nodes || !l->weights) {
		load_free(l);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tenants; i++) {
		l->weights[i] = 1 + (double)rng_below(&l->rng, 100);
		l->total_weight += l->weights[i];
	}
	/* Where accuracy is measured, requests cost 1, and the tenant of the least weight gets some
	 * 200 in a second: one more or less is half a per cent. */
	l->capacity = features & ACCURATE ? 10 * CAPACITY : CAPACITY;
	l->cost_max = features & ACCURATE ? 1 : 16;
	l->per_request = (1 + (double)l->cost_max) / 2 * 1e9 / l->capacity;
	l->histograms = features & HISTOGRAMS;
	if (floor) {
		l->fifo.tail = &l->fifo.head;
		l->target = (struct target){fifo_submit, fifo_next, fifo_done, &l->fifo};
	} else {
		r = load_gate(l, features, idle);
	}
	if (!r)
		r = load_requests(l);
	if (r) {
		load_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* ---- driving */

/* Nothing passes now: virtual time goes on to when something may. Somebody is backlogged, so that
 * there is such a time; were there none, the run would end short instead of never. */
static bool load_wait(const struct load *l, double *virtual)
{
	weir_time wake = l->gate ? weir_gate_wakeup(l->gate, (weir_time) * virtual) : WEIR_NEVER;

	if (wake == WEIR_NEVER)
		return false;
	*virtual = fmax(*virtual + 1, (double)wake);
	return true;
}

static uint64_t load_drive(struct load *l, uint64_t requests, size_t batch)
{
	struct weir_req *reqs[BATCH];
	const struct target t = l->target;
	double virtual = (double)l->now;
	uint64_t passed = 0, round = 0;

	while (passed < requests) {
		size_t n = t.next(t.object, (weir_time) virtual, reqs, batch);

		if (n == 0 && !load_wait(l, &virtual))
			break;
		virtual += l->per_request * (double)n;
		t.done(t.object, (weir_time) virtual, reqs, n);
		t.submit(t.object, (weir_time) virtual, reqs, n);
		passed += n;
		if (l->histograms && ++round % BATCH == 0)
			weir_gate_drain(l->gate);
	}
	l->now = (weir_time) virtual;
	return passed;
}

static double load_time(struct load *l, uint64_t requests)
{
	weir_time start = bench_clock();
	uint64_t n = load_drive(l, requests, BATCH);

	return (double)(bench_clock() - start) / (double)n;
}

/* Measures the gate and its floor in turns, so that both see the same machine. */
static int measure(struct bench *b, const char *name, uint32_t tenants, unsigned features,
	struct bench_row **ret_row)
{
	struct bench_samples gate = {.n = 0}, floor = {.n = 0};
	uint64_t requests = b->quick ? 200000 : 2000000;
	struct load *l, *f;
	int r = load_new(tenants, false, features, 0, &l);

	if (r)
		return r;
	r = load_new(tenants, true, 0, 0, &f);
	if (r) {
		load_free(l);
		return r;
	}
	/* Warm up: tags spread out, memory touched; a drain makes room for 32 new histograms. */
	load_time(l, (uint64_t)tenants * (features & HISTOGRAMS ? 64 : 4));
	load_time(f, (uint64_t)tenants * 4);
	for (unsigned i = 0; i < b->runs; i++) {
		bench_sample(&gate, load_time(l, requests));
		bench_sample(&floor, load_time(f, requests));
	}
	*ret_row = bench_add(b, name, "ns", &gate, "bare FIFO", &floor);
	load_free(l);
	load_free(f);
	return 0;
}

static void compare(struct bench_row *row, const char *peer, double value)
{
	row->peer = peer;
	row->peer_value = value;
	row->ratio = row->value / value;
	bench_target(row, "<= 2x", row->ratio <= 2);
}

static int rows_speed(struct bench *b)
{
	struct bench_row *row;
	double at_10k, at_100k;
	int r = measure(b, "10k tenants: weight, min, max; max rarely binds", 10000, LIMITS, &row);

	if (r)
		return r;
	bench_target(row, "<= 4x", row->ratio <= 4);
	at_10k = row->value;
	r = measure(b, "10k tenants: the same, max binds nearly every time", 10000,
		LIMITS | BINDING, &row);
	if (r)
		return r;
	r = measure(b, "100k tenants: weight, min, max; max rarely binds", 100000, LIMITS, &row);
	if (r)
		return r;
	bench_target(row, "<= 150 ns", row->value <= 150);
	at_100k = row->value;
	r = measure(b, "100k tenants: 4 profile buckets and priorities besides", 100000,
		LIMITS | PROFILES, &row);
	if (r)
		return r;
	compare(row, "the row above", at_100k);
	r = measure(b, "10k tenants: histograms fed and drained", 10000, LIMITS | HISTOGRAMS, &row);
	if (r)
		return r;
	compare(row, "10k without", at_10k);
	r = measure(b, "1k tenants: weight, min, max", 1000, LIMITS, &row);
	if (!r)
		r = measure(b, "10k tenants: weight alone", 10000, PLAIN, &row);
	if (!r)
		r = measure(b, "10 tenants: weight, min, max", 10, LIMITS, &row);
	return r;
}

/* ---- the first request of an idle tenant among 100k busy ones */

static bool any(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop(struct weir_req *r, void *arg)
{
}

/* Submits them, BATCH at a time, each batch followed by a next that must look at them. Whatever
 * passes of the load is submitted again. Real ns in all. */
static weir_time first_requests(struct load *l, struct weir_req *extra, uint32_t n)
{
	weir_time spent = 0;

	for (uint32_t i = 0; i < n; i += BATCH) {
		struct weir_req *reqs[BATCH], *out;
		uint32_t some = n - i < BATCH ? n - i : BATCH;

		for (uint32_t k = 0; k < some; k++)
			reqs[k] = &extra[i + k];
		weir_time start = bench_clock();

		weir_gate_submit(l->gate, l->now, reqs, some);
		size_t passed = weir_gate_next(l->gate, l->now, &out, 1);

		spent += bench_clock() - start;
		weir_gate_done(l->gate, l->now, &out, passed);
		if (passed && out->user != extra)
			weir_gate_submit(l->gate, l->now, &out, 1);
	}
	return spent;
}

static int first_run(struct load *l, struct weir_req *extra, uint32_t n, double *ret_ns)
{
	uint32_t added = 0;
	int r = 0;

	for (; !r && added < n; added += !r) {
		extra[added] = (struct weir_req){.bytes = 4096, .user = extra};
		r = weir_gate_add(l->gate, WEIR_ROOT, &extra[added].tenant);
	}
	if (!r)
		*ret_ns = (double)first_requests(l, extra, n) / n;
	for (uint32_t i = 0; i < added; i++) {
		weir_gate_cancel(l->gate, l->now, extra[i].tenant, any, drop, NULL);
		weir_gate_remove(l->gate, extra[i].tenant);
	}
	return r;
}

static int row_first(struct bench *b)
{
	const uint32_t busy = 100000, fresh = 10000;
	struct bench_samples s = {.n = 0};
	struct weir_req *extra = calloc(fresh, sizeof *extra);
	struct load *l;
	int r = extra ? load_new(busy, false, LIMITS, 0, &l) : -ENOMEM;

	if (r) {
		free(extra);
		return r;
	}
	for (unsigned run = 0; !r && run < b->runs; run++) {
		double ns = 0;

		load_time(l, busy * 2);
		r = first_run(l, extra, fresh, &ns);
		bench_sample(&s, ns);
	}
	if (!r) {
		struct bench_row *row = bench_add(
			b, "first request of a new tenant among 100k", "ns", &s, NULL, NULL);

		bench_target(row, "<= 200 ns", row->value <= 200);
	}
	free(extra);
	load_free(l);
	return r;
}

/* ---- the slowest of single operations */

static int row_tail(struct bench *b)
{
	struct bench_samples s = {.n = 0};
	struct weir_hist *h = malloc(sizeof *h);
	struct load *l;
	int r = h ? load_new(10000, false, LIMITS, 0, &l) : -ENOMEM;

	if (r) {
		free(h);
		return r;
	}
	load_time(l, 100000);
	for (unsigned run = 0; run < b->runs; run++) {
		weir_hist_clear(h);
		for (unsigned i = 0; i < (b->quick ? 50000u : 500000u); i++) {
			weir_time start = bench_clock();

			load_drive(l, 1, 1);
			weir_hist_record(h, (uint64_t)(bench_clock() - start));
		}
		bench_sample(&s, (double)weir_hist_percentile(h, 99.9));
	}
	struct bench_row *row =
		bench_add(b, "p99.9 of one submit + next + done at 10k", "ns", &s, NULL, NULL);

	bench_target(row, "< 1 us", row->value < 1000);
	free(h);
	load_free(l);
	return 0;
}

/* ---- are promises kept when limits bind? */

#define SECONDS 3

/* The least share of its min, and the greatest of its max, that any tenant got in a second. */
static void accuracy(
	struct load *l, unsigned features, uint64_t *before, double *ret_least, double *ret_most)
{
	struct weir_gate_stats s;
	weir_time start = l->now;

	for (uint32_t i = 0; i < l->tenants; i++) {
		weir_gate_stats(l->gate, l->now, l->nodes[i], &s);
		before[i] = s.dispatched;
	}
	while (l->now < start + WEIR_SEC)
		if (load_drive(l, 1000, BATCH) < 1000)
			return;
	double seconds = (double)(l->now - start) / 1e9;

	for (uint32_t i = 0; i < l->tenants; i += features & FLOOD ? 2 : 1) {
		weir_gate_stats(l->gate, l->now, l->nodes[i], &s);
		double rate = (double)(s.dispatched - before[i]) / seconds;

		*ret_least = fmin(*ret_least, rate / load_min(l, i, features));
		*ret_most = fmax(*ret_most, rate / load_max(l, i, features));
	}
}

/* Some seconds of one scene, after half a second to settle. */
static int scene(unsigned features, struct bench_samples *ret_min, struct bench_samples *ret_max)
{
	const uint32_t tenants = 1000;
	struct load *l;
	int r = load_new(tenants, false, features, 0, &l);

	if (r)
		return r;
	uint64_t *before = calloc(tenants, sizeof *before);

	if (!before) {
		load_free(l);
		return -ENOMEM;
	}
	load_drive(l, (uint64_t)l->capacity / 2, BATCH);
	for (unsigned second = 0; second < SECONDS; second++) {
		double least = INFINITY, most = 0;

		accuracy(l, features, before, &least, &most);
		bench_sample(ret_min, least);
		bench_sample(ret_max, most);
	}
	free(before);
	load_free(l);
	return 0;
}

/* A min is tried where others flood; a max, where there is enough for everybody's. */
static int rows_accuracy(struct bench *b)
{
	struct bench_samples min = {.n = 0}, max = {.n = 0}, other = {.n = 0};
	int r = scene(LIMITS | ACCURATE | FLOOD, &min, &other);

	if (!r)
		r = scene(LIMITS | ACCURATE, &other, &max);
	if (r)
		return r;
	struct bench_row *row =
		bench_add(b, "least service / min over 1 s, beside a flood", "", &min, NULL, NULL);

	bench_target(row, ">= 0.99", min.v[0] >= 0.99);
	row = bench_add(b, "most service / max over 1 s", "", &max, NULL, NULL);
	bench_target(row, "<= 1.01", max.v[max.n - 1] <= 1.01);
	return 0;
}

/* ---- memory, and an idle million */

static int rows_million(struct bench *b)
{
	const uint32_t million = 1000000, busy = 1000;
	struct bench_samples alone = {.n = 0}, among = {.n = 0}, memory = {.n = 0}, each = {.n = 0};
	uint64_t requests = b->quick ? 200000 : 2000000;
	struct load *few, *many;
	int r = load_new(busy, false, LIMITS, 0, &few);

	if (r)
		return r;
	r = load_new(busy, false, LIMITS, million - busy, &many);
	if (r) {
		load_free(few);
		return r;
	}
	load_time(few, 100000);
	load_time(many, 100000);
	for (unsigned i = 0; i < b->runs; i++) {
		bench_sample(&alone, load_time(few, requests));
		bench_sample(&among, load_time(many, requests));
	}
	struct bench_row *row = bench_add(
		b, "1k busy tenants among a million idle", "ns", &among, "1k alone", &alone);

	bench_target(row, "< 1.1x", row->ratio < 1.1);
	double bytes = (double)weir_gate_memory(many->gate);

	bench_sample(&memory, bytes / 1e6);
	row = bench_add(b, "memory of a million tenants in one gate", "MB", &memory, NULL, NULL);
	bench_target(row, "<= 400 MB", row->value <= 400);
	load_free(few);
	load_free(many);

	r = load_new(100000, false, LIMITS, 0, &few); /* each with weight, min and max */
	if (r)
		return r;
	bench_sample(&each, (double)weir_gate_memory(few->gate) / 100000);
	row = bench_add(
		b, "memory per tenant with weight, min and max", "bytes", &each, NULL, NULL);
	bench_target(row, "<= 400", row->value <= 400);
	load_free(few);
	return 0;
}

int bench_gate(struct bench *b)
{
	int r = rows_speed(b);

	if (!r)
		r = row_first(b);
	if (!r)
		r = row_tail(b);
	if (!r)
		r = rows_accuracy(b);
	if (!r)
		r = rows_million(b);
	return r;
}
