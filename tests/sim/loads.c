/* SPDX-License-Identifier: BSD-3-Clause */
/* Workloads in the world: slots that pause, stop and start again, bursts, and the attributes of
 * a request that reach the gates and the device. */
#include "fixture.h"

#define run(text) fixture_run(text, "", "", 1)
#define get       fixture_get
#define over      fixture_over

/* 4 slots that pause for 100 ms and are served at once: 40 requests a second. Nearly all slots
 * pause when the workload is stopped. */
static void a_slot_that_pauses_survives_a_stop(void)
{
	struct metrics *m = run(
		"duration: 40s\n"
		"devices:\n"
		"  - {name: s, kind: server, rate: 100k iops}\n"
		"hosts:\n"
		"  - {name: h, policy: {depth: 32}, workloads: [{outstanding: 4, think: 100ms}]}\n"
		"at:\n"
		"  - {time: 10s, set: {workload: h/main/w1, run: false}}\n"
		"  - {time: 20s, set: {workload: h/main/w1, run: true}}\n");

	CHECK_NEAR(over(m, "tenant.h.main.throughput", 0, 10), 40, 0.1);
	CHECK(over(m, "tenant.h.main.throughput", 11, 20) == 0);
	CHECK_NEAR(over(m, "tenant.h.main.throughput", 20, 40), 40, 0.1);
	metrics_free(m);
}

static void no_slot_is_lost_or_gained_by_stops(void)
{
	struct metrics *m = run(
		"duration: 10s\n"
		"sample: 500ms\n"
		"devices:\n"
		"  - {name: s, kind: server, rate: 1k iops}\n"
		"hosts:\n"
		"  - {name: h, policy: {depth: 32}, workloads: [{outstanding: 6, stopped: true}]}\n"
		"at:\n"
		"  - {time: 1s, set: {workload: h/main/w1, run: true}}\n"
		"  - {time: 3s, set: {workload: h/main/w1, run: false}}\n"
		"  - {time: 5s, set: {workload: h/main/w1, run: true}}\n"
		"  - {time: 6s, set: {workload: h/main/w1, run: false}}\n"
		"  - {time: 8s, set: {workload: h/main/w1, run: true}}\n");

	CHECK(over(m, "host.h.outstanding", 0, 1) == 0);
	CHECK_NEAR(over(m, "host.h.outstanding", 1, 3), 6, 0.01);
	CHECK(over(m, "host.h.outstanding", 3.5, 5) == 0);
	CHECK_NEAR(over(m, "host.h.outstanding", 5, 6), 6, 0.01);
	CHECK_NEAR(over(m, "host.h.outstanding", 8, 10), 6, 0.01);
	metrics_free(m);
}

/* Requests that would have arrived while it was stopped never arrive. */
static void a_stopped_open_workload_is_silent(void)
{
	struct metrics *m = run("duration: 9s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 10k iops}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy: {depth: 32}\n"
				"    workloads: [{arrivals: uniform, rate: 100 iops, reads: 0.5}]\n"
				"at:\n"
				"  - {time: 3s, set: {workload: h/main/w1, run: false}}\n"
				"  - {time: 6s, set: {workload: h/main/w1, run: true}}\n");

	CHECK_NEAR(over(m, "tenant.h.main.throughput", 0, 3), 100, 0.01);
	CHECK(over(m, "tenant.h.main.throughput", 3, 6) < 1);
	CHECK_NEAR(over(m, "tenant.h.main.throughput", 6, 9), 100, 0.01);
	metrics_free(m);
}

/* The first request of each slot waits for `start`, every other for its think time: a pause does
 * not change the request. */
static void a_pause_keeps_the_request(void)
{
	struct metrics *m =
		run("duration: 60s\n"
		    "devices:\n"
		    "  - {name: d, kind: disk, segment: 0 B, order: fifo}\n"
		    "links:\n"
		    "  - {name: up, rate: 1 GB/s}\n"
		    "policy: {depth: 32}\n"
		    "hosts:\n"
		    "  - name: w\n"
		    "    request: up\n"
		    "    workloads: [{reads: 0, think: 100ms, start: 1s, size: 8 KiB}]\n"
		    "  - {name: r, workloads: [{think: 100ms, start: 1s, region: 140 GB}]}\n");

	CHECK_NEAR(get(m, "link.up.bytes"), (96 + 8192) * get(m, "tenant.w.main.iops"), 0.01);
	CHECK(get(m, "tenant.r.main.p50") > 4); /* it seeks: the requests lie apart */
	metrics_free(m);
}

