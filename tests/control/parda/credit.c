/* SPDX-License-Identifier: BSD-3-Clause */
/* credit: how it is saved, what a burst gets, and that a burst gets no more than was saved. */
#include "control/parda/credit.h"
#include "test.h"
#include <math.h>

#define PERIOD (2 * WEIR_SEC)
#define MINUTE (60 * WEIR_SEC)
#define WMAX   1e6

static void test_example(void)
{
	struct parda_credit c = {.span = MINUTE};

	parda_credit_step(&c, 50, 0, 20 * WEIR_SEC);
	CHECK_NEAR(c.saved / 1e9, 900, 1e-6);
	CHECK_NEAR(parda_credit_window(&c, 50, WMAX), 50 * (1 + 7 * 0.3), 1e-6);
	CHECK_NEAR(parda_credit_window(&c, 50, 64), 64, 0); /* never above wmax */
	parda_credit_step(&c, 50, 0, 1000 * WEIR_SEC);
	CHECK_NEAR(parda_credit_window(&c, 50, WMAX), 50 * PARDA_CREDIT_MOST, 1e-6);
}

static void test_none_without_a_pause(void)
{
	struct parda_credit c = {.span = MINUTE}, off = {0};

	for (int i = 0; i < 1000; i++)
		parda_credit_step(&c, 50, 48, PERIOD);
	CHECK_NEAR(parda_credit_window(&c, 50, WMAX), 50, 0);
	parda_credit_step(&off, 50, 0, PERIOD);
	CHECK_NEAR(parda_credit_window(&off, 50, WMAX), 50, 0);
}

/* A host that never stops after a long pause gets above its share no more than it left unused,
 * and nearly nothing after a minute. */
static void test_bounded(void)
{
	struct parda_credit c = {.span = MINUTE};
	double above = 0, window = 0;

	parda_credit_step(&c, 50, 0, 3600 * WEIR_SEC);
	for (int i = 0; i < 1000; i++) {
		window = parda_credit_window(&c, 50, WMAX);
		above += (window - 50) * 0.1;
		parda_credit_step(&c, 50, window, WEIR_SEC / 10);
		if (i == 600)
			CHECK(window < 1.05 * 50);
	}
	CHECK(above <= 50 * 60 + 1);
	CHECK(above >= 0.9 * 50 * 60);
	CHECK_NEAR(window, 50, 1e-3);
}

/* Credit outlasts a window that falls, for about its span. */
static void test_smaller(void)
{
	struct parda_credit c = {.span = MINUTE};

	parda_credit_step(&c, 50, 0, 3600 * WEIR_SEC);
	CHECK_NEAR(parda_credit_window(&c, 10, WMAX), 10 + 7 * 50, 1e-9);
	parda_credit_step(&c, 10, 0, PERIOD);
	CHECK_NEAR(c.saved / 1e9, 600 + 2400 * exp(-2.0 / 60), 1e-6);
	for (int i = 0; i < 600; i++)
		parda_credit_step(&c, 10, 0, PERIOD);
	CHECK_NEAR(parda_credit_window(&c, 10, WMAX), 10 * PARDA_CREDIT_MOST, 1e-3);
	CHECK_NEAR(parda_credit_window(&c, 0, WMAX), 0, 0); /* a closed gate stays closed */
}

/* A host whose window falls during its burst gets above it no more than it left unused before. */
static void test_bounded_while_smaller(void)
{
	struct parda_credit c = {.span = MINUTE};
	double above = 0, window;

	parda_credit_step(&c, 50, 0, 3600 * WEIR_SEC);
	for (int i = 0; i < 1000; i++) {
		window = parda_credit_window(&c, 10, WMAX);
		above += (window - 10) * 0.1;
		parda_credit_step(&c, 10, window, WEIR_SEC / 10);
	}
	CHECK(above <= 50 * 60 + 1);
	CHECK(above >= 0.8 * 50 * 60);
}

int main(void)
{
	RUN(test_example);
	RUN(test_none_without_a_pause);
	RUN(test_bounded);
	RUN(test_smaller);
	RUN(test_bounded_while_smaller);
	return 0;
}
