/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator as a whole: laws that any run must obey, and each part of a scenario at work. */
#include "fixture.h"
#include "sim/experiment/report.h"
#include <stdarg.h>

#define run_seed(text, seed) fixture_run(text, "", "", seed)
#define run(text)            fixture_run(text, "", "", 1)
#define get                  fixture_get
#define over                 fixture_over

/* Return all results of a run as text. */
static char *everything(const struct metrics *m)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	CHECK(f != NULL);
	report_values_csv(m, f);
	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		if (e.is_series)
			report_series_csv(&e, f);
	}
	fclose(f);
	return text;
}

static const char mixed[] =
	"duration: 12s\n"
	"warmup: 1500ms\n"
	"sample: 1s\n"
	"devices:\n"
	"  - {name: a, kind: array, preset: cx3}\n"
	"  - {name: f, kind: ssd, policy: {depth: 16}}\n"
	"links:\n"
	"  - {name: l, rate: 1 Gbit/s, delay: 20us}\n"
	"hosts:\n"
	"  - name: h\n"
	"    count: 2\n"
	"    device: a\n"
	"    policy:\n"
	"      depth: 16\n"
	"      tenants: [{name: x, weight: 2}, {name: y, children: [{name: z, max: 100 iops}]}]\n"
	"    clients:\n"
	"      x: [{outstanding: 16, size: 16 KiB, reads: 0.7}]\n"
	"      y/z: [{rate: 90 iops}, {outstanding: 4, think: 5ms}]\n"
	"  - name: g\n"
	"    device: f\n"
	"    request: l\n"
	"    reply: l\n"
	"    policy: {depth: 24}\n"
	"    workloads:\n"
	"      - {outstanding: 4, think: 2ms, reads: 0.5, zipf: 0.9}\n"
	"      - {arrivals: hyper, ca2: 8, rate: 900 iops}\n"
	"at:\n"
	"  - {time: 5s, set: [{host: h1, depth: 4}, {workload: h2/x/w1, run: false}]}\n";

static void same_seed_same_bytes(void)
{
	struct metrics *a = run_seed(mixed, 5), *b = run_seed(mixed, 5), *c = run_seed(mixed, 6);
	char *at = everything(a), *bt = everything(b), *ct = everything(c);

	CHECK(strlen(at) > 5000);
	CHECK(strcmp(at, bt) == 0);
	CHECK(strcmp(at, ct) != 0);
	free(at);
	free(bt);
	free(ct);
	metrics_free(a);
	metrics_free(b);
	metrics_free(c);
}

/* Every number of host h1 stays the same, with any other hosts. */
static void a_host_added_does_not_shift_the_others(void)
{
#define TWO_SERVERS                                                                                \
	"duration: 20s\n"                                                                          \
	"devices: [{name: s, kind: server, rate: 1k iops}, {name: t, kind: server}]\n"             \
	"policy: {depth: 32}\n"                                                                    \
	"hosts:\n"
#define H1                                                                                         \
	"  - {name: h1, device: s, policy: {tenants: [{name: v}]}, workloads: [{rate: 700 iops}, " \
	"{outstanding: 2, think: 3ms, sizes: [{size: 4 KiB}, {size: 8 KiB}]}]}\n"
#define H0 "  - {name: h0, device: t, count: 3, workloads: [{rate: 100 iops}]}\n"
	struct metrics *alone = run(TWO_SERVERS H1), *after = run(TWO_SERVERS H0 H1);
	size_t compared = 0;

	for (size_t i = 0; i < metrics_count(alone); i++) {
		struct metrics_entry e = metrics_at(alone, i), f;
		if (!strstr(e.name, ".h1."))
			continue;
		CHECK(metrics_find(after, e.name, &f));
		CHECK(e.is_series == f.is_series && e.n == f.n);
		if (!e.is_series)
			CHECK(e.value == f.value);
		else
			CHECK(memcmp(e.points, f.points, e.n * sizeof(*e.points)) == 0);
		compared++;
	}
	CHECK(compared > 20);
	metrics_free(alone);
	metrics_free(after);
}

