/* SPDX-License-Identifier: BSD-3-Clause */
/* warn: a wmax with which shares cannot be had, and a threshold that no window reaches; and that others are not told. */
#include "control/parda/rig.h"

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
	make(&r, shares_13, 100.0 * WEIR_MS, 64, 1); /* both stand at wmax, below the threshold */
	CHECK(r.hosts[1].last.wmax_short && !r.hosts[0].last.wmax_short);
	CHECK_NEAR(r.hosts[1].last.wmax_wanted, 240, 0.1);
	rig_free(&r);
	make(&r, shares_13, 40.0 * WEIR_MS, 128, 1);
	CHECK(!r.hosts[1].last.wmax_short && !r.hosts[0].last.wmax_short);
	/* Equal shares at wmax are what was asked for. */
	rig_free(&r);
	make(&r, shares_11, 100.0 * WEIR_MS, 64, 1);
	CHECK(!r.hosts[1].last.wmax_short && !r.hosts[0].last.wmax_short);
	/* And so is a host that has not as much to do. */
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

	make(&r, shares_13, 1.0 * WEIR_MS, 64, 16); /* an idle array takes 5 ms */
	CHECK(r.hosts[0].last.unreachable && r.hosts[1].last.unreachable);
	CHECK_NEAR(r.hosts[0].last.least, 5.0 * WEIR_MS, 0.1);
	/* It does not cost nearly all of the throughput. */
	CHECK(r.hosts[0].window + r.hosts[1].window > 6);
	rig_free(&r);
	make(&r, shares_13, 6.0 * WEIR_MS, 64, 16);
	CHECK(!r.hosts[0].last.unreachable && !r.hosts[1].last.unreachable);
	rig_free(&r);
	/* That was reached before: a stranger. */
	make(&r, shares_13, 25.0 * WEIR_MS, 64, 16);
	r.stranger = 256;
	rig_periods(&r, 20);
	CHECK(!r.hosts[0].last.unreachable && r.hosts[0].last.stranger);
	rig_free(&r);
}

int main(void)
{
	RUN(test_wmax);
	RUN(test_unreachable);
	return 0;
}
