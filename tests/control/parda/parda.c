/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda: hosts before an array that is Little's law: latency is requests inside over throughput.
 * Ratios and latency at the fixed point; lost reports; hosts that crash, stop for a while, return,
 * and whose clocks are set.
 */
#include "base/rng.h"
#include "control/parda/parda.h"
#include "test.h"
#include <errno.h>

#define HOSTS     6
#define PERIOD    (2 * WEIR_SEC)
#define THRESHOLD (25.0 * WEIR_MS)
#define SERVICE   (5.0 * WEIR_MS) /* of a request that finds the array empty */

struct host {
	struct parda *p;
	struct parda_config config;
	struct parda_vm vm;
	struct parda_decision last;
	bool up;        /* sends requests and steps */
	weir_time skew; /* error of its clock */
	double demand;  /* requests at most */
	double bytes;   /* of each */
	int side;       /* of a partitioned network */
	double sees;    /* factor of the array's latency that it measures */
	double window;  /* in force */
};

struct array {
	struct host hosts[HOSTS];
	int n;
	double capacity; /* per second */
	double latency;  /* ns */
	double stranger; /* requests of an uncontrolled initiator */
	double loss;     /* share of reports */
	weir_time now;
	struct rng rng;
};

static void start(struct array *a, int i)
{
	struct host *h = &a->hosts[i];

	parda_free(h->p);
	h->config.instance = rng_u64(&a->rng) | 1;
	CHECK_INT(parda_new(&h->config, &h->p), 0);
	h->window = h->config.window;
	h->last.report.sequence = 0;
	h->up = true;
}

static void make(struct array *a, int n, const double *shares, bool literal)
{
	memset(a, 0, sizeof(*a));
	a->n = n;
	a->capacity = 3200;
	a->now = 1000 * WEIR_SEC;
	rng_init(&a->rng, 1, "array");
	for (int i = 0; i < n; i++) {
		struct host *h = &a->hosts[i];

		h->vm.shares = shares[i];
		h->demand = 1e9;
		h->sees = 1;
		h->config = (struct parda_config){.id = (uint64_t)i + 100,
			.law = {THRESHOLD, 0.8, 1, 256},
			.epsilon = literal ? 0 : 0.2,
			.window = 32,
			.no_floor = true,
			.abrupt = true}; /* start.c and stranger.c test slow starts and strangers */
		start(a, i);
	}
}

static void unmake(struct array *a)
{
	for (int i = 0; i < a->n; i++)
		parda_free(a->hosts[i].p);
}

static double inside(const struct host *h)
{
	return h->up ? fmin(h->window, h->demand) : 0;
}

static void step_host(struct array *a, int i)
{
	struct host *h = &a->hosts[i];
	double latency = a->latency * h->sees, served = inside(h) / latency * PERIOD;
	struct parda_measured m = {
		.ios = (uint64_t)(served + 0.5), .inside = inside(h), .vms = &h->vm, .n_vms = 1};

	m.latency_ns = (double)m.ios * latency;
	m.bytes = (double)m.ios * h->bytes;
	h->vm.outstanding = fmin(h->demand, 1e9);
	parda_step(h->p, a->now + h->skew, &m, &h->last);
}

/* Run one period: the array serves, then all hosts step, then their reports are sent. */
static void period(struct array *a)
{
	double all = a->stranger;

	for (int i = 0; i < a->n; i++)
		all += inside(&a->hosts[i]);
	a->latency = fmax(SERVICE, all / a->capacity * 1e9);
	a->now += PERIOD;
	for (int i = 0; i < a->n; i++) {
		if (a->hosts[i].up)
			step_host(a, i);
	}
	for (int i = 0; i < a->n; i++) {
		if (a->hosts[i].up)
			a->hosts[i].window = a->hosts[i].last.window;
		for (int j = 0; j < a->n; j++) {
			if (a->hosts[i].up && a->hosts[j].up &&
				a->hosts[i].side == a->hosts[j].side &&
				rng_double(&a->rng) >= a->loss)
				parda_hear(a->hosts[j].p, &a->hosts[i].last.report);
		}
	}
}

static void periods(struct array *a, int n)
{
	while (n-- > 0)
		period(a);
}