/* N = λ·T for each tenant beyond its gate and before it, and for each station. */
static void check_little(const struct metrics *m)
{
	size_t checked = 0;

	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		const char *tail = e.is_series ? NULL : strrchr(e.name, '.');
		bool tenant = strncmp(e.name, "tenant.", 7) == 0;
		char mean[300], wait[300], queued[300];
		double n, rate;

		if (!tail || strcmp(tail, ".iops") != 0 || e.value < 5 ||
			(!tenant && strncmp(e.name, "device.", 7) && strncmp(e.name, "link.", 5)))
			continue;
		rate = e.value;
		snprintf(mean, sizeof(mean), "%.*s.in_flight", (int)(tail - e.name), e.name);
		n = get(m, mean);
		if (!tenant) {
			snprintf(mean, sizeof(mean), "%.*s.mean", (int)(tail - e.name), e.name);
		} else {
			const char *path = e.name + 7;
			int len = (int)(tail - path);
			snprintf(mean, sizeof(mean), "inside.%.*s.mean", len, path);
			snprintf(wait, sizeof(wait), "wait.%.*s.mean", len, path);
			snprintf(queued, sizeof(queued), "wait.%.*s.queued", len, path);
			CHECK_NEAR(get(m, queued) + 1e-3, rate * get(m, wait) / 1e3 + 1e-3, 0.01);
		}
		CHECK_NEAR(n, rate * get(m, mean) / 1e3, 0.01);
		checked++;
	}
	CHECK(checked > 0);
}

static void check_conserved(const struct metrics *m)
{
	CHECK(get(m, "run.submitted") > 0);
	CHECK(get(m, "run.submitted") ==
		get(m, "run.served") + get(m, "run.queued") + get(m, "run.in_flight"));
}

static void little_and_conservation_hold(void)
{
	struct metrics *m = run(mixed);

	check_little(m);
	check_conserved(m);
	metrics_free(m);
}

/* M/M/1: T = 1/(μ − λ), N = ρ/(1 − ρ), p99 = T·ln 100. */
static void a_queue_is_as_theory_says(void)
{
	struct metrics *m =
		run("duration: 900s\n"
		    "warmup: 10s\n"
		    "sample: 100s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, rate: 1k iops}\n"
		    "hosts:\n"
		    "  - {name: h, policy: {depth: none}, workloads: [{rate: 600 iops}]}\n");

	CHECK_NEAR(get(m, "tenant.h.main.iops"), 600, 0.01);
	CHECK_NEAR(get(m, "tenant.h.main.mean"), 2.5, 0.02);
	CHECK_NEAR(get(m, "tenant.h.main.in_flight"), 1.5, 0.025);
	CHECK_NEAR(get(m, "tenant.h.main.p99"), 2.5 * log(100), 0.03);
	CHECK_NEAR(get(m, "device.s.mean"), get(m, "inside.h.main.mean"), 1e-9);
	check_little(m);
	metrics_free(m);
}

/* With a window of 1 the queue is at the gate. Its first request waits for the window, for 0.6²
 * of the time, which is 0.6 ms per request. The others wait for their turn. */
static void the_wait_is_told_by_cause(void)
{
	struct metrics *m =
		run("duration: 110s\n"
		    "warmup: 10s\n"
		    "sample: 100s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, rate: 1k iops}\n"
		    "hosts:\n"
		    "  - {name: h, policy: {depth: 1}, workloads: [{rate: 600 iops}]}\n");

	CHECK_NEAR(get(m, "inside.h.main.mean"), 1, 0.02);
	CHECK_NEAR(get(m, "tenant.h.main.mean"),
		get(m, "inside.h.main.mean") + get(m, "wait.h.main.mean"), 1e-3);
	CHECK_NEAR(get(m, "wait.h.main.mean"), 1.5, 0.05);
	CHECK_NEAR(get(m, "wait.h.main.window"), 0.6, 0.02);
	CHECK_NEAR(get(m, "wait.h.main.window") + get(m, "wait.h.main.turn"),
		get(m, "wait.h.main.mean"), 1e-6);
	metrics_free(m);
}

