/* SPDX-License-Identifier: BSD-3-Clause */
/* adaptbf-server: what the scenario may say of `adaptbf` and `tbf`, and that they do it. */
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
	refused("kind: adaptbf, device: d", "needs a 'rate'");
	refused("kind: adaptbf, device: d, rate: 1 MB/s", "must be in iops");
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

static struct metrics *run(const char *map)
{
	return fixture_run(TOP, map, "", 1);
}

/* Half for a; of the other half, a quarter and three. */
static void test_shares_of_a_tree(void)
{
	static const char *const maps[] = {
		"kind: adaptbf, device: d, rate: 700 iops, learn: true, tokens: hold",
		"kind: adaptbf, device: d, rate: 1k iops, tokens: first",
		"kind: adaptbf, device: d, rate: 1300 iops, learn: true, tokens: first"};

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		struct metrics *m = run(maps[i]);

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
	struct metrics *m = run("kind: tbf, device: d, depth: 3, default: 50 iops, rules: "
				"[{match: a x, rate: 100 iops}, {match: 'g/*', rate: 200 iops}, "
				"{match: g/c, rate: 7 iops}]");

	CHECK_NEAR(fixture_get(m, "tenant.h.a.iops"), 100, 0.01);
	CHECK_NEAR(fixture_get(m, "tenant.h.b.iops"), 200, 0.01);
	CHECK_NEAR(fixture_get(m, "tenant.h.c.iops"), 200, 0.01); /* the first that fits has it */
	metrics_free(m);
	m = run("kind: tbf, device: d, default: 50 iops");
	CHECK_NEAR(fixture_get(m, "total.iops"), 150, 0.01);
	metrics_free(m);
	m = run("kind: tbf, device: d");
	CHECK(fixture_get(m, "total.iops") > 950); /* no rule, no limit */
	metrics_free(m);
}

/* Ten requests at once, every 2 s, and 10 tokens a second of which three are kept: the last waits for seven. */
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

int main(void)
{
	RUN(test_the_maps);
	RUN(test_shares_of_a_tree);
	RUN(test_rules);
	RUN(test_depth);
	return 0;
}
