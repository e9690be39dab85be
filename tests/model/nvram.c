/* SPDX-License-Identifier: BSD-3-Clause */
/* nvram: compared with a plain array of bits, over random writes and destages. */
#include "model/nvram.h"
#include "base/rng.h"
#include "test.h"

#define UNITS  3
#define UNIT   4096
#define GRAIN  (UNIT / 64)
#define GROUPS 5000 /* more than one word at two levels of the bitmap */
#define SIZE   ((uint64_t)GROUPS * UNITS * UNIT)

static bool plain[SIZE / GRAIN];

static void ranges_and_bytes(void)
{
	struct nvram_range r[UNITS];
	struct nvram n;
	uint64_t group;

	CHECK_INT(nvram_init(&n, GROUPS, UNITS, UNIT, 1 << 20), 0);
	/* The end of one stripe and the start of the next. */
	CHECK(nvram_write(&n, 7 * UNITS * UNIT - 100, 200));
	CHECK_INT(n.dirty, 2 * 128);
	CHECK(nvram_write(&n, 7 * UNITS * UNIT + 2 * UNIT + 640, 64));
	CHECK_INT(n.n_dirty, 2);
	CHECK(nvram_holds(&n, 7 * UNITS * UNIT - 128, 256));
	CHECK(!nvram_holds(&n, 7 * UNITS * UNIT - 129, 2));
	CHECK(!nvram_holds(&n, 0, 1));
	CHECK_INT(nvram_take(&n, &group, r), 128);
	CHECK_INT(group, 6);
	CHECK(r[0].from == r[0].to && r[1].from == r[1].to);
	CHECK_INT(r[2].from, UNIT - 128);
	CHECK_INT(r[2].to, UNIT);
	CHECK(!nvram_holds(&n, 7 * UNITS * UNIT - 100, 10)); /* taken */
	CHECK_INT(nvram_take(&n, &group, r), 128 + 64);
	CHECK_INT(group, 7);
	CHECK_INT(r[0].to, 128);
	CHECK_INT(r[2].from, 640);
	CHECK_INT(r[2].to, 704);
	CHECK_INT(n.n_dirty, 0);
	CHECK_INT(n.dirty, 2 * 128 + 64); /* until released */
	nvram_release(&n, 128);
	nvram_release(&n, 128 + 64);
	CHECK_INT(n.dirty, 0);
	nvram_free(&n);
}

static void no_room_takes_nothing(void)
{
	struct nvram_range r[UNITS];
	struct nvram n;
	uint64_t group, bytes;

	CHECK_INT(nvram_init(&n, GROUPS, UNITS, UNIT, 8192), 0);
	CHECK(nvram_write(&n, 0, 8000));
	CHECK(!nvram_write(&n, 3 * UNIT, 200));
	CHECK(!nvram_holds(&n, 3 * UNIT, 200));
	CHECK(nvram_write(&n, 5 * UNIT, 128));
	bytes = nvram_take(&n, &group, r);
	CHECK(!nvram_write(&n, 3 * UNIT, 200)); /* still being destaged */
	nvram_release(&n, bytes);
	CHECK(nvram_write(&n, 3 * UNIT, 200));
	/* Larger than the whole cache: accepted only when empty. */
	CHECK(!nvram_write(&n, 0, 100000));
	while (n.n_dirty)
		nvram_release(&n, nvram_take(&n, &group, r));
	CHECK(nvram_write(&n, 0, 100000));
	CHECK(nvram_holds(&n, 0, 100000));
	nvram_free(&n);
}

static void agrees_with_plain_bits(void)
{
	struct nvram_range ranges[UNITS];
	uint64_t count = 0;
	struct nvram n;
	struct rng r;

	CHECK_INT(nvram_init(&n, GROUPS, UNITS, UNIT, 1 << 20), 0);
	rng_init(&r, 1, "nvram");
	for (int step = 0; step < 60000; step++) {
		uint64_t offset = rng_below(&r, SIZE - 30000), bytes = 1 + rng_below(&r, 30000);
		uint64_t first = offset / GRAIN, last = (offset + bytes - 1) / GRAIN, group;
		bool all = true;

		for (uint64_t g = first; g <= last; g++)
			all = all && plain[g];
		CHECK(nvram_holds(&n, offset, bytes) == all);
		if (nvram_write(&n, offset, bytes)) {
			for (uint64_t g = first; g <= last; g++) {
				count += !plain[g];
				plain[g] = true;
			}
		} else {
			uint64_t freed = 0, taken;

			CHECK(n.dirty + (last - first + 1) * GRAIN > n.capacity);
			taken = nvram_take(&n, &group, ranges);
			for (uint64_t g = 0; g < UNITS * 64; g++) {
				bool *p = &plain[group * UNITS * 64 + g];
				uint64_t at = g % 64 * GRAIN;

				CHECK(!*p || (ranges[g / 64].from <= at &&
						     at + GRAIN <= ranges[g / 64].to));
				freed += *p;
				*p = false;
			}
			CHECK_INT(taken, freed * GRAIN);
			CHECK(taken > 0);
			nvram_release(&n, taken);
			count -= freed;
		}
		CHECK_INT(n.dirty, count * GRAIN);
	}
	nvram_free(&n);
}

/* The groups come in order of address, wrapping: few wraps for many takes. */
static void destages_in_order_of_address(void)
{
	struct nvram_range ranges[UNITS];
	uint64_t group, last = 0;
	struct nvram n;
	struct rng r;
	int wraps = 0;

	CHECK_INT(nvram_init(&n, GROUPS, UNITS, UNIT, 1 << 20), 0);
	rng_init(&r, 2, "nvram");
	for (int i = 0; i < 500; i++)
		CHECK(nvram_write(&n, rng_below(&r, SIZE - 512), 512));
	for (int i = 0; i < 5000; i++) {
		nvram_release(&n, nvram_take(&n, &group, ranges));
		wraps += group <= last;
		last = group;
		while (!nvram_write(&n, rng_below(&r, SIZE - 512), 512))
			nvram_release(&n, nvram_take(&n, &group, ranges));
	}
	CHECK(wraps >= 5 && wraps <= 20);
	while (n.n_dirty)
		nvram_release(&n, nvram_take(&n, &group, ranges));
	CHECK_INT(n.dirty, 0);
	nvram_free(&n);
}

int main(void)
{
	RUN(ranges_and_bytes);
	RUN(no_room_takes_nothing);
	RUN(agrees_with_plain_bits);
	RUN(destages_in_order_of_address);
	return 0;
}
