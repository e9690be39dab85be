/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/scenario/scenario.h"
#include "test.h"
#include <errno.h>

#define HEAD                                                                                       \
	"duration: 10s\n"                                                                          \
	"devices: [{name: s, kind: server, rate: 1k iops}]\n"                                      \
	"links: [{name: l, rate: 1 Gbit/s}]\n"

static struct scenario *parse(const char *text)
{
	struct scenario *s;
	struct weir_err err;

	if (scenario_parse(text, strlen(text), "t.yaml", NULL, 0, &s, &err))
		FAIL("refused: %s\n%s", err.text, text);
	return s;
}

static void refused(const char *text, const char *message)
{
	struct scenario *s;
	struct weir_err err = {{0}};
	int r = scenario_parse(text, strlen(text), "t.yaml", NULL, 0, &s, &err);

	if (r != -EINVAL)
		FAIL("not refused (%d):\n%s", r, text);
	if (!strstr(err.text, message))
		FAIL("'%s' instead of '%s'", err.text, message);
}

static void defaults_are_as_the_manual_says(void)
{
	struct scenario *s = parse(HEAD "hosts: [{name: h, workloads: [{}]}]\n");
	const struct scenario_group *g = &s->groups[0];
	const struct workload_config *c = &g->gate.tenants[0].workloads[0].config;

	CHECK_INT(s->seed, 1);
	CHECK_INT(s->warmup, 0);
	CHECK_INT(s->sample, WEIR_SEC);
	CHECK_STR(s->name, "t.yaml");
	CHECK_STR(s->about, "");
	CHECK_INT(s->n_hosts, 1);
	CHECK_STR(s->hosts[0].name, "h");
	CHECK_INT(g->retry, 200 * WEIR_MS);
	CHECK_INT(g->gate.config.cost, WEIR_UNIT_REQUESTS);
	CHECK_INT(g->gate.config.order, WEIR_FAIR);
	CHECK_STR(g->gate.policy->tenants[0].path, "main");
	CHECK_INT(c->arrivals, WORKLOAD_CLOSED);
	CHECK_INT(c->outstanding, 1);
	CHECK_INT(c->sizes[0].bytes, 4096);
	CHECK(c->reads == 1);
	CHECK(c->region == UINT64_C(16) << 30);
	scenario_free(s);
}

/* A change at the end of the run still takes effect. */
static void a_change_may_come_with_the_end(void)
{
	scenario_free(parse(HEAD "hosts: [{name: h, workloads: []}]\n"
				 "at: [{time: 10s, set: {host: h, depth: 1}}]\n"));
}

