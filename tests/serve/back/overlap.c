/* SPDX-License-Identifier: BSD-3-Clause */
/* overlap: ranges that overlap are done one after the other, and all others at once. */
#include "serve/back/overlap.h"
#include "base/rng.h"
#include "test.h"
#include <stdbool.h>

static struct overlap o;

static void apart(void)
{
	struct overlap_range a, b, c;

	overlap_free(&o);
	overlap_init(&o);
	CHECK(overlap_enter(&o, &a, 0, 4096));
	CHECK(overlap_enter(&o, &b, 4096, 4096));
	CHECK(overlap_enter(&o, &c, 8192, UINT64_C(1) << 40)); /* too wide for the counters */
	CHECK(!overlap_leave(&o, &b));
	CHECK(!overlap_leave(&o, &a));
	CHECK(!overlap_leave(&o, &c));
}

static void within_a_block(void)
{
	struct overlap_range a, b;

	/* The counters report a possible overlap, the list none. */
	overlap_free(&o);
	overlap_init(&o);
	CHECK(overlap_enter(&o, &a, 0, 512));
	CHECK(overlap_enter(&o, &b, 512, 512));
	CHECK(!overlap_leave(&o, &a));
	CHECK(!overlap_leave(&o, &b));
}

static void in_order(void)
{
	struct overlap_range a, b, c, d;

	overlap_free(&o);
	overlap_init(&o);
	CHECK(overlap_enter(&o, &a, 0, 8192));
	CHECK(!overlap_enter(&o, &b, 4096, 8192)); /* waits for a */
	CHECK(!overlap_enter(&o, &c, 8192, 4096)); /* waits for b, although a is not in its way */
	CHECK(overlap_enter(&o, &d, 16384, 1));
	CHECK(overlap_leave(&o, &a) == &b && !b.next);
	CHECK(overlap_leave(&o, &b) == &c && !c.next);
	CHECK(!overlap_leave(&o, &c));
	CHECK(!overlap_leave(&o, &d));
}

static void behind_two(void)
{
	struct overlap_range a, b, c;

	/* c waits for the younger of both, and then for the other. */
	overlap_free(&o);
	overlap_init(&o);
	CHECK(overlap_enter(&o, &a, 0, 4096));
	CHECK(overlap_enter(&o, &b, 4096, 4096));
	CHECK(!overlap_enter(&o, &c, 0, 8192));
	CHECK(!overlap_leave(&o, &b));
	CHECK(overlap_leave(&o, &a) == &c);
	CHECK(!overlap_leave(&o, &c));
}

static void wide_ones(void)
{
	struct overlap_range wide, a, b;

	overlap_free(&o);
	overlap_init(&o);
	CHECK(overlap_enter(&o, &a, 1 << 20, 4096));
	CHECK(!overlap_enter(&o, &wide, 0, 1 << 30));
	CHECK(!overlap_enter(&o, &b, 5 << 20, 4096));
	CHECK(overlap_leave(&o, &a) == &wide);
	CHECK(overlap_leave(&o, &wide) == &b);
	CHECK(!overlap_leave(&o, &b));
}

/* Against the plain rule: a range starts when no older one that it overlaps is inside. */

#define RANGES 64
#define STEPS  200000

struct item {
	struct overlap_range r; /* first */
	uint64_t age;
	bool inside, goes;
};

static bool may_go(const struct item *items, const struct item *x)
{
	for (int i = 0; i < RANGES; i++)
		if (items[i].inside && items[i].age < x->age && items[i].r.offset < x->r.end &&
			x->r.offset < items[i].r.end)
			return false;
	return true;
}

static void random_ranges(void)
{
	static struct item items[RANGES];
	struct rng rng;
	uint64_t age = 0;

	rng_init(&rng, 1, "overlap");
	overlap_free(&o);
	overlap_init(&o);
	for (int step = 0; step < STEPS; step++) {
		struct item *x = &items[rng_below(&rng, RANGES)];

		if (!x->inside) {
			uint64_t block = rng_below(&rng, 4) ? 512 : 65536;
			x->inside = true;
			x->age = age++;
			x->goes = overlap_enter(&o, &x->r, rng_below(&rng, 256) * block,
				(1 + rng_below(&rng, 20)) * block);
			CHECK_INT(x->goes, may_go(items, x));
		} else if (x->goes) {
			struct overlap_range *r = overlap_leave(&o, &x->r);
			x->inside = x->goes = false;
			for (; r; r = r->next) {
				struct item *y = (struct item *)(void *)r;
				CHECK(!y->goes);
				y->goes = true;
			}
			for (int i = 0; i < RANGES; i++)
				CHECK(!items[i].inside ||
					items[i].goes == may_go(items, &items[i]));
		}
	}
	CHECK(age > STEPS / 8);
}

int main(void)
{
	RUN(apart);
	RUN(within_a_block);
	RUN(in_order);
	RUN(behind_two);
	RUN(wide_ones);
	RUN(random_ranges);
	return 0;
}
