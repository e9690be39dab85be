/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-plan: the gateways that stand for a scenario's hosts and devices, with policies that the
 * gateway's own reader accepts; where tenants lie on the device; scenarios that cannot run live. No
 * process is started.
 */
#include "policy/policy.h"
#include "control/tbf/keys.h"
#include "control/parda/keys.h"
#include "cli/common/files.h"
#include "cli/live/live-impl.h"
#include "cli/common/verb.h"
#include "test.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

struct plan {
	struct scenario *s;
	struct live l;
	struct weir_err err;
	int status;
};

static void make(struct plan *p, const char *text)
{
	*p = (struct plan){.status = 0};
	if (scenario_parse(text, strlen(text), "s.yaml", NULL, 0, &p->s, &p->err) < 0)
		FAIL("%s", p->err.text);
	p->l = (struct live){.s = p->s, .seed = 1};
	snprintf(p->l.dir, sizeof(p->l.dir), "/tmp/weir-plan-XXXXXX");
	CHECK(mkdtemp(p->l.dir) != NULL);
	p->status = live_plan(&p->l, &p->err);
}

static void make_good(struct plan *p, const char *text)
{
	make(p, text);
	if (p->status < 0)
		FAIL("%s", p->err.text);
}

static void done(struct plan *p)
{
	char key[LIVE_PATH];

	for (size_t i = 0; i < p->l.n_servers; i++) {
		unlink(p->l.servers[i].file);
		unlink(p->l.servers[i].profile);
	}
	for (size_t i = 0; i < p->l.n_clients; i++)
		unlink(p->l.clients[i].trace);
	snprintf(key, sizeof(key), "%s/key", p->l.dir);
	unlink(key);
	live_relay_free(p->l.relay);
	live_plan_free(&p->l);
	CHECK_INT(rmdir(p->l.dir), 0); /* the folder is empty */
	scenario_free(p->s);
}

/* Return the policy of a server, read as the gateway reads it. */
static struct weir_policy *policy(const struct plan *p, size_t server)
{
	static struct weir_policy_remarks remarks;
	struct weir_policy *policy;
	struct weir_err err;
	char *text;
	size_t len;

	if (files_read(p->l.servers[server].file, FILES_WRITTEN, &text, &len, &err) < 0)
		FAIL("%s", err.text);
	if (policy_parse_lab(
		    text, len, p->l.servers[server].file, true, NULL, NULL, &policy, &remarks) < 0)
		FAIL("%s\n%s", remarks.errors[0].text, text);
	free(text);
	return policy;
}

static int tenant_of(const struct weir_policy *p, const char *export_)
{
	struct weir_who who = {.export_ = export_};

	return weir_policy_match(p, &who);
}

#define HEAD                                                                                       \
	"duration: 10s\n"                                                                          \
	"devices: [{name: array, kind: array, preset: cx3-small, disks: 6}]\n"

