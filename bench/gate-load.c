/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/gate-load.h"
#include "serve/loop/loop.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PER_TENANT 4
#define CAPACITY   1e6   /* cost units per virtual second */
#define MAX_SPAN   0.005 /* s: a bucket holds what comes in during this time, for max */
#define MIN_SPAN   0.020 /* s: for min */
#define DRAWS      65536
#define TIME       160000     /* ns of device time for a cost of 1: buckets hold more than 2^21 */
#define DIRT       (64 << 20) /* bytes: more than caches hold */
#define DIRT_PART  (GATE_LOAD_LATER << 12) /* a payload of 4 KiB per request */
#define DIRT_LINE  64

/* ---- the floor: it takes a pointer to its own structure in place of a gate's */

static int fifo_submit(
	struct weir_gate *object, weir_time now, struct weir_req *const *reqs, size_t n)
{
	struct gate_load_fifo *f = (void *)object;

	for (size_t i = 0; i < n; i++) {
		reqs[i]->submitted = now;
		reqs[i]->next = NULL;
		*f->tail = reqs[i];
		f->tail = &reqs[i]->next;
	}
	return 0;
}

static size_t fifo_next(struct weir_gate *object, weir_time now, struct weir_req **ret, size_t max)
{
	struct gate_load_fifo *f = (void *)object;
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

static void fifo_done(
	struct weir_gate *object, weir_time now, struct weir_req *const *reqs, size_t n)
{
	((struct gate_load_fifo *)(void *)object)->served += n;
}

/* ---- set-up */

void gate_load_free(struct gate_load *l)
{
	weir_gate_free(l->gate);
	free(l->reqs);
	free(l->nodes);
	free(l->weights);
	free(l->draws);
	free(l->late.dirt);
	free(l);
}

/* Return a bucket's size: what comes in 5 ms for max and 20 ms for min, and two of the largest
 * requests; or, if max is to bind from the start, at least 2, as a policy installs it. */
static double gate_load_size(double rate, double span, unsigned features)
{
	return features & (GATE_LOAD_ACCURATE | GATE_LOAD_BINDING) ? fmax(2, rate * span)
								   : 32 + rate * span;
}

double gate_load_max(const struct gate_load *l, uint32_t i)
{
	double fair = l->capacity * l->weights[i] / l->total_weight;

	return fair * (l->features & GATE_LOAD_ACCURATE         ? 1
			      : l->features & GATE_LOAD_BINDING ? 0.9
								: 2);
}

double gate_load_min(const struct gate_load *l, uint32_t i)
{
	double fair = l->capacity * l->weights[i] / l->total_weight;

	return fair * (l->features & GATE_LOAD_ACCURATE ? 0.9 : 0.5);
}

static bool gate_load_floods(const struct gate_load *l, uint32_t i)
{
	return (l->features & GATE_LOAD_FLOOD) && i % 2;
}

double gate_load_weight(const struct gate_load *l, uint32_t i)
{
	return l->weights[i] * (gate_load_floods(l, i) ? 1000 : 1);
}

static int gate_load_knobs(struct gate_load *l, uint32_t i)
{
	double fair = l->capacity * l->weights[i] / l->total_weight;
	double min = gate_load_min(l, i), max = gate_load_max(l, i);
	struct weir_bucket_spec b[8] = {
		{.kind = WEIR_HOLD,
			.rate = max,
			.size = gate_load_size(max, MAX_SPAN, l->features)},
		{.kind = WEIR_RTOKENS,
			.rate = min,
			.size = gate_load_size(min, MIN_SPAN, l->features)},
	};
	uint32_t n = l->features & GATE_LOAD_LIMITS && !gate_load_floods(l, i) ? 2 : 0;

	const bool time = l->features & GATE_LOAD_TIME;

	for (uint32_t k = 0; l->features & GATE_LOAD_PROFILES && k < 4; k++)
		b[n++] = (struct weir_bucket_spec){.kind = WEIR_PROFILE,
			.unit = time ? WEIR_UNIT_TIME : WEIR_UNIT_REQUESTS,
			.rate = fair * (1 + k) / 2 * (time ? TIME : 1),
			.size = 64.0 / (1 + k) * (time ? TIME : 1)};
	struct weir_knob set[3] = {
		{.node = l->nodes[i], .kind = WEIR_KNOB_WEIGHT, .value = gate_load_weight(l, i)},
		{.node = l->nodes[i], .kind = WEIR_KNOB_BUCKETS, .buckets = b, .n_buckets = n},
		{.node = l->nodes[i], .kind = WEIR_KNOB_PRIORITY, .value = (double)(i % 8)},
	};

	return weir_gate_set(l->gate, 0, set,
		l->features & GATE_LOAD_PROFILES ? 3
		: n                              ? 2
						 : 1,
		NULL);
}

static int gate_load_gate(struct gate_load *l, uint32_t idle)
{
	struct weir_gate_config config = {.nodes = l->tenants + idle + 1,
		.window =
			2 * GATE_LOAD_BATCH + (l->features & GATE_LOAD_LATE ? GATE_LOAD_LATER : 0),
		.histograms = l->features & GATE_LOAD_HISTOGRAMS ? l->tenants : 0};
	int r = weir_gate_new(&config, &l->gate);

	/* Spread the busy tenants among the idle, one at random in each stretch: an even distance
	 * would put them into a few sets of the cache. */
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
		r = gate_load_knobs(l, i);
	l->target = (struct gate_load_target){
		weir_gate_submit, weir_gate_next, weir_gate_done, l->gate};
	return r;
}

/* Fill a ring of tenants, from which requests draw theirs: the driver must cost little. */
static int gate_load_zipf(struct gate_load *l)
{
	struct rng_zipf z;

	l->draws = calloc(DRAWS, sizeof *l->draws);
	if (!l->draws)
		return -ENOMEM;
	rng_zipf_init(&z, l->tenants, 1);
	for (uint32_t i = 0; i < DRAWS; i++) {
		uint64_t k = rng_zipf_draw(&l->rng, &z);

		l->draws[i] = l->gate ? l->nodes[k] : 1;
	}
	return 0;
}

/* Put the requests of all tenants in memory in random order, as in a busy server. */
static int gate_load_requests(struct gate_load *l)
{
	size_t n = l->n_reqs;
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
		r->time = r->requests * TIME;
		if (!(l->features & GATE_LOAD_AT_ONCE))
			l->now = (weir_time)((double)i * l->per_request);
		l->target.submit(l->target.object, l->now, &r, 1);
	}
	free(order);
	return 0;
}

