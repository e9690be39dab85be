/* SPDX-License-Identifier: BSD-3-Clause */
/* adaptbf-server: keys of `adaptbf` and `tbf` in a scenario, and their effect. */
#include "fixture.h"

#define TOP                                                                                        \
	"duration: 40s\nwarmup: 12s\nsample: 1s\n"                                                 \
	"devices:\n"                                                                               \
	"  - {name: d, kind: server, rate: 1k iops, servers: 4, service: exponential, gate:\n"     \
	"      {window: 8, tenants: [{name: a, weight: 1, for: '*/a'},\n"                          \
	"        {name: g, weight: 1, children: [{name: b, weight: 1, for: '*/b'},\n"              \
	"          {name: c, weight: 3, for: '*/c'}]}]}}\n"                                        \
	"  - {name: bare, kind: server}\n"                                                         \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    device: d\n"                                                                          \
	"    window: none\n"                                                                       \
	"    tenants:\n"                                                                           \
	"      - {name: a, workloads: [{outstanding: 64}]}\n"                                      \
	"      - {name: b, workloads: [{outstanding: 64}]}\n"                                      \
	"      - {name: c, workloads: [{outstanding: 64}]}\n"                                      \
	"controllers: [{%s}]\n"

static void refused(const char *map, const char *why)
{
	fixture_refused(TOP, map, "", why);
}

static void test_the_maps(void)
{
	refused("kind: adaptbf, rate: 1k iops", "needs a 'device'");
	refused("kind: adaptbf, device: e, rate: 1k iops", "no device is named 'e'");
	refused("kind: adaptbf, device: bare, rate: 1k iops", "needs a 'gate'");
	refused("kind: adaptbf, device: d, rate: 1 MB/s", "must be in iops");
	refused("kind: adaptbf, device: d, rate: 1 MB/s, unit: bytes", "needs 'cost: bytes'");
	refused("kind: adaptbf, device: d, rate: 1k iops, token: hold", "token");
	refused("kind: adaptbf, device: d, rate: 1k iops, tokens: never", "tokens");
	refused("kind: adaptbf, device: d, rate: 1k iops, without: debt", "without");
	refused("kind: adaptbf, device: d, rate: 1k iops, depth: 0.5", "depth");
	refused("kind: adaptbf, device: d, rate: 1k iops, period: 0s", "period");
	refused("kind: tbf, device: d, rules: {}", "list");
	refused("kind: tbf, device: d, rules: [{match: a}]", "needs 'match' and 'rate'");
	refused("kind: tbf, device: d, rules: [{match: ' ', rate: 1 iops}]", "match");
	refused("kind: tbf, device: d, rules: [{match: a, rate: 1 MB/s}]", "must be in iops");
	refused("kind: tbf, device: bare", "needs a 'gate'");
	refused("kind: tbf, device: d, depth: 0", "depth");
}

static struct metrics *run_server(const char *map)
{
	return fixture_run(TOP, map, "", 1);
}

/* Half for a; of the other half, a quarter and three quarters. */
static void test_shares_of_a_tree(void)
{
	static const char *const maps[] = {
		"kind: adaptbf, device: d, rate: 700 iops, learn: true, tokens: hold",
		"kind: adaptbf, device: d, rate: 1k iops, tokens: first",
		"kind: adaptbf, device: d, rate: 1300 iops, learn: true, tokens: first"};

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
		run_server("kind: tbf, device: d, depth: 3, default: 50 iops, rules: "
			   "[{match: a x, rate: 100 iops}, {match: 'g/*', rate: 200 iops}, "
			   "{match: g/c, rate: 7 iops}]");

	CHECK_NEAR(fixture_get(m, "tenant.h.a.iops"), 100, 0.01);
	CHECK_NEAR(fixture_get(m, "tenant.h.b.iops"), 200, 0.01);
	CHECK_NEAR(fixture_get(m, "tenant.h.c.iops"), 200, 0.01); /* the first rule that matches */
	metrics_free(m);
	m = run_server("kind: tbf, device: d, default: 50 iops");
	CHECK_NEAR(fixture_get(m, "total.iops"), 150, 0.01);
	metrics_free(m);
	m = run_server("kind: tbf, device: d");
	CHECK(fixture_get(m, "total.iops") > 950); /* without a rule there is no limit */
	metrics_free(m);
}

/* Ten requests at once, every 2 s, and 10 tokens a second of which three are saved: the last
 * waits for seven. */
