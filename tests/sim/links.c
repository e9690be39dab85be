/* SPDX-License-Identifier: BSD-3-Clause */
/* Links between hosts and devices: data, drops and priorities. */
#include "fixture.h"

#define run(text) fixture_run(text, "", "", 1)
#define get       fixture_get
#define over      fixture_over

/* A header of 96 B and, one way, 4 KiB of data. */
static void data_travel_one_way(void)
{
#define BOTH_WAYS(reads)                                                                           \
	"duration: 20s\n"                                                                          \
	"devices: [{name: s, kind: server, rate: 1k iops, service: fixed}]\n"                      \
	"links: [{name: up, rate: 1 MB/s}, {name: down, rate: 1 MB/s}]\n"                          \
	"hosts: [{name: h, request: up, reply: down, policy: {depth: 32},\n"                       \
	"  workloads: [{reads: " reads "}]}]\n"
	struct metrics *reads = run(BOTH_WAYS("1")), *writes = run(BOTH_WAYS("0"));
	double rate = get(reads, "tenant.h.main.iops");

	CHECK_NEAR(get(reads, "link.up.bytes"), 96 * rate, 0.01);
	CHECK_NEAR(get(reads, "link.down.bytes"), 4192 * rate, 0.01);
	CHECK_NEAR(get(writes, "link.up.bytes"), 4192 * rate, 0.01);
	CHECK_NEAR(get(writes, "link.down.bytes"), 96 * rate, 0.01);
	metrics_free(reads);
	metrics_free(writes);
}

/* Two writes at once, and room for one: the other is sent again 50 ms later. */
static void a_dropped_request_is_sent_again_after_retry(void)
{
	struct metrics *m = run("duration: 1s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 1k iops, service: fixed}\n"
				"links:\n"
				"  - {name: up, rate: 1 MB/s, delay: 0s, buffer: 5000 B}\n"
				"hosts:\n"
				"  - name: h\n"
				"    request: up\n"
				"    retry: 50ms\n"
				"    policy: {depth: 32}\n"
				"    workloads: [{outstanding: 2, reads: 0, stop: 1ms}]\n");

	CHECK_INT(get(m, "tenant.h.main.ios"), 2);
	CHECK_INT(get(m, "link.up.drops"), 1);
	CHECK_NEAR(get(m, "tenant.h.main.p50"), 4.192 + 1, 0.01);
	CHECK_NEAR(get(m, "tenant.h.main.max"), 50 + 4.192 + 1, 0.01);
	metrics_free(m);
}

/* 16 writes of one tenant wait at the link. Without a priority those of the other wait behind
 * them (4.192 ms each); with any priority before them. */
static void without_a_priority_a_tenant_goes_last(void)
{
	struct metrics *m = run("duration: 20s\n"
				"devices:\n"
				"  - {name: s, kind: server, rate: 100k iops}\n"
				"links:\n"
				"  - {name: up, rate: 1 MB/s, strict: true}\n"
				"hosts:\n"
				"  - name: h\n"
				"    request: up\n"
				"    policy: {depth: 100, tenants: [{name: a}, {name: b}]}\n"
				"    clients: {a: [{reads: 0}], b: [{outstanding: 16, reads: 0}]}\n"
				"at:\n"
				"  - {time: 10s, set: {tenant: h/a, lab: {priority: 6}}}\n");

	CHECK_NEAR(over(m, "tenant.h.a.latency", 1, 10), 17 * 4.192, 0.02);
	CHECK(over(m, "tenant.h.a.latency", 11, 20) < 2.1 * 4.192);
	metrics_free(m);
}

/* A faster link, from 10 s on; the device of nearly the same name is unchanged. */
static void the_rate_of_a_link_is_changed(void)
{
	struct metrics *m =
		run("duration: 20s\n"
		    "devices:\n"
		    "  - {name: xa, kind: server, rate: 1k iops, service: fixed}\n"
		    "links:\n"
		    "  - {name: xb, rate: 1 MB/s, delay: 0s}\n"
		    "hosts:\n"
		    "  - {name: h, request: xb, policy: {depth: 32}, workloads: [{reads: 0}]}\n"
		    "at:\n"
		    "  - {time: 10s, set: {link: \"x*\", rate: 2 MB/s}}\n");

	CHECK_NEAR(over(m, "tenant.h.main.latency", 0, 10), 4.192 + 1, 0.01);
	CHECK_NEAR(over(m, "tenant.h.main.latency", 11, 20), 4.192 / 2 + 1, 0.01);
	metrics_free(m);
}

int main(void)
{
	RUN(data_travel_one_way);
	RUN(a_dropped_request_is_sent_again_after_retry);
	RUN(without_a_priority_a_tenant_goes_last);
	RUN(the_rate_of_a_link_is_changed);
	return 0;
}
