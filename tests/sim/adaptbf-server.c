/* SPDX-License-Identifier: BSD-3-Clause */
/* adaptbf-server: keys of `adaptbf` and `tbf` in a scenario, and their effect. */
#include "fixture.h"

#define TOP                                                                                        \
	"duration: 40s\nwarmup: 12s\nsample: 1s\n"                                                 \
	"devices:\n"                                                                               \
	"  - {name: d, kind: server, rate: 1k iops, servers: 4, service: exponential, policy:\n"   \
	"      {depth: 8, %s, tenants: [{name: a, weight: 1},\n"                                   \
	"        {name: g, weight: 1, children: [{name: b, weight: 1},\n"                          \
	"          {name: c, weight: 3}]}]}}\n"                                                    \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    policy: {depth: none, tenants: [{name: a}, {name: b}, {name: c}]}\n"                  \
	"    clients: {a: [{outstanding: 64}], b: [{outstanding: 64}], c: [{outstanding: 64}]}\n"
#define ADAPTBF(rate, keys) "controller: adaptbf, capacity: " rate ", adaptbf: {" keys "}"
#define TBF(keys)           "controller: tbf, tbf: {" keys "}"

static void refused(const char *map, const char *why)
{
	fixture_refused(TOP, map, "", why);
}

static void test_the_maps(void)
{
	refused("adaptbf: {tokens: hold}", "adaptbf is for 'controller: adaptbf'");
	refused("controller: parda, threshold: 30ms", "cannot be the controller of a device's");
	refused(ADAPTBF("auto", "guess: 1 MB/s"), "must be in iops");
	refused(ADAPTBF("1k iops", "token: hold"), "token");
	refused(ADAPTBF("1k iops", "tokens: never"), "tokens");
	refused(ADAPTBF("1k iops", "") ", lab: {without: debt}", "without");
	refused(ADAPTBF("1k iops", "depth: 0.5"), "depth");
	refused(ADAPTBF("1k iops", "period: 0s"), "period");
	refused(TBF("rules: {}"), "list");
	refused(TBF("rules: [{match: a}]"), "needs 'match' and 'rate'");
	refused(TBF("rules: [{match: ' ', rate: 1 iops}]"), "match");
	refused(TBF("rules: [{match: a, rate: 1 MB/s}]"), "must be in iops");
	refused(TBF("depth: 0"), "depth");
	fixture_refused("duration: 1s\n"
			"devices: [{name: d, kind: server, policy: {controller: adaptbf}}]\n"
			"hosts: [{name: h, workloads: []}]\n",
		"", "", "needs 'tenants'");
}

static struct metrics *run_server(const char *map)
{
	return fixture_run(TOP, map, "", 1);
}

/* Half for a; of the other half, a quarter and three quarters. */
static void test_shares_of_a_tree(void)
{
	static const char *const maps[] = {ADAPTBF("auto", "guess: 700 iops, tokens: hold"),
		ADAPTBF("1k iops", "tokens: first"),
		ADAPTBF("auto", "guess: 1300 iops, tokens: first")};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		struct metrics *m = run_server(maps[i]);

		CHECK_NEAR(fixture_get(m, "tenant.h.a.share"), 0.5, 0.05);
		CHECK_NEAR(fixture_get(m, "tenant.h.b.share"), 0.125, 0.1);
		CHECK_NEAR(fixture_get(m, "tenant.h.c.share"), 0.375, 0.05);
		CHECK(fixture_get(m, "total.iops") > 940);
		CHECK_NEAR(fixture_get(m, "adaptbf.server.tokens_off"), 0, 0);
		CHECK_NEAR(fixture_get(m, "adaptbf.server.records_off"), 0, 0);
		CHECK_INT(fixture_get(m, "adaptbf.server.steps"), 399); /* 0.1 s … 39.9 s */
		metrics_free(m);
	}
}

