/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: rates keep their value to 1/2048, words keep their service, and the layout is fixed. */
#include "test.h"
#include "wire/usage.h"
#include <math.h>

static void rates(void)
{
	double last = -1;

	for (int i = 0; i < 2048; i++)
		CHECK(usage_rounded(i) == i);
	for (double r = 0.3; r < 5e12; r *= 1.00037) {
		double got = usage_rounded(r);

		CHECK(got >= last);
		CHECK(fabs(got - fmin(r, USAGE_MAX)) <= fmax(0.5, fmin(r, USAGE_MAX) / 2048));
		CHECK(usage_rounded(got) == got);
		last = got;
	}
	CHECK(usage_rounded(INFINITY) == USAGE_MAX);
	CHECK(usage_rounded(NAN) == 0 && usage_rounded(-5) == 0);
}

static void words(void)
{
	struct usage u = {0xdeadbeef, 1.25e9, 2047}, got = usage_unpack(usage_pack(&u));

	CHECK_INT(got.service, 0xdeadbeef);
	CHECK(got.in == usage_rounded(1.25e9) && got.out == 2047);
	u = (struct usage){1, 2048, 3};
	CHECK(usage_pack(&u) == UINT64_C(0x0000000180010060)); /* 1024·2^1, 3·2^0 */
}

static void moved(void)
{
	CHECK(!usage_moved(0, 0) && usage_moved(0, 1) && usage_moved(1, 0));
	CHECK(!usage_moved(1000, 1007) && usage_moved(1000, 1009) && usage_moved(1009, 1000));
}

int main(void)
{
	RUN(rates);
	RUN(words);
	RUN(moved);
	return 0;
}