static void a_whole_file_is_read(void)
{
	struct scenario *s = parse(
		"name: whole\n"
		"seed: 9\n"
		"duration: 100s\n"
		"warmup: 5s\n"
		"sample: 500ms\n"
		"devices:\n"
		"  - {name: a, kind: array, preset: cx3, disks: 5, cache: 0 B, order: sptf}\n"
		"  - name: ost\n"
		"    kind: ssd\n"
		"    capacity: auto\n"
		"    policy: {depth: 8, tenants: [{name: x, weight: 2, match: {export: h*}}]}\n"
		"links: [{name: up, rate: 8 Gbit/s, delay: 50us, buffer: 1 MiB}, {name: down}]\n"
		"hosts:\n"
		"  - name: h\n"
		"    count: 3\n"
		"    device: ost\n"
		"    request: [up]\n"
		"    reply: down\n"
		"    policy:\n"
		"      depth: 6.5\n"
		"      credit: 64 KiB\n"
		"      tenants:\n"
		"        - name: prod\n"
		"          weight: 3\n"
		"          children:\n"
		"            - {name: db, min: 10 iops, lab: {priority: 2, profile: [{rate: 5 "
		"iops,\n"
		"               size: 3}, {rate: 1 MB/s, size: 64 KiB, ops: writes},\n"
		"               {share: 0.5, size: 20ms}]}}\n"
		"        - {name: vm1, max: 50 iops}\n"
		"    clients: {vm1: [{rate: 5 iops}, {name: z}]}\n"
		"policy: {cost: bytes}\n"
		"at:\n"
		"  - {time: 20s, set: {host: h2, depth: 0}}\n"
		"  - {time: 10s, set: [{tenant: 'h*/vm1', max: 9 iops, lab: {rgrant: 4}},\n"
		"      {workload: h1/vm1/z, run: false}, {device_tenant: ost/x, weight: 5},\n"
		"      {link: up, rate: 1 Gbit/s}]}\n");
	const struct scenario_group *g = &s->groups[0];
	const struct scenario_tenant *db = &g->gate.tenants[1];

	CHECK_INT(s->n_hosts, 3);
	CHECK_STR(s->hosts[2].name, "h3");
	CHECK_INT(s->stations[0].config.array.disks, 5);
	CHECK_INT(s->stations[0].config.array.cache, 0);
	CHECK_INT(s->stations[0].config.array.disk.order, SPINDLE_SPTF);
	CHECK(s->stations[2].config.link.rate == 1e9);
	CHECK_INT(s->stations[2].config.link.delay, 50 * WEIR_US);
	CHECK_INT(g->device, 1);
	CHECK_INT(g->n_request, 1);
	CHECK_INT(g->request[0], 2);
	CHECK_INT(g->reply[0], 3);
	CHECK(g->gate.config.window == 6.5);
	CHECK_INT(g->gate.config.credit, 65536);
	CHECK_STR(g->gate.policy->tenants[1].path, "prod/db");
	CHECK_INT(db->knobs.lab.priority, 2);
	CHECK_INT(db->knobs.lab.n_profile, 3);
	CHECK_INT(db->knobs.lab.profile[1].unit, WEIR_UNIT_BYTES);
	CHECK_INT(db->knobs.lab.profile[1].ops, WEIR_OPS_WRITES);
	CHECK(db->knobs.lab.profile[2].rate == 0.5e9 && db->knobs.lab.profile[2].size == 20e6);
	CHECK_INT(g->gate.tenants[2].workloads[0].config.arrivals, WORKLOAD_POISSON);
	CHECK_STR(g->gate.tenants[2].workloads[0].name, "w1");
	CHECK_INT(s->n_moments, 2);
	CHECK_INT(s->moments[0].time, 10 * WEIR_SEC); /* sorted */
	CHECK_INT(s->moments[0].n, 4);
	CHECK_INT(s->moments[0].changes[0].knobs.given, SCENARIO_MAX | POLICY_LAB_RGRANT);
	CHECK(s->moments[0].changes[2].at_device);
	CHECK(s->moments[0].changes[3].rate == 1.25e8);
	CHECK_INT(s->moments[1].changes[0].gate.given, SCENARIO_GATE_WINDOW);
	CHECK_INT(s->n_controllers, 1); /* for `capacity: auto` */
	scenario_free(s);
}

