/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 6, second half: no conforming tenant starves while conforming rates and mins fit the
 * capacity, whatever other tenants send.
 *
 *   min      a backlogged tenant with R-tokens at rate m gets at least m over every second, less
 *            the tokens that its bucket may still hold at the end (size as gate.h advises), for any
 *            weights of its own and the others
 *   profile  a tenant whose arrivals fit its (r, b) keeps its priority and waits at most (Σ b of
 *            its own and better priorities + 1 in service) / (C − Σ r of better ones)
 *   weight   the rest is shared by weight: every backlogged tenant gets some of it
 */
#include "law.h"

#define TENANTS 24
#define DEPTH   40 /* queued requests of a backlogged tenant */
#define INSIDE  32
#define SAMPLES 10 /* samples per second */

struct tenant {
	weir_node node;
	double min, rate, size, weight;
	weir_time next; /* profile: time of the next request; WEIR_NEVER: always backlogged */
	double level;   /* of the bucket of its own arrivals, at `next` */
	unsigned queued, passed, at[SAMPLES + 1];
	weir_time bound; /* longest wait allowed */
};

struct bench {
	struct weir_gate *g;
	unsigned n, n_inside, of[TENANTS + 1];
	struct tenant t[TENANTS];
	weir_time now, service, ends[INSIDE]; /* first in, first out */
	double capacity;
	struct weir_req reqs[TENANTS * DEPTH + INSIDE + DEPTH], *inside[INSIDE];
	struct weir_req *idle[TENANTS * DEPTH + INSIDE + DEPTH];
	unsigned n_idle;
};

static void submit(struct bench *b, unsigned i)
{
	CHECK(b->n_idle);
	struct weir_req *r = b->idle[--b->n_idle];

	*r = (struct weir_req){.tenant = b->t[i].node, .bytes = (uint32_t)law_log(1, 1e5)};
	CHECK_INT(weir_gate_submit(b->g, b->now, &r, 1), 0);
	b->t[i].queued++;
	law_operations++;
}

static void arrivals(struct bench *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		struct tenant *t = &b->t[i];

		if (t->next == WEIR_NEVER)
			while (t->queued < DEPTH)
				submit(b, i);
		while (t->next <= b->now) {
			/* As soon as its bucket allows, or later: bursts of up to its size. A
			 * little slower, since the gate's rates have a resolution of 1/1024. */
			double pace = t->rate * 0.999;
			double wait = law_chance(0.1) ? rng_exp(&law_rng, t->size) / pace : 0;

			submit(b, i);
			t->level -= 1;
			if (t->level + wait * pace < 1)
				wait = (1 - t->level) / pace;
			t->level = fmin(t->size, t->level + wait * pace);
			t->next += (weir_time)ceil(wait * 1e9);
		}
	}
}

static void step(struct bench *b)
{
	struct weir_req *out[INSIDE];
	size_t n = weir_gate_next(b->g, b->now, out, INSIDE - b->n_inside);

	law_operations += n;
	for (size_t i = 0; i < n; i++) {
		struct tenant *t = &b->t[b->of[out[i]->tenant]];
		weir_time start = b->n_inside ? b->ends[b->n_inside - 1] : b->now;

		t->queued--;
		t->passed++;
		if (t->bound && b->now - out[i]->submitted > t->bound)
			FAIL("node %u waited %lld ns, bound %lld", out[i]->tenant,
				(long long)(b->now - out[i]->submitted), (long long)t->bound);
		b->inside[b->n_inside] = out[i];
		b->ends[b->n_inside++] = start + b->service;
	}
	weir_time next = b->n_inside ? b->ends[0] : WEIR_NEVER,
		  wake = weir_gate_wakeup(b->g, b->now);

	if (wake < next)
		next = wake;
	for (unsigned i = 0; i < b->n; i++)
		if (b->t[i].next < next)
			next = b->t[i].next;
	CHECK(next != WEIR_NEVER);
	b->now = next > b->now ? next : b->now;
	while (b->n_inside && b->ends[0] <= b->now) {
		weir_gate_done(b->g, b->now, b->inside, 1);
		b->idle[b->n_idle++] = b->inside[0];
		b->n_inside--;
		memmove(b->inside, b->inside + 1, b->n_inside * sizeof *b->inside);
		memmove(b->ends, b->ends + 1, b->n_inside * sizeof *b->ends);
		law_operations++;
	}
	arrivals(b);
}

static void bench_start(struct bench *b, unsigned window, unsigned n)
{
	memset(b, 0, sizeof *b);
	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = window}, &b->g), 0);
	b->service = (weir_time)law_log(50e3, 1e6); /* 1k … 20k requests a second */
	b->capacity = 1e9 / (double)b->service;
	b->n = n;
	for (unsigned i = 0; i < n; i++) {
		b->t[i].node = law_leaf(b->g, WEIR_ROOT, 1);
		b->t[i].next = WEIR_NEVER;
		b->of[b->t[i].node] = i;
	}
	for (unsigned i = 0; i < sizeof b->reqs / sizeof b->reqs[0]; i++)
		b->idle[b->n_idle++] = &b->reqs[i];
}

