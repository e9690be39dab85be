/* SPDX-License-Identifier: BSD-3-Clause */
/* stranger: hosts beside an uncontrolled initiator; and devices that only look like that. */
#include "control/parda/rig.h"

#define THRESHOLD (25.0 * WEIR_MS)

static const double shares_14[] = {1, 4}, shares_5[] = {2, 2, 1, 1, 1}, shares_1[] = {1};

/* Return the smallest ratio of a host's part to its fair part, with the stranger counted as one
 * more host. */
static double least_part(const struct rig *r)
{
	double all = r->stranger, shares = 0, least = INFINITY;

	for (int i = 0; i < r->n; i++) {
		all += r->hosts[i].window;
		shares += r->hosts[i].vm.shares;
	}
	for (int i = 0; i < r->n; i++) {
		double fair = r->hosts[i].vm.shares / (shares * (1 + 1.0 / r->n));

		least = fmin(least, r->hosts[i].window / all / fair);
	}
	return least;
}

static void check_told(const struct rig *r, bool told)
{
	for (int i = 0; i < r->n; i++)
		CHECK_INT(r->hosts[i].last.stranger, told);
}

static void make(
	struct rig *r, int n, const double *shares, double wmax, double capacity, double disks)
{
	rig_make(r, n, shares, (struct parda_law){THRESHOLD, 0.8, 1, wmax});
	r->capacity = capacity;
	r->disks = disks;
	r->noise = 0.02;
	rig_periods(r, 30);
	check_told(r, false);
}

/* The stranger comes, stays, and leaves. */
static void check_stranger(
	int n, const double *shares, double capacity, double disks, double requests)
{
	struct rig r;

	make(&r, n, shares, 1024, capacity, disks);
	r.stranger = requests;
	rig_periods(&r, requests < 64 ? 8 : 6);
	check_told(&r, true);
	for (int i = 0; i < 60; i++) {
		rig_periods(&r, 1);
		check_told(&r, true);
		if (i > 5)
			CHECK(least_part(&r) >= 0.5);
		CHECK(least_part(&r) <= 1.6 || r.latency < 1.3 * THRESHOLD);
	}
	CHECK_NEAR(r.hosts[0].last.strange, requests, 0.4);
	r.stranger = 0;
	rig_periods(&r, 10);
	check_told(&r, false);
	for (int i = 0; i < 10; i++) {
		CHECK(rig_off(&r) <= 0.1);
		CHECK_NEAR(r.latency, THRESHOLD, 0.15);
		rig_periods(&r, 1);
	}
	rig_free(&r);
}

static void test_comes_and_goes(void)
{
	for (double requests = 32; requests <= 1024; requests *= 2) {
		check_stranger(2, shares_14, 3200, 10, requests);
		check_stranger(5, shares_5, 3200, 10, requests);
		check_stranger(2, shares_14, 1700, 1, requests);
		check_stranger(1, shares_1, 1700, 4, requests);
	}
}

/* It was there before the hosts, and stays: the capacity of the array alone is not known. */
static void check_there_before(
	int n, const double *shares, double capacity, double disks, double requests, double noise)
{
	double part = 0;
	struct rig r;

	rig_make(&r, n, shares, (struct parda_law){THRESHOLD, 0.8, 1, 1024});
	r.capacity = capacity;
	r.disks = disks;
	r.noise = noise;
	r.stranger = requests;
	rig_periods(&r, 25);
	for (int i = 0; i < 60; i++) {
		rig_periods(&r, 1);
		if (r.latency > 1.3 * THRESHOLD)
			check_told(&r, true);
		CHECK(least_part(&r) >= 0.45);
		part += least_part(&r) / 60;
	}
	CHECK(part >= 0.5);
	r.stranger = 0;
	rig_periods(&r, 12);
	check_told(&r, false);
	CHECK(rig_off(&r) <= 0.1);
	CHECK_NEAR(r.latency, THRESHOLD, 0.15);
	rig_free(&r);
}