/* Check that each running host has its share of the sum of the windows. */
static void check_shares(const struct array *a, double tolerance)
{
	double windows = 0, shares = 0;

	for (int i = 0; i < a->n; i++) {
		windows += a->hosts[i].up ? a->hosts[i].window : 0;
		shares += a->hosts[i].up ? a->hosts[i].vm.shares : 0;
	}
	for (int i = 0; i < a->n; i++) {
		if (a->hosts[i].up)
			CHECK_NEAR(a->hosts[i].window, windows * a->hosts[i].vm.shares / shares,
				tolerance);
	}
}

static const double shares_1122[] = {1, 1, 2, 2}, shares_6[] = {1, 2, 3, 1, 2, 3};

/* ---- at the fixed point */

static void test_rests_at_the_threshold(void)
{
	struct array a;

	make(&a, 4, shares_1122, false);
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.02);
	check_shares(&a, 0.01);
	CHECK_INT(a.hosts[0].last.peers, 3);
	CHECK(!a.hosts[0].last.alone && !a.hosts[0].last.twice);
	a.capacity = 800; /* slower, then faster again */
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.02);
	check_shares(&a, 0.01);
	a.stranger = 5;
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.02);
	check_shares(&a, 0.01);
	unmake(&a);
}

/* Requests of 16 and 112 KiB, 64 KiB on the mean, cost twice as much as those of 16 KiB with 32 KiB besides: all hosts
 * aim at twice the latency, in their ratios. With small ones, or where size does not count, at the threshold. */
static void check_sizes(double fixed, const double *sizes, double times)
{
	struct array a;

	make(&a, 4, shares_1122, false);
	for (int i = 0; i < a.n; i++) {
		a.hosts[i].config.size_fixed = fixed;
		a.hosts[i].bytes = sizes[i];
		start(&a, i);
	}
	periods(&a, 60);
	for (int i = 0; i < a.n; i++)
		CHECK_NEAR(a.hosts[i].last.threshold, times * THRESHOLD, 0.02);
	CHECK_NEAR(a.latency, times * THRESHOLD, 0.05);
	check_shares(&a, 0.05);
	unmake(&a);
}

static void test_sizes(void)
{
	check_sizes(32768, (const double[]){16384, 114688, 114688, 16384}, 2);
	check_sizes(32768, (const double[]){4096, 16384, 16384, 4096}, 1);
	check_sizes(0, (const double[]){16384, 114688, 114688, 16384}, 1);
}

/* With slots of 16 KiB, each host has its share of the bytes inside, in as many requests as that
 * gives. */
static void test_bytes(void)
{
	static const double sizes[] = {4096, 65536, 16384, 8192};
	struct array a;

	make(&a, 4, shares_1122, false);
	for (int i = 0; i < 4; i++) {
		a.hosts[i].config.slot = 16384;
		a.hosts[i].bytes = sizes[i];
		start(&a, i);
	}
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.02);
	for (int i = 0; i < 4; i++) {
		CHECK_NEAR(a.hosts[i].window * sizes[i] / shares_1122[i],
			a.hosts[0].window * sizes[0] / shares_1122[0], 0.01);
		CHECK_NEAR(
			a.hosts[i].last.report.window, a.hosts[i].window * sizes[i] / 16384, 0.001);
		CHECK_NEAR(
			a.hosts[i].last.report.bytes, a.hosts[i].last.report.ios * sizes[i], 0.001);
	}
	unmake(&a);
}

static void test_literal_is_equation_3(void)
{
	struct array a;

	make(&a, 4, shares_1122, true);
	periods(&a, 400);
	CHECK_NEAR(a.latency, parda_equilibrium_latency(6, 3200e-9, THRESHOLD), 0.001);
	for (int i = 0; i < 4; i++)
		CHECK_NEAR(a.hosts[i].window,
			parda_equilibrium(shares_1122[i], 6, 3200e-9, THRESHOLD), 0.001);
	unmake(&a);
}

