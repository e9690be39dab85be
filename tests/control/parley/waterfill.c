/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Water-filling against exact rational arithmetic.
 *
 * The reference satiates one node after another, as the paper describes it, with fractions of
 * 128-bit integers; it shares no code with the passes.
 */
#include "control/parley/waterfill.h"
#include "base/rng.h"
#include "control/parley/waterfill-impl.h"
#include "test.h"

#define TREES 10000
#define NODES 400
#define LARGE 5000

/* ---- fractions */

__extension__ typedef __int128 wide;
struct fraction {
	wide over, under; /* under > 0, no common factor */
};

static struct fraction fraction(wide over, wide under)
{
	wide a = over < 0 ? -over : over, b = under;

	while (b) {
		wide c = a % b;

		a = b;
		b = c;
	}
	return a ? (struct fraction){over / a, under / a} : (struct fraction){0, 1};
}

static struct fraction plus(struct fraction a, struct fraction b)
{
	return fraction(a.over * b.under + b.over * a.under, a.under * b.under);
}

static struct fraction times(struct fraction a, wide over, wide under)
{
	return fraction(a.over * over, a.under * under);
}

static struct fraction minus(struct fraction a, struct fraction b)
{
	return plus(a, times(b, -1, 1));
}

static bool less(struct fraction a, struct fraction b)
{
	return a.over * b.under < b.over * a.under;
}

static struct fraction smaller(struct fraction a, struct fraction b)
{
	return less(a, b) ? a : b;
}

static double as_double(struct fraction a)
{
	return (double)a.over / (double)a.under;
}

/* ---- a random tree, as integers and as the arrays of the code under test */

struct tree {
	size_t n;
	int64_t min[NODES], max[NODES], demand[NODES], weight[NODES]; /* max < 0: none */
	uint32_t first[NODES], many[NODES], parent[NODES];
	size_t parents;
	struct fraction g[NODES], u[NODES], rate[NODES];
	bool scaled;
};

static void add_children(struct tree *t, struct rng *r, uint32_t parent)
{
	uint32_t n = 1 + (uint32_t)rng_below(r, 6);

	t->parent[t->parents++] = parent;
	t->first[parent] = (uint32_t)t->n;
	t->many[parent] = n;
	for (uint32_t i = 0; i < n; i++) {
		size_t k = t->n++;

		t->min[k] = rng_below(r, 3) ? 0 : (int64_t)rng_below(r, 40);
		t->max[k] = rng_below(r, 2) ? -1 : (int64_t)rng_below(r, 100);
		t->weight[k] = 1 + (int64_t)rng_below(r, 7);
		t->demand[k] = rng_below(r, 4) ? (int64_t)rng_below(r, 100) : 0;
		t->many[k] = t->first[k] = 0;
	}
}

/* In breadth-first order, three levels below the root at most. */
static void make_tree(struct tree *t, struct rng *r)
{
	size_t from = 0, to = 1;

	*t = (struct tree){.n = 1, .max = {rng_below(r, 2) ? -1 : (int64_t)rng_below(r, 300)}};
	t->weight[0] = 1;
	for (int depth = 0; depth < 3; depth++) {
		for (size_t i = from; i < to; i++)
			if (depth == 0 || rng_below(r, 2))
				add_children(t, r, (uint32_t)i);
		from = to;
		to = t->n;
	}
}

/* ---- the reference */

static void reference_up(struct tree *t)
{
	for (size_t i = t->n; i-- > 0;) {
		struct fraction u = {0, 1}, g = {0, 1}, min = {t->min[i], 1};

		for (uint32_t k = 0; k < t->many[i]; k++) {
			u = plus(u, t->u[t->first[i] + k]);
			g = plus(g, t->g[t->first[i] + k]);
		}
		if (!t->many[i])
			u = (struct fraction){t->demand[i], 1};
		t->u[i] = t->max[i] < 0 ? u : smaller(u, (struct fraction){t->max[i], 1});
		t->g[i] = smaller(less(g, min) ? min : g, t->u[i]);
	}
}