/* A scenario, and a part of its error message. */
static const char *const wrong[][2] = {
	{"", "needs a 'duration'"},
	{"duration: 10\n", "t.yaml:1:11: duration"},
	{"duration: 10s\nsample: 1us\n", "t.yaml:1:11: duration: has more than 1000000 samples"},
	{"duration: 1s\nwarmup: 2s\n", "t.yaml:2:9: warmup: must be less"},
	{"duration: 1s\nhots: []\n", "t.yaml:2:1: unknown key 'hots' (did you mean 'hosts'?)"},
	{"duration: 1s\n", "needs 'devices'"},
	{"duration: 1s\ndevices: [{name: a}]\n",
		"t.yaml:2:11: devices[0]: a device needs a 'kind'"},
	{"duration: 1s\ndevices: [{name: a, kind: dsk}]\n", "t.yaml:2:27: devices[0].kind"},
	{"duration: 1s\ndevices: [{name: a, kind: link}]\n", "links belong under 'links'"},
	{"duration: 1s\ndevices: [{name: a, kind: lnk}]\n",
		"t.yaml:2:27: devices[0].kind: \"lnk\": must be one of disk, array, ssd, server, "
		"disk-10k, array-small"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, disks: 3}]\n",
		"t.yaml:2:33: devices[0]: unknown key 'disks'"},
	{"duration: 1s\ndevices: [{name: a, kind: array, disks: 2}]\n",
		"t.yaml:2:41: devices[0].disks: RAID-5 needs"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, rpm: 0}]\n",
		"t.yaml:2:38: devices[0].rpm: must be between"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, capacity_bytes: 1 B}]\n",
		"t.yaml:2:49: devices[0].capacity_bytes: there must be 512 bytes a cylinder"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, cylinders: 4G}]\n",
		"t.yaml:2:44: devices[0].cylinders: there must be 512 bytes a cylinder"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, seek_track: 900ms}]\n",
		"t.yaml:2:45: devices[0].seek_track: seek_third must be at least seek_track"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, skew: 2s}]\n",
		"t.yaml:2:39: devices[0].skew: must be at most 1 s"},
	{"duration: 1s\ndevices: [{name: a, kind: array, trigger: 0}]\n",
		"t.yaml:2:43: devices[0].trigger: must be at least 1"},
	{"duration: 1s\ndevices: [{name: a, kind: array, mirror: 2s}]\n",
		"t.yaml:2:42: devices[0].mirror: must be between 0 and 1 s"},
	{"duration: 1s\ndevices: [{name: a, kind: array, start: 1 TiB}]\n",
		"t.yaml:2:41: devices[0].start: the lun is larger"},
	{"duration: 1s\ndevices: [{name: a, kind: ssd, dies: 0}]\n",
		"t.yaml:2:38: devices[0].dies: must be at least 1"},
	{"duration: 1s\ndevices: [{name: a, kind: ssd, channels: 65536}]\n",
		"t.yaml:2:42: devices[0].channels: there may be 65536 dies"},
	{"duration: 1s\ndevices: [{name: a, kind: server, servers: 0}]\n",
		"t.yaml:2:44: devices[0].servers: must be at least 1"},
	{"duration: 1s\ndevices: [{name: a, kind: server, rate: 1 MB/s}]\n",
		"devices[0].rate: \"1 MB/s\": must be in iops"},
	{"duration: 1s\ndevices: [{name: a, kind: server, bandwidth: 10 iops}]\n",
		"t.yaml:2:46: devices[0].bandwidth: \"10 iops\": must be in bytes or bits"},
	{"duration: 1s\ndevices: [{name: a, kind: server, rate: 1k, latency: 1ms}]\n",
		"t.yaml:2:54: devices[0].latency: only one of them may be given"},
	{"duration: 1s\ndevices: [{name: a, kind: server, latency: 0s}]\n",
		"t.yaml:2:44: devices[0].latency: must be > 0"},
	{"duration: 1s\ndevices: [{name: a, kind: ssd, gc_random: [yes]}]\n",
		"t.yaml:2:43: devices[0].gc_random: must be text, not a list"},
	{"duration: 1s\ndevices: [{name: a, kind: disk}, {name: a, kind: disk}]\n",
		"two devices or links are named 'a'"},
	{"duration: 1s\ndevices: [{name: a b, kind: disk}]\n", "'a b': a name is made of"},
	{HEAD, "needs 'hosts'"},
	{HEAD "hosts: [{name: h, polciy: {}, workloads: []}]\n",
		"t.yaml:4:19: hosts[0]: unknown key 'polciy' (did you mean 'policy'?)"},
	{HEAD "hosts: [{name: h, policy: {dpeth: 4}, workloads: []}]\n",
		"hosts[0].policy.dpeth: unknown key 'dpeth' (did you mean 'depth'?)"},
	{HEAD "hosts: [{name: h, policy: {tenats: []}, workloads: []}]\n",
		"unknown key 'tenats' (did you mean 'tenants'?)"},
	{HEAD "hosts: [{name: h, policy: {depth: {byte: 4}}, workloads: []}]\n",
		"hosts[0].policy.depth: unknown key 'byte' (did you mean 'bytes'?)"},
	{HEAD "hosts: [{name: h, policy: {depth: {bytes: 8 PiB}}, workloads: []}]\n",
		"hosts[0].policy.depth.bytes: must be from 1 B to 4 PiB"},
	{HEAD "hosts: [{name: h, policy: {depth: -1}, workloads: []}]\n",
		"t.yaml:4:35: hosts[0].policy.depth"},
	{HEAD "policy: {depth: 70000}\nhosts: [{name: h, workloads: []}]\n",
		"t.yaml:4:17: policy.depth: must be from 1 to 65536"},
	{HEAD "policy: [a]\nhosts: [{name: h, workloads: []}]\n",
		"t.yaml:4:9: policy: must be a policy, or the name of its file"},
	{HEAD "hosts: [{name: h, policy: p.yaml, workloads: []}]\n",
		"t.yaml:4:27: hosts[0].policy: 'p.yaml': a file cannot be read from here"},
	{HEAD "policy: {resources: [{name: t}]}\nhosts: [{name: h, workloads: []}]\n",
		"t.yaml:4:22: no resource of the policy is named 's', as the device is"},
	{HEAD "hosts: [{name: h, window: 4, workloads: []}]\n",
		"t.yaml:4:9: hosts[0]: 'window' is now 'depth' of a policy: see "
		"weir-scenario(5)"},
	{HEAD "hosts: [{name: h, tenants: [{name: a}]}]\n", "'tenants' is now in the policy"},
	{HEAD "policy: {order: fifo}\nhosts: [{name: h, workloads: []}]\n",
		"t.yaml:4:9: policy: 'order' is now in 'lab' of a policy"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, children: [{name: b, workloads: "
	      "[]}]}]}}]\n",
		"tenants[0].children[0]: 'workloads' is now 'clients' of the host"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, policy: {tenants: [{name: x, for: h}]}}]\n",
		"'for' is now 'match: {export: HOST/TENANT}'"},
	{"duration: 1s\ndevices: [{name: a, kind: disk, gate: {}}]\n", "'gate' is now 'policy'"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {host: h, window: 1}}]\n",
		"t.yaml:5:22: at[0].set: 'window' is now 'depth' of a policy"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a}]}, clients: {b: [{}]}}]\n",
		"hosts[0].clients.b: the policy has no tenant 'b'"},
	{HEAD "hosts: [{name: h, clients: {main: [{}]}, workloads: []}]\n", "not both"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a}, {name: b}]}, workloads: []}]\n",
		"hosts[0].workloads: there are several tenants"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, children: [{name: b}]}]}, clients: "
	      "{a: []}}]\n",
		"'a' has children"},
	{HEAD "hosts: [{name: h, policy: {controller: pshift}, workloads: []}]\n", "cluster"},
	{HEAD "hosts: [{name: h, device: x, workloads: []}]\n", "no device is named 'x'"},
	{HEAD "hosts: [{name: h, request: s, workloads: []}]\n", "no link is named 's'"},
	{HEAD "hosts: [{name: h, workloads: []}, {name: h, workloads: []}]\n",
		"t.yaml:4:35: two hosts are named 'h'"},
	{HEAD "hosts: [{name: h, count: 2, workloads: []}, {name: h2, workloads: []}]\n",
		"two hosts are named 'h2'"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, wieght: 2}]}}]\n",
		"t.yaml:4:48: hosts[0].policy.tenants[0]: unknown key 'wieght'"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, weight: 0}]}}]\n",
		"hosts[0].policy.tenants[0].weight"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, lab: {priority: 64}}]}}]\n",
		"hosts[0].policy.tenants[0].lab.priority"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, lab: {profile: [{rate: 5 "
	      "iops}]}}]}}]\n",
		"needs a 'size'"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, lab: {ltokens: {size: 5}}}]}}]\n",
		"needs 'rate'"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, lab: {rgrant: 5}}]}}]\n",
		"unknown key 'rgrant'"},
	{HEAD "hosts: [{name: h, policy: {tenants: [{name: a, lab: {priority: 1}, children: "
	      "[{name: b}]}]}}]\n",
		"is for tenants without children"},
	{HEAD "hosts: [{name: h, workloads: [{rate: 5}]}]\n", "hosts[0].workloads[0].rate"},
	{HEAD "hosts: [{name: h, workloads: [{rate: 5 MB/s}]}]\n", "must be in iops"},
	{HEAD "hosts: [{name: h, workloads: [{reads: 2}]}]\n", "must be at most 1"},
	{HEAD "hosts: [{name: h, workloads: [{on: 5s}]}]\n",
		"t.yaml:4:36: hosts[0].workloads[0].on: on-off needs both"},
	{HEAD "hosts: [{name: h, workloads: [{rate: 5 iops, rate_end: 9 iops}]}]\n",
		"t.yaml:4:56: hosts[0].workloads[0].rate_end: a ramp (rate_end) needs an end"},
	{HEAD "hosts: [{name: h, workloads: [{start: 5s, stop: 4s}]}]\n",
		"t.yaml:4:49: hosts[0].workloads[0].stop: must be later than start"},
	{HEAD "hosts: [{name: h, workloads: [{arrivals: poisson}]}]\n",
		"t.yaml:4:31: hosts[0].workloads[0]: rate: must be > 0"},
	{HEAD "hosts: [{name: h, workloads: [{size: 1 MiB, region: 4 KiB}]}]\n",
		"t.yaml:4:53: hosts[0].workloads[0].region: too small for sizes[0]"},
	{HEAD "hosts: [{name: h, workloads: [{rate: 5 iops, outstanding: 3}]}]\n",
		"t.yaml:4:59: hosts[0].workloads[0].outstanding: only a closed workload has this "
		"key; this one is 'poisson'"},
	{HEAD "hosts: [{name: h, workloads: [{trace: t, rate: 5 iops}]}]\n",
		"t.yaml:4:48: hosts[0].workloads[0].rate: only a poisson, hyper, uniform or bursts "
		"workload has this key; this one is 'trace'"},
	{HEAD "hosts: [{name: h, workloads: [{trace: t, think: 5ms}]}]\n", ".think: only a closed"},
	{HEAD "hosts: [{name: h, workloads: [{rate: 5 iops, ca2: 4}]}]\n", ".ca2: only a hyper"},
	{HEAD "hosts: [{name: h, workloads: [{arrivals: bursts, rate: 5 iops, ca2: 4}]}]\n",
		".arrivals: bursts need 'ca2' and 'peak'"},
	{HEAD "hosts: [{name: h, workloads: [{speed: 2}]}]\n",
		".speed: only a trace workload has this key; this one is 'closed'"},
	{HEAD "hosts: [{name: h, workloads: [{on: 0s, off: 0s}]}]\n",
		"t.yaml:4:36: hosts[0].workloads[0].on: on-off needs both phases, each > 0"},
	{HEAD "hosts: [{name: h, workloads: [{on: 1s, off: 0s}]}]\n",
		"t.yaml:4:45: hosts[0].workloads[0].off: on-off needs both phases, each > 0"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 11s, set: {host: h, depth: 1}}]\n",
		"t.yaml:5:13: at[0].time: is beyond the duration"},
	{HEAD "hosts: [{name: h, workloads: [{arrivals: hyper, rate: 5 iops}]}]\n",
		"t.yaml:4:42: hosts[0].workloads[0].arrivals: hyper needs 'ca2'"},
	{HEAD "hosts: [{name: h, workloads: [{arrivals: trace}]}]\n", "go together"},
	{HEAD "hosts: [{name: h, workloads: [{sizes: []}]}]\n", "1 … 8 entries"},
	{HEAD "hosts: [{name: h, workloads: [{name: x}, {name: x}]}]\n",
		"two workloads of this tenant are named 'x'"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{set: {host: h, depth: 1}}]\n",
		"t.yaml:5:6: at[0]: needs a 'time'"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {host: x, depth: "
	      "1}}]\n",
		"t.yaml:5:29: at[0].set.host: there is no host 'x'"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {tenant: h/x, weight: "
	      "2}}]\n",
		"t.yaml:5:31: at[0].set.tenant: there is no tenant 'h/x'"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {device_tenant: s/x, "
	      "weight: "
	      "2}}]\n",
		"t.yaml:5:38: at[0].set.device_tenant: there is no tenant 's/x' at a device"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {workload: h/main/w7, run: "
	      "true}}]\n",
		"t.yaml:5:33: at[0].set.workload: there is no workload 'h/main/w7'"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {link: s, rate: 1 MB/s}}]\n",
		"t.yaml:5:29: at[0].set.link: there is no link 's'"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {host: h}}]\n",
		"changes nothing"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {depth: 2}}]\n",
		"must name what to change"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {tenant: main, "
	      "weight: 2}}]\n",
		"must be HOST/TENANT"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {device: s, depth: "
	      "2}}]\n",
		"'s' has no gate"},
	{HEAD "hosts: [{name: h, workloads: []}]\nat: [{time: 1s, set: {device: l, rate: 2 "
	      "iops}}]\n",
		"t.yaml:5:31: at[0].set.device: there is no device 'l'"},
	{HEAD "hosts: [{name: h, workloads: []}]\n"
	      "at: [{time: 1s, set: {host: h, depth: 1}}, {time: 1s, set: {host: h, "
	      "depth: 2}}]\n",
		"two entries for one time"},
	{HEAD "hosts: [{name: h, workloads: []}]\ncontrollers: []\n",
		"'controllers' is now 'controller' of a policy"},
	{HEAD "policy: {controller: prada}\nhosts: [{name: h, workloads: []}]\n",
		"policy.controller: \"prada\": must be one of none, parda"},
	{HEAD "policy: {threshold: 5ms}\nhosts: [{name: h, workloads: []}]\n",
		"threshold is for 'controller: parda'"},
	{"duration: 1s\ndevices: [{name: s, kind: server, policy: {controller: parda, "
	 "threshold: 5ms}}]\nhosts: [{name: h, workloads: []}]\n",
		"cannot be the controller of a device's own gate"},
	{"duration: 1s\ndevices: [{name: s, kind: server, policy: {tenants: [{name: x}]}}]\n"
	 "hosts: [{name: h, workloads: [{}]}]\n",
		"t.yaml:2:11: the policy of 's' has no tenant for 'h/main'"},
	{HEAD "hosts: [{name: h, policy: {cost: bytes}, workloads: []}]\n"
	      "at: [{time: 1s, set: {host: h, credit: 5}}]\n",
		"at[0].set.credit"},
};

