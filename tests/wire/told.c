/* SPDX-License-Identifier: BSD-3-Clause */
/* told: words keep what is told, the layout is fixed, and what makes no sense is refused. */
#include "test.h"
#include "wire/told.h"
#include <math.h>
#include <string.h>

static const struct told example = {.rate = 2812500,
	.address = {[10] = 0xff, 0xff, 10, 9, 0, 5},
	.mine = 40000,
	.theirs = 9866,
	.protocol = 6,
	.dscp = 46};

static void round_trip(void)
{
	struct told got = {0};
	uint64_t words[TOLD_WORDS];

	told_write(words, &example);
	CHECK(words[1] == 0 && words[2] == UINT64_C(0x0000ffff0a090005));
	CHECK(words[3] == UINT64_C(0x9c40268a062e0000));
	CHECK(told_read(words, &got));
	CHECK(got.rate == example.rate && memcmp(got.address, example.address, 16) == 0);
	CHECK(got.mine == 40000 && got.theirs == 9866 && got.protocol == 6 && got.dscp == 46);
}

static bool is_read(double rate, const uint8_t address[16], uint8_t dscp)
{
	struct told t = example, got;
	uint64_t words[TOLD_WORDS];

	t.rate = rate;
	t.dscp = dscp;
	memcpy(t.address, address, 16);
	told_write(words, &t);
	return told_read(words, &got);
}

static void nonsense(void)
{
	const double rates[] = {0, -1, NAN, INFINITY, TOLD_MOST * 1.1};
	const uint8_t none[16] = {0}, group[16] = {0xff, 2},
		      every[16] = {[10] = 0xff, 0xff, 255, 255}, six[16] = {0xfd, [15] = 1};

	CHECK(is_read(1, example.address, 0) && is_read(TOLD_MOST, six, 63));
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		CHECK(!is_read(rates[i], example.address, 0));
	CHECK(!is_read(1, none, 0) && !is_read(1, group, 0) && !is_read(1, every, 0));
	CHECK(!is_read(1, six, 64));
}

int main(void)
{
	RUN(round_trip);
	RUN(nonsense);
	return 0;
}