static void bucket(struct bench *b, const struct tenant *t, enum weir_bucket_kind kind)
{
	struct weir_bucket_spec spec = {.kind = kind, .rate = t->rate, .size = t->size};

	law_set(b->g, 0,
		&(struct weir_knob){.node = t->node,
			.kind = WEIR_KNOB_BUCKETS,
			.buckets = &spec,
			.n_buckets = 1},
		1);
}

/* ---- min */

static void check_second(struct bench *b)
{
	for (unsigned i = 0; i < b->n; i++) {
		struct tenant *t = &b->t[i];

		memmove(t->at, t->at + 1, SAMPLES * sizeof *t->at);
		t->at[SAMPLES] = t->passed;
		unsigned got = t->at[SAMPLES] - t->at[0];

		if (b->now > 2 * WEIR_SEC && got < t->min - t->size - 1)
			FAIL("node %u got %u in a second; its min is %g", t->node, got, t->min);
	}
}

static void min_holds(unsigned number)
{
	static struct bench b;
	double left;

	bench_start(&b, (unsigned)law_between(1, 8), (unsigned)law_between(3, TENANTS));
	left = 0.9 * b.capacity;
	for (unsigned i = 0; i < b.n; i++) {
		struct tenant *t = &b.t[i];

		if (i < b.n / 2) { /* a min, and a small weight */
			t->min = t->rate = left * rng_double(&law_rng) / 2;
			left -= t->min;
			t->rate = fmax(t->rate, 1);
			t->size = ceil(2 + 0.02 * t->rate);
			bucket(&b, t, WEIR_RTOKENS);
			t->weight = law_log(1.0 / 8, 2);
		} else {
			t->weight = law_log(1, 1000);
		}
		law_knob(b.g, 0, t->node, WEIR_KNOB_WEIGHT, t->weight);
	}
	arrivals(&b);
	for (unsigned s = 1; s <= 4 * SAMPLES; s++) {
		while (b.now < (weir_time)s * WEIR_SEC / SAMPLES)
			step(&b);
		check_second(&b);
	}
	/* No tenant starves: the capacity beyond the mins is shared by weight. */
	double sum = 0, mins = 0;

	for (unsigned i = 0; i < b.n; i++) {
		sum += b.t[i].weight;
		mins += b.t[i].min;
	}
	for (unsigned i = 0; i < b.n; i++) {
		double due = (b.capacity - mins - b.n) * b.t[i].weight / sum * 4;

		CHECK(b.t[i].passed >= 0.9 * due - 4);
	}
	weir_gate_free(b.g);
}

/* ---- profiles */

static void profile_bounds(unsigned number)
{
	static struct bench b;
	double better = 0, bursts = 0, left;

	bench_start(&b, 1, (unsigned)law_between(3, 12));
	left = 0.8 * b.capacity;
	for (unsigned i = 0; i < b.n; i++) { /* tenant i has priority i; the last two flood */
		struct tenant *t = &b.t[i];

		law_knob(b.g, 0, t->node, WEIR_KNOB_WEIGHT, law_log(0.125, 1000));
		if (i + 2 >= b.n)
			continue;
		t->rate = fmax(1, left * rng_double(&law_rng) / 2);
		left -= t->rate;
		t->size = t->level = (double)law_between(1, 20);
		t->next = 0;
		bucket(&b, t, WEIR_PROFILE);
		law_knob(b.g, 0, t->node, WEIR_KNOB_PRIORITY, i);
		bursts += t->size;
		/* A tick, and a nanosecond per request, since arrivals are rounded up to one. */
		t->bound = (weir_time)((bursts + 1) / (b.capacity - better) * 1e9) + 3000;
		better += t->rate;
	}
	arrivals(&b);
	while (b.now < 3 * WEIR_SEC)
		step(&b);
	for (unsigned i = 0; i < b.n; i++) {
		struct weir_gate_stats s;

		CHECK_INT(weir_gate_get_stats(b.g, b.now, b.t[i].node, &s), 0);
		if (i + 2 < b.n) /* all requests conformed */
			CHECK_INT(s.by_class[WEIR_CLASS_PRIORITY], s.dispatched);
		else /* the flood gets the rest */
			CHECK(s.by_class[WEIR_CLASS_REST] == s.dispatched && s.dispatched > 0);
	}
	weir_gate_free(b.g);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-min");
	for (unsigned i = 0; i < 40; i++) {
		law_case("min", i);
		min_holds(i);
		law_case("profile", i);
		profile_bounds(i);
	}
	return law_end(1000000);
}