int gate_load_new(uint32_t tenants, unsigned features, uint32_t idle, struct gate_load **ret)
{
	struct gate_load *l = calloc(1, sizeof *l);
	int r = 0;

	if (!l)
		return -ENOMEM;
	l->tenants = tenants;
	rng_init(&l->rng, 1, "bench/gate");
	l->n_reqs = tenants * (features & GATE_LOAD_ONE_EACH          ? 1
				      : features & GATE_LOAD_TWO_EACH ? 2
								      : PER_TENANT);
	l->batch = features & GATE_LOAD_SINGLE ? 1 : GATE_LOAD_BATCH;
	l->reqs = aligned_alloc(64, l->n_reqs * sizeof *l->reqs);
	l->nodes = calloc(tenants, sizeof *l->nodes);
	l->weights = calloc(tenants, sizeof *l->weights);
	if (l->reqs)
		memset(l->reqs, 0, l->n_reqs * sizeof *l->reqs);
	if (features & GATE_LOAD_LATE)
		l->late.dirt = calloc(1, DIRT);
	if (!l->reqs || !l->nodes || !l->weights || (features & GATE_LOAD_LATE && !l->late.dirt)) {
		gate_load_free(l);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < tenants; i++) {
		l->weights[i] = features & GATE_LOAD_ZIPF ? 1 : 1 + (double)rng_below(&l->rng, 100);
		l->total_weight += l->weights[i];
	}
	/* To measure accuracy, requests cost 1, and the tenant of the least weight gets some 200
	 * per second: one more or less is half a per cent. */
	l->capacity = features & GATE_LOAD_ACCURATE ? 10 * CAPACITY : CAPACITY;
	l->cost_max = features & GATE_LOAD_ACCURATE ? 1 : 16;
	l->per_request = (1 + (double)l->cost_max) / 2 * 1e9 / l->capacity;
	l->features = features;
	if (features & GATE_LOAD_FLOOR) {
		l->fifo.tail = &l->fifo.head;
		l->target = (struct gate_load_target){
			fifo_submit, fifo_next, fifo_done, (struct weir_gate *)(void *)&l->fifo};
	} else {
		r = gate_load_gate(l, idle);
	}
	if (!r && features & GATE_LOAD_ZIPF)
		r = gate_load_zipf(l);
	if (!r)
		r = gate_load_requests(l);
	if (r) {
		gate_load_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

/* ---- drive */

/* Nothing passes now: advance virtual time to when a request may. Some tenant is backlogged, so
 * there is such a time; if not, the run ends early instead of never. */
static bool gate_load_wait(const struct gate_load *l, double *virtual)
{
	weir_time wake = l->gate ? weir_gate_wakeup(l->gate, (weir_time) * virtual) : WEIR_NEVER;

	if (wake == WEIR_NEVER)
		return false;
	*virtual = fmax(*virtual + 1, (double)wake);
	return true;
}

/* Queue the n requests in `reqs`, which have passed, and put those that are done now in their
 * place. Return how many. */
static size_t gate_load_later(struct gate_load_late *late, struct weir_req **reqs, size_t n)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++)
		late->reqs[late->in++ % (2 * GATE_LOAD_LATER)] = reqs[i];
	while (late->in - late->out > GATE_LOAD_LATER)
		reqs[done++] = late->reqs[late->out++ % (2 * GATE_LOAD_LATER)];
	return done;
}

