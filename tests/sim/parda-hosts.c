/* SPDX-License-Identifier: BSD-3-Clause */
/* parda-hosts: what the scenario may say, and that windows come to their shares in the whole world. */
#include "sim/metrics.h"
#include "sim/sim.h"
#include "test.h"
#include <errno.h>

#define TOP                                                                                        \
	"duration: 120s\nwarmup: 60s\nsample: 0s\n"                                                \
	"devices: [{name: d, kind: server, rate: 1k iops, service: fixed%s}]\n"                    \
	"hosts:\n"                                                                                 \
	"  - {name: a, tenants: [{name: t, weight: 1, workloads: [{outstanding: 99}]}]}\n"         \
	"  - {name: b, tenants: [{name: t, weight: 2, workloads: [{outstanding: 99}]}]}\n"         \
	"  - {name: idle, tenants: [{name: t, weight: 7}]}\n"                                      \
	"controllers: [{kind: parda%s}]\n"

static int parse(const char *device, const char *map, struct scenario **ret, struct weir_err *err)
{
	char text[2000];
	int n = snprintf(text, sizeof(text), TOP, device, map);

	return scenario_parse(text, (size_t)n, "test", NULL, 0, ret, err);
}

static void refused(const char *map, const char *why)
{
	struct weir_err err = {""};
	struct scenario *s;

	CHECK_INT(parse("", map, &s, &err), -EINVAL);
	if (!strstr(err.text, why))
		FAIL("'%s' does not say '%s'", err.text, why);
}

static void test_the_map(void)
{
	refused("", "needs a 'threshold'");
	refused(", threshold: 30", "unit");
	refused(", threshold: 0s", "more than 0");
	refused(", threshold: 30ms, thresold: 1ms", "threshold");
	refused(", threshold: 30ms, gamma: 1.5", "gamma");
	refused(", threshold: 30ms, wmin: 9, wmax: 8", "wmin");
	refused(", threshold: 30ms, device: e", "no device is named 'e'");
	refused(", threshold: 30ms, hosts: x*", "no host of that device is named 'x*'");
	refused(", threshold: 30ms, estimate: mine", "estimate");
	refused(", threshold: 30ms, loss: 1.1", "loss");
	refused(", threshold: 30ms, delay: 9s", "delay");
	refused(", threshold: 30ms, alpha: 2", "alpha");
	refused(", threshold: 30ms, period: 0s", "period");
}

static struct metrics *run(const char *device, const char *map)
{
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;

	if (parse(device, map, &s, &err) || sim_run(s, NULL, &m, NULL, &err))
		FAIL("%s", err.text);
	scenario_free(s);
	return m;
}

static double get(const struct metrics *m, const char *name)
{
	double x = NAN;

	CHECK_INT(metrics_get(m, name, &x), 0);
	return x;
}

static void check_shares(const char *device, const char *map, double latency)
{
	struct metrics *m = run(device, map);

	CHECK_NEAR(get(m, "parda.b.window_end") / get(m, "parda.a.window_end"), 2, 0.05);
	CHECK_NEAR(get(m, "host.b.iops") / get(m, "host.a.iops"), 2, 0.05);
	CHECK_NEAR(get(m, "device.d.mean"), latency, 0.05);
	CHECK_NEAR(get(m, "parda.idle.window_end"), 1, 0); /* wmin */
	metrics_free(m);
}

static void test_shares(void)
{
	check_shares("", ", threshold: 30ms", 30);
	check_shares("", ", threshold: 60ms, wmax: 200", 60);
	check_shares("", ", threshold: 30ms, delay: 3s, loss: 0.2", 30);
	check_shares("", ", threshold: 30ms, smoothing: io", 30);
	check_shares("", ", threshold: 30ms, smoothing: interval", 30);
	/* 𝓛 + Σβ/C, by equation 3 */
	check_shares("", ", threshold: 30ms, epsilon: 0, unit: 2", 36);
}

static void test_only_some(void)
{
	struct metrics *m = run("", ", threshold: 30ms, hosts: \"[ab]\"");
	double x;

	CHECK_INT(metrics_get(m, "parda.idle.window_end", &x), -ENOENT);
	CHECK_NEAR(get(m, "parda.a.peers_end"), 1, 0);
	CHECK_NEAR(get(m, "host.idle.window_end"), 32, 0); /* the gate's own */
	metrics_free(m);
}

/* Ten inside the device at once, the others wait in its gate: that is no load of the device's. */
static void test_a_gate_upstream(void)
{
	struct metrics *m = run(", gate: {window: 10}", ", threshold: 30ms, wmax: 40");

	CHECK_NEAR(get(m, "parda.a.window_end"), 40, 0);
	CHECK_NEAR(get(m, "parda.b.window_end"), 40, 0);
	metrics_free(m);
	m = run(", gate: {window: 60}", ", threshold: 30ms, wmax: 40");
	CHECK_NEAR(get(m, "device.d.mean"), 30, 0.05);
	metrics_free(m);
}

int main(void)
{
	RUN(test_the_map);
	RUN(test_shares);
	RUN(test_only_some);
	RUN(test_a_gate_upstream);
	return 0;
}
