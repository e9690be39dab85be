/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir bench net: the cost of dividing a link, and of the simulator's network.
 *
 * METHOD  Services with guarantees (three in ten), limits (half of them) and weights from 1 to 10 want 10 at
 *         most each; the capacity is 0.8 of all demands. Every step has another capacity. Shapes:
 *         even demands, a few giants, and demands over ten orders of magnitude. "Cold" means that
 *         nothing is known of the last step. The peer is the textbook's: sort services by the
 *         level at which they are full, and sum from the lowest on.
 *         The fabric's broker: every rack reports every service (with --quick a tenth of the racks).
 *         The network: 24 connections of each of 20 x 10 pairs of machines and two services, limited by
 *         feedback and by brokers every second, in segments of 64 KiB.
 */
#include "base/arena.h"
#include "base/rng.h"
#include "bench/bench.h"
#include "control/parley/broker.h"
#include "control/parley/machine.h"
#include "control/parley/waterfill.h"
#include "sim/metrics.h"
#include "sim/sim.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define WORK 4000000 /* services per run */
#define MOST 100000

enum shape { EVEN, GIANTS, WIDE };

struct sorted {
	double level, room, weight;
};

struct level {
	struct arena memory;
	struct waterfill f;
	double *min, *max, *demand, *weight;
	struct sorted *sorted;
	uint32_t *changed;
	double capacity;
	struct rng rng;
};

static double draw(struct rng *r, enum shape shape)
{
	switch (shape) {
	case GIANTS:
		return rng_below(r, 100) ? rng_double(r) : 1000 * rng_double(r);
	case WIDE:
		return exp(23 * rng_double(r));
	default:
		return 10 * rng_double(r);
	}
}