static void gate_load_draw(struct gate_load *l, struct weir_req *const *reqs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		reqs[i]->tenant = l->draws[l->n_drawn++ % DRAWS];
}

uint64_t gate_load_drive(struct gate_load *l, uint64_t requests)
{
	struct weir_req *reqs[GATE_LOAD_BATCH];
	const struct gate_load_target t = l->target;
	double virtual = (double)l->now;
	uint64_t passed = 0, round = 0;

	while (passed < requests) {
		size_t n = t.next(t.object, (weir_time) virtual, reqs, l->batch);

		if (n == 0 && !gate_load_wait(l, &virtual))
			break;
		if (n == 0)
			continue;
		virtual += l->per_request * (double)n;
		passed += n;
		if (l->features & GATE_LOAD_LATE)
			n = gate_load_later(&l->late, reqs, n);
		t.done(t.object, (weir_time) virtual, reqs, n);
		if (l->features & GATE_LOAD_ZIPF)
			gate_load_draw(l, reqs, n);
		t.submit(t.object, (weir_time) virtual, reqs, n);
		if ((l->features & GATE_LOAD_HISTOGRAMS) && ++round % GATE_LOAD_BATCH == 0)
			weir_gate_drain(l->gate);
	}
	l->now = (weir_time) virtual;
	return passed;
}

/* Write to as much other memory as the payloads of GATE_LOAD_LATER requests would take. */
static void gate_load_dirty(struct gate_load_late *late)
{
	for (size_t i = 0; i < DIRT_PART; i += DIRT_LINE)
		late->dirt[(late->dirty + i) % DIRT]++;
	late->dirty += DIRT_PART;
}

double gate_load_time(struct gate_load *l, uint64_t requests)
{
	const uint64_t part = l->features & GATE_LOAD_LATE ? GATE_LOAD_LATER : requests;
	weir_time spent = 0;
	uint64_t n = 0, passed;

	do {
		if (l->features & GATE_LOAD_LATE)
			gate_load_dirty(&l->late);
		weir_time start = loop_clock();

		passed = gate_load_drive(l, part);
		spent += loop_clock() - start;
		n += passed;
	} while (passed >= part && n < requests);
	return (double)spent / (double)n;
}

/* A drain allocates 32 new histograms. */
void gate_load_warm(struct gate_load *l)
{
	gate_load_time(l, (uint64_t)l->tenants * ((l->features & GATE_LOAD_HISTOGRAMS) ? 64 : 4));
}

#define TURNS 4

/* Measure one turn: first drive as many requests as there are, since the other load has left the
 * cache cold. */
static double gate_load_turn(struct gate_load *l, uint64_t requests)
{
	gate_load_drive(l, l->n_reqs);
	return gate_load_time(l, requests / TURNS) / TURNS;
}

void gate_load_turns(struct gate_load *a, struct gate_load *b, uint64_t requests,
	struct bench_samples *ret_a, struct bench_samples *ret_b)
{
	double time_a = 0, time_b = 0;

	for (unsigned i = 0; i < TURNS; i++) {
		time_a += gate_load_turn(a, requests);
		time_b += gate_load_turn(b, requests);
	}
	bench_sample(ret_a, time_a);
	bench_sample(ret_b, time_b);
}