/* Give each child its guarantee, then raise all that are not full until one more is, and so on. */
static void reference_level(struct tree *t, size_t parent)
{
	struct fraction rest = t->rate[parent], sum = {0, 1};
	size_t at = t->first[parent], n = t->many[parent];

	for (size_t i = at; i < at + n; i++)
		sum = plus(sum, t->g[i]);
	for (size_t i = at; i < at + n; i++)
		t->rate[i] = less(rest, sum) ? fraction(t->g[i].over * rest.over * sum.under,
						       t->g[i].under * rest.under * sum.over)
					     : t->g[i];
	if (less(rest, sum)) {
		t->scaled = true;
		return;
	}
	rest = minus(rest, sum);
	while (rest.over > 0) {
		struct fraction step = {-1, 1};
		wide weights = 0;

		for (size_t i = at; i < at + n; i++)
			weights += less(t->rate[i], t->u[i]) ? t->weight[i] : 0;
		if (!weights)
			return;
		step = times(rest, 1, weights);
		for (size_t i = at; i < at + n; i++)
			if (less(t->rate[i], t->u[i]))
				step = smaller(
					step, times(minus(t->u[i], t->rate[i]), 1, t->weight[i]));
		for (size_t i = at; i < at + n; i++)
			if (less(t->rate[i], t->u[i]))
				t->rate[i] = plus(t->rate[i], times(step, t->weight[i], 1));
		rest = minus(rest, times(step, weights, 1));
	}
}

static void reference(struct tree *t, int64_t capacity)
{
	reference_up(t);
	t->rate[0] = smaller(t->u[0], (struct fraction){capacity, 1});
	for (size_t i = 0; i < t->n; i++)
		if (t->many[i])
			reference_level(t, i);
}

/* ---- the code under test */

struct arrays {
	double min[NODES], max[NODES], want[NODES], weight[NODES], rate[NODES], base[NODES];
	double room[NODES], kept[2 * NODES], given[NODES], least[NODES];
};

static bool run_tree(const struct tree *t, struct arrays *a, int64_t capacity)
{
	struct waterfill_tree of = {.parent = t->parent,
		.parents = t->parents,
		.first = t->first,
		.many = t->many,
		.min = a->min,
		.least = a->least,
		.want = a->want,
		.given = a->given,
		.all = {.n = t->n,
			.min = a->least,
			.max = a->max,
			.demand = a->want,
			.weight = a->weight,
			.rate = a->rate,
			.base = a->base,
			.room = a->room,
			.kept = a->kept}};

	for (size_t i = 0; i < t->n; i++) {
		a->min[i] = a->least[i] = (double)t->min[i];
		a->max[i] = t->max[i] < 0 ? HUGE_VAL : (double)t->max[i];
		a->want[i] = (double)t->demand[i];
		a->weight[i] = (double)t->weight[i];
	}
	waterfill_tree(&of, (double)capacity);
	return waterfill_tree(&of, (double)capacity); /* a second time: from its own outputs */
}

static void equals_exact_arithmetic(void)
{
	static struct arrays a;
	static struct tree t;
	unsigned scaled = 0, limited = 0;
	struct rng r;

	rng_init(&r, 1, "waterfill-trees");
	for (int k = 0; k < TREES; k++) {
		int64_t capacity = (int64_t)rng_below(&r, 500);

		make_tree(&t, &r);
		reference(&t, capacity);
		CHECK_INT(run_tree(&t, &a, capacity), t.scaled);
		scaled += t.scaled;
		limited += less(t.rate[0], t.u[0]);
		for (size_t i = 0; i < t.n; i++)
			if (!(fabs(a.rate[i] - as_double(t.rate[i])) <=
				    1e-9 * (1 + as_double(t.rate[i]))))
				FAIL("tree %d, node %zu: %.17g, not %.17g", k, i, a.rate[i],
					as_double(t.rate[i]));
	}
	CHECK(scaled > TREES / 20 && limited > TREES / 5);
}

/* ---- one level, large: the laws themselves */

struct level {
	double min[LARGE], max[LARGE], demand[LARGE], weight[LARGE], rate[LARGE], base[LARGE];
	double room[LARGE], kept[2 * LARGE];
};

static struct waterfill waterfill_of(struct level *l, size_t n)
{
	return (struct waterfill){.n = n,
		.min = l->min,
		.max = l->max,
		.demand = l->demand,
		.weight = l->weight,
		.rate = l->rate,
		.base = l->base,
		.room = l->room,
		.kept = l->kept};
}

