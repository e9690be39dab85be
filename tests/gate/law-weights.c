/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 6 at any scale: shares depend on ratios of weights alone, for any scale, any number of
 * siblings, and any weights of idle siblings; and a tenant is served at least once per (2 + K/s)
 * largest costs of its parent, where s is its part of the weights that were backlogged meanwhile.
 * With 65, 1,000 and 100,000 siblings, below the root and below an inner node, with weights from
 * 1/1024 to 2^20, tenants that come and go, and requests that are added and removed meanwhile.
 */
#include "law.h"

#define K 5.0 /* the constant of the law */

/* ---- two weights among 70 siblings */

struct share {
	uint64_t light, heavy; /* requests served, total of each weight */
};

/* Run 70 tenants with weights w and 100w in turn, 8 requests each, on a server of window 8;
 * beside an idle one. */
static struct share two_weights(double w, double idle)
{
	static struct weir_req reqs[70][8];
	struct weir_gate *g;
	struct share share = {0};
	weir_node nodes[70], none;
	weir_time now = 0;

	CHECK_INT(weir_gate_new(&(struct weir_gate_config){.window = 8}, &g), 0);
	if (idle > 0)
		none = law_leaf(g, WEIR_ROOT, idle);
	(void)none;
	for (unsigned i = 0; i < 70; i++) {
		nodes[i] = law_leaf(g, WEIR_ROOT, i % 2 ? 100 * w : w);
		for (unsigned k = 0; k < 8; k++) {
			struct weir_req *r = &reqs[i][k];

			*r = (struct weir_req){.tenant = nodes[i], .user = (void *)(uintptr_t)i};
			CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
		}
	}
	struct weir_req *out[8];
	size_t inside = weir_gate_next(g, now, out, 8);

	for (unsigned i = 0; i < 70 * 1000; i++) {
		struct weir_req *r = out[i % inside];

		now += 200 * WEIR_US;
		*((uintptr_t)r->user % 2 ? &share.heavy : &share.light) += 1;
		weir_gate_done(g, now, &r, 1);
		CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
		CHECK_INT(weir_gate_next(g, now, &out[i % inside], 1), 1);
		law_operations += 3;
	}
	weir_gate_free(g);
	return share;
}

static void scale_does_not_matter(void)
{
	struct share one = two_weights(1, 0);
	double ratio = (double)one.heavy / (double)one.light;

	if (fabs(ratio / 100 - 1) > 0.02)
		FAIL("weights of 100 to 1 share as %g to 1", ratio);
	for (double w = 1.0 / 1024; w <= 10485; w *= 2) {
		struct share other = two_weights(w, w > 1 ? 1.0 / 1024 : 1 << 20);

		/* (Tags are integers, so that an eighth of a per cent may be rounded.) */
		if (fabs((double)other.light / (double)one.light - 1) > 0.00125 + 1.5 / 700)
			FAIL("weights of %g and %g: %llu and %llu served, not %llu and %llu", w,
				100 * w, (unsigned long long)other.light,
				(unsigned long long)other.heavy, (unsigned long long)one.light,
				(unsigned long long)one.heavy);
	}
}

/* ---- once per (2 + K/s) largest costs */

struct sibling {
	weir_node node;
	double weight;
	/* total service when it was last served, or when it began to wait, if that is later */
	uint64_t last;
	unsigned queued;
	bool busy;
};

struct family {
	struct weir_gate *g;
	struct sibling *all;
	unsigned n, *of; /* of: node → sibling */
	struct weir_req *reqs;
	uint64_t served; /* total cost */
	double weights;  /* of all siblings that are backlogged, or were since `since` */
	double now_weights;
	unsigned busy;
	uint32_t most; /* largest cost */
	double worst;  /* the longest wait, as a part of its bound */
	weir_time now;
};

#define EACH 2 /* queued requests of a busy sibling */

static void submit(struct family *f, struct weir_req *r, unsigned i)
{
	*r = (struct weir_req){.tenant = f->all[i].node,
		.bytes = (uint32_t)(law_chance(0.3) ? f->most : law_between(1, f->most))};
	CHECK_INT(weir_gate_submit(f->g, f->now, &r, 1), 0);
	f->all[i].queued++;
	law_operations++;
}