static void errors_name_the_place_and_the_reason(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refused(wrong[i][0], wrong[i][1]);
}

/* The file that a scenario names is `arg`. */
static int give_policy(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err)
{
	CHECK_STR(from, "folder/t.yaml");
	if (strcmp(name, "p.yaml") != 0)
		return weir_err_set(err, -ENOENT, "%s: no such file", name);
	*ret_text = strdup(arg);
	*ret_len = strlen(arg);
	return *ret_text ? 0 : -ENOMEM;
}

static int parse_files(
	const char *text, const char *policy, struct scenario **ret, struct weir_err *err)
{
	return scenario_parse_files(text, strlen(text), "folder/t.yaml", NULL, 0, give_policy,
		(void *)policy, ret, err);
}

/* A gateway's file is used as it is; an error has its place in that file. */
static void a_policy_may_be_a_file(void)
{
	static const char top[] = HEAD "policy: p.yaml\nhosts: [{name: h, clients: {a/b: [{}]}}]\n";
	static const char file[] =
		"listen: unix:x\n"
		"resources: [{name: s, back: 'file:x', depth: 3}, {name: t}]\n"
		"tenants: [{name: a, children: [{name: b, match: {export: x}}]}]\n";
	struct weir_err err = {""};
	struct scenario *s;

	if (parse_files(top, file, &s, &err))
		FAIL("%s", err.text);
	CHECK(s->groups[0].gate.config.window == 3);
	CHECK_INT(s->groups[0].gate.tenants[1].n_workloads, 1);
	scenario_free(s);
	CHECK_INT(parse_files(top, "resources: [{name: s, dpeth: 3}]\n", &s, &err), -EINVAL);
	CHECK(strstr(err.text, "folder/p.yaml:1:23: resources[0]: unknown key 'dpeth'"));
	CHECK_INT(parse_files(top, "resources: [{name: x}]\ntenants: [{name: a}]\n", &s, &err),
		-EINVAL);
	CHECK(strstr(err.text, "folder/p.yaml:1:13: no resource of the policy is named 's'"));
	CHECK_INT(parse_files(HEAD "policy: q.yaml\nhosts: [{name: h, workloads: []}]\n", file, &s,
			  &err),
		-EINVAL);
	CHECK(strstr(err.text, "folder/t.yaml:4:9: policy: q.yaml: no such file"));
	CHECK_INT(parse_files(HEAD "policy: p.yaml\n"
				   "hosts: [{name: h, policy: {depth: 2}, workloads: []}]\n",
			  file, &s, &err),
		-EINVAL);
	CHECK(strstr(err.text, "is a file, and cannot be changed for one of them"));
}

