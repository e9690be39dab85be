/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow-sweep: what shadow mode says against what enforcement gives, over devices, depths of the gate, policies, loads
 * and seeds, in virtual time. Without arguments a part of it, which is a test. `test_resource-shadow-sweep SEEDS [MODEL]` runs
 * and prints all of it for seeds 1 to SEEDS, some minutes each.
 *
 * The law's constants were chosen with seeds 1 to 3. With seeds 4 to 6, which had no part in it, open loops are off by more than
 * 15 % in 0 of 360 figures on server-4 and ssd-4, but in 57 on the array and 43 on server-16; closed loops are outside the
 * range in 0, 0, 4 and 16 of 432. So the test, with seed 1, keeps the law as good as it is; it does not show that all seeds are as good.
 *
 * Nearly all that is off has the depth below the number of disks or servers, and the device overloaded from the first request
 * on: how long a request takes alone is then seen from a handful of requests, and all loads of one seed are off alike. The
 * others share 1.2 times what the device can do: one tenant has all it wants, the other what is left, so that a small part of
 * the whole is a large part of its figure. And where every request takes equally long (fixed-16), closed loops fall into step
 * with the device: 60 of 432 are outside.
 */
#include "serve/shadow-rig.h"
#include <math.h>

static const struct shadow_model models[] = {
	{"server-4", shadow_server_4, 4000, false},
	{"server-16", shadow_server_16, 4000, false},
	{"fixed-16", shadow_fixed, 4000, false},
	{"ssd-4", shadow_ssd, 3900, false},
	{"ssd-32", shadow_ssd_32, 30000, false},
	{"array", shadow_array, 3500, true},
};
static const unsigned depths[] = {4, 10, 40, 128};
static const char *const policies[][2] = {
	{"weights", TWO("weight: 1", "weight: 2")},
	{"max", TWO("max: 300 iops", "weight: 1")},
	{"min", TWO("min: 300 iops", "weight: 4")},
};
static const double open_loads[][2] = {{1.5, 1.5}, {0.5, 2}, {0.2, 0.4}, {0.1, 2}, {0.6, 0.6}};
static const struct {
	unsigned depth;
	weir_time think;
	bool even;
} closed_loads[][2] = {
	{{64, 0, false}, {64, 0, false}},
	{{1, 0, false}, {64, 0, false}},
	{{16, 5 * WEIR_MS, true}, {64, 0, false}},
	{{32, WEIR_MS, false}, {4, 0, false}},
	{{8, 0, false}, {8, 0, false}},
	{{16, 2 * WEIR_MS, false}, {16, 2 * WEIR_MS, false}},
};

#define N(a) (sizeof(a) / sizeof(*(a)))

struct tally {
	unsigned n, off, outside, wide;
	double widths[1 << 14];
};

static struct tally open_, closed;

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(struct tally *t)
{
	qsort(t->widths, t->n, sizeof(*t->widths), by_size);
	return t->widths[t->n / 2];
}

static void show(struct tally *t, const char *what)
{
	if (t->n)
		printf("  %s: %u figures, %u off by more than 15 %%, %u outside the range, ranges "
		       "%.2f in the median, %u wider than 3\n",
			what, t->n, t->off, t->outside, median(t), t->wide);
}

static void compare(struct tally *t, const char *name, const struct shadow_run *run)
{
	struct seen is, says;

	shadow_run(run, true, &is);
	shadow_run(run, false, &says);
	for (size_t i = 0; i < run->n; i++) {
		double part = says.rate[i] / is.rate[i], wide = says.high[i] / says.low[i];
		bool off = !(fabs(part - 1) <= 0.15);
		bool outside = !(says.low[i] <= is.rate[i] && is.rate[i] <= says.high[i]);

		CHECK(t->n < N(t->widths));
		t->widths[t->n++] = wide;
		t->off += off;
		t->outside += outside;
		t->wide += !(wide <= 3);
		CHECK(says.queued[i] <= 1024);
		if (outside || (off && t == &open_))
			printf("  %s, depth %u, %s, seed %u: %c: %.0f, shadow %.0f (%.2f; %.0f … "
			       "%.0f)\n",
				run->model->name, run->depth, name, (unsigned)run->seed,
				(char)('a' + i), is.rate[i], says.rate[i], part, says.low[i],
				says.high[i]);
	}
}

static void compare_open(struct shadow_run run, size_t policy, size_t load)
{
	struct rig_client c[2];
	char name[64];

	for (size_t i = 0; i < 2; i++)
		c[i] = (struct rig_client){
			.rate = open_loads[load][i] * run.model->rate, .length = 4096};
	snprintf(name, sizeof(name), "%s, open %.1f and %.1f", policies[policy][0],
		open_loads[load][0], open_loads[load][1]);
	run.tenants = policies[policy][1];
	run.clients = c;
	run.n = 2;
	compare(&open_, name, &run);
}

static void compare_closed(struct shadow_run run, size_t policy, size_t load)
{
	struct rig_client c[2];
	char name[64];

	for (size_t i = 0; i < 2; i++)
		c[i] = (struct rig_client){.depth = closed_loads[load][i].depth,
			.think = closed_loads[load][i].think,
			.even = closed_loads[load][i].even,
			.length = 4096};
	snprintf(name, sizeof(name), "%s, closed %u and %u, think %.0f and %.0f ms",
		policies[policy][0], c[0].depth, c[1].depth, (double)c[0].think / WEIR_MS,
		(double)c[1].think / WEIR_MS);
	run.tenants = policies[policy][1];
	run.clients = c;
	run.n = 2;
	compare(&closed, name, &run);
}

static void sweep(const struct shadow_model *m, unsigned depth, uint64_t seed)
{
	struct shadow_run run = {.model = m, .depth = depth, .seed = seed};

	for (size_t p = 0; p < N(policies); p++) {
		for (size_t l = 0; l < N(open_loads); l++)
			compare_open(run, p, l);
		for (size_t l = 0; l < N(closed_loads); l++)
			compare_closed(run, p, l);
	}
}

static void test_part(void)
{
	static const struct {
		size_t model;
		unsigned depth;
	} some[] = {{0, 4}, {0, 10}, {3, 4}, {3, 10}, {5, 10}};

	for (size_t i = 0; i < N(some); i++) {
		struct shadow_run run = {
			.model = &models[some[i].model], .depth = some[i].depth, .seed = 1};

		for (size_t p = 0; p < 2; p++) {
			compare_open(run, p, 0);
			compare_open(run, p, 3);
			compare_closed(run, p, 0);
			compare_closed(run, p, 4);
		}
	}
	show(&open_, "open loop");
	show(&closed, "closed loop");
	CHECK_INT(open_.off, 0);
	CHECK_INT(closed.outside, 0);
	CHECK(median(&closed) <= 2);
	CHECK(closed.wide * 10 <= closed.n);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		RUN(test_part);
		return 0;
	}
	for (size_t m = 0; m < N(models); m++) {
		if (argc > 2 && strcmp(argv[2], models[m].name) != 0)
			continue;
		open_.n = open_.off = open_.outside = open_.wide = 0;
		closed.n = closed.off = closed.outside = closed.wide = 0;
		for (uint64_t seed = 1; seed <= strtoull(argv[1], NULL, 10); seed++)
			for (size_t d = 0; d < N(depths); d++)
				sweep(&models[m], depths[d], seed);
		printf("%s\n", models[m].name);
		show(&open_, "open loop");
		show(&closed, "closed loop");
	}
	return 0;
}
