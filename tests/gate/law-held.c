/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 6 below a bucket of an ancestor that counts writes only, and binds. Some tenants only write, some read and write,
 * all are backlogged. Those whose writes wait for the bucket neither gain nor lose by that:
 *
 *   two that only write get services by weight, as if nothing held them
 *   two that read and write get services by weight, too: one of their heads may always pass
 *   one that only writes gets as much, by weight, as those that do both get together while writes may pass. The bucket
 *   admits so few writes that what these pass then are writes: each of them has an older one
 *
 * All within the bound of law 6, over any interval.
 */
#include "law.h"

#define K       5.0 /* the constant of the law */
#define TENANTS 16
#define DEPTH   8 /* requests outstanding per tenant and kind */
#define SERVICE (100 * WEIR_US)

struct client {
	weir_node node;
	double weight, cost; /* largest; in the gate's unit */
	double passed;       /* cost of what has passed, per weight */
};

/* Lead of one over another so far. */
struct lead {
	double least, most;
};

struct scene {
	struct weir_gate *g;
	enum weir_unit unit;
	struct client clients[TENANTS];
	unsigned n, writers; /* the first only write */
	struct weir_req reqs[TENANTS][2][DEPTH];
	struct lead lead[TENANTS][TENANTS]; /* of two that are alike */
	struct lead over[TENANTS];          /* of one that only writes over the others together */
	double weight, step;                /* of those: total, and the largest cost per weight */
	double written;                     /* cost of their writes that have passed, per weight */
	double rate;                        /* of the bucket */
};

static double step(const struct client *c)
{
	return c->cost / c->weight;
}

static void submit(struct scene *s, weir_time now, struct weir_req *r)
{
	const struct client *c = r->user;
	uint32_t cost = (uint32_t)ceil(c->cost * (0.5 + 0.5 * rng_double(&law_rng)));

	r->bytes = s->unit == WEIR_UNIT_BYTES ? cost : 0;
	r->requests = s->unit == WEIR_UNIT_REQUESTS ? cost : 1;
	CHECK_INT(weir_gate_submit(s->g, now, &r, 1), 0);
	law_operations++;
}

static void start(struct scene *s, bool group)
{
	const double unit = s->unit == WEIR_UNIT_BYTES ? 4096 : 1;
	weir_node parent = WEIR_ROOT;
	double all = 0;

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = (double)law_between(1, 4),
					.cost = s->unit},
			  &s->g),
		0);
	if (group)
		parent = law_leaf(s->g, WEIR_ROOT, law_log(0.01, 100));
	s->writers = (unsigned)law_between(2, 8);
	s->n = s->writers + (unsigned)law_between(1, TENANTS - s->writers);
	for (unsigned i = 0; i < s->n; i++) {
		struct client *c = &s->clients[i];

		c->weight = law_chance(0.3) ? 1 : law_log(1, 64);
		c->cost = ceil(unit * law_log(1, 8));
		c->node = law_leaf(s->g, parent, c->weight);
		all += c->cost;
		s->weight += i < s->writers ? 0 : c->weight;
		s->step = i < s->writers ? 0 : fmax(s->step, step(c));
	}
	/* A tenth of what the device serves, or less. */
	s->rate = all / s->n * law_log(0.01, 0.1) * WEIR_SEC / SERVICE;
	struct weir_bucket_spec b = {.kind = WEIR_HOLD,
		.unit = s->unit,
		.ops = WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM),
		.rate = s->rate,
		.size = ceil(unit * law_log(1, 20))};
	struct weir_knob max = {
		.node = parent, .kind = WEIR_KNOB_BUCKETS, .buckets = &b, .n_buckets = 1};

	law_set(s->g, 0, &max, 1);
	for (unsigned i = 0; i < s->n; i++)
		for (unsigned write = 0; write < (i < s->writers ? 1 : 2); write++)
			for (unsigned k = 0; k < DEPTH; k++) {
				struct weir_req *r = &s->reqs[i][write][k];

				*r = (struct weir_req){.tenant = s->clients[i].node,
					.op = write ? WEIR_READ : WEIR_WRITE,
					.user = &s->clients[i]};
				submit(s, 0, r);
			}
}

/* Note a lead, and check what it has changed by since any earlier moment. */
static void check(struct scene *s, struct lead *l, double lead, double bound, const char *what)
{
	l->least = fmin(l->least, lead);
	l->most = fmax(l->most, lead);
	if (l->most - l->least > bound)
		FAIL("%s: %g, law: %g; %u tenants, of which %u only write", what,
			l->most - l->least, bound, s->n, s->writers);
}

/* A request has passed. */
static void count(struct scene *s, const struct weir_req *r)
{
	struct client *c = r->user;
	unsigned a = (unsigned)(c - s->clients);
	double cost = s->unit == WEIR_UNIT_BYTES ? r->bytes : r->requests;
	bool writes = a < s->writers;

	c->passed += cost / c->weight;
	for (unsigned i = writes ? 0 : s->writers; i < (writes ? s->writers : s->n); i++) {
		unsigned x = a < i ? a : i, y = a < i ? i : a;

		if (i != a)
			check(s, &s->lead[x][y], s->clients[x].passed - s->clients[y].passed,
				K * (step(c) + step(&s->clients[i])), "two alike");
	}
	if (r->op != WEIR_WRITE)
		return;
	s->written += writes ? 0 : cost / s->weight;
	for (unsigned i = 0; i < s->writers; i++)
		check(s, &s->over[i], s->clients[i].passed - s->written,
			K * (step(&s->clients[i]) + s->step), "one over those that do both");
}

/* Serve for a while: each request takes SERVICE, half as much or half as much again. */
static void run(struct scene *s, weir_time until)
{
	struct weir_req *inside[4], *out[4];
	weir_time ends[4], now = 0;
	unsigned n = 0;

	while (now < until) {
		size_t passed = weir_gate_next(s->g, now, out, 4);
		weir_time to = weir_gate_wakeup(s->g, now);

		for (size_t i = 0; i < passed; i++) {
			count(s, out[i]);
			inside[n] = out[i];
			ends[n++] = now + (weir_time)law_between(SERVICE / 2, SERVICE * 3 / 2);
		}
		for (unsigned i = 0; i < n; i++)
			to = ends[i] < to ? ends[i] : to;
		now = to > now ? to : now + 1;
		for (unsigned i = n; i-- > 0;) {
			struct weir_req *r = inside[i];

			if (ends[i] > now)
				continue;
			inside[i] = inside[--n];
			ends[i] = ends[n];
			weir_gate_done(s->g, now, &r, 1);
			submit(s, now, r);
		}
	}
}

/* All writes together reach the bucket's rate, though reads fill the device. */
static void check_rate(const struct scene *s, double seconds)
{
	double all = s->written * s->weight;

	for (unsigned i = 0; i < s->writers; i++)
		all += s->clients[i].passed * s->clients[i].weight;
	CHECK(all >= 0.95 * s->rate * seconds);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-held");
	for (unsigned i = 0; i < 60; i++) {
		static struct scene s;

		law_case("held", i);
		memset(&s, 0, sizeof s);
		s.unit = i % 2 ? WEIR_UNIT_BYTES : WEIR_UNIT_REQUESTS;
		start(&s, i % 3 == 0);
		run(&s, 3 * WEIR_SEC);
		check_rate(&s, 3);
		weir_gate_free(s.g);
	}
	return law_end(1000000);
}