static void judge(struct family *f, const struct sibling *s)
{
	double waited = (double)(f->served - s->last);
	double bound = (2 + K * f->weights / s->weight) * f->most;

	f->worst = fmax(f->worst, waited / bound);
	if (waited > bound)
		FAIL("a sibling of weight %g among %g waited for %g, %g of the largest requests",
			s->weight, f->weights, waited, waited / f->most);
}

static void begin(struct family *f, unsigned i)
{
	struct sibling *s = &f->all[i];

	s->busy = true;
	s->last = f->served;
	f->weights += s->weight; /* (again, if it was backlogged a while ago: that only helps it) */
	f->now_weights += s->weight;
	f->busy++;
	for (unsigned k = 0; k < EACH; k++)
		submit(f, &f->reqs[i * EACH + k], i);
}

static bool all_of(const struct weir_req *r, void *arg)
{
	return true;
}
static void dropped(struct weir_req *r, void *arg)
{
}

static void end(struct family *f, unsigned i)
{
	struct sibling *s = &f->all[i];

	judge(f, s);
	f->now_weights -= s->weight;
	f->busy--;
	s->queued -= (unsigned)weir_gate_cancel(f->g, f->now, s->node, all_of, dropped, NULL);
	s->busy = false;
	law_operations++;
}

/* Some siblings leave and some come, some of these as new nodes of another weight. */
static void change(struct family *f, unsigned times, weir_node parent)
{
	for (unsigned k = 0; k < times; k++) {
		unsigned i = (unsigned)law_below(f->n);
		struct sibling *s = &f->all[i];

		if (s->busy) {
			end(f, i);
			continue;
		}
		if (law_chance(0.5)) {
			CHECK_INT(weir_gate_remove(f->g, s->node), 0);
			s->weight = law_log(1.0 / 1024, 1 << 20);
			s->node = law_leaf(f->g, parent, s->weight);
			f->of[s->node] = i;
		}
		begin(f, i);
	}
}

static void serve(struct family *f)
{
	struct weir_req *r;

	CHECK_INT(weir_gate_next(f->g, f->now, &r, 1), 1);
	unsigned i = f->of[r->tenant];
	struct sibling *s = &f->all[i];

	f->served += r->bytes;
	judge(f, s);
	s->last = f->served;
	s->queued--;
	f->now += 1000;
	weir_gate_done(f->g, f->now, &r, 1);
	submit(f, r, i);
	law_operations += 2;
}

/* Run n siblings, one of which has as much weight as all others if `heavy`. Return the worst
 * wait. */
static double family_case(unsigned n, bool tree, bool heavy, unsigned rounds)
{
	struct family f = {.n = n, .most = (uint32_t)law_log(1, 1e6)};
	weir_node parent = WEIR_ROOT, other;

	f.all = calloc(n, sizeof *f.all);
	f.of = calloc(n + 3, sizeof *f.of);
	f.reqs = calloc((size_t)n * EACH, sizeof *f.reqs);
	CHECK(f.all && f.of && f.reqs);
	CHECK_INT(weir_gate_new(
			  &(struct weir_gate_config){
				  .nodes = n + 3, .cost = WEIR_UNIT_BYTES, .window = 1},
			  &f.g),
		0);
	if (tree) {
		CHECK_INT(weir_gate_add(f.g, WEIR_ROOT, &parent), 0);
		other = law_leaf(f.g, WEIR_ROOT, 1); /* idle */
		(void)other;
	}
	for (unsigned i = 0; i < n; i++) {
		struct sibling *s = &f.all[i];

		s->weight = heavy ? (i ? 1 : fmin(n - 1, 1 << 20)) : law_log(1.0 / 1024, 1 << 20);
		s->node = law_leaf(f.g, parent, s->weight);
		CHECK(s->node < n + 3);
		f.of[s->node] = i;
	}
	for (unsigned i = 0; i < n; i++)
		begin(&f, i);
	/* Law 2: a call examines this many of the new tenants; the others are not eligible yet. */
	for (unsigned i = 0; i < n; i += 24)
		CHECK_INT(weir_gate_next(f.g, f.now, NULL, 0), 0);
	for (unsigned i = 0; i < rounds; i++) {
		if (f.busy)
			serve(&f);
		if (!heavy && law_chance(fmin(0.01, 10.0 / n))) { /* most siblings, once or more */
			f.weights = f.weights > 8 * f.now_weights ? 2 * f.now_weights : f.weights;
			change(&f, (unsigned)law_between(1, 1 + n / 20), parent);
			for (unsigned k = 0; k < n / 20; k += 24)
				CHECK_INT(weir_gate_next(f.g, f.now, NULL, 0), 0);
		}
	}
	for (unsigned i = 0; i < n; i++)
		if (f.all[i].busy)
			judge(&f, &f.all[i]);
	weir_gate_free(f.g);
	free(f.all);
	free(f.of);
	free(f.reqs);
	return f.worst;
}

