/* SPDX-License-Identifier: BSD-3-Clause */
/* warn: a wmax that prevents shares, and a threshold that no window reaches; and no warning in
 * other cases. */
#include "control/parda/rig.h"
#include "control/parda/warn.h"

static const double shares_13[] = {1, 3}, shares_11[] = {1, 1};

static void make(struct rig *r, const double *shares, double threshold, double wmax, double disks)
{
	rig_make(r, 2, shares, (struct parda_law){threshold, 0.8, 1, wmax});
	r->disks = disks;
	r->noise = 0.02;
	rig_periods(r, 40);
}

static void test_wmax(void)
{
	struct rig r;

	make(&r, shares_13, 40.0 * WEIR_MS, 64, 1); /* 128 slots: 32 and 96 */
	CHECK(r.hosts[1].last.wmax_short && !r.hosts[0].last.wmax_short);
	CHECK_NEAR(r.hosts[1].last.wmax_wanted, 96, 0.1);
	rig_free(&r);
	make(&r, shares_13, 100.0 * WEIR_MS, 64, 1); /* both are at wmax, below the threshold */
	CHECK(r.hosts[1].last.wmax_short && !r.hosts[0].last.wmax_short);
	CHECK_NEAR(r.hosts[1].last.wmax_wanted, 240, 0.1);
	rig_free(&r);
	make(&r, shares_13, 40.0 * WEIR_MS, 128, 1);
	CHECK(!r.hosts[1].last.wmax_short && !r.hosts[0].last.wmax_short);
	/* Equal shares at wmax are as configured. */
	rig_free(&r);
	make(&r, shares_11, 100.0 * WEIR_MS, 64, 1);
	CHECK(!r.hosts[1].last.wmax_short && !r.hosts[0].last.wmax_short);
	/* So is a host with little demand. */
	rig_free(&r);
	make(&r, shares_13, 100.0 * WEIR_MS, 64, 1);
	r.hosts[1].demand = 20;
	rig_periods(&r, 10);
	CHECK(!r.hosts[1].last.wmax_short);
	rig_free(&r);
}

static void test_unreachable(void)
{
	struct rig r;

	make(&r, shares_13, 1.0 * WEIR_MS, 64, 16); /* the idle array takes 5 ms */
	CHECK(r.hosts[0].last.unreachable && r.hosts[1].last.unreachable);
	CHECK_NEAR(r.hosts[0].last.least, 5.0 * WEIR_MS, 0.1);
	/* Most of the throughput is kept. */
	CHECK(r.hosts[0].window + r.hosts[1].window > 6);
	rig_free(&r);
	make(&r, shares_13, 7.0 * WEIR_MS, 64, 16);
	CHECK(!r.hosts[0].last.unreachable && !r.hosts[1].last.unreachable);
	rig_free(&r);
	/* The threshold was reached before: it is a stranger. */
	make(&r, shares_13, 25.0 * WEIR_MS, 64, 16);
	r.stranger = 256;
	rig_periods(&r, 20);
	CHECK(!r.hosts[0].last.unreachable && r.hosts[0].last.stranger);
	rig_free(&r);
}

/* A threshold just above the latency of the idle array: its queues are taken for a stranger's. */
static void test_hardly(void)
{
	struct parda_warn w = {0};
	struct parda_warn_seen seen = {.window = 2,
		.inside = 2,
		.wmin = 1,
		.wmax = 64,
		.shares = 1,
		.latency = 2.9 * WEIR_MS,
		.threshold = 3.0 * WEIR_MS,
		.all_inside = 2,
		.all_windows = 2,
		.all_shares = 4,
		.hosts = 2};

	parda_warn_step(&w, &seen);
	CHECK(!w.unreachable);
	seen.latency = 4.3 * WEIR_MS;
	seen.all_windows = 8;
	seen.floor = true;
	for (int i = 0; i < 10; i++)
		parda_warn_step(&w, &seen);
	CHECK(w.unreachable);
	/* Not where much less was measured: that is a stranger. */
	w = (struct parda_warn){.least = 2.0 * WEIR_MS};
	for (int i = 0; i < 20; i++)
		parda_warn_step(&w, &seen);
	CHECK(!w.unreachable);
}

/* It was reached, and is no longer: the device has become slower than that. */
static void test_no_longer(void)
{
	struct rig r;

	make(&r, shares_13, 25.0 * WEIR_MS, 64, 1);
	r.capacity = 60;
	rig_periods(&r, 25);
	CHECK(r.hosts[0].last.unreachable && r.hosts[1].last.unreachable);
	CHECK(!r.hosts[0].last.stranger);
	CHECK_NEAR(r.hosts[0].last.least, 33.0 * WEIR_MS, 0.1);
	r.capacity = 3200;
	rig_periods(&r, 10);
	CHECK(!r.hosts[0].last.unreachable && !r.hosts[1].last.unreachable);
	rig_free(&r);
}

int main(void)
{
	RUN(test_wmax);
	RUN(test_unreachable);
	RUN(test_hardly);
	RUN(test_no_longer);
	return 0;
}