static void test_work_is_conserved(void)
{
	struct array a;

	make(&a, 4, shares_1122, false);
	a.hosts[0].demand = a.hosts[2].demand = 2; /* they leave most of their windows unused */
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.02);
	CHECK_NEAR(a.hosts[3].window / a.hosts[1].window, 2, 0.01);
	for (int i = 0; i < 4; i++) /* not overloaded: windows grow to wmax */
		a.hosts[i].demand = 8;
	periods(&a, 60);
	CHECK(a.latency < THRESHOLD);
	for (int i = 0; i < 4; i++)
		CHECK(a.hosts[i].window > 200);
	unmake(&a);
}

static void test_equal_without_peers(void)
{
	struct array a;

	make(&a, 1, shares_1122, false);
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.02);
	CHECK(a.hosts[0].last.alone);
	unmake(&a);
}

static void test_lost_reports(void)
{
	struct array a;

	make(&a, 6, shares_6, false);
	a.loss = 0.3;
	periods(&a, 60);
	for (int t = 0; t < 100; t++) {
		period(&a);
		CHECK_NEAR(a.latency, THRESHOLD, 0.06);
		check_shares(&a, 0.05);
	}
	unmake(&a);
}

/* ---- hosts come and go */

static void test_crash(void)
{
	struct array a;
	int t = 0;

	make(&a, 6, shares_6, false);
	periods(&a, 60);
	a.hosts[5].up = false;
	while (a.hosts[0].last.peers == 5) {
		period(&a);
		check_shares(&a, 0.02);
		CHECK(++t < 10);
	}
	for (t = 0; t < 5; t++) {
		period(&a);
		check_shares(&a, 0.02);
	}
	CHECK_NEAR(a.latency, THRESHOLD, 0.03);
	periods(&a, 10);
	start(&a, 5); /* and returns as a new instance, as small as any that starts */
	a.hosts[5].window = 4;
	periods(&a, 5);
	check_shares(&a, 0.1);
	CHECK_NEAR(a.latency, THRESHOLD, 0.1);
	CHECK(!a.hosts[0].last.twice);
	unmake(&a);
}

/* The host returns before its peers missed it. */
static void test_quick_restart(void)
{
	struct array a;

	make(&a, 6, shares_6, false);
	periods(&a, 60);
	start(&a, 3);
	periods(&a, 5);
	check_shares(&a, 0.1);
	CHECK_INT(a.hosts[0].last.peers, 5);
	CHECK(!a.hosts[0].last.twice);
	periods(&a, 20);
	check_shares(&a, 0.02);
	unmake(&a);
}

static void test_pause(void)
{
	struct array a;

	make(&a, 6, shares_6, false);
	periods(&a, 60);
	a.hosts[2].up = false;
	periods(&a, 30);
	CHECK_NEAR(a.latency, THRESHOLD, 0.03);
	a.hosts[2].up = true; /* the same instance goes on, with its old window */
	periods(&a, 5);
	check_shares(&a, 0.1);
	CHECK_NEAR(a.latency, THRESHOLD, 0.1);
	unmake(&a);
}

/* An idle host keeps its weight: its window stays at its share. With equation 4 to the letter it
 * falls to wmin. */
static void check_idle_host_returns(bool by_letter)
{
	struct array a;

	make(&a, 6, shares_6, false);
	for (int i = 0; by_letter && i < a.n; i++) {
		a.hosts[i].config.idle = PARDA_IDLE_LITERAL;
		start(&a, i);
	}
	periods(&a, 60);
	a.hosts[2].demand = 0;
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.03);
	if (by_letter)
		CHECK(a.hosts[2].window < 2);
	else
		check_shares(&a, 0.1);
	a.hosts[2].demand = 1e9;
	periods(&a, 5);
	check_shares(&a, 0.1);
	unmake(&a);
}

static void test_idle_host_returns(void)
{
	check_idle_host_returns(false);
	check_idle_host_returns(true);
}

/* A host that was idle for a minute gets more than its share for a burst of one period; latency
 * is above the threshold for that period only, and busy peers keep their windows. */
