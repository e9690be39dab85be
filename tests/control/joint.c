/* SPDX-License-Identifier: BSD-3-Clause */
/* joint: over any interval all takers together get no more than one bucket would give, and all of it if they ask. */
#include "control/joint.h"
#include "base/rng.h"
#include "test.h"

enum { GATES = 5, TAKES = 4000 };

static const struct joint_size ten = {.rate = 10, .size = 1};

static void test_example(void)
{
	struct joint *j = joint_new();

	CHECK(j != NULL);
	for (int i = 0; i < 3; i++)
		CHECK_INT(joint_take(j, ten, 0, 1), i * 100 * WEIR_MS);
	joint_return(j, ten, 1);
	CHECK_INT(joint_take(j, ten, 0, 1), 200 * WEIR_MS);
	CHECK_INT(joint_take(j, ten, 10 * WEIR_SEC, 1), 10 * WEIR_SEC);    /* a pause fills one */
	CHECK_INT(joint_take(j, ten, 20 * WEIR_SEC, 1000), 20 * WEIR_SEC); /* more than it holds: */
	CHECK_INT(joint_take(j, ten, 20 * WEIR_SEC, 1), 120 * WEIR_SEC);   /* the debt is paid */
	joint_spend(j, 110 * WEIR_SEC); /* it owes more than that */
	CHECK_INT(joint_take(j, ten, 120 * WEIR_SEC, 1), 120 * WEIR_SEC + 100 * WEIR_MS);
	joint_spend(j, 200 * WEIR_SEC);
	CHECK_INT(joint_take(j, ten, 200 * WEIR_SEC, 1), 200 * WEIR_SEC + 100 * WEIR_MS);
	joint_unuse(joint_use(j));
	joint_unuse(j);
}

/* Gates take again when they have got their tokens, some after a pause; some return them. */
static void test_any_interval(void)
{
	static weir_time at[TAKES];
	weir_time due[GATES] = {0};
	struct joint_size s = {.rate = 100, .size = 5};
	struct joint *j = joint_new();
	struct rng rng;
	int n = 0;

	rng_init(&rng, 1, "joint");
	while (n < TAKES) {
		int g = 0;
		weir_time now;

		for (int i = 1; i < GATES; i++)
			g = due[i] < due[g] ? i : g;
		now = due[g] + (rng_below(&rng, 50) ? 0 : WEIR_SEC / 10);
		due[g] = joint_take(j, s, now, 1);
		if (rng_below(&rng, 10) == 0)
			joint_return(j, s, 1);
		else
			at[n++] = due[g] > now ? due[g] : now;
	}
	joint_unuse(j);
	for (int i = 0; i < n; i++)
		for (int k = i; k < n; k++) {
			double span = (double)(at[k] - at[i]) / WEIR_SEC;

			if (span >= 0 && k - i + 1 > 100 * span + 5 + 1)
				FAIL("%d in %g s", k - i + 1, span);
		}
	CHECK(n > 0.9 * 100 * (double)at[n - 1] / WEIR_SEC); /* one in ten goes back */
}

int main(void)
{
	RUN(test_example);
	RUN(test_any_interval);
	return 0;
}