static void weights_and_max_hold(void)
{
	struct metrics *m = run("duration: 12s\n"
				"warmup: 2s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 10k iops}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy:\n"
				"      depth: 8\n"
				"      tenants:\n"
				"        - {name: a, weight: 1}\n"
				"        - {name: b, weight: 3}\n"
				"        - {name: c, weight: 9, max: 1k iops}\n"
				"        - {name: idle, weight: 50}\n"
				"    clients: {a: [{outstanding: 32}], b: [{outstanding: 32}], c: "
				"[{outstanding: 32}]}\n");

	CHECK_NEAR(get(m, "tenant.h.b.iops") / get(m, "tenant.h.a.iops"), 3, 0.01);
	CHECK(get(m, "tenant.h.c.iops") <= 1000 * 1.001);
	CHECK_NEAR(get(m, "tenant.h.c.iops"), 1000, 0.01);
	CHECK_NEAR(get(m, "total.iops"), 10000, 0.02);
	CHECK_NEAR(get(m, "tenant.h.c.share"), 0.1, 0.03);
	/* The window is always full, but a tenant held by its own max waits for that. */
	CHECK_NEAR(get(m, "wait.h.c.max"), get(m, "wait.h.c.mean"), 1e-3);
	CHECK(get(m, "tenant.h.idle.ios") == 0);
	check_little(m);
	metrics_free(m);
}

/* Alone, a limited tenant waits for its limit only: 32 outstanding at 100 a second are 320 ms. */
static void the_limit_alone_is_the_cause(void)
{
	struct metrics *m = run("duration: 40s\n"
				"warmup: 5s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 10k iops}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy: {depth: 32, tenants: [{name: a, max: 100 iops}]}\n"
				"    clients: {a: [{outstanding: 32}]}\n");

	CHECK_NEAR(get(m, "tenant.h.a.iops"), 100, 0.005);
	CHECK_NEAR(get(m, "tenant.h.a.mean"), 320, 0.005);
	CHECK_NEAR(get(m, "wait.h.a.max"), get(m, "wait.h.a.mean"), 1e-6);
	CHECK(get(m, "wait.h.a.window") == 0);
	metrics_free(m);
}

static void a_change_takes_effect_at_its_time(void)
{
	struct metrics *m = run(
		"duration: 20s\n"
		"sample: 200ms\n"
		"devices:\n"
		"  - {name: s, kind: server, rate: 10k iops}\n"
		"  - {name: t, kind: server, rate: 400 iops}\n"
		"hosts:\n"
		"  - name: h\n"
		"    device: s\n"
		"    policy: {depth: 8, tenants: [{name: a}, {name: b}]}\n"
		"    clients:\n"
		"      a: [{outstanding: 32}]\n"
		"      b: [{outstanding: 32}, {name: extra, stopped: true, rate: 500 iops}]\n"
		"  - {name: g, device: t, policy: {depth: 4}, workloads: [{outstanding: 64}]}\n"
		"at:\n"
		"  - {time: 4s, set: [{tenant: h/a, weight: 4}, {host: g, depth: 2.5}]}\n"
		"  - {time: 8s, set: [{tenant: h/a, max: 1k iops}, {device: t, rate: 100 iops}]}\n"
		"  - {time: 12s, set: {workload: h/b/w1, run: false}}\n"
		"  - {time: 14s, set: {workload: h/b/extra, run: true}}\n"
		"  - {time: 16s, set: {workload: \"h/b/*\", run: true}}\n");

	CHECK_NEAR(over(m, "tenant.h.a.throughput", 0.2, 4), 5000, 0.05);
	CHECK_NEAR(over(m, "tenant.h.a.throughput", 4.2, 8), 8000, 0.05);
	CHECK_NEAR(over(m, "tenant.h.a.throughput", 8.2, 12), 1000, 0.02);
	CHECK_NEAR(over(m, "tenant.h.b.throughput", 8.2, 12), 9000, 0.05);
	CHECK(over(m, "tenant.h.b.throughput", 12.2, 14) == 0);
	CHECK_NEAR(over(m, "tenant.h.b.throughput", 14.2, 16), 500, 0.1);
	CHECK_NEAR(over(m, "tenant.h.b.throughput", 16.2, 20), 9000, 0.05);
	CHECK_NEAR(over(m, "host.g.window", 0, 3.8), 4, 1e-9);
	CHECK_NEAR(over(m, "host.g.window", 4, 20), 2.5, 1e-9);
	CHECK_NEAR(over(m, "host.g.outstanding", 4.2, 8), 2.5, 0.01);
	CHECK_NEAR(over(m, "device.t.throughput", 0.2, 8), 400, 0.05);
	CHECK_NEAR(over(m, "device.t.throughput", 8.2, 20), 100, 0.05);
	check_conserved(m);
	metrics_free(m);
}

