/* SPDX-License-Identifier: BSD-3-Clause */
/* Measurements of a run: every value and series in its unit, and from the end of the warm-up on. */
#include "fixture.h"

#define run(text) fixture_run(text, "", "", 1)
#define get       fixture_get
#define over      fixture_over

static const char *unit(const struct metrics *m, const char *name)
{
	struct metrics_entry e;

	if (!metrics_find(m, name, &e))
		FAIL("no '%s'", name);
	return e.unit;
}

/* One request of 4 KiB at a time: 10 ms each, 20 ms from 5 s to 10 s, then 10 ms again. */
static void series_have_their_units(void)
{
	struct metrics *m = run("duration: 15s\n"
				"sample: 500ms\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 100 iops, service: fixed}\n"
				"hosts:\n"
				"  - {name: h, policy: {depth: 3}, workloads: [{}]}\n"
				"at:\n"
				"  - {time: 5s, set: {device: s, rate: 50 iops}}\n"
				"  - {time: 10s, set: {device: s, rate: 100 iops}}\n");
	static const char *const times[] = {"tenant.h.main.latency", "tenant.h.main.latency_p99",
		"host.h.latency", "device.s.latency"};
	static const char *const rates[] = {"tenant.h.main.throughput", "host.h.throughput",
		"device.s.throughput", "total.throughput"};
	static const char *const flows[] = {"tenant.h.main.bandwidth", "device.s.bandwidth"};
	static const char *const counts[] = {
		"tenant.h.main.outstanding", "host.h.outstanding", "device.s.outstanding"};

	for (size_t i = 0; i < 4; i++) {
		CHECK_STR(unit(m, times[i]), "ms");
		CHECK_NEAR(over(m, times[i], 0, 5), 10, 0.01);
		CHECK_NEAR(over(m, times[i], 6, 10), 20, 0.01);
		CHECK_NEAR(over(m, times[i], 11, 15), 10, 0.01);
		CHECK_STR(unit(m, rates[i]), "iops");
		CHECK_NEAR(over(m, rates[i], 0, 5), 100, 0.01);
		CHECK_NEAR(over(m, rates[i], 6, 10), 50, 0.01);
	}
	for (size_t i = 0; i < 2; i++) {
		CHECK_STR(unit(m, flows[i]), "B/s");
		CHECK_NEAR(over(m, flows[i], 0, 5), 409600, 0.01);
	}
	for (size_t i = 0; i < 3; i++) {
		CHECK_STR(unit(m, counts[i]), "requests");
		CHECK_NEAR(over(m, counts[i], 0, 15), 1, 0.01);
	}
	CHECK_NEAR(over(m, "host.h.window", 0, 15), 3, 1e-9);
	metrics_free(m);
}

/* If nothing completes there is no latency: no point, not one of 0. */
static void an_idle_sample_has_no_latency(void)
{
	struct metrics *m =
		run("duration: 10s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, rate: 100 iops, service: fixed}\n"
		    "hosts:\n"
		    "  - {name: h, policy: {depth: 32}, workloads: [{stop: 4500ms}]}\n");
	static const char *const times[] = {"tenant.h.main.latency", "tenant.h.main.latency_p99",
		"host.h.latency", "device.s.latency"};
	struct metrics_entry e;

	for (size_t i = 0; i < 4; i++) {
		CHECK(metrics_find(m, times[i], &e));
		CHECK_INT(e.n, 5);
		CHECK_NEAR(over(m, times[i], 0, 10), 10, 0.01);
	}
	CHECK(metrics_find(m, "tenant.h.main.throughput", &e));
	CHECK_INT(e.n, 10);
	CHECK(over(m, "tenant.h.main.throughput", 5, 10) == 0);
	metrics_free(m);
}

/* Exponential service of 1 ms: the percentiles are known. */
static void percentiles_are_those_they_are_called(void)
{
	struct metrics *m = run("duration: 60s\n"
				"warmup: 1s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 1k iops}\n"
				"hosts:\n"
				"  - {name: h, policy: {depth: 32}, workloads: [{}]}\n");

	CHECK_NEAR(over(m, "tenant.h.main.latency_p99", 0, 60), log(100), 0.03);
	CHECK_NEAR(get(m, "tenant.h.main.p50"), log(2), 0.03);
	CHECK_NEAR(get(m, "tenant.h.main.p95"), log(20), 0.03);
	CHECK_NEAR(get(m, "tenant.h.main.p99"), log(100), 0.03);
	CHECK_NEAR(get(m, "tenant.h.main.p99_9"), log(1000), 0.1);
	CHECK(get(m, "tenant.h.main.p99_99") > get(m, "tenant.h.main.p99_9"));
	CHECK(get(m, "tenant.h.main.max") >= get(m, "tenant.h.main.p99_99"));
	metrics_free(m);
}