static void test_burst_on_credit(void)
{
	double before;
	struct array a;

	make(&a, 4, shares_6, false);
	for (int i = 0; i < a.n; i++) {
		a.hosts[i].config.burst = 60 * WEIR_SEC;
		start(&a, i);
	}
	periods(&a, 10);
	a.hosts[2].demand = 0;
	periods(&a, 60);
	CHECK_NEAR(a.latency, THRESHOLD, 0.03);
	before = a.hosts[0].window;
	CHECK(a.hosts[2].window > 4 * before);
	a.hosts[2].demand = 1e9;
	period(&a);
	a.hosts[2].demand = 0;
	CHECK(a.latency > 1.5 * THRESHOLD);
	CHECK(a.hosts[0].window > 0.5 * before);
	periods(&a, 10);
	CHECK_NEAR(a.hosts[0].window / before, 1, 0.1);
	/* A host that does not stop again has no more than its share half a minute later. */
	a.hosts[2].demand = 1e9;
	periods(&a, 20);
	check_shares(&a, 0.1);
	CHECK_NEAR(a.latency, THRESHOLD, 0.05);
	unmake(&a);
}

static void test_clock_is_set(void)
{
	static const weir_time steps[] = {-3600 * WEIR_SEC, 3600 * WEIR_SEC, -WEIR_SEC, WEIR_SEC};
	struct array a;

	make(&a, 6, shares_6, false);
	periods(&a, 60);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		a.hosts[1].skew += steps[i];
		for (int t = 0; t < 5; t++) {
			period(&a);
			CHECK_NEAR(a.latency, THRESHOLD, 0.05);
			check_shares(&a, 0.05);
			CHECK_INT(a.hosts[1].last.peers, 5);
		}
	}
	unmake(&a);
}

static void test_partition(void)
{
	struct array a;

	make(&a, 6, shares_6, false);
	periods(&a, 60);
	a.loss = 1; /* all reports are lost */
	periods(&a, 10);
	CHECK(a.hosts[0].last.alone);
	CHECK_NEAR(a.latency, THRESHOLD, 0.05);
	check_shares(&a, 0.05); /* windows stay as they were */
	a.loss = 0;
	periods(&a, 30);
	check_shares(&a, 0.02);
	unmake(&a);
}

/* Hosts [from, 6) are cut off, measure another latency, and drift. Then the network heals. */
static void cut_off(int from, double sees)
{
	struct array a;

	make(&a, 6, shares_6, false);
	periods(&a, 60);
	for (int i = from; i < 6; i++) {
		a.hosts[i].side = 1;
		a.hosts[i].sees = sees;
	}
	periods(&a, 30);
	CHECK(fabs(a.hosts[5].window / 3 / a.hosts[0].window - 1) > 0.2); /* they did drift */
	for (int i = from; i < 6; i++) {
		a.hosts[i].side = 0;
		a.hosts[i].sees = 1;
	}
	for (int t = 0; t < 10; t++) {
		period(&a);
		if (t >= 3) {
			check_shares(&a, 0.03);
			CHECK_NEAR(a.latency, THRESHOLD, 0.05); /* the sum of the windows stays */
		}
	}
	unmake(&a);
}

static void test_sides(void)
{
	cut_off(5, 1.3); /* one host */
	cut_off(5, 0.8);
	cut_off(3, 1.2); /* a half, of equal shares */
	cut_off(3, 0.8);
	cut_off(2, 1.2); /* most of them */
}

/* ---- the threshold is found */

static void test_finds_the_threshold(void)
{
	struct array a;

	make(&a, 6, shares_6, false);
	for (int i = 0; i < 6; i++) {
		a.hosts[i].config.law.threshold = 100.0 * WEIR_MS;
		a.hosts[i].config.law.wmin = 0.05; /* there are 16 slots for 12 shares */
		a.hosts[i].config.find = true;
		start(&a, i);
	}
	periods(&a, 200);
	/* Without a queue it has its full throughput: the knee is at the service time. */
	CHECK_NEAR(a.hosts[0].last.knee, SERVICE, 0.2);
	for (int t = 0; t < 30; t++) {
		double decided = a.hosts[0].last.report.threshold;

		period(&a);
		for (int i = 0; i < 6; i++) /* as the leader said in the period before */
			CHECK_NEAR(a.hosts[i].last.threshold, decided, 1e-12);
		CHECK(a.latency < 2 * SERVICE);
		check_shares(&a, 0.05);
	}
	a.hosts[0].up = false; /* the next host decides, with what the first one knew */
	periods(&a, 30);
	CHECK_NEAR(a.hosts[1].last.knee, SERVICE, 0.2);
	CHECK_NEAR(a.hosts[5].last.threshold, SERVICE, 0.5);
	CHECK(a.latency < 2 * SERVICE);
	unmake(&a);
}

