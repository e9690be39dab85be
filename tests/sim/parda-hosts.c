/* SPDX-License-Identifier: BSD-3-Clause */
/* parda-hosts: keys of the scenario, and windows that reach their shares in the whole world. */
#include "fixture.h"

#define TOP                                                                                        \
	"duration: 120s\nwarmup: 60s\nsample: 0s\n"                                                \
	"devices: [{name: d, kind: server, rate: 1k iops, service: fixed%s}]\n"                    \
	"hosts:\n"                                                                                 \
	"  - {name: a, policy: {tenants: [{name: t, weight: 1}]}, workloads: [{outstanding: "      \
	"99}]}\n"                                                                                  \
	"  - {name: b, policy: {tenants: [{name: t, weight: 2}]}, workloads: [{outstanding: "      \
	"99}]}\n"                                                                                  \
	"  - {name: idle, policy: {tenants: [{name: t, weight: 7}]}}\n"                            \
	"policy: {depth: 32, controller: parda%s\n"
static void refused(const char *map, const char *why)
{
	fixture_refused(TOP, "", map, why);
}

static void test_the_map(void)
{
	refused("}", "needs a threshold");
	refused(", threshold: 30}", "unit");
	refused(", threshold: 0s}", "more than 0");
	refused(", threshold: 30ms, parda: {thresold: 1ms}}", "threshold");
	refused(", threshold: 30ms, parda: {gamma: 1.5}}", "gamma");
	refused(", threshold: 30ms, parda: {wmin: 9, wmax: 8}}", "wmin");
	refused(", threshold: 30ms, parda: {estimate: mine}}", "estimate");
	refused(", threshold: 30ms, lab: {without: everything}}", "without");
	refused(", threshold: 30ms}\nmessages: {loss: 1.1}", "loss");
	refused(", threshold: 30ms}\nmessages: {delay: 9s}", "delay");
	refused(", threshold: 30ms, parda: {alpha: 2}}", "alpha");
	refused(", threshold: 30ms, peers: {period: 0s}}", "period");
	refused(", threshold: 30ms, parda: {start: soon}}", "least");
	refused(", threshold: 30ms, parda: {stranger: none}}", "ignore");
	refused(", threshold: 30ms, parda: {idle: mean}}", "average");
	refused(", threshold: 30ms, parda: {burst: 2h}}", "burst");
	refused(", threshold: 30ms, parda: {probe: true}}", "threshold: auto");
}

static struct metrics *run_hosts(const char *device, const char *map)
{
	return fixture_run(TOP, device, map, 1);
}

/* idle: the window of the idle host, with seven of ten shares. */
static void check_shares(const char *device, const char *map, double latency, double idle)
{
	struct metrics *m = run_hosts(device, map);

	CHECK_NEAR(fixture_get(m, "parda.b.window_end") / fixture_get(m, "parda.a.window_end"), 2,
		0.05);
	CHECK_NEAR(fixture_get(m, "host.b.iops") / fixture_get(m, "host.a.iops"), 2, 0.05);
	CHECK_NEAR(fixture_get(m, "device.d.mean"), latency, 0.05);
	CHECK_NEAR(fixture_get(m, "parda.idle.window_end"), idle, 0.01);
	metrics_free(m);
}

static void test_shares(void)
{
	check_shares("", ", threshold: 30ms}", 30, 64); /* wmax: its part is 70 */
	check_shares("", ", threshold: 30ms, parda: {idle: literal, burst: 0s}}", 30, 1); /* wmin */
	check_shares("", ", threshold: 30ms, parda: {idle: literal}}", 30,
		1); /* nothing is saved before the first load */
	check_shares("", ", threshold: 60ms, parda: {wmax: 200, burst: 0s}}", 60, 140);
	check_shares("", ", threshold: 60ms, parda: {wmax: 200}}", 60, 140); /* as above */
	check_shares("", ", threshold: 30ms}\nmessages: {delay: 3s, loss: 0.2}", 30, 64);
	check_shares("", ", threshold: 30ms, parda: {smoothing: io}}", 30, 64);
	check_shares("", ", threshold: 30ms, parda: {smoothing: interval}}", 30, 64);
	/* 𝓛 + Σβ/C, by equation 3 */
	check_shares("", ", threshold: 30ms, lab: {unit: 2}, parda: {epsilon: 0}}", 36, 64);
}

/* A host without the controller keeps its window, and the others do not hear of it. */
static void test_only_some(void)
{
	struct metrics *m =
		fixture_run("duration: 120s\nwarmup: 60s\nsample: 0s\n"
			    "devices: [{name: d, kind: server, rate: 1k iops, service: fixed}]\n"
			    "policy: {depth: 32, controller: parda, threshold: 30ms}\n"
			    "hosts:\n"
			    "  - {name: a, workloads: [{outstanding: 99}]}\n"
			    "  - {name: b, workloads: [{outstanding: 99}]}\n"
			    "  - {name: idle, policy: {controller: none}, workloads: []}\n",
			"", "", 1);
	double x;

	CHECK_INT(metrics_get(m, "parda.idle.window_end", &x), -ENOENT);
	CHECK_NEAR(fixture_get(m, "parda.a.peers_end"), 1, 0);
	CHECK_NEAR(fixture_get(m, "host.idle.window_end"), 32, 0); /* the gate's own */
	metrics_free(m);
}

/* All hosts under one controller have the same settings: the law needs one threshold. */
static void test_different_settings(void)
{
	fixture_refused("duration: 1s\n"
			"devices: [{name: d, kind: server}]\n"
			"policy: {controller: parda, threshold: 30ms}\n"
			"hosts:\n"
			"  - {name: a, workloads: []}\n"
			"  - {name: b, policy: {threshold: 20ms}, workloads: []}\n",
		"", "", "the same one, with the same settings");
}