/* A request is estimated at 1 ms, and 4 KiB at 1 MB/s at 4.096 ms more; unless stated, at 1 ms. */
static void estimated_time_is_io_and_bytes(void)
{
	struct metrics *m =
		run("duration: 20s\n"
		    "warmup: 1s\n"
		    "devices:\n"
		    "  - {name: s, kind: server, rate: 10k iops}\n"
		    "policy: {depth: 32, cost: time}\n"
		    "hosts:\n"
		    "  - name: h\n"
		    "    policy:\n"
		    "      lab: {estimate: {io: 1ms, rate: 1 MB/s}}\n"
		    "      tenants:\n"
		    "        - {name: a, lab: {ltokens: {share: 0.5, size: 20ms}}}\n"
		    "        - {name: b, lab: {ltokens: {share: 0.5, size: 20ms}}}\n"
		    "    clients: {a: [{outstanding: 4}], b: [{outstanding: 4, size: 8 KiB}]}\n"
		    "  - name: d\n"
		    "    policy: {tenants: [{name: a, lab: {ltokens: {share: 0.5, size: 20ms}}}]}\n"
		    "    clients: {a: [{outstanding: 4}]}\n");

	CHECK_NEAR(get(m, "tenant.h.a.iops"), 500 / 5.096, 0.01);
	CHECK_NEAR(get(m, "tenant.h.b.iops"), 500 / 9.192, 0.01);
	CHECK_NEAR(get(m, "tenant.d.a.iops"), 500, 0.01);
	metrics_free(m);
}

/* L-tokens for 100 a second and four slots with more demand: each request waits for tokens, and
 * for nothing else. */
static void waiting_for_tokens_is_called_so(void)
{
	struct metrics *m = run("duration: 20s\n"
				"warmup: 1s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 100k iops}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy: {depth: 32, tenants: [{name: a, lab: {ltokens: {rate: "
				"100 iops, size: 1}}}]}\n"
				"    clients: {a: [{outstanding: 4}]}\n");

	CHECK_NEAR(get(m, "wait.h.a.tokens"), 40, 0.02);
	CHECK_NEAR(get(m, "wait.h.a.mean"), 40, 0.02);
	CHECK(get(m, "wait.h.a.turn") < 0.1 && get(m, "wait.h.a.window") < 0.1);
	metrics_free(m);
}

/* Too many writes for the link until 2 s, and then one at a time. */
#define FLOOD(warmup)                                                                              \
	"duration: 10s\nwarmup: " warmup "\ndevices:\n"                                            \
	"  - {name: s, kind: server, rate: 10k iops}\n"                                            \
	"links:\n"                                                                                 \
	"  - {name: up, rate: 1 MB/s, buffer: 20 KiB, ecn_packets: 2}\n"                           \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    request: up\n"                                                                        \
	"    policy: {depth: 40}\n"                                                                \
	"    workloads: [{outstanding: 32, reads: 0, stop: 2s}, {reads: 0}]\n"

static void drops_and_marks_are_those_after_the_warm_up(void)
{
	struct metrics *all = run(FLOOD("0s")), *late = run(FLOOD("5s"));

	CHECK(get(all, "link.up.drops") > 10);
	CHECK(get(all, "link.up.marks") > 10);
	CHECK_INT(get(late, "link.up.drops"), 0);
	CHECK_INT(get(late, "link.up.marks"), 0);
	CHECK(get(late, "link.up.ios") > 500);
	metrics_free(all);
	metrics_free(late);
}

/* 20 requests a second for 100 a second wait in the warm-up. They are done 4 s later. */
static void waiting_counts_from_the_end_of_the_warm_up(void)
{
	struct metrics *m = run("duration: 20s\n"
				"warmup: 10s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 100 iops, service: fixed}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy: {depth: 1}\n"
				"    workloads:\n"
				"      - {arrivals: uniform, rate: 200 iops, stop: 4s}\n"
				"      - {arrivals: uniform, rate: 10 iops, start: 11s}\n");

	CHECK_INT(get(m, "tenant.h.main.ios"), 90);
	CHECK_NEAR(get(m, "tenant.h.main.max"), 10, 0.01);
	CHECK_NEAR(get(m, "tenant.h.main.p99"), 10, 0.01);
	CHECK(get(m, "wait.h.main.mean") < 0.001);
	CHECK(get(m, "wait.h.main.queued") < 0.001);
	CHECK_NEAR(get(m, "device.s.mean"), 10, 0.01);
	metrics_free(m);
}

/* Ten requests in each burst, one burst in 100 ms, and 10 requests served in a second. */
static void bursts_that_are_lost_count_as_unfinished(void)
{
#define BURSTS(warmup)                                                                             \
	"duration: 3s\nwarmup: " warmup "\ndevices:\n"                                             \
	"  - {name: s, kind: server, rate: 10 iops, service: fixed}\n"                             \
	"hosts:\n"                                                                                 \
	"  - name: h\n"                                                                            \
	"    policy: {depth: 1}\n"                                                                 \
	"    workloads: [{arrivals: uniform, rate: 1k iops, on: 10ms, off: 90ms}]\n"
	struct metrics *all = run(BURSTS("0s")), *late = run(BURSTS("2s"));

	CHECK_INT(
		get(all, "burst.h.main.w1.finished") + get(all, "burst.h.main.w1.unfinished"), 30);
	CHECK_INT(get(late, "burst.h.main.w1.finished") + get(late, "burst.h.main.w1.unfinished"),
		10);
	metrics_free(all);
	metrics_free(late);
}

int main(void)
{
	RUN(series_have_their_units);
	RUN(an_idle_sample_has_no_latency);
	RUN(percentiles_are_those_they_are_called);
	RUN(estimated_time_is_io_and_bytes);
	RUN(waiting_for_tokens_is_called_so);
	RUN(drops_and_marks_are_those_after_the_warm_up);
	RUN(waiting_counts_from_the_end_of_the_warm_up);
	RUN(bursts_that_are_lost_count_as_unfinished);
	return 0;
}
