/* SPDX-License-Identifier: BSD-3-Clause */
/* Every knob that `at:` may change, changed. */
#include "fixture.h"

#define run(text) fixture_run(text, "", "", 1)
#define get       fixture_get
#define over      fixture_over

/* A server of 1 ms, a window of one, and tenants that are always busy. */
#define TOP                                                                                        \
	"duration: 20s\n"                                                                          \
	"devices: [{name: s, kind: server, rate: 1k iops, service: fixed}]\n"

static void a_window_of_0_is_shut(void)
{
	struct metrics *m =
		run(TOP "hosts:\n"
			"  - {name: h, policy: {depth: 0}, workloads: [{outstanding: 4}]}\n"
			"at:\n"
			"  - {time: 5s, set: {host: h, depth: 1}}\n"
			"  - {time: 10s, set: {host: h, depth: 0}}\n");

	CHECK(over(m, "tenant.h.main.throughput", 0, 5) == 0);
	CHECK_NEAR(over(m, "tenant.h.main.throughput", 5, 10), 1000, 0.01);
	CHECK(over(m, "tenant.h.main.throughput", 11, 20) == 0);
	metrics_free(m);
}

/* Eight dies, and requests of 64 KiB: as many are inside as fit the window in bytes. */
static void a_window_in_bytes(void)
{
	struct metrics *m =
		run("duration: 20s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, servers: 8, rate: 8k iops, service: fixed}\n"
		    "hosts:\n"
		    "  - name: h\n"
		    "    policy: {depth: {requests: 8, bytes: 128 KiB}}\n"
		    "    workloads: [{outstanding: 16, size: 64 KiB}]\n"
		    "at:\n"
		    "  - {time: 5s, set: {host: h, depth: {bytes: 256 KiB}}}\n"
		    "  - {time: 10s, set: {host: h, depth: {requests: 3}}}\n"
		    "  - {time: 15s, set: {host: h, depth: {requests: none, bytes: none}}}\n");

	CHECK_NEAR(over(m, "tenant.h.main.throughput", 1, 5), 2000, 0.01);
	CHECK_NEAR(over(m, "tenant.h.main.throughput", 6, 10), 4000, 0.01);
	CHECK_NEAR(over(m, "tenant.h.main.throughput", 11, 15), 3000, 0.01);
	CHECK_NEAR(over(m, "tenant.h.main.throughput", 16, 20), 8000, 0.01);
	metrics_free(m);
}

static void deadlines(void)
{
	struct metrics *m = run(TOP "hosts:\n"
				    "  - name: h\n"
				    "    policy:\n"
				    "      depth: 1\n"
				    "      lab: {order: edf}\n"
				    "      tenants: [{name: a, lab: {deadline: 10ms}}, {name: b, "
				    "lab: {deadline: 1s}}]\n"
				    "    clients: {a: [{outstanding: 9}], b: [{outstanding: 9}]}\n"
				    "at:\n"
				    "  - time: 10s\n"
				    "    set: [{tenant: h/a, lab: {deadline: 1s}}, {tenant: h/b, "
				    "lab: {deadline: 10ms}}]\n");

	CHECK(over(m, "tenant.h.a.latency", 2, 10) < over(m, "tenant.h.b.latency", 2, 10) / 10);
	CHECK(over(m, "tenant.h.b.latency", 12, 20) < over(m, "tenant.h.a.latency", 12, 20) / 10);
	metrics_free(m);
}

/* 100 a second by the profile and half of the other 900; then, by two buckets, 200 and half of
 * 800. */
static void profiles(void)
{
	struct metrics *m = run(TOP
		"hosts:\n"
		"  - name: h\n"
		"    policy:\n"
		"      depth: 1\n"
		"      tenants:\n"
		"        - {name: a, lab: {priority: 0, profile: [{rate: 100 iops, size: 10}]}}\n"
		"        - {name: b}\n"
		"    clients: {a: [{outstanding: 9}], b: [{outstanding: 9}]}\n"
		"at:\n"
		"  - time: 10s\n"
		"    set:\n"
		"      tenant: h/a\n"
		"      lab: {profile: [{rate: 300 iops, size: 10}, {rate: 200 iops, size: 10}]}\n");

	CHECK_NEAR(over(m, "tenant.h.a.throughput", 1, 10), 550, 0.02);
	CHECK_NEAR(over(m, "tenant.h.a.throughput", 11, 20), 600, 0.02);
	metrics_free(m);
}