static void test_rules(void)
{
	struct metrics *m =
		run_server(TBF("depth: 3, default: 50 iops, rules: "
			       "[{match: a x, rate: 100 iops}, {match: 'g/*', rate: 200 iops}, "
			       "{match: g/c, rate: 7 iops}]"));

	CHECK_NEAR(fixture_get(m, "tenant.h.a.iops"), 100, 0.01);
	CHECK_NEAR(fixture_get(m, "tenant.h.b.iops"), 200, 0.01);
	CHECK_NEAR(fixture_get(m, "tenant.h.c.iops"), 200, 0.01); /* the first rule that matches */
	metrics_free(m);
	m = run_server(TBF("default: 50 iops"));
	CHECK_NEAR(fixture_get(m, "total.iops"), 150, 0.01);
	metrics_free(m);
	m = run_server(TBF(""));
	CHECK(fixture_get(m, "total.iops") > 950); /* without a rule there is no limit */
	metrics_free(m);
}

/* Ten requests at once, every 2 s, and 10 tokens a second of which three are saved: the last
 * waits for seven. */
static void test_depth(void)
{
	struct metrics *m = fixture_run(
		"duration: 41s\n"
		"warmup: 1s\n"
		"devices:\n"
		"  - name: d\n"
		"    kind: server\n"
		"    rate: 10k iops\n"
		"    policy:\n"
		"      depth: 32\n"
		"      controller: tbf\n"
		"      tbf: {default: 10 iops, depth: 3}\n"
		"      tenants: [{name: a, match: {export: \"h/*\"}}]\n"
		"hosts:\n"
		"  - name: h\n"
		"    policy: {depth: 32}\n"
		"    workloads: [{arrivals: uniform, rate: 10k iops, on: 1ms, off: 1999ms}]\n",
		"", "", 1);

	CHECK_NEAR(fixture_get(m, "tenant.h.main.max"), 700, 0.01);
	metrics_free(m);
}

/* ---- a learned capacity while tokens hold requests */

struct load {
	const char *device, *tenant, *workload; /* for each of n jobs */
	int n;
	const char *flood; /* a workload of another job of weight 1, or NULL */
	const char *controller;
};

/* Return the bytes served from 5 s to 15 s. */
static double served(const struct load *l, const char *controller)
{
	char gate[1500] = "", jobs[500] = "", clients[2000] = "", text[4500];
	struct sim_options options = {.seed = 1, .seed_set = 1};
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;
	double ret;
	int n;

	for (int i = 0; i < l->n; i++) {
		snprintf(gate + strlen(gate), sizeof(gate) - strlen(gate), "{name: j%d, %s},", i,
			l->tenant);
		snprintf(jobs + strlen(jobs), sizeof(jobs) - strlen(jobs), "{name: j%d},", i);
		snprintf(clients + strlen(clients), sizeof(clients) - strlen(clients),
			"j%d: [{%s}],", i, l->workload);
	}
	if (l->flood) {
		strcat(gate, "{name: f, weight: 1}");
		strcat(jobs, "{name: f}");
		snprintf(clients + strlen(clients), sizeof(clients) - strlen(clients), "f: [{%s}]",
			l->flood);
	}
	n = snprintf(text, sizeof(text),
		"duration: 15s\nwarmup: 5s\ndevices: [{name: d, kind: server, %s, io_unit: 2 GiB, "
		"%s, tenants: [%s]}}]\n"
		"hosts: [{name: h, policy: {depth: none, io_unit: 2 GiB, tenants: [%s]}, clients: "
		"{%s}}]\n",
		l->device, controller, gate, jobs, clients);
	CHECK(n > 0 && (size_t)n < sizeof(text));
	if (scenario_parse(text, (size_t)n, "test", NULL, 0, &s, &err) ||
		sim_run(s, &options, &m, NULL, &err))
		FAIL("%s", err.text);
	scenario_free(s);
	ret = fixture_get(m, "total.bytes");
	metrics_free(m);
	return ret;
}

#define SERVER "service: exponential, "
#define BYTES  "rate: 20k iops, servers: 8, bandwidth: 200 MB/s, policy: {cost: bytes, depth: 16"
#define LEARN  "controller: adaptbf, adaptbf: {tokens: hold, "