static void a_gate_before_the_device_shares_between_hosts(void)
{
	static const char text[] =
		"duration: 6s\n"
		"warmup: 1s\n"
		"devices:\n"
		"  - name: s\n"
		"    kind: server\n"
		"    rate: 20k iops\n"
		"    policy:\n"
		"      depth: 4\n"
		"      tenants:\n"
		"        - {name: h1, weight: 3, match: {export: \"h1/*\"}}\n"
		"        - {name: small, max: 1k iops, match: {export: h2/v?}}\n"
		"        - {name: rest, weight: 1, match: {export: \"h*/*\"}}\n"
		"policy: {depth: 16}\n"
		"hosts:\n"
		"  - {name: h1, workloads: [{outstanding: 16}]}\n"
		"  - name: h2\n"
		"    policy: {tenants: [{name: v1}, {name: big}]}\n"
		"    clients: {v1: [{outstanding: 4}], big: [{outstanding: 16}]}\n"
		"at:\n"
		"  - {time: 5s, set: {device_tenant: s/h1, weight: 1}}\n";
	struct metrics *m = run(text);

	CHECK_NEAR(get(m, "tenant.h2.v1.iops"), 1000, 0.01);
	CHECK_NEAR(over(m, "tenant.h1.main.throughput", 1, 5) /
			   over(m, "tenant.h2.big.throughput", 1, 5),
		3, 0.02);
	CHECK_NEAR(over(m, "tenant.h1.main.throughput", 5, 6) /
			   over(m, "tenant.h2.big.throughput", 5, 6),
		1, 0.05);
	check_little(m);
	check_conserved(m);
	metrics_free(m);
}

static void without_tenants_a_devices_gate_has_one_for_each_host(void)
{
#define GATED(tenants)                                                                             \
	"duration: 40s\nwarmup: 5s\n"                                                              \
	"devices: [{name: s, kind: server, rate: 3k iops, policy: {depth: 4" tenants "}}]\n"       \
	"policy: {depth: 32}\n"                                                                    \
	"hosts:\n"                                                                                 \
	"  - {name: h1, workloads: [{outstanding: 16}]}\n"                                         \
	"  - name: h2\n"                                                                           \
	"    policy: {tenants: [{name: a}, {name: b}]}\n"                                          \
	"    clients: {a: [{outstanding: 16}], b: [{outstanding: 16}]}\n"
	struct metrics *host = run(GATED("")),
		       *tenant = run(GATED(", tenants: [{name: main}, {name: a}, {name: b}]"));

	CHECK_NEAR(get(host, "host.h1.iops"), 1500, 0.02);
	CHECK_NEAR(get(tenant, "host.h1.iops"), 1000, 0.02);
	metrics_free(host);
	metrics_free(tenant);
}

static void a_link_adds_its_time_both_ways(void)
{
	/* 5 ms each way; 1 Mbyte/s: a header of 96 B takes 96 µs, 4 KiB more 4096 µs. One read at a
	 * time: header up, header and data down. */
	static const char text[] =
		"duration: 20s\n"
		"devices:\n"
		"  - {name: s, kind: server, rate: 1k iops, service: fixed}\n"
		"links:\n"
		"  - {name: up, rate: 1 MB/s, delay: 5ms}\n"
		"  - {name: down, rate: 1 MB/s, delay: 5ms}\n"
		"policy: {depth: 32}\n"
		"hosts:\n"
		"  - {name: h, request: up, reply: down, workloads: [{size: 4 KiB, reads: 1}]}\n"
		"  - {name: g, workloads: [{rate: 1 iops}]}\n";
	struct metrics *m = run(text);

	CHECK_NEAR(get(m, "tenant.h.main.p50"), 5.096 + 1 + 5.096 + 4.096, 0.01);
	CHECK_NEAR(get(m, "link.up.bytes"), 96 * get(m, "tenant.h.main.iops"), 0.01);
	CHECK_NEAR(get(m, "link.down.bytes"), 4192 * get(m, "tenant.h.main.iops"), 0.01);
	CHECK(get(m, "tenant.g.main.p50") < 2.1);
	check_little(m);
	metrics_free(m);
}

static void dropped_packets_are_sent_again(void)
{
	struct metrics *m = run("duration: 20s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 10k iops}\n"
				"links:\n"
				"  - {name: up, rate: 1 MB/s, buffer: 20 KiB}\n"
				"hosts:\n"
				"  - name: h\n"
				"    request: up\n"
				"    retry: 50ms\n"
				"    policy: {depth: 32}\n"
				"    workloads: [{outstanding: 32, reads: 0}]\n");

	CHECK(get(m, "link.up.drops") > 100);
	/* The link is never idle for long: dropped requests are sent again. */
	CHECK(get(m, "tenant.h.main.iops") > 0.9 * 1e6 / 4192);
	CHECK(get(m, "tenant.h.main.max") > 50);
	check_conserved(m);
	metrics_free(m);
}