/* R-tokens, and half of the rest; L-tokens, and nothing else. */
static void tokens(void)
{
	struct metrics *r = run(TOP "hosts:\n"
				    "  - name: h\n"
				    "    policy:\n"
				    "      depth: 1\n"
				    "      tenants: [{name: a, lab: {rtokens: {rate: 200 iops, "
				    "size: 10}}}, {name: b}]\n"
				    "    clients: {a: [{outstanding: 9}], b: [{outstanding: 9}]}\n"
				    "at:\n"
				    "  - {time: 10s, set: {tenant: h/a, lab: {rtokens: {rate: 600 "
				    "iops, size: 10}}}}\n");
	struct metrics *l =
		run(TOP "hosts:\n"
			"  - name: h\n"
			"    policy:\n"
			"      depth: 32\n"
			"      tenants: [{name: a, lab: {ltokens: {rate: 100 iops, size: 10}}}]\n"
			"    clients: {a: [{outstanding: 9}]}\n"
			"at:\n"
			"  - {time: 10s, set: {tenant: h/a, lab: {ltokens: {rate: 300 iops, size: "
			"10}}}}\n");

	CHECK_NEAR(over(r, "tenant.h.a.throughput", 1, 10), 600, 0.02);
	CHECK_NEAR(over(r, "tenant.h.a.throughput", 11, 20), 800, 0.02);
	CHECK_NEAR(over(l, "tenant.h.a.throughput", 1, 10), 100, 0.02);
	CHECK_NEAR(over(l, "tenant.h.a.throughput", 11, 20), 300, 0.02);
	metrics_free(r);
	metrics_free(l);
}

/* 4,000 R-tokens at once: all of the service until they are used up. */
static void grants_of_rtokens(void)
{
	struct metrics *m = run(TOP "hosts:\n"
				    "  - name: h\n"
				    "    policy:\n"
				    "      depth: 1\n"
				    "      tenants: [{name: r, lab: {rtokens: {rate: 0 iops, size: "
				    "10000}}}, {name: b}]\n"
				    "    clients: {r: [{outstanding: 9}], b: [{outstanding: 9}]}\n"
				    "at:\n"
				    "  - {time: 10s, set: {tenant: h/r, lab: {rgrant: 4000}}}\n");

	CHECK_NEAR(over(m, "tenant.h.r.throughput", 1, 10), 500, 0.02);
	CHECK_NEAR(over(m, "tenant.h.r.throughput", 10, 14), 1000, 0.02);
	CHECK_NEAR(over(m, "tenant.h.r.throughput", 15, 20), 500, 0.02);
	metrics_free(m);
}

/* A group's min is divided by weight; both change the guarantees of its members. */
static void guarantees_of_a_group(void)
{
	struct metrics *m = run("duration: 40s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 1k iops, service: fixed}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy:\n"
				"      depth: 1\n"
				"      tenants:\n"
				"        - name: g\n"
				"          weight: 0.01\n"
				"          min: 400 iops\n"
				"          children: [{name: a, weight: 1}, {name: b, weight: 3}]\n"
				"        - {name: big, weight: 100}\n"
				"    clients: {g/a: [{outstanding: 9}], g/b: [{outstanding: 9}], "
				"big: [{outstanding: 9}]}\n"
				"at:\n"
				"  - {time: 10s, set: {tenant: h/g/a, weight: 3}}\n"
				"  - {time: 20s, set: {tenant: h/g, min: 600 iops}}\n"
				"  - {time: 30s, set: {tenant: h/g/a, max: 100 iops}}\n");

	CHECK_NEAR(over(m, "tenant.h.g.a.throughput", 2, 10), 100, 0.03);
	CHECK_NEAR(over(m, "tenant.h.g.b.throughput", 2, 10), 300, 0.03);
	CHECK_NEAR(over(m, "tenant.h.g.a.throughput", 12, 20), 200, 0.03);
	CHECK_NEAR(over(m, "tenant.h.g.a.throughput", 22, 30), 300, 0.03);
	CHECK_NEAR(over(m, "tenant.h.g.a.throughput", 32, 40), 100, 0.03);
	metrics_free(m);
}