/* Limits that do not bind; jobs whose buckets fill at the same moments, so that the window is
 * full for a moment only; jobs that leave with tokens; guesses that are very low. */
static void test_a_learned_server_is_used(void)
{
	static const struct load loads[] = {
		{SERVER "rate: 10k iops, servers: 16, policy: {depth: 64", "max: 100k iops",
			"outstanding: 64", 4, NULL, LEARN "guess: 1k iops}"},
		{SERVER BYTES, "weight: 1", "outstanding: 16, size: 256 KiB", 16, NULL,
			LEARN "unit: bytes, guess: 100 MiB/s}"},
		{SERVER BYTES, "weight: 1", "outstanding: 16, size: 1 MiB", 16, NULL,
			LEARN "unit: bytes, guess: 1 MiB/s}"},
		{SERVER "rate: 2k iops, servers: 8, policy: {depth: 32", "weight: 10",
			"outstanding: 16, on: 50ms, off: 150ms, random_phases: true", 6,
			"outstanding: 128", LEARN "guess: 500 iops}"},
		{SERVER "rate: 2k iops, servers: 8, policy: {depth: 32", "weight: 10",
			"outstanding: 16, on: 300ms, off: 700ms, random_phases: true", 6,
			"outstanding: 128", LEARN "guess: 500 iops}"},
		{SERVER "rate: 100k iops, servers: 16, policy: {depth: 64", "weight: 1",
			"outstanding: 64", 4, NULL, LEARN "guess: 1 iops}"},
		{SERVER "rate: 1k iops, servers: 16, policy: {depth: 64", "weight: 1",
			"outstanding: 64", 4, NULL, LEARN "guess: 0.01 iops}"},
	};

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		double part = served(&loads[i], loads[i].controller) /
			      served(&loads[i], "controller: none");

		if (!(part >= 0.95))
			FAIL("load %zu: %.3f of the server", i, part);
	}
}

/* ---- the floor of a borrower with small requests beside lenders with large ones */

#define LENDER(name)                                                                               \
	name ": [{arrivals: poisson, rate: 20 iops, stop: 60s, size: 4 KiB}, "                     \
	     "{outstanding: 32, start: 60s, size: 1 MiB}], "
#define FIVE "tenants: [{name: b}, {name: l}, {name: m}, {name: n}, {name: o}]"

static void test_the_floor_in_bytes(void)
{
	static const char *const maps[][2] = {{"tokens: first", "95 MiB/s"},
		{"tokens: first, guess: 50 MiB/s", "auto"}, {"tokens: hold", "95 MiB/s"}};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		struct metrics *m = fixture_run(
			"duration: 90s\nwarmup: 0s\nsample: 1s\n"
			"devices: [{name: d, kind: server, servers: 8, rate: 20k iops, bandwidth: "
			"100 MB/s, service: exponential, policy: {depth: 16, io_unit: 2 GiB, "
			"controller: adaptbf, adaptbf: {unit: bytes, %s}, capacity: %s, " FIVE
			"}}]\n"
			"hosts: [{name: h, policy: {depth: none, io_unit: 2 GiB, " FIVE "}, "
			"clients: {" LENDER("l") LENDER("m") LENDER("n")
				LENDER("o") "b: [{outstanding: 64, size: 4 KiB}]}}]\n",
			maps[i][0], maps[i][1], 1);
		double all = fixture_over(m, "device.d.bandwidth", 63, 90);
		double part = fixture_over(m, "tenant.h.b.bandwidth", 63, 90) / (all / 5);

		CHECK(fixture_over(m, "adaptbf.b.record", 89, 90) < 0); /* in debt throughout */
		if (!(part >= 0.95 * 0.5))
			FAIL("%s: %.3f of its share", maps[i][0], part);
		metrics_free(m);
	}
}

int main(void)
{
	RUN(test_the_maps);
	RUN(test_shares_of_a_tree);
	RUN(test_rules);
	RUN(test_depth);
	RUN(test_a_learned_server_is_used);
	RUN(test_the_floor_in_bytes);
	return 0;
}