static int level_new(struct level *l, size_t n, enum shape shape)
{
	struct arena *m = &l->memory;

	*l = (struct level){.f = {.n = n}};
	rng_init(&l->rng, 1, "bench-net");
	l->f.min = l->min = arena_take(m, n, sizeof(double));
	l->f.max = l->max = arena_take(m, n, sizeof(double));
	l->f.demand = l->demand = arena_take(m, n, sizeof(double));
	l->f.weight = l->weight = arena_take(m, n, sizeof(double));
	l->f.rate = arena_take(m, n, sizeof(double));
	l->f.base = arena_take(m, n, sizeof(double));
	l->f.room = arena_take(m, n, sizeof(double));
	l->f.kept = arena_take(m, 2 * n, sizeof(double));
	l->sorted = arena_take(m, n, sizeof(*l->sorted));
	l->changed = arena_take(m, n, sizeof(*l->changed));
	if (m->failed) {
		arena_free(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		l->demand[i] = draw(&l->rng, shape);
		l->min[i] = rng_below(&l->rng, 10) < 3 ? l->demand[i] * rng_double(&l->rng) : 0;
		l->max[i] = rng_below(&l->rng, 2) ? HUGE_VAL : draw(&l->rng, shape);
		l->weight[i] = 1 + 9 * rng_double(&l->rng);
		l->capacity += 0.8 * (l->demand[i] < l->max[i] ? l->demand[i] : l->max[i]);
	}
	return 0;
}

/* ---- the peer */

static int by_level(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	return (x->level > y->level) - (x->level < y->level);
}

static void fill_sorted(struct level *l, double capacity)
{
	struct waterfill *f = &l->f;
	double rest = capacity, weights = 0, level = HUGE_VAL;

	for (size_t i = 0; i < f->n; i++) {
		double use = fmin(f->max[i], f->demand[i]);

		f->base[i] = fmin(f->min[i], use);
		f->room[i] = use - f->base[i];
		l->sorted[i] = (struct sorted){f->room[i] / f->weight[i], f->room[i], f->weight[i]};
		rest -= f->base[i];
		weights += f->weight[i];
	}
	qsort(l->sorted, f->n, sizeof(*l->sorted), by_level);
	for (size_t i = 0; i < f->n; i++) {
		if (rest <= l->sorted[i].level * weights) {
			level = rest / weights;
			break;
		}
		rest -= l->sorted[i].room;
		weights -= l->sorted[i].weight;
	}
	for (size_t i = 0; i < f->n; i++)
		f->rate[i] = f->base[i] + fmin(f->room[i], level * f->weight[i]);
}

static void fill_cold(struct level *l, double capacity)
{
	waterfill(&l->f, capacity);
}

/* Return µs a step. */
static double measure_steps(
	struct level *l, size_t steps, void (*step)(struct level *l, double capacity))
{
	weir_time begin = bench_cpu_clock();

	for (size_t i = 0; i < steps; i++) {
		step(l, l->capacity * (1 - 0.01 * (double)(i % 8)));
		__asm__ volatile("" : : "r"(l->f.rate) : "memory"); /* mark it as used */
	}
	return (double)(bench_cpu_clock() - begin) / (double)steps / WEIR_US;
}

static const struct row {
	size_t n;
	enum shape shape;
	const char *name, *key, *target;
} rows[] = {
	{100, EVEN, "water-fill, 100 services", "waterfill.100", "<= 0.4 us"},
	{1000, EVEN, "water-fill, 1k services", "waterfill.1k", "<= 3 us"},
	{10000, EVEN, "water-fill, 10k services", "waterfill.10k", "<= 25 us"},
	{MOST, EVEN, "water-fill, 100k services", "waterfill.100k", "<= 400 us"},
	{10000, GIANTS, "  10k, one in a hundred a giant", "waterfill.giants", NULL},
	{10000, WIDE, "  10k, over ten orders of magnitude", "waterfill.wide", NULL},
};

static int bench_cold(struct bench *b, const struct row *row)
{
	size_t steps = (b->quick ? WORK / 10 : WORK) / row->n + 1;
	struct bench_samples ours = {0}, peer = {0};
	struct level l;
	int r = level_new(&l, row->n, row->shape);

	if (r)
		return r;
	for (unsigned i = 0; i < b->runs; i++) {
		bench_sample(&ours, measure_steps(&l, steps, fill_cold));
		bench_sample(&peer, measure_steps(&l, steps / 8 + 1, fill_sorted));
	}
	bench_add_beside(b, row->name, "us", &ours, "sorting", &peer, row->target)->key = row->key;
	arena_free(&l.memory);
	return 0;
}

/* ---- one in a hundred demands has changed */

static void change_some(struct level *l)
{
	for (size_t i = 0; i < l->f.n / 100; i++) {
		l->changed[i] = (uint32_t)rng_below(&l->rng, l->f.n);
		l->demand[l->changed[i]] = draw(&l->rng, EVEN);
	}
}

static int bench_warm(struct bench *b)
{
	size_t steps = (b->quick ? WORK / 10 : WORK) / MOST + 1;
	struct bench_samples ours = {0}, cold = {0};
	struct level l;
	int r = level_new(&l, MOST, EVEN);

	if (r)
		return r;
	waterfill(&l.f, l.capacity);
	for (unsigned i = 0; i < b->runs; i++) {
		weir_time sum = 0;

		for (size_t k = 0; k < steps; k++) {
			weir_time begin;

			change_some(&l);
			begin = bench_cpu_clock();
			waterfill_again(&l.f, l.capacity, l.changed, MOST / 100);
			sum += bench_cpu_clock() - begin;
		}
		bench_sample(&ours, (double)sum / (double)steps / WEIR_US);
		bench_sample(&cold, measure_steps(&l, steps, fill_cold));
		waterfill(&l.f, l.capacity);
	}
	bench_add_beside(b, "water-fill, 100k services, 1 % of them changed", "us", &ours, "cold",
		&cold, "<= 150 us")
		->key = "waterfill.warm";
	arena_free(&l.memory);
	return 0;
}

/* ---- a tree of 10 × 100 × 100 */

#define INNER (1 + 10 + 10 * 100)

static int bench_tree(struct bench *b)
{
	size_t n = INNER + MOST, steps = b->quick ? 4 : 40;
	struct waterfill_tree t = {0};
	struct bench_samples ours = {0};
	uint32_t *first, *many, *parent;
	double *min;
	struct level l;
	int r = level_new(&l, n, EVEN);

	if (r)
		return r;
	first = arena_take(&l.memory, n, sizeof(*first));
	many = arena_take(&l.memory, n, sizeof(*many));
	t.parent = parent = arena_take(&l.memory, INNER, sizeof(*parent));
	t.min = min = arena_take(&l.memory, n, sizeof(double));
	t.given = arena_take(&l.memory, n, sizeof(double));
	for (size_t i = 0, next = 1; !l.memory.failed && i < INNER; i++) {
		parent[t.parents++] = (uint32_t)i;
		first[i] = (uint32_t)next;
		many[i] = i == 0 ? 10 : 100;
		next += many[i];
		l.max[i] = HUGE_VAL;
		min[i] = 0;
	}
	t.first = first;
	t.many = many;
	t.all = l.f;
	t.least = l.min;
	t.want = l.demand;
	for (unsigned i = 0; !l.memory.failed && i < b->runs; i++) {
		weir_time begin = bench_cpu_clock();

		for (size_t k = 0; k < steps; k++)
			waterfill_tree(&t, l.capacity * (1 - 0.01 * (double)(k % 8)));
		bench_sample(&ours, (double)(bench_cpu_clock() - begin) / (double)steps / WEIR_US);
	}
	r = l.memory.failed ? -ENOMEM : 0;
	if (r == 0)
		bench_add(b, "water-fill, a tree of 10 x 100 x 100", "us", &ours, "<= 500 us")
			->key = "waterfill.tree";
	arena_free(&l.memory);
	return r;
}

/* ---- a round of the fabric's broker */

#define RACKS         10000
#define RACK_SERVICES 1000

/* Report the usage of all racks, which changes every round, and divide. */
static void fabric_round(struct parley_broker *b, size_t racks, double *usage, struct rng *r)
{
	for (size_t i = 0; i < racks; i++) {
		usage[rng_below(r, RACK_SERVICES)] = rng_double(r);
		parley_broker_hear(b, i, usage, 1);
	}
	parley_broker_step(b, HUGE_VAL, 1);
}

static int bench_fabric(struct bench *b)
{
	size_t racks = b->quick ? RACKS / 10 : RACKS;
	struct parley_service s[RACK_SERVICES];
	double usage[RACK_SERVICES] = {0};
	struct bench_samples ours = {0};
	struct parley_broker *broker;
	struct rng rng;
	int r;

	for (size_t i = 0; i < RACK_SERVICES; i++)
		s[i] = (struct parley_service){
			0, i % 3 ? HUGE_VAL : 0.3 * (double)racks, 1, 0, HUGE_VAL, 1, -1};
	r = parley_broker_new(s, RACK_SERVICES, racks, PARLEY_FABRIC, &broker);
	if (r)
		return r;
	rng_init(&rng, 1, "bench-fabric");
	for (unsigned i = 0; i < b->runs; i++) {
		weir_time begin = bench_cpu_clock();

		fabric_round(broker, racks, usage, &rng);
		bench_sample(&ours, (double)(bench_cpu_clock() - begin) / (double)WEIR_MS);
	}
	bench_add(b, "fabric broker, 10k racks x 1k services, a round", "ms", &ours,
		b->quick ? NULL : "<= 1000 ms")
		->key = "fabric.round";
	parley_broker_free(broker);
	return 0;
}

/* ---- the simulator's network */

static const char network[] =
	"duration: 4s\n"
	"network:\n"
	"  segment: 64 KiB\n"
	"  mark: 1 MiB\n"
	"  buffer: 4 MiB\n"
	"  policy: {tenants: [{name: a, net: {rack: {in: {max: 30 Gbit/s}}}}, {name: b}]}\n"
	"  racks: [{name: s, machines: 20}, {name: r, machines: 10, down: 80 Gbit/s, limit: 60 "
	"Gbit/s}]\n"
	"  flows:\n"
	"    - {name: a, tenant: a, kind: rpc, from: s, to: r, flows: 24, size: 200 kB, rate: 11 "
	"Gbit/s, arrivals: uniform}\n"
	"    - {name: b, tenant: b, kind: rpc, from: s, to: r, flows: 24, size: 1 MB, rate: 85 "
	"Gbit/s, arrivals: uniform}\n";

/* Return million events a second, or a negative errno. */
static double simulate_network(bool quick)
{
	struct sim_options options = {.duration = quick ? WEIR_SEC : 0};
	weir_time begin = bench_cpu_clock();
	struct metrics *m;
	struct scenario *s;
	struct sim_cost cost;
	struct weir_err err;
	int r = scenario_parse(network, sizeof(network) - 1, "bench", NULL, 0, &s, &err);

	if (r)
		return r;
	r = sim_run(s, &options, &m, &cost, &err);
	scenario_free(s);
	if (r)
		return r;
	metrics_free(m);
	return (double)cost.events * 1e3 / (double)(bench_cpu_clock() - begin);
}

static int bench_network(struct bench *b)
{
	struct bench_samples ours = {0};

	for (unsigned i = 0; i < b->runs; i++) {
		double rate = simulate_network(b->quick);

		if (rate < 0)
			return (int)rate;
		bench_sample(&ours, rate);
	}
	bench_add(b, "simulated network, events", "M/s", &ours, ">= 2 M/s")->key = "network.events";
	return 0;
}

int bench_net(struct bench *b, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
		r = bench_cold(b, &rows[i]);
	if (r == 0)
		r = bench_warm(b);
	if (r == 0)
		r = bench_tree(b);
	if (r == 0)
		r = bench_network(b);
	if (r == 0)
		r = bench_fabric(b);
	if (r == 0)
		r = bench_net_classify(b);
	if (r == 0)
		r = bench_net_veth(b);
	return r ? weir_err_set(err, r, "out of memory") : 0;
}