static void priority_goes_first_while_it_fits_its_profile(void)
{
	struct metrics *m = run(
		"duration: 60s\n"
		"warmup: 2s\n"
		"devices:\n"
		"  - {name: s, kind: server, rate: 1k iops, service: fixed}\n"
		"hosts:\n"
		"  - name: h\n"
		"    policy:\n"
		"      depth: 1\n"
		"      tenants:\n"
		"        - {name: good, lab: {priority: 0, profile: [{rate: 150 iops, size: "
		"20}]}}\n"
		"        - {name: bad, lab: {priority: 0, profile: [{rate: 150 iops, size: 20}]}}\n"
		"        - {name: rest, weight: 1}\n"
		"    clients:\n"
		"      good: [{rate: 100 iops}]\n"
		"      bad: [{outstanding: 50}]\n"
		"      rest: [{outstanding: 50}]\n");

	CHECK(get(m, "tenant.h.good.p99") < 6);
	/* 150 by priority, and its half of the rest. */
	CHECK_NEAR(get(m, "tenant.h.bad.iops"), 150 + 750 / 2.0, 0.03);
	CHECK_NEAR(get(m, "tenant.h.rest.iops"), 750 / 2.0, 0.03);
	metrics_free(m);
}

static void tokens_are_first_claim_and_right_to_service(void)
{
	struct metrics *m = run("duration: 60s\n"
				"sample: 1s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 1k iops, service: fixed}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy:\n"
				"      depth: 2\n"
				"      tenants:\n"
				"        - {name: r, lab: {rtokens: {rate: 600 iops, size: 60}}}\n"
				"        - {name: l, lab: {ltokens: {rate: 0 iops, size: 1000}}}\n"
				"        - {name: rest}\n"
				"    clients: {r: [{outstanding: 50}], l: [{outstanding: 50}], "
				"rest: [{outstanding: 50}]}\n"
				"at:\n"
				"  - {time: 10s, set: {tenant: h/l, lab: {lgrant: 1000}}}\n"
				"  - {time: 40s, set: {tenant: h/l, lab: {lgrant: 500}}}\n");

	/* A bucket without a rate holds its grants, and nothing before. */
	CHECK(over(m, "tenant.h.l.throughput", 0, 10) == 0);
	CHECK_NEAR(over(m, "tenant.h.l.throughput", 10, 40) * 30, 1000, 1e-9);
	CHECK_NEAR(over(m, "tenant.h.l.throughput", 40, 60) * 20, 500, 1e-9);
	/* 600 by R-tokens and half of the other 400. */
	CHECK_NEAR(over(m, "tenant.h.r.throughput", 20, 40), 800, 0.02);
	CHECK_NEAR(over(m, "tenant.h.rest.throughput", 20, 40), 200, 0.05);
	metrics_free(m);
}

static void a_min_is_kept_against_weight(void)
{
	struct metrics *m =
		run("duration: 40s\n"
		    "warmup: 5s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, rate: 1k iops}\n"
		    "hosts:\n"
		    "  - name: h\n"
		    "    policy:\n"
		    "      depth: 4\n"
		    "      tenants: [{name: small, weight: 1, min: 300 iops}, {name: large, "
		    "weight: 99}]\n"
		    "    clients: {small: [{outstanding: 32}], large: [{outstanding: 32}]}\n"
		    "at:\n"
		    "  - {time: 20s, set: {tenant: h/small, min: 500 iops}}\n");

	CHECK_NEAR(over(m, "tenant.h.small.throughput", 5, 20), 300 + 7, 0.03);
	CHECK_NEAR(over(m, "tenant.h.small.throughput", 21, 40), 500 + 5, 0.03);
	metrics_free(m);
}

static void capacity_is_learned(void)
{
	struct metrics *m =
		run("duration: 60s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, rate: 500 iops, capacity: auto}\n"
		    "hosts:\n"
		    "  - {name: h, policy: {depth: 8}, workloads: [{outstanding: 16}]}\n"
		    "at:\n"
		    "  - {time: 20s, set: {device: s, rate: 1k iops}}\n");

	CHECK_NEAR(over(m, "device.s.capacity", 10, 20), 500, 0.1);
	CHECK_NEAR(get(m, "device.s.capacity_iops"), 1000, 0.1);
	metrics_free(m);
}

