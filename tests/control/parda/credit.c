/* SPDX-License-Identifier: BSD-3-Clause */
/* credit: how it is saved, what a burst gets, and that a burst gets no more than was saved. */
#include "control/parda/credit.h"
#include "test.h"
#include <math.h>

#define PERIOD  (2 * WEIR_SEC)
#define MINUTE  (60 * WEIR_SEC)
#define TURN    (10 * WEIR_SEC)
#define WMAX    1e6
#define LATENCY (25.0 * WEIR_MS)

/* Others have 50 slots in use, in an array that does 100 / LATENCY; latency follows the sum, and the part of the host
 * the windows. */
static void step(struct parda_credit *c, double window, double inside, weir_time span)
{
	double latency = LATENCY * fmax(1, (50 + inside) / 100), all = (50 + inside) / latency;
	struct parda_credit_seen seen = {.window = window,
		.others = 50,
		.done = inside / latency,
		.all = all,
		.part = all * window / (50 + window),
		.limited = inside > 0.9 * parda_credit_window(c, window, WMAX)};

	parda_credit_step(c, &seen, span);
}

static void test_example(void)
{
	struct parda_credit c = {.span = MINUTE, .turn = TURN, .period = PERIOD};

	step(&c, 50, 0, 5 * WEIR_SEC);
	CHECK_NEAR(c.saved, 5000, 1e-6);
	CHECK(parda_credit_has(&c));
	CHECK_NEAR(parda_credit_window(&c, 50, WMAX), WMAX, 0);
	CHECK_NEAR(parda_credit_window(&c, 50, 64), 64, 0); /* never above wmax */
	step(&c, 50, 0, 1000 * WEIR_SEC);
	CHECK_NEAR(c.saved, 10000, 1e-6);
	c = (struct parda_credit){.span = MINUTE, .turn = TURN, .period = PERIOD};
	step(&c, 50, 0, WEIR_SEC); /* half of a period's worth */
	CHECK_NEAR(c.saved, 1000, 1e-6);
	CHECK(!parda_credit_has(&c));
	CHECK_NEAR(parda_credit_window(&c, 50, WMAX), 150, 1e-6);
	c = (struct parda_credit){.span = 4 * WEIR_SEC, .turn = TURN, .period = PERIOD};
	step(&c, 50, 0, 1000 * WEIR_SEC);
	CHECK_NEAR(c.saved, 4000, 1e-6);
}

static void test_none_without_a_pause(void)
{
	struct parda_credit c = {.span = MINUTE, .turn = TURN, .period = PERIOD},
			    off = {.turn = TURN, .period = PERIOD};
	struct parda_credit_seen alone = {.window = 50, .all = 1e-6, .part = 1e-6},
				 unknown = {.window = 50, .others = 50};

	for (int i = 0; i < 1000; i++)
		step(&c, 50, 48, PERIOD);
	parda_credit_step(&c, &alone, PERIOD); /* left to no other host */
	parda_credit_step(&c, &unknown, PERIOD);
	CHECK_NEAR(parda_credit_window(&c, 50, WMAX), 50, 0);
	CHECK(!parda_credit_has(&c));
	step(&off, 50, 0, PERIOD);
	CHECK_NEAR(parda_credit_window(&off, 50, WMAX), 50, 0);
}

/* A host that its window limits has left nothing to others, also if its requests are slower than theirs. */
static void test_limited(void)
{
	struct parda_credit c = {.span = MINUTE, .turn = TURN, .period = PERIOD};
	struct parda_credit_seen seen = {.window = 50,
		.others = 50,
		.done = 0.5e-6,
		.all = 2e-6,
		.part = 1e-6,
		.limited = true};

	for (int i = 0; i < 100; i++)
		parda_credit_step(&c, &seen, PERIOD);
	CHECK_NEAR(c.saved, 0, 0);
	seen.limited = false;
	parda_credit_step(&c, &seen, PERIOD);
	CHECK_NEAR(c.saved, 1000, 1e-6);
	seen.limited = true;
	seen.done = 1.25e-6;
	parda_credit_step(&c, &seen, PERIOD);
	CHECK_NEAR(c.saved, 500, 1e-6);
}

/* Run a burst without end of `most` requests at a time. Return the requests that it had above its part. */
static double spend(struct parda_credit *c, double window, double most, double seconds)
{
	double above = 0;

	for (double t = 0; t < seconds; t += 0.1) {
		double inside = fmin(most, parda_credit_window(c, window, WMAX));
		double latency = LATENCY * fmax(1, (50 + inside) / 100);
		double part = (50 + inside) * window / (50 + window);

		above += (inside - part) / latency * 1e8;
		step(c, window, inside, WEIR_SEC / 10);
	}
	return above;
}

/* A host that never stops after a long pause gets above its part no more than it left, and nothing after its turn: the
 * pace at which it takes from the others is the same for any number of requests that are many more than theirs. */
static void test_bounded(void)
{
	for (double most = 500; most < 20000; most *= 2) {
		struct parda_credit c = {.span = MINUTE, .turn = TURN, .period = PERIOD};
		double above;

		step(&c, 50, 0, 3600 * WEIR_SEC);
		above = spend(&c, 50, most, 15);
		CHECK(above <= 10000 * 1.001 && above >= 0.99 * 10000);
		CHECK(parda_credit_window(&c, 50, WMAX) < 1.01 * 50);
	}
}

/* Twice the burst costs twice the credit. */
static void test_linear(void)
{
	double spent[2];

	for (int i = 0; i < 2; i++) {
		struct parda_credit c = {.span = MINUTE, .turn = TURN, .period = PERIOD};

		step(&c, 50, 0, 3600 * WEIR_SEC);
		for (double left = 2000 * (1 + i); left > 50; left -= left / (50 + left) * 100)
			step(&c, 50, left, (weir_time)LATENCY);
		spent[i] = 10000 - c.saved;
	}
	CHECK(spent[0] > 0);
	CHECK_NEAR(spent[1], 2 * spent[0], 0.15);
}

/* Credit outlasts a window that falls, for about its span. */
static void test_smaller(void)
{
	struct parda_credit c = {.span = MINUTE, .turn = TURN, .period = PERIOD};
	double most = 50 / LATENCY * 1 / 51 * (double)MINUTE; /* of a window of 1 beside 50 */

	step(&c, 50, 0, 3600 * WEIR_SEC);
	CHECK(parda_credit_window(&c, 1, WMAX) >= WMAX);
	step(&c, 1, 0, PERIOD);
	CHECK_NEAR(c.saved, most + (10000 - most) * exp(-2.0 / 60), 1e-6);
	for (int i = 0; i < 600; i++)
		step(&c, 1, 0, PERIOD);
	CHECK_NEAR(c.saved, most, 1e-3);
	CHECK_NEAR(parda_credit_window(&c, 0, WMAX), 0, 0); /* a closed gate stays closed */
}

int main(void)
{
	RUN(test_example);
	RUN(test_none_without_a_pause);
	RUN(test_limited);
	RUN(test_bounded);
	RUN(test_linear);
	RUN(test_smaller);
	return 0;
}