/* Sizes of nodes: even, many orders of magnitude apart, or a few giants. */
enum shape { EVEN, WIDE, GIANTS, STEPS, SHAPES };

static double size(struct rng *r, enum shape shape, size_t i, size_t n)
{
	switch (shape) {
	case WIDE:
		return exp(40 * rng_double(r) - 20);
	case GIANTS:
		return rng_below(r, 100) ? rng_double(r) : 1e9 * rng_double(r);
	case STEPS:
		return ldexp(1, (int)(200.0 * (double)i / (double)n)); /* Newton's worst */
	default:
		return rng_double(r) * 10;
	}
}

static double make_level(struct level *l, struct rng *r, size_t n, enum shape shape)
{
	double want = 0;

	for (size_t i = 0; i < n; i++) {
		l->demand[i] = size(r, shape, i, n);
		l->min[i] = rng_below(r, 4) ? 0 : l->demand[i] * rng_double(r);
		l->max[i] = rng_below(r, 2) ? HUGE_VAL : l->demand[i] * 2 * rng_double(r);
		l->weight[i] = shape == STEPS ? 1 / l->demand[i] : size(r, shape, i, n) + 1e-6;
		want += l->demand[i] < l->max[i] ? l->demand[i] : l->max[i];
		if (rng_below(r, 50) == 0 && shape != STEPS)
			l->demand[i] = HUGE_VAL;
	}
	return want;
}

static double most(const struct level *l, size_t i)
{
	return l->demand[i] < l->max[i] ? l->demand[i] : l->max[i];
}

/* No node exceeds its max or demand or has less than its guarantee, the capacity is used and not
 * exceeded, and of the nodes that want more none has more excess for its weight than another. */
static void check_level(const struct level *l, size_t n, double capacity)
{
	double sum = 0, low = HUGE_VAL, high = 0;
	bool all = true;

	for (size_t i = 0; i < n; i++) {
		double use = most(l, i), g = l->min[i] < use ? l->min[i] : use;
		double level = (l->rate[i] - g) / l->weight[i];
		double error = 1e-13 * l->rate[i] / l->weight[i]; /* rounding of the difference */

		CHECK(l->rate[i] <= use * (1 + 1e-15) && l->rate[i] >= g);
		sum += l->rate[i];
		if (level - error > high)
			high = level - error;
		if (l->rate[i] < use * (1 - 1e-12)) {
			all = false;
			if (level + error < low)
				low = level + error;
		}
	}
	CHECK(sum <= capacity * (1 + 1e-11));
	CHECK(all || sum >= capacity * (1 - 1e-11));
	CHECK(all || high <= low);
}

static double guarantees(const struct level *l, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += l->min[i] < most(l, i) ? l->min[i] : most(l, i);
	return sum;
}

static void keeps_its_laws_on_every_shape(void)
{
	static struct level l;
	struct rng r;

	rng_init(&r, 2, "waterfill-level");
	for (int k = 0; k < 400; k++) {
		size_t n = k % 3 ? 1 + rng_below(&r, 40) : 1 + rng_below(&r, LARGE);
		double want = make_level(&l, &r, n, (enum shape)(k % SHAPES));
		double low = guarantees(&l, n);
		double capacity = low + (want - low) * rng_double(&r) * 1.2;
		struct waterfill f = waterfill_of(&l, n);

		waterfill(&f, capacity);
		CHECK(!f.scaled);
		check_level(&l, n, capacity);
	}
}