/* Hosts before a device without a gate: each becomes a gateway on the device's one export. */
static void test_hosts(void)
{
	struct plan p;
	struct weir_policy *w;

	make_good(&p,
		HEAD "hosts:\n"
		     "  - name: h\n"
		     "    count: 2\n"
		     "    policy:\n"
		     "      depth: {requests: 12, bytes: 512 KiB}\n"
		     "      io_unit: 64 KiB\n"
		     "      tenants:\n"
		     "        - {name: prod, weight: 3, children: [{name: db, max: [1k iops, 20 "
		     "MiB/s]}]}\n"
		     "        - {name: web}\n"
		     "    clients:\n"
		     "      prod/db: [{base: 1 GiB, region: 1 GiB, spread: 8 GiB}]\n"
		     "      web: [{base: 3 GiB, region: 1 GiB}, {base: 2 GiB, region: 1 GiB}]\n");
	CHECK_INT(p.l.n_servers, 3);
	CHECK_INT(p.l.n_tenants, 4);
	CHECK_INT(p.l.n_clients, 6);
	w = policy(&p, 0);
	CHECK_INT(w->n_exports, 0);
	CHECK(strncmp(w->resources[0].back, "model:array,preset=cx3-small,disks=6+memory:", 44) ==
		0);
	CHECK_NEAR(w->resources[0].depth, 65536, 0);
	CHECK_INT(w->resources[0].depth_bytes, 0);
	weir_policy_free(w);
	w = policy(&p, 2);
	CHECK(strstr(w->resources[0].back, "nbd+unix:///array?socket="));
	CHECK_NEAR(w->resources[0].depth, 12, 0);
	CHECK_INT(w->resources[0].depth_bytes, 512 << 10);
	CHECK_INT(w->resources[0].io_unit, 64 << 10);
	CHECK_INT(w->n_exports, 2);
	CHECK_INT(w->exports[0].offset, UINT64_C(9) << 30); /* base and one spread */
	CHECK_INT(w->exports[1].offset, UINT64_C(2) << 30);
	CHECK_INT(w->exports[1].size, UINT64_C(2) << 30); /* both of its workloads' parts */
	CHECK_STR(w->tenants[tenant_of(w, "h2/prod/db")].path, "prod/db");
	CHECK_INT(w->tenants[tenant_of(w, "h2/prod/db")].n_max, 2);
	CHECK_NEAR(w->tenants[weir_policy_find(w, "prod")].weight, 3, 0);
	CHECK_STR(w->tenants[tenant_of(w, "h2/web")].path, "web");
	CHECK_INT(tenant_of(w, "h1/web"), -ENOENT);
	weir_policy_free(w);
	done(&p);
}

/* Tenants that share a part of the device have exports that do not overlap and map to the same
 * places. */
static void test_around(void)
{
	static const char text[] = HEAD "hosts:\n"
					"  - name: h\n"
					"    policy: {depth: 32, tenants: [{name: a}, {name: b}, "
					"{name: c}, {name: idle}]}\n"
					"    clients:\n"
					"      a: [{region: 4 GiB}]\n"
					"      b: [{base: 1 GiB, region: 1 GiB}]\n"
					"      c: [{region: 2 GiB}]\n";
	struct plan p;
	struct device *d;
	struct weir_policy *w;
	uint64_t size;

	make_good(&p, text);
	CHECK_INT(station_new(&p.s->stations[0].config, 1, "x", &d, &p.err), 0);
	size = array_size(d);
	device_free(d);
	CHECK_INT(p.l.tenants[0].offset, 0);
	CHECK_INT(p.l.tenants[1].offset, (UINT64_C(1) << 30) + size);
	CHECK_INT(p.l.tenants[2].offset, 2 * size); /* its second part would overlap b */
	w = policy(&p, 1); /* the policy reader refuses exports that overlap */
	CHECK_INT(w->n_exports, 3);
	weir_policy_free(w);
	CHECK_INT(p.l.servers[0].size, 2 * size + (UINT64_C(2) << 30));
	done(&p);
}

/* Clients of hosts with an open gate connect to the device's gateway, and are its tenants. */
static void test_direct(void)
{
	struct plan p;
	struct weir_policy *w;

	make(&p, "duration: 10s\n"
		 "devices:\n"
		 "  - name: ost\n"
		 "    kind: server\n"
		 "    servers: 8\n"
		 "    rate: 1k iops\n"
		 "    policy:\n"
		 "      depth: 16\n"
		 "      controller: tbf\n"
		 "      tbf: {rules: [{match: x, rate: 100 iops}]}\n"
		 "      tenants:\n"
		 "        - {name: x, weight: 3, match: {export: \"*/job1\"}}\n"
		 "        - {name: y, match: {export: \"c2/*\"}}\n"
		 "policy: {depth: none}\n"
		 "hosts:\n"
		 "  - {name: c1, policy: {tenants: [{name: job1}]}, clients: {job1: [{region: 1 "
		 "GiB}]}}\n"
		 "  - {name: c2, workloads: [{region: 1 GiB}]}\n");
	CHECK_INT(p.status, 0);
	CHECK_INT(p.l.n_servers, 1);
	CHECK_INT(p.l.host_server[0], -1);
	CHECK_INT(p.l.tenants[1].server, 0);
	CHECK_STR(p.l.tenants[0].server_path, "x");
	CHECK_STR(p.l.tenants[1].server_path, "y");
	w = policy(&p, 0);
	CHECK_NEAR(w->resources[0].depth, 16, 0);
	CHECK(w->resources[0].controller == &tbf_controller);
	CHECK_STR(w->tenants[tenant_of(w, "c1/job1")].path, "x");
	CHECK_STR(w->tenants[tenant_of(w, "c2/main")].path, "y");
	CHECK(w->exports[1].offset >= w->exports[0].offset + w->exports[0].size);
	weir_policy_free(w);
	done(&p);
}