/* A host's policy is laid over that of all, key by key; lists are replaced. */
static void policies_are_laid_over_each_other(void)
{
	struct scenario *s = parse(
		HEAD "policy: {depth: 9, run: 4, lab: {order: fifo}, controller: parda, threshold: "
		     "5ms,\n"
		     "  parda: {wmax: 50, gamma: 0.5}, resources: [{name: s, credit: 7}],\n"
		     "  tenants: [{name: a}, {name: b}]}\n"
		     "hosts:\n"
		     "  - {name: g, policy: {controller: none, depth: 2, tenants: [{name: c}]}}\n"
		     "  - {name: h, policy: {resources: [{name: s, run: 8}]}}\n");
	const struct scenario_gate *g = &s->groups[0].gate, *h = &s->groups[1].gate;

	CHECK(g->config.window == 2);
	CHECK_INT(g->config.run, 4);
	CHECK_INT(g->config.credit, 7);
	CHECK_INT(g->config.order, WEIR_FIFO);
	CHECK(!g->resource.controller);
	CHECK_INT(g->policy->n_tenants, 1);
	CHECK_STR(g->policy->tenants[0].path, "c");
	CHECK(h->config.window == 9);
	CHECK_INT(h->config.run, 4); /* the short form is laid over the list */
	CHECK_INT(h->config.credit, 0);
	CHECK_INT(h->policy->n_tenants, 2);
	CHECK_INT(s->n_controllers, 1);
	scenario_free(s);
}