static void test_depth(void)
{
	struct metrics *m = fixture_run("duration: 41s\nwarmup: 1s\n"
					"devices: [{name: d, kind: server, rate: 10k iops, gate: "
					"{tenants: [{name: a, for: h}]}}]\n"
					"hosts: [{name: h, workloads: [{arrivals: uniform, rate: "
					"10k iops, on: 1ms, off: 1999ms}]}]\n"
					"controllers: [{kind: tbf, default: 10 iops, depth: 3}]\n",
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
	char gate[1500] = "", jobs[2000] = "", text[4500];
	struct sim_options options = {.seed = 1, .seed_set = 1};
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;
	double ret;
	int n;

	for (int i = 0; i < l->n; i++) {
		snprintf(gate + strlen(gate), sizeof(gate) - strlen(gate),
			"{name: j%d, for: '*/j%d', %s},", i, i, l->tenant);
		snprintf(jobs + strlen(jobs), sizeof(jobs) - strlen(jobs),
			"{name: j%d, workloads: [{%s}]},", i, l->workload);
	}
	if (l->flood) {
		strcat(gate, "{name: f, for: '*/f', weight: 1}");
		snprintf(jobs + strlen(jobs), sizeof(jobs) - strlen(jobs),
			"{name: f, workloads: [{%s}]}", l->flood);
	}
	n = snprintf(text, sizeof(text),
		"duration: 15s\nwarmup: 5s\ndevices: [{name: d, kind: server, %s, tenants: "
		"[%s]}}]\n"
		"hosts: [{name: h, device: d, window: none, tenants: [%s]}]\ncontrollers: [%s]\n",
		l->device, gate, jobs, controller);
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
#define BYTES  "rate: 20k iops, servers: 8, bandwidth: 200 MB/s, gate: {cost: bytes, window: 16"
#define LEARN  "kind: adaptbf, learn: true, tokens: hold, "

/* Limits that do not bind; jobs whose buckets fill at the same moments, so that the window is
 * full for a moment only; jobs that leave with tokens; guesses that are very low. */
static void test_a_learned_server_is_used(void)
{
	static const struct load loads[] = {
		{SERVER "rate: 10k iops, servers: 16, gate: {window: 64", "max: 100k iops",
			"outstanding: 64", 4, NULL, LEARN "rate: 1k iops"},
		{SERVER BYTES, "weight: 1", "outstanding: 16, size: 256 KiB", 16, NULL,
			LEARN "unit: bytes, rate: 100 MiB/s"},
		{SERVER BYTES, "weight: 1", "outstanding: 16, size: 1 MiB", 16, NULL,
			LEARN "unit: bytes, rate: 1 MiB/s"},
		{SERVER "rate: 2k iops, servers: 8, gate: {window: 32", "weight: 10",
			"outstanding: 16, on: 50ms, off: 150ms, random_phases: true", 6,
			"outstanding: 128", LEARN "rate: 500 iops"},
		{SERVER "rate: 2k iops, servers: 8, gate: {window: 32", "weight: 10",
			"outstanding: 16, on: 300ms, off: 700ms, random_phases: true", 6,
			"outstanding: 128", LEARN "rate: 500 iops"},
		{SERVER "rate: 100k iops, servers: 16, gate: {window: 64", "weight: 1",
			"outstanding: 64", 4, NULL, LEARN "rate: 1 iops"},
		{SERVER "rate: 1k iops, servers: 16, gate: {window: 64", "weight: 1",
			"outstanding: 64", 4, NULL, LEARN "rate: 0.01 iops"},
	};

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		char map[200];
		double part;

		snprintf(map, sizeof(map), "{%s}", loads[i].controller);
		part = served(&loads[i], map) / served(&loads[i], "");
		if (!(part >= 0.95))
			FAIL("load %zu: %.3f of the server", i, part);
	}
}

/* ---- the floor of a borrower with small requests beside lenders with large ones */

#define LENDER(name)                                                                               \
	"  {name: " name                                                                           \
	", workloads: [{arrivals: poisson, rate: 20 iops, stop: 60s, size: 4 KiB}, "               \
	"{outstanding: 32, start: 60s, size: 1 MiB}]},\n"

static void test_the_floor_in_bytes(void)
{
	static const char *const maps[] = {"tokens: first, rate: 95 MiB/s",
		"tokens: first, rate: 50 MiB/s, learn: true", "tokens: hold, rate: 95 MiB/s"};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		struct metrics *m = fixture_run(
			"duration: 90s\nwarmup: 0s\nsample: 1s\n"
			"devices: [{name: d, kind: server, servers: 8, rate: 20k iops, bandwidth: "
			"100 MB/s, "
			"service: exponential, gate: {window: 16, cost: bytes, tenants: [{name: b, "
			"for: "
			"'*/b'}, {name: l, for: '*/l'}, {name: m, for: '*/m'}, {name: n, for: "
			"'*/n'}, "
			"{name: o, for: '*/o'}]}}]\n"
			"hosts: [{name: h, device: d, window: none, tenants: [\n" LENDER("l")
				LENDER("m") LENDER("n")
					LENDER("o") "  {name: b, workloads: [{outstanding: 64, "
						    "size: 4 KiB}]}]}]\n"
						    "controllers: [{kind: adaptbf, unit: bytes, "
						    "%s}]\n",
			maps[i], "", 1);
		double all = fixture_over(m, "device.d.bandwidth", 63, 90);
		double part = fixture_over(m, "tenant.h.b.bandwidth", 63, 90) / (all / 5);

		CHECK(fixture_over(m, "adaptbf.b.record", 89, 90) < 0); /* in debt throughout */
		if (!(part >= 0.95 * 0.5))
			FAIL("%s: %.3f of its share", maps[i], part);
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