/* A host with a window before a device with a gate is one export, and one tenant, of the device. */
static void test_before_a_gate(void)
{
	static const char *const gates[] = {"{depth: 16}",
		"{depth: 16, tenants: [{name: h1, weight: 2}, {name: rest, match: {export: "
		"h2/*}}]}"};

	for (size_t i = 0; i < 2; i++) {
		struct plan p;
		struct weir_policy *w;
		char text[700];

		snprintf(text, sizeof(text),
			"duration: 10s\n"
			"devices: [{name: ost, kind: server, policy: %s}]\n"
			"hosts:\n"
			"  - {name: h, count: 2, policy: {depth: 4, tenants: [{name: a}, {name: "
			"b}]}, clients: {a: [{region: 1 GiB}], b: [{region: 1 GiB}]}}\n",
			gates[i]);
		make_good(&p, text);
		CHECK_INT(p.l.n_servers, 3);
		w = policy(&p, 0);
		CHECK_INT(w->n_exports, 2);
		CHECK_INT(w->n_tenants, 2);
		CHECK_STR(w->tenants[tenant_of(w, "h1/a")].path, "h1");
		CHECK_STR(w->tenants[tenant_of(w, "h2/a")].path, i ? "rest" : "h2");
		CHECK(w->exports[1].offset >= w->exports[0].offset + w->exports[0].size);
		weir_policy_free(w);
		w = policy(&p, 2);
		CHECK(strstr(w->resources[0].back, "nbd+unix:///h2/a?socket="));
		weir_policy_free(w);
		done(&p);
	}
}

#define TWO_HOSTS                                                                                  \
	HEAD "hosts:\n"                                                                            \
	     "  - {name: h1, workloads: [{region: 1 GiB}]}\n"                                      \
	     "  - {name: h2, workloads: [{region: 1 GiB}]}\n"                                      \
	     "  - {name: other, policy: {controller: none}, workloads: [{region: 1 GiB}]}\n"

static void test_parda(void)
{
	struct plan p;
	struct weir_policy *w;
	char at[40];

	make_good(&p,
		TWO_HOSTS "policy: {depth: 32, controller: parda, threshold: 25ms, peers: {period: "
			  "1s}, parda: {wmax: 24, epsilon: 0.5}}\n");
	CHECK(!p.l.relay);
	w = policy(&p, 1);
	CHECK(w->resources[0].controller == &parda_controller);
	CHECK_INT(
		((const struct parda_settings *)w->resources[0].settings)->threshold, 25 * WEIR_MS);
	CHECK_NEAR(((const struct parda_settings *)w->resources[0].settings)->epsilon, 0.5, 0);
	CHECK_NEAR(w->resources[0].depth, 32, 0);
	CHECK_STR(w->peers.host, "h1");
	CHECK_INT(w->peers.period, WEIR_SEC);
	CHECK_INT(w->peers.n_to, 1);
	snprintf(at, sizeof(at), "udp:127.0.0.1:%u", p.l.servers[2].port);
	CHECK_STR(w->peers.to[0], at);
	weir_policy_free(w);
	w = policy(&p, 3);
	CHECK(!w->resources[0].controller);
	weir_policy_free(w);
	done(&p);
	/* Delayed reports go through the relay. */
	make_good(&p, TWO_HOSTS "policy: {controller: parda, threshold: 25ms}\nmessages: {delay: "
				"20ms}\n");
	CHECK(p.l.relay != NULL);
	w = policy(&p, 1);
	snprintf(at, sizeof(at), "udp:127.0.0.1:%u", live_relay_port(p.l.relay, 0, 1));
	CHECK_STR(w->peers.to[0], at);
	weir_policy_free(w);
	done(&p);
}