static int set(const char *text, const char *path, const char *value, struct scenario **ret,
	struct weir_err *err)
{
	struct scenario_set one = {path, value};

	return scenario_parse(text, strlen(text), "t.yaml", &one, 1, ret, err);
}

static void overrides_replace_single_values(void)
{
	static const char good[] = HEAD "# é\n"
					"hosts:\n"
					"  - name: h\n"
					"    policy:\n"
					"      depth: 4   # four\n"
					"      tenants: [{name: a, weight: \"2\"}]\n"
					"    clients: {a: [{size: 4 KiB, reads: 1}]}\n";
	struct scenario *s;
	struct weir_err err;

	CHECK_INT(set(good, "hosts[0].policy.depth", "16.5", &s, &err), 0);
	CHECK(s->groups[0].gate.config.window == 16.5);
	CHECK_INT(s->groups[0].gate.config.window_bytes, 0);
	scenario_free(s);
	CHECK_INT(set(good, "hosts[0].policy.tenants[0].weight", "7", &s, &err), 0);
	CHECK(s->groups[0].gate.policy->tenants[0].weight == 7);
	scenario_free(s);
	CHECK_INT(set(good, "hosts[0].clients.a", "[{size: 8 KiB}, {}]", &s, &err), 0);
	CHECK_INT(s->groups[0].gate.tenants[0].n_workloads, 2);
	scenario_free(s);
	CHECK_INT(set(good, "duration", "3s", &s, &err), 0);
	CHECK_INT(s->duration, 3 * WEIR_SEC);
	scenario_free(s);
}