/* Ten requests are inside the device at once, the others wait for a slot in its gate: that is
 * the device's queue. Requests that a limit holds there are not in the device's queue. */
static void test_a_gate_upstream(void)
{
	struct metrics *m =
		run_hosts(", policy: {depth: 10}", ", threshold: 30ms, parda: {wmax: 40}}");

	CHECK_NEAR(fixture_get(m, "parda.a.window_end"), 10, 0.05);
	CHECK_NEAR(fixture_get(m, "parda.b.window_end"), 20, 0.05);
	metrics_free(m);
	m = run_hosts(
		", policy: {depth: none, tenants: [{name: x, max: 100 iops, match: {export: a/t}}, "
		"{name: y, match: {export: \"*\"}}]}",
		", threshold: 30ms, parda: {wmax: 40}}");
	CHECK_NEAR(fixture_get(m, "host.a.iops"), 100, 0.02);
	CHECK_NEAR(fixture_get(m, "parda.b.window_end"), 27, 0.1); /* 900 a second at 30 ms */
	metrics_free(m);
}

/* A host that is down does nothing, and one that returns reaches its share; a clock that is set
 * changes nothing. */
static void test_faults(void)
{
	struct metrics *m = run_hosts(
		"", ", threshold: 30ms}\nfaults: [{kind: crash, host: b, time: 60s, for: 100s}]");

	CHECK(fixture_get(m, "host.b.iops") < 1);              /* requests inside came back */
	CHECK_NEAR(fixture_get(m, "parda.a.peers_end"), 1, 0); /* idle; b was forgotten */
	CHECK_NEAR(fixture_get(m, "parda.a.window_end"), 30, 0.05);
	metrics_free(m);
	check_shares("",
		", threshold: 30ms}\nfaults: [{kind: crash, host: b, time: 20s, for: 20s}]", 30,
		64);
	check_shares("",
		", threshold: 30ms}\nfaults: [{kind: pause, host: b, time: 20s, for: 20s}]", 30,
		64);
	check_shares("",
		", threshold: 30ms}\nfaults: [{kind: partition, host: b, time: 10s, for: 30s}]", 30,
		64);
	check_shares("",
		", threshold: 30ms}\nfaults: [{kind: clock, host: b, time: 50s, by: 3600s, back: "
		"true}, {kind: clock, host: a, time: 40s, by: 3600s}]",
		30, 64);
	refused(", threshold: 30ms}\nfaults: [{kind: crash, host: z, time: 1s, for: 1s}]",
		"named 'z'");
	refused(", threshold: 30ms}\nfaults: [{kind: crash, host: a, time: 1s}]", "for");
	refused(", threshold: 30ms}\nfaults: [{kind: clock, host: a, time: 1s}]", "by");
	refused(", threshold: 30ms}\nfaults: [{kind: fire, host: a, time: 1s, for: 1s}]", "kind");
	refused(", threshold: 30ms}\nfaults: {}", "list");
}

/* Cut off to the end, each host goes on alone: the others are forgotten. */
static void test_cut_off(void)
{
	struct metrics *m = fixture_run(TOP, "",
		", threshold: 30ms}\nfaults: [{kind: partition, host: b, time: 10s, for: 200s}]",
		1);

	CHECK_INT(fixture_get(m, "parda.a.peers_end"), 1); /* the idle one */
	CHECK_INT(fixture_get(m, "parda.b.peers_end"), 0);
	metrics_free(m);
}

/* A tenant's min comes before shares. */
static void test_min(void)
{
	struct metrics *m =
		fixture_run("duration: 120s\n"
			    "warmup: 60s\n"
			    "sample: 0s\n"
			    "devices:\n"
			    "  - {name: d, kind: server, rate: 1k iops, service: fixed}\n"
			    "policy: {depth: 32, controller: parda, threshold: 30ms}\n"
			    "hosts:\n"
			    "  - name: a\n"
			    "    policy: {tenants: [{name: t, min: 700 iops}]}\n"
			    "    clients: {t: [{outstanding: 99}]}\n"
			    "  - {name: b, policy: {tenants: [{name: t}]}, clients: {t: "
			    "[{outstanding: 99}]}}\n",
			"", "", 1);

	CHECK(fixture_get(m, "tenant.a.t.iops") > 690);
	CHECK_NEAR(fixture_get(m, "total.iops"), 1000, 0.01);
	metrics_free(m);
}

/* A host starts at wmin before its first request passes, or at its gate's own window. */
static void test_start(void)
{
	static const char scenario[] =
		"duration: 1s\n"
		"warmup: 0s\n"
		"sample: 0s\n"
		"devices:\n"
		"  - {name: d, kind: server, rate: 1k iops, service: fixed}\n"
		"hosts:\n"
		"  - name: a\n"
		"    policy: {depth: 32, controller: parda, threshold: 30ms, parda: {%s%s}}\n"
		"    workloads: [{outstanding: 99}]\n";
	struct metrics *m = fixture_run(scenario, "", "", 1);

	CHECK_NEAR(fixture_get(m, "device.d.mean"), 1, 0.01); /* one at a time */
	metrics_free(m);
	m = fixture_run(scenario, "start: depth", "", 1);
	CHECK(fixture_get(m, "device.d.mean") > 20);
	metrics_free(m);
}

int main(void)
{
	RUN(test_start);
	RUN(test_the_map);
	RUN(test_shares);
	RUN(test_only_some);
	RUN(test_different_settings);
	RUN(test_a_gate_upstream);
	RUN(test_faults);
	RUN(test_cut_off);
	RUN(test_min);
	return 0;
}