static void changes_give_the_same_as_a_new_start(void)
{
	static struct level l;
	static double rate[LARGE];
	struct waterfill f;
	struct rng r;

	rng_init(&r, 3, "waterfill-again");
	for (int k = 0; k < 40; k++) {
		size_t n = 1 + rng_below(&r, LARGE);
		double capacity = make_level(&l, &r, n, EVEN) * rng_double(&r);

		f = waterfill_of(&l, n);
		waterfill(&f, capacity);
		for (int step = 0; step < 20; step++) {
			uint32_t changed[50];
			size_t many = rng_below(&r, 50);

			for (size_t i = 0; i < many; i++) {
				changed[i] = (uint32_t)rng_below(&r, n);
				l.demand[changed[i]] =
					rng_below(&r, 20) ? rng_double(&r) * 10 : HUGE_VAL;
			}
			if (rng_below(&r, 4) == 0)
				capacity *= 0.5 + rng_double(&r);
			waterfill_again(&f, capacity, changed, many);
			memcpy(rate, l.rate, n * sizeof(*rate));
			struct waterfill fresh = waterfill_of(&l, n);
			waterfill(&fresh, capacity);
			CHECK_INT(f.scaled, fresh.scaled);
			for (size_t i = 0; i < n; i++)
				if (!(fabs(rate[i] - l.rate[i]) <= 1e-9 * (1 + l.rate[i])))
					FAIL("%d.%d: node %zu of %zu has %.17g, not %.17g", k, step,
						i, n, rate[i], l.rate[i]);
		}
	}
}

/* ---- edges */

static void edges(void)
{
	static struct level l = {.min = {6}, .demand = {20, 1, 20}, .weight = {1, 1, 1}};
	struct waterfill f = waterfill_of(&l, 3);

	for (int i = 0; i < 3; i++)
		l.max[i] = HUGE_VAL;
	waterfill(&f, 10); /* the example of the header */
	CHECK_NEAR(l.rate[0], 7.5, 1e-12);
	CHECK_NEAR(l.rate[1], 1, 1e-12);
	CHECK_NEAR(l.rate[2], 1.5, 1e-12);
	waterfill(&f, 3); /* below the guarantee */
	CHECK(f.scaled && l.rate[0] == 3 && l.rate[1] == 0);
	waterfill(&f, 0);
	CHECK(f.scaled && l.rate[0] == 0);
	waterfill(&f, 41);
	CHECK(!f.scaled && f.level == HUGE_VAL && l.rate[0] == 20 && l.rate[2] == 20);
	l.demand[0] = l.demand[2] = HUGE_VAL;
	waterfill(&f, 10);
	CHECK_NEAR(l.rate[2], 1.5, 1e-12);
	l.max[1] = l.demand[1] = 0;
	l.max[0] = l.max[2] = 0;
	waterfill(&f, 10);
	CHECK(l.rate[0] == 0 && l.rate[1] == 0 && l.rate[2] == 0);
	f.n = 0;
	waterfill(&f, 10);
}

/* Both variants of the passes give the same sums, whatever the number of nodes. */
static void passes_agree(void)
{
#if defined(__x86_64__)
	const struct waterfill_passes *a = &waterfill_passes_plain, *b = &waterfill_passes_avx2;
	static struct level l, m;
	struct rng r;

	if (!__builtin_cpu_supports("avx2"))
		return;
	rng_init(&r, 4, "waterfill-passes");
	for (size_t n = 0; n < 70; n++) {
		struct waterfill_sums x, y;
		struct waterfill f, g;
		size_t many;

		make_level(&l, &r, n, EVEN);
		m = l;
		f = waterfill_of(&l, n);
		g = waterfill_of(&m, n);
		x = a->prepare(&f);
		y = b->prepare(&g);
		CHECK(x.given == y.given && x.full == y.full);
		x = a->finish(&f, 0.7);
		y = b->finish(&g, 0.7);
		CHECK(x.given == y.given && x.full == y.full && x.dry == y.dry);
		CHECK(memcmp(l.rate, m.rate, n * sizeof(*l.rate)) == 0);
		y = b->sums(m.room, m.weight, n, 0.7);
		CHECK(x.full == y.full && x.dry == y.dry);
		many = a->between(l.room, l.weight, n, 0.5, 1, l.kept, &x);
		CHECK_INT(b->between(m.room, m.weight, n, 0.5, 1, m.kept, &y), many);
		CHECK(x.full == y.full && x.dry == y.dry);
		CHECK(memcmp(l.kept, m.kept, many * sizeof(*l.kept)) == 0);
		CHECK(memcmp(l.kept + n, m.kept + n, many * sizeof(*l.kept)) == 0);
	}
#endif
}

int main(void)
{
	RUN(equals_exact_arithmetic);
	RUN(keeps_its_laws_on_every_shape);
	RUN(changes_give_the_same_as_a_new_start);
	RUN(edges);
	RUN(passes_agree);
	return 0;
}
