/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parda-knee: `threshold: auto` comes within 20 % of the knee that a sweep over fixed windows
 * finds, on three models, and three hosts with shares keep them meanwhile.
 */
#include "sim/metrics.h"
#include "sim/sim.h"
#include "test.h"

static const struct {
	const char *device;
	const char *duration; /* of the search: 150 of its periods */
	double windows[10];   /* of each of the three hosts, for the sweep; ends with 0 */
} models[] = {
	{"kind: server, servers: 16, rate: 1k iops, service: exponential", "400s",
		{2, 3, 4, 5, 6, 7, 8, 10, 14}},
	{"kind: disk, preset: 15k", "600s", {0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 9}},
	{"kind: array, preset: cx3-small", "600s", {2, 4, 6, 9, 13, 18, 24, 32, 45}},
};

#define TEXT                                                                                       \
	"duration: %s\n"                                                                           \
	"warmup: %s\n"                                                                             \
	"sample: 0s\n"                                                                             \
	"devices:\n"                                                                               \
	"  - {name: d, %s}\n"                                                                      \
	"hosts:\n"                                                                                 \
	"  - name: a\n"                                                                            \
	"    policy: {depth: %g, tenants: [{name: t, weight: 1}]}\n"                               \
	"    clients: {t: [{outstanding: 200, region: 40 GiB}]}\n"                                 \
	"  - name: b\n"                                                                            \
	"    policy: {depth: %g, tenants: [{name: t, weight: 1}]}\n"                               \
	"    clients: {t: [{outstanding: 200, region: 40 GiB}]}\n"                                 \
	"  - name: c\n"                                                                            \
	"    policy: {depth: %g, tenants: [{name: t, weight: 2}]}\n"                               \
	"    clients: {t: [{outstanding: 200, region: 40 GiB}]}\n"

static struct metrics *run_scenario(const char *text)
{
	struct weir_err err = {""};
	struct scenario *s;
	struct metrics *m;

	if (scenario_parse(text, strlen(text), "test", NULL, 0, &s, &err) ||
		sim_run(s, NULL, &m, NULL, &err))
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

/* Return the smallest latency, ms, with 95 % of the largest throughput, between the points of
 * the sweep. */
static double sweep(size_t model)
{
	double rate[10], latency[10], most = 0;
	int n = 0;

	for (; models[model].windows[n] > 0 && n < 9; n++) {
		double w = models[model].windows[n];
		char text[2000];
		struct metrics *m;

		snprintf(text, sizeof(text), TEXT, "60s", "5s", models[model].device, w, w, w);
		m = run_scenario(text);
		rate[n] = get(m, "device.d.iops");
		latency[n] = get(m, "device.d.mean");
		most = fmax(most, rate[n]);
		metrics_free(m);
	}
	for (int i = 1; i < n; i++) {
		if (rate[i] >= 0.95 * most)
			return latency[i - 1] + (latency[i] - latency[i - 1]) *
							(0.95 * most - rate[i - 1]) /
							(rate[i] - rate[i - 1]);
	}
	return NAN;
}

static void test_knee(void)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
		double swept = sweep(i), found;
		char text[2000], *end;
		struct metrics *m;

		snprintf(text, sizeof(text), TEXT, models[i].duration, "200s", models[i].device,
			16.0, 16.0, 16.0);
		end = text + strlen(text);
		snprintf(end, sizeof(text) - strlen(text),
			"policy: {controller: parda, threshold: auto, parda: {threshold_max: "
			"400ms, wmin: 0.25, wmax: 120}}\n");
		m = run_scenario(text);
		found = get(m, "parda.a.knee_end");
		printf("%s: swept %.2f ms, found %.2f ms\n", models[i].device, swept, found);
		CHECK_NEAR(found, swept, 0.2);
		CHECK_NEAR(get(m, "host.c.iops") / get(m, "host.a.iops"), 2, 0.15);
		metrics_free(m);
	}
}

int main(void)
{
	RUN(test_knee);
	return 0;
}