static void check_profile(const char *path)
{
	struct estimate e;
	struct weir_err err;
	char *text;
	size_t len;

	CHECK_INT(files_read(path, FILES_WRITTEN, &text, &len, &err), 0);
	if (estimate_read(text, len, path, &e, &err) < 0)
		FAIL("%s", err.text);
	free(text);
	CHECK_NEAR(estimate_work(&e, NULL, 0, 0, 4096), 2e6 + 4096e9 / 1e8, 1);
	CHECK_NEAR(estimate_work(&e, NULL, 1, 0, 1 << 20), 2e6 + 1048576e9 / 1e8, 1);
}

/* Open workloads become traces, from their first request on; a plan becomes the lab of its tenants, an estimate a profile. */
static void test_lab(void)
{
	static const char text[] =
		"duration: 10s\n"
		"devices: [{name: d, kind: server}]\n"
		"hosts:\n"
		"  - name: h\n"
		"    policy:\n"
		"      depth: 1\n"
		"      lab: {plan: meister, pairs: 2, estimate: {io: 2ms, rate: 100 MB/s}}\n"
		"      tenants: [{name: a, slo: p99 < 9s}, {name: b, slo: p99 < 8s}, {name: c,\n"
		"        lab: {priority: 9, profile: [{rate: 5 MB/s, size: 1 MiB, ops: reads}]}}]\n"
		"    clients:\n"
		"      a: [{arrivals: bursts, rate: 20 iops, ca2: 4, peak: 99 iops, base: 1 GiB, "
		"region: 1 GiB}]\n"
		"      b: [{arrivals: hyper, rate: 20 iops, ca2: 4}]\n"
		"      c: [{outstanding: 1}, {rate: 5 iops, rate_end: 20 iops, start: 2s, stop: "
		"5s}]\n";
	struct plan p;
	struct weir_policy *w;
	const struct policy_lab_tenant *lab;
	struct trace trace;
	char *read;
	size_t len;

	make_good(&p, text);
	CHECK_STR(p.l.clients[2].trace, ""); /* closed */
	CHECK(p.l.clients[3].start >= 2 * WEIR_SEC && p.l.clients[3].start < 5 * WEIR_SEC);
	CHECK_INT(files_read(p.l.clients[0].trace, FILES_WRITTEN, &read, &len, &p.err), 0);
	CHECK_INT(trace_read(read, len, "a", TRACE_WEIR, false, &trace, &p.err), 0);
	free(read);
	CHECK(trace.n > 100 && trace.records[0].at == 0);
	for (size_t i = 0; i < trace.n; i++) /* of its export */
		CHECK(trace.records[i].offset + trace.records[i].bytes <= 1u << 30);
	trace_free(&trace);
	check_profile(p.l.servers[1].profile);
	w = policy(&p, 1);
	CHECK_INT(policy_lab_served(w, NULL), 0);
	CHECK_STR(w->resources[0].profile, p.l.servers[1].profile);
	for (size_t i = 0; i < 2; i++) {
		lab = policy_lab_of(w, i);
		CHECK(lab && lab->priority >= 0 && lab->n_profile >= 1 && lab->n_profile <= 2);
		CHECK_INT(lab->profile[0].unit, WEIR_UNIT_TIME);
	}
	CHECK(policy_lab_of(w, 0)->priority != policy_lab_of(w, 1)->priority);
	lab = policy_lab_of(w, 2);
	CHECK_INT(lab->priority, 9);
	CHECK_NEAR(lab->profile[0].rate, 5e6, 0);
	CHECK_NEAR(lab->profile[0].size, 1 << 20, 0);
	CHECK_INT(lab->profile[0].ops, WEIR_OPS_READS);
	weir_policy_free(w);
	done(&p);
}