static void test_there_before(void)
{
	static const double equal[] = {1, 1, 1, 1, 1, 1, 1, 1}, mixed[] = {1, 4, 2, 4};

	for (double requests = 32; requests <= 512; requests *= 2) {
		for (double noise = 0.01; noise < 0.03; noise *= 2) {
			check_there_before(2, shares_14, 3200, 1, requests, noise);
			check_there_before(3, equal, 2000, 1, requests, noise);
			check_there_before(4, mixed, 2000, 4, requests, noise);
			check_there_before(8, equal, 3200, 10, requests, noise);
			check_there_before(1, shares_1, 1700, 4, requests, noise);
		}
	}
}

/* The stranger grows slowly, so that latency stays at the threshold. */
static void test_creeps_in(void)
{
	struct rig r;

	make(&r, 2, shares_14, 1024, 1700, 1);
	for (r.stranger = 0; r.stranger < 100; r.stranger += 1)
		rig_periods(&r, 1);
	rig_periods(&r, 20);
	check_told(&r, true);
	CHECK(least_part(&r) >= 0.5);
	rig_free(&r);
}

/* It grows by steps while the hosts look how much of the latency is theirs. */
static void test_grows(void)
{
	static const double shares[] = {2, 4, 1, 2, 4, 2};
	struct rig r;

	for (int every = 1; every <= 4; every++) {
		make(&r, 6, shares, 1024, 1700, 1);
		for (r.stranger = 64; r.stranger < 512; r.stranger += 64)
			rig_periods(&r, every);
		rig_periods(&r, 20);
		for (int i = 0; i < 20; i++) {
			rig_periods(&r, 1);
			check_told(&r, true);
			CHECK(least_part(&r) >= 0.5);
		}
		rig_free(&r);
	}
}

/* wmax is less than the floor: the host says so. */
static void test_wmax(void)
{
	struct rig r;

	make(&r, 2, shares_14, 64, 3200, 10);
	CHECK(!r.hosts[1].last.too_low);
	r.stranger = 512;
	rig_periods(&r, 20);
	CHECK(r.hosts[1].last.too_low && !r.hosts[0].last.too_low);
	CHECK_NEAR(r.hosts[1].window, 64, 0);
	rig_free(&r);
}

/* A slower device, even a much slower one, is no stranger, and latency returns to the threshold. */
static void test_slower(void)
{
	static const double slower[] = {0.7, 0.5, 0.25, 0.1};
	struct rig r;

	for (int i = 0; i < 4; i++) {
		make(&r, 2, shares_14, 1024, 6400, i < 3 ? 10 : 1);
		r.capacity *= slower[i];
		rig_periods(&r, 15);
		for (int k = 0; k < 20; k++) {
			check_told(&r, false);
			CHECK_NEAR(r.latency, fmax(THRESHOLD, 9 / r.capacity * 1e9), 0.15);
			rig_periods(&r, 1);
		}
		r.capacity = 6400;
		rig_periods(&r, 20);
		check_told(&r, false);
		CHECK_NEAR(r.latency, THRESHOLD, 0.15);
		rig_free(&r);
	}
}

/* A device that hangs is not flooded. */
static void test_hangs(void)
{
	struct rig r;

	make(&r, 2, shares_14, 1024, 3200, 10);
	r.capacity = 4;
	r.most_inside = 0;
	rig_periods(&r, 10);
	r.most_inside = 0;
	rig_periods(&r, 30);
	CHECK(r.most_inside <= 16);
	rig_free(&r);
}

/* With detection off, windows follow the law alone. */
static void test_off(void)
{
	struct rig r;

	rig_make(&r, 2, shares_14, (struct parda_law){THRESHOLD, 0.8, 1, 64});
	for (int i = 0; i < 2; i++) {
		r.hosts[i].config.no_floor = true;
		rig_start(&r, i);
	}
	rig_periods(&r, 30);
	r.stranger = 128;
	rig_periods(&r, 30);
	check_told(&r, false);
	CHECK_NEAR(r.hosts[0].window, 1, 0);
	rig_free(&r);
}

int main(void)
{
	RUN(test_off);
	RUN(test_comes_and_goes);
	RUN(test_there_before);
	RUN(test_creeps_in);
	RUN(test_grows);
	RUN(test_wmax);
	RUN(test_slower);
	RUN(test_hangs);
	return 0;
}
