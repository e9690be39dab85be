/* SPDX-License-Identifier: BSD-3-Clause */
/* Tenants that begin to wait, or get another weight, beside others that are late or were served
 * in advance. Random cases are in law-fair.c. */
#include "base/rng.h"
#include "device.h"

#define LARGE (1u << 31)

/* Let one request pass, complete it, and submit it again. Return its tenant. */
static weir_node again(struct bench *b)
{
	struct weir_req *r = pass(b);

	CHECK(r);
	weir_node n = r->tenant;

	b->now += WEIR_US;
	finish(b, r);
	*r = (struct weir_req){.tenant = n, .bytes = r->bytes, .op = r->op};
	CHECK_INT(weir_gate_submit(b->g, b->now, &r, 1), 0);
	return n;
}

static void submit_many(struct bench *b, weir_node n, uint32_t bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		submit(b, n, bytes);
}

/* Return how many requests of other tenants pass before one of n. */
static unsigned passes_before(struct bench *b, weir_node n)
{
	unsigned others = 0;

	while (again(b) != n)
		CHECK(++others < 100000);
	return others;
}

/* A tenant of little weight that was just served gets a large weight: it no longer waits for the
 * service it had at the small one. The same for a group, and for a tenant that is idle at that
 * moment. */
static void a_raised_weight_counts_at_once(bool group, unsigned depth)
{
	struct bench b = bench_new((struct weir_gate_config){.cost = WEIR_UNIT_BYTES, .window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1 / 1024.0), other = leaf(&b, WEIR_ROOT, 1);
	weir_node small = group ? leaf(&b, n, 1) : n;

	submit_many(&b, other, 1, 3);
	submit_many(&b, small, 1, depth);
	(void)passes_before(&b, small);
	knob(&b, n, WEIR_KNOB_WEIGHT, 1024);
	CHECK(passes_before(&b, small) <= 1);
	CHECK(passes_before(&b, small) <= 1);
	/* And back: it has had no more than its share. */
	knob(&b, n, WEIR_KNOB_WEIGHT, 1 / 1024.0);
	(void)passes_before(&b, small);
	CHECK(passes_before(&b, small) <= 5 * 1025);
	weir_gate_free(b.g);
}

static void a_raised_weight(void)
{
	for (unsigned depth = 1; depth <= 2; depth++) {
		a_raised_weight_counts_at_once(false, depth);
		a_raised_weight_counts_at_once(true, depth);
	}
}

/* ---- the service of a tenant that has almost all the weight */

#define MANY 64

/* A tenant of weight 1 is served alone, then many of weight 16 begin to wait, and after `rounds`
 * services one of weight 2^20. It is served at least once per 2 + K/s services. */
static void heavy_beside_many(unsigned rounds, bool banks)
{
	struct bench b = bench_new((struct weir_gate_config){.window = 1});

	if (banks) /* a limit that never binds, for writes only: the tenants only read */
		buckets(&b, WEIR_ROOT,
			&(struct weir_bucket_spec){.kind = WEIR_HOLD,
				.ops = 1 << WEIR_WRITE,
				.rate = 1e6,
				.size = 1e6},
			1);
	weir_node light = leaf(&b, WEIR_ROOT, 1), heavy = leaf(&b, WEIR_ROOT, 1 << 20);

	submit_many(&b, light, 0, 2);
	(void)again(&b);
	for (unsigned i = 0; i < MANY; i++)
		submit_many(&b, leaf(&b, WEIR_ROOT, 16), 0, 2);
	for (unsigned i = 0; i < rounds; i++)
		(void)again(&b);
	submit_many(&b, heavy, 0, 2);
	for (unsigned i = 0; i < 1500; i++) {
		unsigned others = passes_before(&b, heavy);

		if (others > 7)
			FAIL("the tenant that came after %u services waits for %u", rounds, others);
	}
	weir_gate_free(b.g);
}

static void the_heavy(void)
{
	for (unsigned rounds = 0; rounds < 1200; rounds += 16)
		heavy_beside_many(rounds, false);
}

/* The same where the lane keeps children apart by the kinds that they lack. */
static void the_heavy_of_a_bank(void)
{
	for (unsigned rounds = 0; rounds < 1200; rounds += 16)
		heavy_beside_many(rounds, true);
}

/* ---- law 6 for tenants that come and go, all of weight 1 */

#define TENANTS 12
#define DEPTH   4

static struct tenant {
	weir_node node;
	struct weir_req reqs[DEPTH];
	unsigned wants, has; /* outstanding requests */
	uint32_t least;      /* smallest cost; the largest is `most` */
	uint32_t most;
	double had;
} tenants[TENANTS];
static double least[TENANTS][TENANTS],
	most[TENANTS][TENANTS]; /* service more than the other's since both wait */

static void ask(struct bench *b, struct rng *rng, struct tenant *t, struct weir_req *r)
{
	double span = log2((double)t->most / t->least);

	*r = (struct weir_req){
		.tenant = t->node, .bytes = (uint32_t)(t->least * exp2(span * rng_double(rng)))};
	CHECK_INT(weir_gate_submit(b->g, b->now, &r, 1), 0);
	if (t->has++ > 0)
		return;
	unsigned i = (unsigned)(t - tenants);

	for (unsigned k = 0; k < TENANTS; k++) {
		least[i][k] = most[i][k] = t->had - tenants[k].had;
		least[k][i] = most[k][i] = -least[i][k];
	}
}

static void had(unsigned i, uint32_t cost)
{
	struct tenant *t = &tenants[i];

	t->had += cost;
	for (unsigned k = 0; k < TENANTS; k++) {
		double more = t->had - tenants[k].had;

		if (k == i || tenants[k].has == 0)
			continue;
		most[i][k] = fmax(most[i][k], more);
		least[k][i] = fmin(least[k][i], -more);
		if (most[i][k] - least[i][k] > 5.0 * ((double)t->most + tenants[k].most))
			FAIL("costs to %u and to %u: %g apart", t->most, tenants[k].most,
				most[i][k] - least[i][k]);
	}
}

static void step(struct bench *b, struct rng *rng)
{
	struct tenant *t = &tenants[rng_below(rng, TENANTS)];
	struct weir_req *r;

	b->now += WEIR_US;
	if (rng_below(rng, 10) == 0 && (t->wants || t->has == 0)) {
		t->wants = t->wants ? 0 : 1 + (unsigned)rng_below(rng, DEPTH);
		for (unsigned i = 0; i < t->wants; i++)
			ask(b, rng, t, &t->reqs[i]);
	}
	r = pass(b);
	if (!r)
		return;
	t = &tenants[r->tenant - tenants[0].node];
	had((unsigned)(t - tenants), r->bytes);
	t->has--;
	finish(b, r);
	if (t->has < t->wants)
		ask(b, rng, t, r);
}

static void those_that_come_and_go(void)
{
	for (unsigned seed = 1; seed <= 300; seed++) {
		struct bench b =
			bench_new((struct weir_gate_config){.cost = WEIR_UNIT_BYTES, .window = 1});
		struct rng rng;

		rng_init(&rng, seed, "late");
		for (unsigned i = 0; i < TENANTS; i++) {
			unsigned kind = (unsigned)rng_below(&rng, 4);
			uint32_t fixed = 1u << rng_below(&rng, 31);

			tenants[i] = (struct tenant){.node = leaf(&b, WEIR_ROOT, 1),
				.least = kind ? 1 : fixed,
				.most = kind == 0   ? fixed
					: kind == 1 ? 1
						    : LARGE};
		}
		for (unsigned i = 0; i < 3000; i++)
			step(&b, &rng);
		weir_gate_free(b.g);
	}
}

/* A request of 256 MiB pays for all its bytes: at equal weights 65,536 requests of 4 KiB pass between two of them. */
static void large_ones_pay_in_full(void)
{
	struct bench b = bench_new((struct weir_gate_config){.cost = WEIR_UNIT_BYTES, .window = 1});
	weir_node n = leaf(&b, WEIR_ROOT, 1), other = leaf(&b, WEIR_ROOT, 1);

	submit_many(&b, n, 256 << 20, 2);
	submit_many(&b, other, 4096, 2);
	(void)passes_before(&b, n);
	for (unsigned i = 0; i < 3; i++)
		CHECK_NEAR(passes_before(&b, n), 65536, 1e-4);
	weir_gate_free(b.g);
}

int main(void)
{
	RUN(large_ones_pay_in_full);
	RUN(a_raised_weight);
	RUN(the_heavy);
	RUN(the_heavy_of_a_bank);
	RUN(those_that_come_and_go);
	return 0;
}
