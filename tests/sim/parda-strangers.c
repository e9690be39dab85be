/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts of the hosts themselves, at random, are no stranger: PARDA reports none. */
#include "base/rng.h"
#include "fixture.h"
#include "sim/scenario/scenario.h"
#include <math.h>

#define BURSTY 7
#define LENGTH 100.0 /* s */

static const char top[] =
	"duration: 200s\nsample: 2s\n"
	"devices: [{name: array, kind: array, preset: cx3}]\n"
	"policy: {depth: none, io_unit: 2 GiB, controller: parda, threshold: 25ms, parda: {wmax: "
	"1024},\n"
	"  tenants: [{name: vm}]}\n"
	"hosts:\n"
	"  - {name: v, count: 7, clients: {vm: [{traces: f, loop: true, base: 0 GiB, region: 16 "
	"GiB, spread: 16 GiB}]}}\n"
	"  - {name: f, clients: {vm: [{outstanding: 256, base: 112 GiB, region: 16 GiB}]}}\n";

static struct made {
	double on;   /* s: length of a burst, over the host's factor */
	double rate; /* requests a second in it; of hosts together times the factor */
	bool together; /* all hosts at the same times, with pauses of five times as long; else as long */
	double writes; /* part of the requests */
	uint64_t seed;
} made;

static double exponential(struct rng *rng, double mean)
{
	return -mean * log(1 - rng_double(rng));
}

static void write_trace(FILE *f, int host)
{
	static const double factor[] = {0.13, 0.2, 0.33, 0.5, 0.75, 1, 2};
	double rate = made.together ? made.rate * factor[host - 1] : made.rate;
	double on = made.together ? made.on : made.on / factor[host - 1];
	struct rng times, rng;
	double now = 0;

	rng_init(&times, made.seed + (made.together ? 0 : 100 * (uint64_t)host), "bursts");
	rng_init(&rng, made.seed + 100 * (uint64_t)host, "requests");
	while (now < LENGTH) {
		double end;

		now += exponential(&times, on * (made.together ? 5 : 1));
		end = now + exponential(&times, on);
		for (double at = now; (at += exponential(&rng, 1 / rate)) < end;)
			fprintf(f, "%.0f,0x%x,%s\n", at * 1e9,
				!made.together && rng_double(&rng) < 0.5 ? 65536 : 8192,
				rng_double(&rng) < made.writes ? "DiskWrite" : "DiskRead");
		now = end;
	}
}

static int give(const char *path, void *arg, char **ret, size_t *ret_len, struct weir_err *err)
{
	int host;
	FILE *f = open_memstream(ret, ret_len);

	if (sscanf(path, "f/t%d", &host) == 1)
		write_trace(f, host);
	else
		fputs("t1\nt2\nt3\nt4\nt5\nt6\nt7\n", f);
	return fclose(f);
}

/* Return the most requests of a stranger that any host reports. */
static double most_strange(struct made how)
{
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;
	double most = 0;

	made = how;
	if (scenario_parse(top, strlen(top), "t.yaml", NULL, 0, &s, &err))
		FAIL("%s", err.text);
	s->seed = made.seed;
	if (scenario_load(s, give, NULL, &err) || sim_run(s, NULL, &m, NULL, &err))
		FAIL("%s", err.text);
	for (int i = 1; i <= BURSTY; i++) {
		char name[32];
		struct metrics_entry x;

		snprintf(name, sizeof(name), "parda.v%d.stranger", i);
		CHECK(metrics_find(m, name, &x) && x.n > 0);
		for (size_t k = 0; k < x.n; k++)
			most = fmax(most, x.points[k].value);
	}
	metrics_free(m);
	scenario_free(s);
	return most;
}

static void test_bursts(void)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		CHECK_NEAR(most_strange((struct made){0.5, 360, false, 0.5, seed}), 0, 0);
}

/* Writes of all hosts that come together fill the array's cache: the device becomes slower, and faster again. */
static void test_bursts_that_meet(void)
{
	for (uint64_t seed = 1; seed <= 10; seed++)
		CHECK_NEAR(most_strange((struct made){0.2, 1280, true, 0.8, seed}), 0, 0);
}

int main(void)
{
	RUN(test_bursts);
	RUN(test_bursts_that_meet);
	return 0;
}