/* `many` reads 4 KiB anywhere in 2 MiB: in runs once these are near, and then `one` waits for a
 * whole run. */
static void runs_and_distance(void)
{
	struct metrics *m = run(
		"duration: 40s\n"
		"devices:\n"
		"  - {name: s, kind: server, rate: 1k iops, service: fixed}\n"
		"hosts:\n"
		"  - name: h\n"
		"    policy: {depth: 1, run_distance: 0 B, tenants: [{name: many}, {name: one}]}\n"
		"    clients: {many: [{outstanding: 99, region: 2 MiB}], one: [{base: 1 TiB}]}\n"
		"at:\n"
		"  - {time: 10s, set: {host: h, run: 50}}\n"
		"  - {time: 20s, set: {host: h, run_distance: 4 MiB}}\n"
		"  - {time: 30s, set: {host: h, run: 5}}\n");

	CHECK_NEAR(over(m, "tenant.h.one.latency_p99", 1, 10), 2, 0.01);
	CHECK_NEAR(over(m, "tenant.h.one.latency_p99", 11, 20), 2, 0.01);
	CHECK_NEAR(over(m, "tenant.h.one.latency_p99", 21, 30), 51, 0.01);
	CHECK_NEAR(over(m, "tenant.h.one.latency_p99", 31, 40), 6, 0.01);
	metrics_free(m);
}

/* A tenant that returns after 900 ms of idleness with 40 requests is served before the others,
 * as far as its credit lasts. */
static void credit(void)
{
	struct metrics *m =
		run(TOP "hosts:\n"
			"  - name: h\n"
			"    policy: {depth: 1, tenants: [{name: a}, {name: b}]}\n"
			"    clients:\n"
			"      a: [{arrivals: uniform, rate: 40k iops, on: 1ms, off: 999ms}]\n"
			"      b: [{outstanding: 9}]\n"
			"at:\n"
			"  - {time: 10s, set: {host: h, credit: 100}}\n");

	CHECK_NEAR(over(m, "tenant.h.a.latency_p99", 2, 10), 80, 0.1);
	CHECK_NEAR(over(m, "tenant.h.a.latency_p99", 12, 20), 40, 0.1);
	metrics_free(m);
}

/* Changes to a tenant in one run do not affect the next. */
static void a_run_leaves_the_scenario_alone(void)
{
	static const char text[] =
		TOP "hosts:\n"
		    "  - name: h\n"
		    "    count: 2\n"
		    "    policy: {depth: 32, tenants: [{name: a}]}\n"
		    "    clients: {a: [{outstanding: 9}]}\n"
		    "at:\n"
		    "  - {time: 5s, set: {tenant: h1/a, max: 100 iops, weight: 3}}\n";
	struct metrics *m[2];
	struct weir_err err = {""};
	struct scenario *s;

	CHECK_INT(scenario_parse(text, strlen(text), "test", NULL, 0, &s, &err), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(sim_run(s, NULL, &m[i], NULL, &err), 0);
		CHECK(over(m[i], "tenant.h1.a.throughput", 0, 5) > 400);
		CHECK_NEAR(over(m[i], "tenant.h1.a.throughput", 6, 20), 100, 0.01);
		CHECK(over(m[i], "tenant.h2.a.throughput", 6, 20) > 850);
	}
	fixture_same(m[0], m[1]);
	metrics_free(m[0]);
	metrics_free(m[1]);
	scenario_free(s);
}

int main(void)
{
	RUN(a_window_of_0_is_shut);
	RUN(a_window_in_bytes);
	RUN(deadlines);
	RUN(profiles);
	RUN(tokens);
	RUN(grants_of_rtokens);
	RUN(guarantees_of_a_group);
	RUN(runs_and_distance);
	RUN(credit);
	RUN(a_run_leaves_the_scenario_alone);
	return 0;
}