/* ---- details */

/* A host that cannot tell reports the stranger that most hosts have found, and keeps their floor. */
static void test_stranger_by_majority(void)
{
	static const double shares[] = {1, 1, 1};
	struct parda_decision *d;
	struct array a;

	make(&a, 3, shares, false);
	a.hosts[2].config.no_floor = false;
	start(&a, 2);
	periods(&a, 30);
	d = &a.hosts[2].last;
	CHECK(!d->stranger);
	for (int i = 0; i < 2; i++) {
		struct parda_report r = a.hosts[i].last.report;

		r.sequence++;
		r.floor = 40;
		CHECK_INT(parda_hear(a.hosts[2].p, &r), PARDA_FRESH);
	}
	step_host(&a, 2);
	CHECK(d->stranger);
	CHECK_NEAR(d->floor, 40, 1e-9);
	/* the floor is 0.65 of 3/4 of all inside, divided by three shares */
	CHECK_NEAR(d->strange, 40 * 3 / (0.65 * 0.75) - d->inside, 0.05);
	CHECK_NEAR(d->report.floor, 0, 0); /* its own finding */
	unmake(&a);
}

static void test_config(void)
{
	struct parda_config c = {.law = {THRESHOLD, 0.8, 1, 64}, .window = 64};
	struct parda_law good = c.law, bad = c.law;
	struct parda_measured nothing = {0};
	struct parda_decision d;
	struct parda *p = NULL;

	c.law.threshold = 0;
	CHECK_INT(parda_new(&c, &p), -EINVAL);
	c.law = (struct parda_law){THRESHOLD, 0, 1, 64};
	CHECK_INT(parda_new(&c, &p), -EINVAL);
	c.law = (struct parda_law){THRESHOLD, 1.1, 1, 64};
	CHECK_INT(parda_new(&c, &p), -EINVAL);
	c.law = (struct parda_law){THRESHOLD, 0.8, 65, 64};
	CHECK_INT(parda_new(&c, &p), -EINVAL);
	c.law = good;
	c.epsilon = -1;
	CHECK_INT(parda_new(&c, &p), -EINVAL);
	CHECK(!p);
	c.epsilon = 0;
	CHECK_INT(parda_new(&c, &p), 0);
	bad.wmax = NAN;
	CHECK_INT(parda_set_law(p, &bad), -EINVAL);
	good.wmax = 8;
	CHECK_INT(parda_set_law(p, &good), 0);
	parda_step(p, PERIOD, &nothing, &d);
	CHECK_NEAR(d.window, 8, 1e-12);
	parda_free(p);
}

/* Requests enter and none completes: the window shrinks nevertheless. */
static void test_a_hang(void)
{
	struct parda_config c = {
		.id = 1, .instance = 1, .law = {THRESHOLD, 0.8, 1, 64}, .window = 64};
	struct parda_vm vm = {.shares = 1, .outstanding = 100};
	struct parda_measured m = {.inside = 64, .vms = &vm, .n_vms = 1};
	struct parda_decision d = {0};
	struct parda *p;

	CHECK_INT(parda_new(&c, &p), 0);
	for (int i = 1; i < 5; i++) {
		m.latency_ns = 64.0 * PERIOD;
		parda_step(p, i * PERIOD, &m, &d);
	}
	CHECK(d.window < 2);
	parda_free(p);
}

int main(void)
{
	RUN(test_rests_at_the_threshold);
	RUN(test_sizes);
	RUN(test_bytes);
	RUN(test_literal_is_equation_3);
	RUN(test_work_is_conserved);
	RUN(test_equal_without_peers);
	RUN(test_lost_reports);
	RUN(test_crash);
	RUN(test_quick_restart);
	RUN(test_pause);
	RUN(test_idle_host_returns);
	RUN(test_burst_on_credit);
	RUN(test_clock_is_set);
	RUN(test_partition);
	RUN(test_sides);
	RUN(test_finds_the_threshold);
	RUN(test_stranger_by_majority);
	RUN(test_config);
	RUN(test_a_hang);
	return 0;
}
