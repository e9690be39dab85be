/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Law 7: submits of different tenants before one weir_gate_next may be permuted without changing
 * which requests pass. Two gates get the same tree, knobs, times and requests; between two calls of
 * next, the second gets the submits of different tenants in another order, and in other batches.
 * The requests that pass, their order and class, must be the same to the end. All three orders,
 * many and few children.
 *
 * Also the comparison orders themselves: FIFO and EDF pass requests in the order of sorted heads.
 */
#include "law.h"

#define LEAVES 200
#define DEPTH  8 /* requests per leaf */
#define ROUND  256

struct pair {
	struct weir_gate *g[2];
	weir_node leaves[LEAVES], inner[8];
	unsigned n, n_inner;
	struct weir_req reqs[2][LEAVES * DEPTH], *inside[2][LEAVES * DEPTH];
	unsigned idle[LEAVES * DEPTH], n_idle, n_inside;
	weir_time now;
	enum weir_order order;
};

/* ---- applied to both */

static void both_knobs(struct pair *p, const struct weir_knob *k, size_t n)
{
	for (unsigned who = 0; who < 2; who++)
		law_set(p->g[who], p->now, k, n);
}

static weir_node both_add(struct pair *p, weir_node parent)
{
	weir_node a, b;

	CHECK_INT(weir_gate_add(p->g[0], parent, &a), 0);
	CHECK_INT(weir_gate_add(p->g[1], parent, &b), 0);
	CHECK_INT(a, b);
	return a;
}

static void any_knob(struct pair *p, weir_node leaf)
{
	struct weir_bucket_spec specs[3];
	struct weir_knob k = {.node = leaf, .kind = WEIR_KNOB_BUCKETS, .buckets = specs};

	switch (law_below(4)) {
	case 0:
		k.kind = WEIR_KNOB_WEIGHT;
		k.value = law_chance(0.5) ? (double)law_between(1, 4) : law_log(0.125, 1000);
		break;
	case 1:
		k.kind = WEIR_KNOB_PRIORITY;
		k.value = (double)law_below(3);
		break;
	case 2:
		k.kind = p->order == WEIR_EDF ? WEIR_KNOB_DEADLINE : WEIR_KNOB_WEIGHT;
		k.value = (double)law_between(1, 50);
		break;
	default:
		k.n_buckets = (uint32_t)law_below(4);
		for (unsigned i = 0; i < k.n_buckets; i++)
			specs[i] = (struct weir_bucket_spec){
				.kind = (enum weir_bucket_kind)law_below(4),
				.unit = (enum weir_unit)law_below(2),
				.rate = law_log(1e3, 1e7),
				.size = ceil(law_log(1, 1e4))};
	}
	both_knobs(p, &k, 1);
}

static void shared_bucket(struct pair *p, weir_node inner)
{
	struct weir_bucket_spec spec = {.rate = law_log(1e4, 1e6), .size = ceil(law_log(1, 100))};

	both_knobs(p,
		&(struct weir_knob){
			.node = inner, .kind = WEIR_KNOB_BUCKETS, .buckets = &spec, .n_buckets = 1},
		1);
}

/* ---- a round: submits in two orders, then one call of next on both */

/* Make another order that keeps each tenant's own order. */
static void permute(unsigned *out, const unsigned *in, unsigned n, const struct pair *p)
{
	unsigned at[ROUND];

	for (unsigned i = 0; i < n; i++)
		at[i] = i;
	for (unsigned i = n; i > 1; i--) {
		unsigned j = (unsigned)law_below(i), t = at[i - 1];

		at[i - 1] = at[j];
		at[j] = t;
	}
	/* Shuffle the positions; then fill each tenant's positions in its own order. */
	bool used[ROUND] = {false};

	for (unsigned i = 0; i < n; i++) {
		weir_node tenant = p->reqs[0][in[at[i]]].tenant;
		unsigned k = 0;

		while (used[k] || p->reqs[0][in[k]].tenant != tenant)
			k++;
		used[k] = true;
		out[i] = in[k];
	}
}

static void submit(struct pair *p, unsigned who, const unsigned *which, unsigned n)
{
	while (n) {
		struct weir_req *batch[ROUND];
		unsigned take = (unsigned)law_between(1, n);

		for (unsigned i = 0; i < take; i++)
			batch[i] = &p->reqs[who][which[i]];
		CHECK_INT(weir_gate_submit(p->g[who], p->now, batch, take), 0);
		which += take;
		n -= take;
		law_operations += take;
	}
}

static void arrive(struct pair *p, unsigned most)
{
	unsigned which[ROUND], other[ROUND], n = 0;

	while (n < most && p->n_idle) {
		unsigned i = p->idle[--p->n_idle];

		p->reqs[0][i] = (struct weir_req){.tenant = p->leaves[law_below(p->n)],
			.bytes = (uint32_t)law_log(1, 1e5),
			.requests = (uint32_t)law_between(0, 3),
			.offset = law_below(1 << 16),
			.deadline = law_chance(0.5) ? 0 : (uint32_t)law_between(1, 40),
			.op = (uint8_t)law_below(5)};
		p->reqs[1][i] = p->reqs[0][i];
		which[n++] = i;
	}
	permute(other, which, n, p);
	submit(p, 0, which, n);
	submit(p, 1, other, n);
}

