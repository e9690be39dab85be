/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 6: two tenants of one parent, both backlogged in one class over an interval, get service W with
 *
 *   |W_i/r_i − W_j/r_j| ≤ K·R·(c_i/r_i + c_j/r_j) + 2k/r_min
 *
 * r weight, c largest cost, R requests in a run and one more (1: no runs), k credit, r_min the least weight of a sibling, K the constant of the law. Checked
 * between all pairs and over all intervals: with x = W/r, the difference x_i − x_j since both are backlogged
 * may never range over more than the bound.
 */
#include "law.h"

#define K       5.0 /* the constant of the law */
#define TENANTS 300
#define DEPTH   5 /* requests that a backlogged tenant has queued: more than one next gives */
#define INSIDE  64
#define SPARE   (TENANTS * DEPTH + INSIDE + DEPTH)

static double worst; /* of all differences, as a part of the bound */

struct tenant {
	weir_node node;
	double weight, x; /* x: service per weight */
	uint64_t largest; /* cost of its requests */
	unsigned queued;
	bool busy;     /* has work; else its queue runs dry */
	uint64_t near; /* where its next request is, if they are near each other */
};

struct fair {
	struct weir_gate *g;
	weir_time now;
	unsigned n;
	struct tenant t[TENANTS];
	unsigned of[TENANTS + 2];                          /* node → tenant */
	double lo[TENANTS][TENANTS], hi[TENANTS][TENANTS]; /* of x_i − x_j, i < j */
	double run, credit, lightest;
	bool far; /* requests are never near each other */
	enum weir_unit cost;
	struct weir_req reqs[SPARE], *idle[SPARE], *inside[INSIDE];
	unsigned n_idle, n_inside, passed;
};

static void submit(struct fair *f, unsigned i)
{
	struct tenant *t = &f->t[i];

	for (; t->queued < DEPTH; t->queued++) {
		struct weir_req *r = f->idle[--f->n_idle];
		uint32_t cost = (uint32_t)law_between(law_chance(0.5) ? t->largest : 1, t->largest);

		*r = (struct weir_req){
			.tenant = t->node, .offset = f->far ? law_below(1u << 30) << 20 : t->near};
		*(f->cost == WEIR_UNIT_REQUESTS      ? &r->requests
			: f->cost == WEIR_UNIT_BYTES ? &r->bytes
						     : &r->time) = cost;
		t->near = r->offset + r->bytes;
		CHECK_INT(weir_gate_submit(f->g, f->now, &r, 1), 0);
		law_operations++;
	}
}

/* The interval of all pairs with i begins now. */
static void begin(struct fair *f, unsigned i)
{
	f->t[i].busy = true;
	submit(f, i);
	for (unsigned j = 0; j < f->n; j++) {
		unsigned a = i < j ? i : j, b = i < j ? j : i;

		f->lo[a][b] = f->hi[a][b] = f->t[a].x - f->t[b].x;
	}
}

static void check(struct fair *f, unsigned i)
{
	for (unsigned j = 0; j < f->n; j++) {
		unsigned a = i < j ? i : j, b = i < j ? j : i;
		const struct tenant *p = &f->t[a], *q = &f->t[b];

		if (i == j || !f->t[j].queued)
			continue;
		double d = p->x - q->x;

		f->lo[a][b] = fmin(f->lo[a][b], d);
		f->hi[a][b] = fmax(f->hi[a][b], d);
		double bound =
			K * f->run *
				((double)p->largest / p->weight + (double)q->largest / q->weight) +
			2 * f->credit / f->lightest;
		double part = (f->hi[a][b] - f->lo[a][b]) / bound;

		worst = fmax(worst, f->run == 1 && f->credit == 0 ? part : 0);
		if (f->hi[a][b] - f->lo[a][b] > bound * (1 + 1e-9))
			FAIL("tenants %u and %u of %u (weights %g, %g, costs up to %llu, %llu): "
			     "apart by "
			     "%g, bound %g (run %g, credit %g)",
				a, b, f->n, p->weight, q->weight, (unsigned long long)p->largest,
				(unsigned long long)q->largest, f->hi[a][b] - f->lo[a][b], bound,
				f->run, f->credit);
	}
}

static void serve(struct fair *f)
{
	struct weir_req *out[DEPTH - 1];
	size_t n = weir_gate_next(f->g, f->now, out, law_between(1, DEPTH - 1));

	for (size_t i = 0; i < n; i++) {
		struct weir_req *r = out[i];
		unsigned at = f->of[r->tenant];
		uint32_t cost = f->cost == WEIR_UNIT_REQUESTS ? r->requests
				: f->cost == WEIR_UNIT_BYTES  ? r->bytes
							      : r->time;

		f->t[at].x += cost / f->t[at].weight;
		check(f, at);
		f->t[at].queued--; /* with 0 left, the interval has ended */
		f->inside[f->n_inside++] = r;
	}
	for (size_t i = 0; i < n; i++)
		if (f->t[f->of[out[i]->tenant]].busy)
			submit(f, f->of[out[i]->tenant]);
	f->passed += (unsigned)n;
	law_operations += n;
}