static void test_refused(void)
{
#define HOST(more) "hosts: [{name: h, " more "}]\n"
#define LOAD(what) HOST("workloads: [{region: 1 GiB, " what "}]")
	static const struct {
		const char *text, *why;
	} cases[] = {
		{HOST("policy: {depth: 0}, workloads: [{}]"), "depth: cannot run live"},
		{HOST("policy: {lab: {limit: requests}}, workloads: [{}]"),
			"s.yaml:3:33: lab: 'limit' cannot run live"},
		{HOST("policy: {lab: {aligned: true}}, workloads: [{}]"),
			"lab: 'aligned' cannot run live"},
		{LOAD("rate: 10 iops, size: 512 KiB"), "h/main/w1 cannot run live: a size over"},
		{LOAD("on: 1s, off: 1s"), "on and off"},
		{LOAD("zipf: 1, sequential: 0.5"), "sequential"},
		{LOAD("size: 512 KiB"), "256 KiB"},
		{LOAD("size: 4 KiB") "policy: {controller: parda, threshold: 30ms, lab: {without: "
				     "ageing}}\n",
			"cannot use 'without' of 'parda'"},
		{LOAD("size: 4 KiB") "links: [{name: l}]\n", "link 'l' cannot run live"},
		{LOAD("size: 4 KiB") "policy: {controller: parda, threshold: 1ms, lab: {unit: 2}, "
				     "parda: {epsilon: 0}}\n",
			"cannot use 'unit' of 'parda'"},
		{LOAD("size: 4 KiB") "policy: {controller: parda, threshold: 1ms}\n"
				     "at: {time: 1s, set: {host: h, depth: 3}}\n",
			"no window that can be changed"},
		{LOAD("size: 4 KiB") "at: {time: 1s, set: {host: h, credit: 3}}\n",
			"only the window"},
		{LOAD("size: 4 KiB") "at:\n"
				     "  - {time: 1s, set: {tenant: h/main, lab: {priority: 3}}}\n",
			"only weight, min, max, burst and slo"},
		{HOST("count: 64, workloads: [{}]"), "65 devices and hosts"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[1000];
		struct plan p;

		snprintf(text, sizeof(text), HEAD "%s", cases[i].text);
		make(&p, text);
		CHECK_INT(p.status, -EINVAL);
		if (!strstr(p.err.text, cases[i].why))
			FAIL("'%s' and not '%s'", p.err.text, cases[i].why);
		done(&p);
	}
}

/* At a device's gate, one gateway's clients cannot be two tenants, nor can two gateways be one
 * tenant. */
static void test_told_apart(void)
{
	struct plan p;

	make(&p, "duration: 10s\n"
		 "devices: [{name: ost, kind: server, policy: {tenants: [{name: a}, {name: b}]}}]\n"
		 "hosts:\n"
		 "  - {name: h, policy: {depth: 4, tenants: [{name: a}, {name: b}]}, clients: {a: "
		 "[{}], b: [{}]}}\n");
	CHECK_INT(p.status, -EINVAL);
	CHECK(strstr(p.err.text, "both cannot run live"));
	done(&p);
	make(&p, "duration: 10s\n"
		 "devices:\n"
		 "  - name: ost\n"
		 "    kind: server\n"
		 "    policy: {depth: 32, tenants: [{name: all, match: {export: \"*\"}}]}\n"
		 "hosts:\n"
		 "  - {name: h, count: 2, policy: {depth: none}, workloads: [{}]}\n");
	CHECK_INT(p.status, -EINVAL);
	CHECK(strstr(p.err.text, "'h1/main' and 'h2/main' are one tenant"));
	done(&p);
}

int main(void)
{
	RUN(test_hosts);
	RUN(test_around);
	RUN(test_direct);
	RUN(test_before_a_gate);
	RUN(test_parda);
	RUN(test_lab);
	RUN(test_refused);
	RUN(test_told_apart);
	return 0;
}