/* Bursts of 20 at once, 100 a second: the last of each is done 200 ms after its first arrived,
 * as long as the bursts are further apart than that. */
static void bursts_are_timed(void)
{
	struct metrics *m =
		run("duration: 30s\n"
		    "warmup: 1s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, rate: 100 iops, service: fixed}\n"
		    "hosts:\n"
		    "  - name: h\n"
		    "    policy: {depth: 1}\n"
		    "    workloads: [{arrivals: uniform, rate: 20k iops, on: 1ms, off: 999ms}]\n");

	CHECK_INT(get(m, "burst.h.main.w1.finished"), 29); /* 1 s … 29 s; that of 0 s is warm-up */
	CHECK_INT(get(m, "burst.h.main.w1.unfinished"), 0);
	CHECK_NEAR(get(m, "burst.h.main.w1.mean"), 200, 0.001);
	metrics_free(m);
}

static void an_slo_is_compared(void)
{
	struct metrics *m = run("duration: 20s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 100 iops, service: fixed}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy: {depth: 32, tenants: [{name: a, slo: p99 < 20ms}]}\n"
				"    clients: {a: [{}]}\n");

	CHECK_NEAR(get(m, "slo.h.a.ratio"), 0.5, 0.01);
	metrics_free(m);
}

/* ---- files, options, errors */

static int give_trace(
	const char *path, void *arg, char **ret, size_t *ret_len, struct weir_err *err)
{
	if (strcmp(path, "t.trace") != 0)
		return weir_err_set(err, -ENOENT, "%s: no such file", path);
	++*(int *)arg;
	*ret = strdup(
		"# weir-trace 1\n0 R 0 4096 0\n500000000 W 4096 4096 0\n900000000 R 0 512 0\n");
	*ret_len = strlen(*ret);
	return 0;
}

static void traces_are_read_through_the_caller(void)
{
	static const char text[] = "duration: 10s\n"
				   "sample: 1s\n"
				   "devices:\n"
				   "  - {name: s, kind: server}\n"
				   "hosts:\n"
				   "  - name: h\n"
				   "    policy: {depth: 32, io_unit: 2 GiB}\n"
				   "    workloads: [{trace: t.trace}, {trace: NAME, loop: true}]\n";
	struct scenario_set good = {"hosts[0].workloads[1].trace", "t.trace"};
	struct scenario *s;
	struct metrics *m;
	struct weir_err err;
	int reads = 0;

	CHECK_INT(scenario_parse(text, strlen(text), "t.yaml", NULL, 0, &s, &err), 0);
	CHECK_INT(sim_run(s, NULL, &m, NULL, &err), -ENOENT);
	CHECK_INT(scenario_load(s, give_trace, &reads, &err), -ENOENT);
	CHECK(strstr(err.text, "t.yaml:8:") && strstr(err.text, "NAME: no such file"));
	scenario_free(s);

	CHECK_INT(scenario_parse(text, strlen(text), "t.yaml", &good, 1, &s, &err), 0);
	reads = 0;
	CHECK_INT(scenario_load(s, give_trace, &reads, &err), 0);
	CHECK_INT(reads, 2);
	CHECK_INT(sim_run(s, NULL, &m, NULL, &err), 0);
	CHECK(get(m, "run.submitted") > 3 + 15); /* 3 once, and 3 every 1.35 s */
	metrics_free(m);
	scenario_free(s);
}

static int give_flushes(
	const char *path, void *arg, char **ret, size_t *ret_len, struct weir_err *err)
{
	size_t len = 0;
	FILE *f = open_memstream(ret, &len);

	fputs("# weir-trace 1\n", f);
	for (int i = 0; i < 100; i++)
		fputs("0 F 0 0 0\n", f);
	fclose(f);
	*ret_len = len;
	return 0;
}

/* 100 flushes at once that count 20 each: under 100 iops, five a second, for any other free
 * capacity. */