static void finish(struct fair *f)
{
	unsigned i = (unsigned)law_below(f->n_inside);

	weir_gate_done(f->g, f->now, &f->inside[i], 1);
	f->idle[f->n_idle++] = f->inside[i];
	f->inside[i] = f->inside[--f->n_inside];
	law_operations++;
}

/* All stand in one class: nothing, a priority, or R-tokens without end. */
static void classify(struct fair *f, unsigned class)
{
	const struct weir_bucket_spec tokens = {.kind = WEIR_RTOKENS, .size = 1e15};

	for (unsigned i = 0; i < f->n && class == WEIR_CLASS_RESERVED; i++)
		law_set(f->g, 0,
			(struct weir_knob[]){{.node = f->t[i].node,
						     .kind = WEIR_KNOB_BUCKETS,
						     .buckets = &tokens,
						     .n_buckets = 1},
				{.node = f->t[i].node, .kind = WEIR_KNOB_RGRANT, .value = 1e15}},
			2);
	for (unsigned i = 0; i < f->n && class == WEIR_CLASS_PRIORITY; i++)
		law_knob(f->g, 0, f->t[i].node, WEIR_KNOB_PRIORITY, 7);
}

static void start(struct fair *f, unsigned number)
{
	bool large = number % 3 == 0;
	double most = law_log(1, 1e6), heaviest = law_log(1, 1 << 20),
	       lightest = law_log(1.0 / 1024, 1);
	struct weir_gate_config config = {.cost = f->cost = (enum weir_unit)law_below(WEIR_UNITS),
		.window = (double)law_between(1, INSIDE),
		.credit = law_chance(0.6) ? 0 : (uint64_t)(law_log(0.5, 20) * most),
		.run = law_chance(0.6) ? 0 : (uint32_t)law_between(2, 8),
		.run_distance = 4096};

	/* A window in bytes, from half of a request on, changes no share. */
	if (number % 2)
		config.window_bytes = (uint64_t)ceil(law_log(0.5, 40) * most);
	CHECK_INT(weir_gate_new(&config, &f->g), 0);
	f->far = law_chance(0.2);
	f->run = config.run && !f->far ? config.run + 1 : 1;
	f->credit = (double)config.credit;
	f->n = (unsigned)(large ? law_between(70, TENANTS) : law_between(2, 60));
	for (unsigned i = 0; i < f->n; i++) {
		struct tenant *t = &f->t[i];

		t->weight =
			law_chance(0.5) ? floor(law_log(1, heaviest)) : law_log(lightest, heaviest);
		f->lightest = i ? fmin(f->lightest, t->weight) : t->weight;
		t->node = law_leaf(f->g, WEIR_ROOT, t->weight);
		CHECK(t->node < TENANTS + 2);
		f->of[t->node] = i;
		t->largest = (uint64_t)ceil(law_chance(0.5) ? most : law_log(1, most));
		t->near = (uint64_t)i << 40;
	}
	classify(f, (unsigned)law_below(3));
	for (unsigned i = 0; i < SPARE; i++)
		f->idle[f->n_idle++] = &f->reqs[i];
}

static void run_case(unsigned number, unsigned passes)
{
	struct fair *f = calloc(1, sizeof *f);
	double stop = law_chance(0.3) ? 0 : law_log(1e-4, 0.05); /* how often one pauses */

	CHECK(f);
	start(f, number);
	for (unsigned i = 0; i < f->n; i++)
		if (law_chance(0.8))
			begin(f, i);
	/* Law 2: a call looks at so many of those that came; the others are not eligible yet. */
	for (unsigned i = 0; i < f->n; i += 24)
		CHECK_INT(weir_gate_next(f->g, f->now, NULL, 0), 0);
	while (f->passed < passes) {
		serve(f);
		while (f->n_inside && law_chance(0.6))
			finish(f);
		if (law_chance(stop))
			f->t[law_below(f->n)].busy = false;
		unsigned i = (unsigned)law_below(f->n);

		if (!f->t[i].queued && law_chance(stop + 0.01))
			begin(f, i);
		f->now += (weir_time)law_below(1000);
	}
	weir_gate_free(f->g);
	free(f);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-fair");
	for (unsigned i = 0; i < 150; i++) {
		law_case("fair", i);
		run_case(i, i % 10 == 0 ? 20000 : 5000);
	}
	printf("greatest difference %.3f of its bound\n", worst);
	return law_end(2500000);
}
