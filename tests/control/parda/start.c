/* SPDX-License-Identifier: BSD-3-Clause */
/* start: hosts that start together, and one that starts beside others, do not flood the array
 * and reach their shares. */
#include "control/parda/rig.h"

#define THRESHOLD (25.0 * WEIR_MS)

static const double shares_4[] = {1, 1, 1, 1}, shares_8[] = {1, 2, 1, 4, 1, 3, 2, 2};

static double all_windows(const struct rig *r)
{
	double all = 0;

	for (int i = 0; i < r->n; i++)
		all += r->hosts[i].up ? r->hosts[i].window : 0;
	return all;
}

static void check_cold_start(double capacity, double disks, const double *shares, int n)
{
	struct rig r;

	rig_make(&r, n, shares, (struct parda_law){THRESHOLD, 0.8, 1, 256});
	r.capacity = capacity;
	r.disks = disks;
	r.noise = 0.03;
	for (int i = 0; i < n; i++)
		CHECK(r.hosts[i].window <= 1);
	rig_periods(&r, 10);
	CHECK(r.most_latency <= 2 * THRESHOLD);
	for (int i = 0; i < 10; i++) {
		rig_periods(&r, 1);
		CHECK(rig_off(&r) <= 0.1);
		CHECK_NEAR(r.latency, THRESHOLD, 0.15);
	}
	rig_free(&r);
}

static void test_cold_start(void)
{
	static const double shares_16[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8};

	check_cold_start(3200, 1, shares_8, 8);
	check_cold_start(3200, 15, shares_8, 8);
	check_cold_start(20000, 15, shares_8, 8);
	check_cold_start(6000, 10, shares_16, 16);
	check_cold_start(3200, 1, shares_4, 2);
}

/* A host restarts while the others have its share. */
static void check_restart(const double *shares, int n, int which, double wmax, int gone)
{
	struct rig r;
	double inside;

	rig_make(&r, n, shares, (struct parda_law){THRESHOLD, 0.8, 1, wmax});
	r.disks = 10;
	r.noise = 0.02;
	rig_periods(&r, 40);
	inside = all_windows(&r);
	r.hosts[which].up = false;
	rig_periods(&r, gone);
	r.most_inside = r.most_latency = 0;
	rig_start(&r, which);
	CHECK(r.hosts[which].window <= 1);
	rig_periods(&r, 5);
	for (int i = 0; i < 10; i++) {
		CHECK(rig_off(&r) <= 0.1);
		rig_periods(&r, 1);
	}
	CHECK(r.most_latency <= 1.3 * THRESHOLD);
	CHECK(r.most_inside <= 1.3 * inside);
	rig_free(&r);
}

static void test_restart(void)
{
	static const double shares_1122[] = {1, 1, 2, 2}, shares_14[] = {1, 4};

	for (int gone = 1; gone <= 30; gone += gone < 8 ? 1 : 11) {
		check_restart(shares_4, 4, 0, 256, gone);
		check_restart(shares_4, 4, 3, 256, gone);
		check_restart(shares_1122, 4, 3, 256, gone);
		check_restart(shares_1122, 4, 3, 32, gone);
		check_restart(shares_8, 8, 5, 256, gone);
		/* The other host is at wmax, and 4 times its window is above that. */
		check_restart(shares_14, 2, 1, 64, gone);
	}
}

/* Alone: the window doubles each period until latency reaches the threshold. */
static void test_alone(void)
{
	struct rig r;
	double before;

	rig_make(&r, 1, shares_4, (struct parda_law){THRESHOLD, 0.8, 0.5, 256});
	rig_periods(&r, 1);
	CHECK_NEAR(r.hosts[0].window, 0.5, 0);
	for (before = 0.5; r.latency < THRESHOLD / 2; before *= 2) {
		CHECK_NEAR(r.hosts[0].window, before, 0.001);
		rig_periods(&r, 1);
	}
	CHECK(r.most_latency <= 1.1 * THRESHOLD);
	rig_periods(&r, 20);
	CHECK_NEAR(r.latency, THRESHOLD, 0.02);
	rig_free(&r);
	/* An idle host learns nothing by waiting. */
	rig_make(&r, 1, shares_4, (struct parda_law){THRESHOLD, 0.8, 1, 256});
	r.hosts[0].demand = 0;
	rig_periods(&r, 20);
	CHECK_NEAR(r.hosts[0].window, 1, 0);
	rig_free(&r);
}

/* A host that starts idle gets its share after some periods, without load; its peers make room
 * when it becomes busy. While it starts it saves no credit for bursts. */
static void test_idle(void)
{
	struct rig r;
	double inside;

	rig_make(&r, 4, shares_4, (struct parda_law){THRESHOLD, 0.8, 1, 256});
	for (int i = 0; i < 4; i++) {
		r.hosts[i].config.burst = PARDA_BURST;
		rig_start(&r, i);
	}
	r.hosts[3].up = false;
	rig_periods(&r, 40);
	r.hosts[3].demand = 0;
	rig_start(&r, 3);
	rig_periods(&r, 3);
	CHECK_NEAR(r.hosts[3].window, 1, 0);
	inside = r.inside;
	rig_periods(&r, 5);
	CHECK(r.hosts[3].last.report.window > 0.9 * r.hosts[0].last.report.window);
	CHECK_NEAR(r.inside, inside, 0.05);
	r.most_latency = 0;
	r.hosts[3].demand = 1e6;
	rig_periods(&r, 5);
	for (int i = 0; i < 3; i++)
		CHECK_NEAR(r.hosts[i].last.report.window, r.hosts[3].last.report.window, 0.1);
	CHECK(r.most_latency <= 2 * THRESHOLD);
	rig_free(&r);
}

/* Idle peers do not keep a host from growing. */
static void test_beside_idle(void)
{
	struct rig r;

	rig_make(&r, 3, shares_4, (struct parda_law){THRESHOLD, 0.8, 1, 256});
	r.hosts[0].demand = r.hosts[1].demand = 0.01;
	r.hosts[2].up = false;
	rig_periods(&r, 30);
	rig_start(&r, 2);
	rig_periods(&r, 12);
	CHECK_NEAR(r.latency, THRESHOLD, 0.15);
	rig_free(&r);
}

/* The busy host does not get the unused windows of idle hosts when hosts divide the sum. */
static void test_unused_windows(void)
{
	struct rig r;

	rig_make(&r, 8, shares_8, (struct parda_law){THRESHOLD, 0.8, 1, 1024});
	for (int i = 0; i < 7; i++)
		r.hosts[i].demand = 0.3;
	rig_periods(&r, 30);
	CHECK(r.most_latency <= 2 * THRESHOLD);
	CHECK_NEAR(r.latency, THRESHOLD, 0.15);
	rig_free(&r);
}

/* With a configured first window, a host starts there and follows the law at once. */
static void test_as_told(void)
{
	struct rig r;

	rig_make(&r, 1, shares_4, (struct parda_law){THRESHOLD, 0.8, 1, 256});
	r.hosts[0].config.window = 128;
	rig_start(&r, 0);
	CHECK_NEAR(r.hosts[0].window, 128, 0);
	rig_free(&r);
}

int main(void)
{
	RUN(test_alone);
	RUN(test_cold_start);
	RUN(test_restart);
	RUN(test_idle);
	RUN(test_beside_idle);
	RUN(test_unused_windows);
	RUN(test_as_told);
	return 0;
}