static void flushes_have_the_configured_cost(void)
{
	static const char text[] = "duration: 10s\n"
				   "devices:\n"
				   "  - {name: s, kind: server}\n"
				   "hosts:\n"
				   "  - name: h\n"
				   "    policy:\n"
				   "      depth: 32\n"
				   "      flush_cost: 20\n"
				   "      io_unit: 2 GiB\n"
				   "      tenants: [{name: a, max: 100 iops}]\n"
				   "    clients: {a: [{trace: f}]}\n";
	struct scenario *s;
	struct metrics *m;
	struct weir_err err;

	CHECK_INT(scenario_parse(text, strlen(text), "t.yaml", NULL, 0, &s, &err), 0);
	CHECK_INT(scenario_load(s, give_flushes, NULL, &err), 0);
	CHECK_INT(sim_run(s, NULL, &m, NULL, &err), 0);
	CHECK_NEAR(get(m, "tenant.h.a.ios"), 50, 0.03);
	CHECK(get(m, "tenant.h.a.bytes") == 0);
	metrics_free(m);
	scenario_free(s);
}

static int stop_at_half(double fraction, void *arg)
{
	*(double *)arg = fraction;
	return fraction >= 0.5;
}

static void a_run_can_be_stopped_and_shortened(void)
{
	static const char text[] = "duration: 10s\n"
				   "warmup: 5s\n"
				   "devices:\n"
				   "  - {name: s, kind: server}\n"
				   "hosts:\n"
				   "  - {name: h, policy: {depth: 32}, workloads: [{}]}\n";
	double fraction = 0;
	struct sim_options options = {.progress = stop_at_half, .progress_arg = &fraction};
	struct sim_cost cost = {0, 0};
	struct scenario *s;
	struct metrics *m;
	struct weir_err err;

	CHECK_INT(scenario_parse(text, strlen(text), "t.yaml", NULL, 0, &s, &err), 0);
	CHECK_INT(sim_run(s, &options, &m, NULL, &err), -ECANCELED);
	CHECK_NEAR(fraction, 0.5, 0.02);
	options = (struct sim_options){.duration = 2 * WEIR_SEC};
	CHECK_INT(sim_run(s, &options, &m, &cost, &err), 0);
	CHECK_NEAR(get(m, "run.served"), 2000, 0.2);
	CHECK_NEAR(get(m, "tenant.h.main.ios"), 1000, 0.2); /* half is warm-up */
	CHECK(cost.ios == get(m, "run.served"));
	CHECK(cost.events == get(m, "run.events") && cost.events >= cost.ios);
	metrics_free(m);
	scenario_free(s);
}

/* A change that only the gate can refuse is reported with its time. */
static void a_change_that_the_gate_refuses_ends_the_run(void)
{
	static const char text[] = "duration: 10s\n"
				   "devices:\n"
				   "  - {name: s, kind: server}\n"
				   "hosts:\n"
				   "  - {name: h, policy: {depth: 32}, workloads: [{}]}\n"
				   "at:\n"
				   "  - {time: 3s, set: {tenant: h/main, lab: {rgrant: 5}}}\n";
	struct scenario *s;
	struct metrics *m;
	struct weir_err err;

	CHECK_INT(scenario_parse(text, strlen(text), "t.yaml", NULL, 0, &s, &err), 0);
	CHECK_INT(sim_run(s, NULL, &m, NULL, &err), -EINVAL);
	if (!strstr(err.text, "at 3 s of virtual time: ") || strlen(err.text) < 30)
		FAIL("'%s'", err.text);
	scenario_free(s);
}

int main(void)
{
	RUN(same_seed_same_bytes);
	RUN(a_host_added_does_not_shift_the_others);
	RUN(little_and_conservation_hold);
	RUN(a_queue_is_as_theory_says);
	RUN(the_wait_is_told_by_cause);
	RUN(weights_and_max_hold);
	RUN(the_limit_alone_is_the_cause);
	RUN(a_change_takes_effect_at_its_time);
	RUN(a_gate_before_the_device_shares_between_hosts);
	RUN(without_tenants_a_devices_gate_has_one_for_each_host);
	RUN(a_link_adds_its_time_both_ways);
	RUN(dropped_packets_are_sent_again);
	RUN(priority_goes_first_while_it_fits_its_profile);
	RUN(tokens_are_first_claim_and_right_to_service);
	RUN(a_min_is_kept_against_weight);
	RUN(capacity_is_learned);
	RUN(bursts_are_timed);
	RUN(an_slo_is_compared);
	RUN(traces_are_read_through_the_caller);
	RUN(flushes_have_the_configured_cost);
	RUN(a_run_can_be_stopped_and_shortened);
	RUN(a_change_that_the_gate_refuses_ends_the_run);
	return 0;
}
