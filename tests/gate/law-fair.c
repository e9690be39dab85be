/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 6: two tenants of one parent, both backlogged in one class over an interval, get service W
 * with
 *
 *   |W_i/r_i − W_j/r_j| ≤ K·R·(c_i/r_i + c_j/r_j) + 2k/r_min
 *
 * r weight, c largest cost, R requests in a run and one more (1: no runs), k credit, r_min the
 * smallest weight of a sibling, K the constant of the law. Checked between all pairs and over all
 * intervals: with x = W/r, the difference x_i − x_j since both are backlogged may never range over
 * more than the bound.
 */
#include "law.h"

#define K       5.0 /* the constant of the law */
#define TENANTS 300
#define DEPTH   5 /* queued requests of a backlogged tenant: more than one call of next returns */
#define INSIDE  64
#define SPARE   (TENANTS * DEPTH + INSIDE + DEPTH)

static double worst; /* of all differences, as a part of the bound */

struct tenant {
	weir_node node;
	double weight, x; /* x: service per weight */
	uint64_t largest; /* cost of its requests */
	unsigned queued;
	bool busy;     /* has requests; else its queue drains */
	uint64_t near; /* offset of its next request, if requests are near each other */
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

/* Start the interval of all pairs with i. */
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

/* Put all tenants in one class: none, a priority, or R-tokens without end. */
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

	/* A window in bytes, of half a request or more, changes no share. */
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
	double stop = law_chance(0.3) ? 0 : law_log(1e-4, 0.05); /* probability of a pause */

	CHECK(f);
	start(f, number);
	for (unsigned i = 0; i < f->n; i++)
		if (law_chance(0.8))
			begin(f, i);
	/* Law 2: a call examines this many of the new tenants; the others are not eligible yet. */
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

/* ---- while V is far ahead of all start tags */

/* A tenant, or an inner node with one. */
struct party {
	weir_node node, leaf;
	uint64_t served; /* cost */
	unsigned queued;
};

struct parties {
	struct weir_gate *g;
	weir_time now;
	struct party p[5];
	unsigned of[11]; /* leaf → party */
};

enum { HUGE_ONE, MIXED, PLAIN, NEWCOMER, SMALL };

static void ask(struct parties *s, unsigned i, uint32_t cost, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		struct weir_req *r = calloc(1, sizeof *r);

		CHECK(r);
		*r = (struct weir_req){.tenant = s->p[i].leaf, .bytes = cost};
		CHECK_INT(weir_gate_submit(s->g, s->now, &r, 1), 0);
	}
	s->p[i].queued += n;
}

/* Serve one request. Return its party. */
static unsigned pass(struct parties *s)
{
	struct weir_req *r;

	s->now += WEIR_US;
	CHECK_INT(weir_gate_next(s->g, s->now, &r, 1), 1);
	unsigned i = s->of[r->tenant];

	s->p[i].served += r->bytes;
	s->p[i].queued--;
	weir_gate_done(s->g, s->now, &r, 1);
	free(r);
	law_operations += 2;
	return i;
}

/* A party with a total demand of 2^34 has been served half of it: V is 2^33 over the weights
 * ahead of the others. */
static void far_ahead(struct parties *s, bool tree)
{
	*s = (struct parties){0};
	CHECK_INT(weir_gate_new(
			  &(struct weir_gate_config){.cost = WEIR_UNIT_BYTES, .window = 1}, &s->g),
		0);
	for (unsigned i = 0; i < 5; i++) {
		s->p[i].node = s->p[i].leaf = law_leaf(s->g, WEIR_ROOT, 1);
		if (tree)
			s->p[i].leaf = law_leaf(s->g, s->p[i].node, 1);
		s->of[s->p[i].leaf] = i;
	}
	ask(s, HUGE_ONE, 1u << 31, 2);
	ask(s, SMALL, 1, 1);
	while (!s->p[HUGE_ONE].served)
		(void)pass(s);
	ask(s, HUGE_ONE, 1u << 31, 1);
}

static bool every(const struct weir_req *r, void *arg)
{
	return true;
}
static void drop(struct weir_req *r, void *arg)
{
	free(r);
}

static void leave_all(struct parties *s)
{
	for (unsigned i = 0; i < 5; i++)
		(void)weir_gate_cancel(s->g, s->now, s->p[i].leaf, every, drop, NULL);
	weir_gate_free(s->g);
}

/* A tenant with one request of 4 MiB and many of 256 bytes is late after the first, among
 * tenants of this width. A newcomer of the same width starts far ahead of it, where the others
 * are; it is served with them. */
static void beside_a_late_one(void)
{
	for (unsigned tree = 0; tree < 2; tree++) {
		struct parties s;
		double least = 0, most = 0, bound = K * (4096 + 256);

		far_ahead(&s, tree);
		ask(&s, MIXED, 4 << 20, 1);
		ask(&s, MIXED, 256, 40000);
		ask(&s, PLAIN, 4096, 4000);
		while (s.p[MIXED].served <= 4 << 20)
			(void)pass(&s);
		ask(&s, NEWCOMER, 256, 20000);
		s.p[PLAIN].served = 0;
		while (s.p[MIXED].queued && s.p[PLAIN].queued && s.p[NEWCOMER].queued) {
			(void)pass(&s);
			double apart = (double)s.p[PLAIN].served - (double)s.p[NEWCOMER].served;

			least = fmin(least, apart);
			most = fmax(most, apart);
			if (most - least > bound)
				FAIL("tree %u: apart by %g, bound %g", tree, most - least, bound);
		}
		CHECK(s.p[NEWCOMER].served > 1 << 20);
		leave_all(&s);
	}
}

/* The weight of a party, or of its child, changes before each request that passes: it is served
 * in time nevertheless. */
static void weights_that_change(void)
{
	for (unsigned kind = 0; kind < 3; kind++) {
		struct parties s;
		uint64_t last = 0;

		far_ahead(&s, kind > 0);
		ask(&s, MIXED, 1 << 20, 200);
		ask(&s, PLAIN, 4096, 50000);
		for (unsigned i = 0; s.p[MIXED].queued && s.p[PLAIN].queued; i++) {
			law_knob(s.g, s.now, kind == 1 ? s.p[MIXED].node : s.p[MIXED].leaf,
				WEIR_KNOB_WEIGHT, i % 2 ? 1 : 1.25);
			if (pass(&s) == MIXED)
				last = s.p[PLAIN].served;
			if (s.p[PLAIN].served - last > K * ((1 << 20) + 4096))
				FAIL("kind %u: not served while another was served %llu", kind,
					(unsigned long long)(s.p[PLAIN].served - last));
		}
		double ratio = (double)s.p[MIXED].served / (double)s.p[PLAIN].served;

		if (ratio < 0.97 || ratio > (kind == 2 ? 1.03 : 1.28))
			FAIL("kind %u: served as %g to 1", kind, ratio);
		leave_all(&s);
	}
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-fair");
	RUN(beside_a_late_one);
	RUN(weights_that_change);
	for (unsigned i = 0; i < 150; i++) {
		law_case("fair", i);
		run_case(i, i % 10 == 0 ? 20000 : 5000);
	}
	printf("greatest difference %.3f of its bound\n", worst);
	return law_end(2500000);
}
