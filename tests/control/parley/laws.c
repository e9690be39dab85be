/* SPDX-License-Identifier: BSD-3-Clause */
/* The control law of receivers, and bounds of completion times. */
#include "control/parley/delay.h"
#include "control/parley/rcp.h"
#include "test.h"

#define GBIT 1.25e8 /* bytes/s */

/* Table 3, last rows, inverted: σ is what the link carries in 15 periods of 500 µs. */
static void bounds_of_table_3(void)
{
	static const double loads[] = {0.15, 0.5, 0.7, 0.8};
	static const double a[] = {9.01, 15.32, 25.53, 38.30}, b[] = {9.77, 16.60, 27.67};

	for (int i = 0; i < 4; i++)
		CHECK(fabs(delay_bound_load(10 * GBIT, a[i] / 1e3, 10 * GBIT * 7.5e-3, 200e3) -
			      loads[i]) < 1e-3);
	for (int i = 0; i < 3; i++)
		CHECK(fabs(delay_bound_load(10 * GBIT, b[i] / 1e3, 10 * GBIT * 7.5e-3, 1e6) -
			      loads[i]) < 1e-3);
	/* Half of the time that an empty link needs: no load allows it. */
	CHECK_NEAR(delay_bound_load(100, 0.5, 50, 50), -1, 1e-12);
}

/* Senders of weights 1, 2, … share a line; each wants all of it. Return the periods until the sum
 * stays within 1 % of the capacity; at most `most`. */
static int settle(unsigned senders, double capacity, double line, int most)
{
	struct rcp r = {.least = 1e-6 * line, .line = line, .rate = line};
	int since = 0;

	for (int t = 0; t < most; t++) {
		double sum = 0;

		for (unsigned i = 1; i <= senders; i++)
			sum += fmin(i * r.rate, line);
		if (!(fabs(sum / capacity - 1) <= 0.01))
			since = t + 1;
		rcp_step(&r, sum, capacity, 0);
	}
	return since;
}

/* §3.2.1, after EyeQ: within 30 periods, whatever the number of senders. */
static void senders_settle(void)
{
	for (unsigned n = 1; n <= 64; n *= 2) {
		CHECK(settle(n, 0.9, 1, 200) <= 30);
		CHECK(settle(n, 0.1, 1, 200) <= 30);
	}
}

static void marks_and_bounds(void)
{
	struct rcp r = {.least = 1, .line = 100, .rate = 80};

	CHECK_NEAR(rcp_step(&r, 50, 50, 0), 80, 1e-12);
	CHECK_NEAR(rcp_step(&r, 50, 50, 0.5), 60, 1e-12); /* half of the packets marked: β/2 */
	CHECK_NEAR(rcp_step(&r, 1000, 50, 1), 30, 1e-12); /* a burst halves it, not more */
	for (int i = 0; i < 10; i++)
		rcp_step(&r, 1000, 50, 1);
	CHECK(r.rate == 1);
	for (int i = 0; i < 20; i++)
		rcp_step(&r, 0, 50, 0);
	CHECK(r.rate == 100);
}

int main(void)
{
	RUN(bounds_of_table_3);
	RUN(senders_settle);
	RUN(marks_and_bounds);
	return 0;
}
