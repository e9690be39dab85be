/* SPDX-License-Identifier: BSD-3-Clause */
/* cover: a part that comes twice is detected, at any offset and for any order of the parts. */
#include "serve/back/cover.h"
#include "base/rng.h"
#include "test.h"
#include <errno.h>
#include <stdbool.h>

#define LENGTH 1000u

static void one_run(void)
{
	struct cover c = {0};

	/* A part that touches the run needs no memory. */
	CHECK_INT(cover_add(&c, LENGTH, 400, 100), 0);
	CHECK_INT(cover_add(&c, LENGTH, 500, 1), 0);
	CHECK_INT(cover_add(&c, LENGTH, 501, 499), 0);
	CHECK_INT(cover_add(&c, LENGTH, 0, 400), 0);
	CHECK(!c.bits);
	CHECK_INT(cover_add(&c, LENGTH, 0, 1), -EEXIST);
	CHECK_INT(cover_add(&c, LENGTH, 999, 1), -EEXIST);
	cover_clear(&c);
	CHECK_INT(cover_add(&c, LENGTH, 0, LENGTH), 0);
	CHECK(!c.bits);
	CHECK_INT(cover_add(&c, LENGTH, 0, LENGTH), -EEXIST);
	cover_clear(&c);
}

static void twice(void)
{
	static const struct {
		uint32_t at, n;
	} bad[] = {{100, 100}, {199, 1}, {100, 1}, {50, 51}, {199, 10}, {0, 1000}, {320, 64}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (int gap = 0; gap < 2; gap++) {
			struct cover c = {0};

			if (!gap && bad[i].at == 320)
				continue;
			CHECK_INT(cover_add(&c, LENGTH, 100, 100), 0);
			if (gap)
				CHECK_INT(cover_add(&c, LENGTH, 320, 64), 0); /* a whole word */
			CHECK(!c.bits == !gap);
			CHECK_INT(cover_add(&c, LENGTH, bad[i].at, bad[i].n), -EEXIST);
			/* The refused part changed nothing. */
			CHECK_INT(cover_add(&c, LENGTH, 0, 100), 0);
			CHECK_INT(cover_add(&c, LENGTH, 200, 120), 0);
			cover_clear(&c);
		}
}

/* Against one flag per byte: parts at random, and then those that are still missing. */
static void any_order(void)
{
	struct rng rng;

	rng_init(&rng, 1, "cover");
	for (int round = 0; round < 100; round++) {
		bool have[LENGTH] = {false};
		uint32_t length = 1 + (uint32_t)rng_below(&rng, LENGTH);
		struct cover c = {0};

		for (int i = 0; i < 50; i++) {
			uint32_t at = (uint32_t)rng_below(&rng, length), n = 0;
			uint32_t most = 1 + (uint32_t)rng_below(&rng, 200);
			bool new = true;

			for (; n < most && at + n < length; n++)
				new &= !have[at + n];
			CHECK_INT(cover_add(&c, length, at, n), new ? 0 : -EEXIST);
			memset(have + at, true, new ? n : 0);
		}
		for (uint32_t i = 0; i < length; i++)
			CHECK_INT(cover_add(&c, length, i, 1), have[i] ? -EEXIST : 0);
		CHECK_INT(cover_add(&c, length, 0, length), -EEXIST);
		cover_clear(&c);
	}
}

int main(void)
{
	RUN(one_run);
	RUN(twice);
	RUN(any_order);
	return 0;
}
