/* SPDX-License-Identifier: BSD-3-Clause */
/* The capacity of a device, learned from the times at which the windows before it are full. */
#include "fixture.h"

#define run(text) fixture_run(text, "", "", 1)
#define get       fixture_get

#define DEVICE                                                                                     \
	"duration: 30s\n"                                                                          \
	"devices:\n"                                                                               \
	"  - {name: s, kind: server, rate: 500 iops, service: fixed, capacity: auto}\n"            \
	"  - {name: other, kind: server, rate: 100 iops}\n"

static void all_windows_full_is_saturated(void)
{
	struct metrics *m = run(DEVICE "policy: {depth: 4}\n"
				       "hosts:\n"
				       "  - {name: a, device: s, workloads: [{outstanding: 8}]}\n"
				       "  - {name: b, device: s, workloads: [{outstanding: 8}]}\n");

	CHECK_NEAR(get(m, "device.s.capacity_iops"), 500, 0.01);
	CHECK_NEAR(get(m, "device.s.capacity_bytes"), 500 * 4096, 0.01);
	metrics_free(m);
}

/* Each window is full for a bit less than half of the time: the device may be idle or not, so
 * its capacity is unknown. */
static void windows_full_in_turn_are_not(void)
{
	struct metrics *m = run(DEVICE
		"policy: {depth: 4}\n"
		"hosts:\n"
		"  - {name: a, device: s, workloads: [{outstanding: 8, on: 450ms, off: 550ms}]}\n"
		"  - name: b\n"
		"    device: s\n"
		"    workloads: [{outstanding: 8, on: 450ms, off: 550ms, start: 500ms}]\n");

	CHECK(get(m, "tenant.a.main.iops") > 200 && get(m, "tenant.b.main.iops") > 200);
	CHECK(get(m, "device.s.capacity_iops") == 0);
	metrics_free(m);
}

/* Idle hosts, and those of another device, do not count. */
static void idle_and_other_hosts_do_not_count(void)
{
	struct metrics *m =
		run(DEVICE "policy: {depth: 4}\n"
			   "hosts:\n"
			   "  - {name: a, device: s, workloads: [{outstanding: 8}]}\n"
			   "  - {name: idle, device: s, workloads: [{stopped: true}]}\n"
			   "  - {name: b, device: other, workloads: [{outstanding: 1}]}\n");

	CHECK_NEAR(get(m, "device.s.capacity_iops"), 500, 0.01);
	metrics_free(m);
}

/* With a gate at the device itself, the hosts' windows do not matter. */
static void the_devices_own_gate_decides(void)
{
	struct metrics *m =
		run("duration: 30s\n"
		    "devices:\n"
		    "  - name: s\n"
		    "    kind: server\n"
		    "    rate: 500 iops\n"
		    "    service: fixed\n"
		    "    capacity: auto\n"
		    "    policy: {depth: 4}\n"
		    "hosts:\n"
		    "  - {name: a, policy: {depth: none}, workloads: [{outstanding: 8}]}\n");

	CHECK_NEAR(get(m, "device.s.capacity_iops"), 500, 0.01);
	metrics_free(m);
}

int main(void)
{
	RUN(all_windows_full_is_saturated);
	RUN(windows_full_in_turn_are_not);
	RUN(idle_and_other_hosts_do_not_count);
	RUN(the_devices_own_gate_decides);
	return 0;
}