static void everybody_is_served_in_time(void)
{
	static const unsigned n[] = {2, 65, 1000, 100000};
	double worst = 0;

	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 4; k++) {
			law_case(k % 2 ? "heavy" : "any weight", 2 * i + k / 2);
			worst = fmax(worst, family_case(n[i], k / 2, k % 2, 4 * n[i] + 20000));
		}
	printf("longest wait %.3f of its bound\n", worst);
}

/* ---- tenants with few requests */

/* One tenant of weight w is backlogged beside n of weight 1 that have a request or two each; in
 * a tree each is below a node of its own. One of a large weight has a request, too. All are
 * served by weight, and the first does not wait for long. */
static void beside_many(double w, unsigned n, bool tree, unsigned each)
{
	struct weir_gate *g;
	struct weir_req *r, *reqs = calloc(n * each + 5, sizeof *reqs);
	double bound = 2 + K * (w + n) / w;
	unsigned waited = 0, served[2] = {0};
	weir_time now = 0;
	weir_node leaf = 0, first = 0, great = 0;

	CHECK(reqs);
	CHECK_INT(
		weir_gate_new(&(struct weir_gate_config){.cost = WEIR_UNIT_BYTES, .window = 1}, &g),
		0);
	for (unsigned i = 0; i < n * each + 5; i++) {
		bool another = i < 5 ? i == 0 || i == 4 : (i - 5) % each == 0;

		if (another) {
			leaf = law_leaf(g, WEIR_ROOT, i == 0 ? w : i == 4 ? 1 << 20 : 1);
			leaf = tree ? law_leaf(g, leaf, 1) : leaf;
		}
		*(i < 4 ? &first : i == 4 ? &great : &(weir_node){0}) = leaf;
		r = &reqs[i];
		*r = (struct weir_req){.tenant = leaf, .bytes = 4096};
		CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
	}
	for (unsigned i = 0; i < n + 2; i += 24)
		CHECK_INT(weir_gate_next(g, now, NULL, 0), 0);
	while (served[0] < n * each) {
		CHECK_INT(weir_gate_next(g, now += 1000, &r, 1), 1);
		weir_gate_done(g, now, &r, 1);
		law_operations += 3;
		if (r->tenant == great)
			continue;
		served[r->tenant == first]++;
		waited = r->tenant == first ? 0 : waited + 1;
		if (waited > bound)
			FAIL("weight %g among %g, tree %d, %u each: waited for %u requests, not %g",
				w, w + n, tree, each, waited, bound);
		if (r->tenant == first)
			CHECK_INT(weir_gate_submit(g, now, &r, 1), 0);
	}
	if (fabs(served[1] / w / each - 1) > 0.05 + 2 / w)
		FAIL("weight %g, tree %d: served %u while %u others were %u times", w, tree,
			served[1], n, each);
	weir_gate_free(g);
	free(reqs);
}

static void tenants_that_ask_seldom(void)
{
	for (unsigned i = 0; i < 4; i++)
		for (double w = 10; w <= 10000; w *= 10)
			beside_many(w, 1000, i % 2, 1 + i / 2);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-weights");
	RUN(scale_does_not_matter);
	RUN(tenants_that_ask_seldom);
	RUN(everybody_is_served_in_time);
	return law_end(1000000);
}
