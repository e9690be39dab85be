/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-near: shadow mode near the saturation of a server, where an error of the device's rate is
 * all the error of the tenant that gets the rest; with a thread that wakes late or does not run for
 * a while, as on a busy machine. In virtual time, two open loops, weights 3 : 1.
 */
#include "serve/shadow-rig.h"
#include <math.h>

#define N(a)  (sizeof(a) / sizeof(*(a)))
#define SEEDS 2
#define WIDE  1.5 /* a range of at least that ratio of its ends says that the figure may miss */

struct near {
	const char *name;
	uint32_t servers;
	weir_time service, late, stall, stall_every;
};

static const struct near on_time[] = {
	{"8 of 1.5 ms", 8, 1500 * WEIR_US, 0, 0, 0},
	{"32 of 6 ms", 32, 6 * WEIR_MS, 0, 0, 0},
};
static const struct near late[] = {
	{"8 of 1.5 ms, late by 0.3 ms", 8, 1500 * WEIR_US, 300 * WEIR_US, 0, 0},
	{"8 of 3 ms, late by 0.3 ms", 8, 3 * WEIR_MS, 300 * WEIR_US, 0, 0},
	{"8 of 0.2 ms, late by 0.02 ms", 8, 200 * WEIR_US, 20 * WEIR_US, 0, 0},
};
static const struct near stalled[] = {
	{"8 of 1.5 ms, stalls of 3 ms in 9", 8, 1500 * WEIR_US, 0, 3 * WEIR_MS, 9 * WEIR_MS},
	{"8 of 1.5 ms, stalls of 3 ms in 20", 8, 1500 * WEIR_US, 100 * WEIR_US, 3 * WEIR_MS,
		20 * WEIR_MS},
	{"8 of 1.5 ms, stalls of 8 ms in 80", 8, 1500 * WEIR_US, 50 * WEIR_US, 8 * WEIR_MS,
		80 * WEIR_MS},
};
static const double loads[] = {0.80, 0.90, 0.95, 0.98, 1.0, 1.05};

static struct server_config server;

static struct device *make(uint64_t seed)
{
	struct device *d;
	struct weir_err err;

	CHECK_INT(server_new(&server, seed, "server", &d, &err), 0);
	return d;
}

struct tally {
	unsigned n, missed, outside, narrow; /* narrow: missed, with a range that is not wide */
	double bias;                         /* of the light tenant: log, a sum */
};

static void judge(struct tally *t, const char *what, const struct seen *is, const struct seen *says)
{
	for (int i = 0; i < 2; i++) {
		bool missed = fabs(says->rate[i] - is->rate[i]) > 0.15 * is->rate[i];
		bool outside = is->rate[i] < says->low[i] || is->rate[i] > says->high[i];

		t->n++;
		t->missed += missed;
		t->outside += outside;
		t->narrow += missed && says->high[i] < WIDE * says->low[i];
		if (missed || outside)
			printf("  %s%s%s, %c: %.0f, shadow %.0f (%.2f; %.0f … %.0f)\n",
				missed ? "MISSED " : "", outside ? "OUTSIDE " : "", what, 'a' + i,
				is->rate[i], says->rate[i], says->rate[i] / is->rate[i],
				says->low[i], says->high[i]);
	}
	t->bias += log(says->rate[1] / is->rate[1]);
}

/* b: "weight: 1", or a max below what it sends. */
static void compare(
	struct tally *t, const struct near *how, double load, const char *b, uint64_t seed)
{
	double rate = how->servers * 1e9 / (double)how->service;
	struct shadow_model model = {"server", make, rate, false};
	struct rig_client c[2] = {{.rate = load * rate / 2, .length = 4096},
		{.rate = load * rate / 2, .length = 4096}};
	char text[256], what[128];
	struct shadow_run run = {.model = &model,
		.depth = how->servers,
		.tenants = text,
		.clients = c,
		.n = 2,
		.seed = seed,
		.late = how->late,
		.stall = how->stall,
		.stall_every = how->stall_every};
	struct seen is, says;

	server = (struct server_config){
		.servers = how->servers, .rate = rate, .service = SERVER_EXPONENTIAL};
	snprintf(text, sizeof(text),
		"  - {name: a, weight: 3, match: {export: a}}\n  - {name: b, %s, match: {export: "
		"b}}\n",
		b);
	snprintf(what, sizeof(what), "%s, load %.2f, %s", how->name, load, b);
	shadow_run(&run, true, &is);
	shadow_run(&run, false, &says);
	judge(t, what, &is, &says);
}

/* No figure misses; if the thread stalls, only with a wide range. Ranges are of two deviations: one
 * in twenty figures may lie outside. The tenant that gets the rest is not shown too low or too high
 * on average. */
static void check(const struct near *how, size_t n, bool may_miss)
{
	struct tally t = {0};

	for (size_t i = 0; i < n * N(loads) * SEEDS; i++) {
		const struct near *h = &how[i / SEEDS / N(loads)];
		double load = loads[i / SEEDS % N(loads)];
		char max[32];

		snprintf(max, sizeof(max), "max: %.0f iops",
			0.375 * h->servers * 1e9 / (double)h->service);
		compare(&t, h, load, "weight: 1", 1 + i % SEEDS);
		compare(&t, h, load, max, 1 + i % SEEDS);
	}
	printf("  %u figures, %u missed, %u outside, bias %.3f\n", t.n, t.missed, t.outside,
		t.bias / (t.n / 2));
	CHECK(may_miss || !t.missed);
	CHECK_INT(t.narrow, 0);
	CHECK(t.outside <= t.n / 20);
	CHECK(fabs(t.bias) <= 0.10 * (t.n / 2));
}

static void test_on_time(void)
{
	check(on_time, N(on_time), false);
}

static void test_late(void)
{
	check(late, N(late), false);
}

/* The pauses differ from one second to the next. */
static void test_stalled(void)
{
	check(stalled, N(stalled), true);
}

int main(void)
{
	RUN(test_on_time);
	RUN(test_late);
	RUN(test_stalled);
	return 0;
}