/* Two hosts that read from one place, or from two with the arm moving between them. */
static void hosts_of_a_group_lie_apart(void)
{
#define SPREAD(spread)                                                                             \
	"duration: 10s\n"                                                                          \
	"devices: [{name: d, kind: disk}]\n"                                                       \
	"hosts: [{name: h, count: 2, policy: {depth: 32}, workloads: [{region: 64 KiB, "           \
	"spread: " spread "}]}]\n"
	struct metrics *same = run(SPREAD("0 B")), *apart = run(SPREAD("100 GB"));

	CHECK(get(same, "device.d.mean") < 1);
	CHECK(get(apart, "device.d.mean") > 5);
	metrics_free(same);
	metrics_free(apart);
}

/* 5 requests, 100 ms apart, in each on-phase; the last is done 10 ms after it came. The phases
 * begin 700 ms after whole seconds, and the last has not ended. */
static void a_burst_lasts_until_its_phase_is_over(void)
{
	struct metrics *m = run("duration: 10s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 100 iops, service: fixed}\n"
				"hosts:\n"
				"  - name: h\n"
				"    policy: {depth: 32}\n"
				"    workloads: [{arrivals: uniform, rate: 10 iops, on: 500ms, "
				"off: 500ms, start: 700ms}]\n");

	CHECK_INT(get(m, "burst.h.main.w1.finished"), 9);
	CHECK_INT(get(m, "burst.h.main.w1.unfinished"), 1);
	CHECK_NEAR(get(m, "burst.h.main.w1.mean"), 410, 0.001);
	metrics_free(m);
}

/* A gate before the device that lets runs of near requests pass: of a stream, not of random
 * ones. */
static void the_devices_gate_knows_offsets(void)
{
#define RUNS(sequential)                                                                           \
	"duration: 20s\nwarmup: 1s\n"                                                              \
	"devices: [{name: s, kind: server, rate: 1k iops, service: fixed,\n"                       \
	"  policy: {depth: 1, run: 64, run_distance: 1 MiB}}]\n"                                   \
	"policy: {depth: 32}\n"                                                                    \
	"hosts:\n"                                                                                 \
	"  - {name: many, workloads: [{outstanding: 99, sequential: " sequential "}]}\n"           \
	"  - {name: one, workloads: [{}]}\n"
	struct metrics *apart = run(RUNS("0")), *stream = run(RUNS("1"));

	CHECK(get(apart, "tenant.one.main.mean") < 2.1);
	CHECK(get(stream, "tenant.one.main.mean") > 30);
	metrics_free(apart);
	metrics_free(stream);
}

static void the_devices_gate_knows_kinds(void)
{
	struct metrics *m =
		run("duration: 20s\n"
		    "warmup: 1s\n"
		    "devices:\n"
		    "  - name: s\n"
		    "    kind: server\n"
		    "    rate: 1k iops\n"
		    "    policy: {depth: 32, tenants: [{name: h, max: {writes: 50 iops}}]}\n"
		    "hosts:\n"
		    "  - {name: h, policy: {depth: 32}, workloads: [{reads: 0}]}\n");

	CHECK_NEAR(get(m, "tenant.h.main.iops"), 50, 0.02);
	metrics_free(m);
}

static int give_trims(
	const char *path, void *arg, char **ret, size_t *ret_len, struct weir_err *err)
{
	*ret = strdup("# weir-trace 1\n0 T 0 1048576 0\n0 T 1048576 1048576 0\n0 T 0 1048576 0\n");
	*ret_len = strlen(*ret);
	return 0;
}

/* A trim has a length, but no data that a limit in bytes counts. */
static void trims_cost_no_bytes(void)
{
	static const char text[] =
		"duration: 10s\n"
		"devices:\n"
		"  - {name: s, kind: server, service: fixed}\n"
		"hosts:\n"
		"  - name: h\n"
		"    policy: {depth: 32, io_unit: 2 GiB, tenants: [{name: a, max: 1 MiB/s}]}\n"
		"    clients: {a: [{trace: f}]}\n";
	struct scenario *s;
	struct metrics *m;
	struct weir_err err;

	CHECK_INT(scenario_parse(text, strlen(text), "t.yaml", NULL, 0, &s, &err), 0);
	CHECK_INT(scenario_load(s, give_trims, NULL, &err), 0);
	CHECK_INT(sim_run(s, NULL, &m, NULL, &err), 0);
	CHECK_INT(get(m, "tenant.h.a.ios"), 3);
	CHECK_NEAR(get(m, "tenant.h.a.max"), 3, 0.01);
	CHECK_INT(get(m, "tenant.h.a.bytes"), 0);
	metrics_free(m);
	scenario_free(s);
}

int main(void)
{
	RUN(a_slot_that_pauses_survives_a_stop);
	RUN(no_slot_is_lost_or_gained_by_stops);
	RUN(a_stopped_open_workload_is_silent);
	RUN(a_pause_keeps_the_request);
	RUN(hosts_of_a_group_lie_apart);
	RUN(a_burst_lasts_until_its_phase_is_over);
	RUN(the_devices_gate_knows_offsets);
	RUN(the_devices_gate_knows_kinds);
	RUN(trims_cost_no_bytes);
	return 0;
}