static void pass(struct pair *p, size_t most)
{
	struct weir_req *out[2][64];
	size_t n = weir_gate_next(p->g[0], p->now, out[0], most);

	CHECK_INT(weir_gate_next(p->g[1], p->now, out[1], most), n);
	for (size_t i = 0; i < n; i++) {
		unsigned a = (unsigned)(out[0][i] - p->reqs[0]),
			 b = (unsigned)(out[1][i] - p->reqs[1]);

		if (a != b)
			FAIL("at %lld the %zu. of %zu is of node %u, or of %u after a permutation",
				(long long)p->now, i, n, out[0][i]->tenant, out[1][i]->tenant);
		CHECK_INT(out[1][i]->class_, out[0][i]->class_);
		p->inside[0][p->n_inside] = out[0][i];
		p->inside[1][p->n_inside++] = out[1][i];
	}
	law_operations += 2 * n;
}

static void finish(struct pair *p)
{
	unsigned i = (unsigned)law_below(p->n_inside);

	p->idle[p->n_idle++] = (unsigned)(p->inside[0][i] - p->reqs[0]);
	p->n_inside--;
	for (unsigned who = 0; who < 2; who++) {
		weir_gate_done(p->g[who], p->now, &p->inside[who][i], 1);
		p->inside[who][i] = p->inside[who][p->n_inside];
	}
	law_operations += 2;
}

static void permuted_case(unsigned number, unsigned rounds)
{
	struct pair *p = calloc(1, sizeof *p);
	struct weir_gate_config config = {.order = (enum weir_order)(number % 3),
		.cost = (enum weir_unit)law_below(2),
		.window = (double)law_between(1, 60),
		.run = law_chance(0.7) ? 0 : 4,
		.run_distance = 30000,
		.credit = law_chance(0.7) ? 0 : 1000};

	CHECK(p);
	p->order = config.order;
	for (unsigned who = 0; who < 2; who++)
		CHECK_INT(weir_gate_new(&config, &p->g[who]), 0);
	p->inner[p->n_inner++] = WEIR_ROOT;
	while (p->n_inner < law_between(1, 5))
		p->inner[p->n_inner] = both_add(p, p->inner[law_below(p->n_inner)]), p->n_inner++;
	p->n = (unsigned)(number % 2 ? law_between(2, 30) : law_between(100, LEAVES));
	for (unsigned i = 0; i < p->n; i++)
		p->leaves[i] = both_add(p, p->inner[i < p->n_inner ? i : law_below(p->n_inner)]);
	for (unsigned i = 0; i < LEAVES * DEPTH; i++)
		p->idle[p->n_idle++] = i;
	for (unsigned i = 0; i < rounds; i++) {
		arrive(p, (unsigned)law_between(1, law_chance(0.1) ? ROUND : 16));
		pass(p, law_between(1, 64));
		while (p->n_inside && law_chance(0.9))
			finish(p);
		if (law_chance(0.1))
			any_knob(p, p->leaves[law_below(p->n)]);
		if (law_chance(0.01))
			shared_bucket(p, p->inner[law_below(p->n_inner)]);
		p->now += (weir_time)law_log(1, 1e5);
	}
	for (unsigned who = 0; who < 2; who++)
		weir_gate_free(p->g[who]);
	free(p);
}

/* ---- FIFO and EDF against sorting */

static void sorted_case(unsigned number)
{
	static struct weir_req reqs[400];
	struct weir_req *left[400];
	struct weir_gate_config config = {
		.order = number % 2 ? WEIR_EDF : WEIR_FIFO, .window = 400};
	weir_node leaves[10];
	weir_time now = 0;
	unsigned n = 0;
	struct weir_gate *g;

	CHECK_INT(weir_gate_new(&config, &g), 0);
	for (unsigned i = 0; i < 10; i++) {
		weir_node parent = WEIR_ROOT;

		if (i % 3) /* at different depths */
			CHECK_INT(weir_gate_add(g, WEIR_ROOT, &parent), 0);
		leaves[i] = law_leaf(g, parent, law_log(0.125, 1000)); /* weights have no effect */
	}
	for (; n < 400; n++) {
		left[n] = &reqs[n];
		reqs[n] = (struct weir_req){.tenant = leaves[law_below(10)],
			.bytes = (uint32_t)law_log(1, 1e6),
			.deadline = (uint32_t)law_between(1, 1000)};
		CHECK_INT(weir_gate_submit(g, now, &left[n], 1), 0);
		now += (weir_time)law_between(1, 10000);
		law_operations++;
	}
	while (n) {
		struct weir_req *r;
		unsigned at = 0;
		weir_time key = WEIR_NEVER;

		CHECK_INT(weir_gate_next(g, now, &r, 1), 1);
		for (unsigned i = 0; i < n; i++) { /* the smallest key among the heads */
			weir_time k =
				left[i]->submitted + (number % 2 ? left[i]->deadline * WEIR_US : 0);
			bool head = true;

			for (unsigned j = 0; j < i; j++)
				head &= left[j]->tenant != left[i]->tenant;
			if (head && k < key)
				key = k;
		}
		weir_time got = r->submitted + (number % 2 ? r->deadline * WEIR_US : 0);

		if (got != key)
			FAIL("%lld passed before %lld", (long long)got, (long long)key);
		while (left[at] != r)
			at++;
		memmove(&left[at], &left[at + 1], (--n - at) * sizeof *left);
		law_operations++;
	}
	weir_gate_free(g);
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "law-order");
	for (unsigned i = 0; i < 120; i++) {
		law_case("permuted", i);
		permuted_case(i, 1000);
	}
	for (unsigned i = 0; i < 6; i++) {
		law_case("sorted", i);
		sorted_case(i);
	}
	return law_end(1200000);
}