static void overrides_keep_the_lines(void)
{
	static const char text[] = "duration: 1s\n"
				   "devices: [{name: s,\n"
				   "  kind: server}]\n"
				   "hosts: [{name: h, polciy: 4}]\n";
	struct scenario *s;
	struct weir_err err;

	CHECK_INT(set(text, "devices[0]", "{name: s, kind: server}", &s, &err), -EINVAL);
	CHECK(strstr(err.text, "t.yaml:4:19:") != NULL);
}

static void bad_overrides_are_refused(void)
{
	static const char good[] = HEAD "hosts:\n  - {name: h, workloads: [{}]}\n";
	static const char *const cases[][3] = {
		{"hosts[0].count", "4", "'hosts[0].count' is not in the file"},
		{"hosts[3].name", "4", "'hosts[3]' is not in the file"},
		{"hots[0].name", "4", "'hots' is not in the file"},
		{"hosts[x]", "4", "[N] expected"},
		{"", "4", "names nothing"},
		{"duration.", "4s", "is not a path"},
		{"hosts", "[]", "over several lines"},
		{"duration", "oops: 4", "t.yaml:1:11: duration"},
		{"duration", "4", "t.yaml:1:11: duration"},
	};
	struct scenario *s;
	struct weir_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (set(good, cases[i][0], cases[i][1], &s, &err) != -EINVAL)
			FAIL("--set %s=%s was not refused", cases[i][0], cases[i][1]);
		if (!strstr(err.text, cases[i][2]))
			FAIL("'%s' instead of '%s'", err.text, cases[i][2]);
	}
}

int main(void)
{
	RUN(defaults_are_as_the_manual_says);
	RUN(a_change_may_come_with_the_end);
	RUN(a_whole_file_is_read);
	RUN(errors_name_the_place_and_the_reason);
	RUN(a_policy_may_be_a_file);
	RUN(policies_are_laid_over_each_other);
	RUN(overrides_replace_single_values);
	RUN(overrides_keep_the_lines);
	RUN(bad_overrides_are_refused);
	return 0;
}
