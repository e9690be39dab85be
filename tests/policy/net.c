/* SPDX-License-Identifier: BSD-3-Clause */
/* net: shares of links, matches of packets, and whether the mins can be met. */
#include "policy/policy.h"
#include "text.h"
#include <math.h>

#define RACK                                                                                       \
	"  rack: {name: r4, up: 80 Gbit/s, down: 80 Gbit/s, machines: "                            \
	"[\"udp:10.0.4.1:7100\"], key: /k}\n"
#define NETWORK                                                                                    \
	"network:\n  devices: [{name: eth0, rate: 10 Gbit/s}]\n  machine: m17\n" RACK              \
	"  fabric: \"tcp:broker.example:7101\"\n"
#define ONE(net)      NETWORK "tenants: [{name: t, net: {" net "}}]\n"
#define TWO(a, b)     NETWORK "tenants: [{name: dfs, net: {" a "}}, {name: web, net: {" b "}}]\n"
#define MATCHES(a, b) NETWORK "tenants: [{name: dfs, match: " a "}, {name: web, match: " b "}]\n"

static const double gbit = 1e9 / 8;

static void keys(void)
{
	struct weir_policy *p = parse(NETWORK
		"tenants:\n"
		"  - name: dfs\n"
		"    net: {min: 2 Gbit/s, max: 8 Gbit/s, weight: 4, rack: {min: 20 Gbit/s},\n"
		"          fabric: {max: 500 Gbit/s}, burst: 3 MiB}\n"
		"    match: [{port: 9866}, {export: d}, {cgroup: \"system.slice/dfs.service\"}]\n"
		"  - {name: web, net: {out: {min: 1 Gbit/s}, in: {bound: \"1 MiB < 20ms\"}},\n"
		"     match: {cgroup: \"kube*\", dscp: 8, interface: \"vnet*\", port: 80-90}}\n"
		"  - {name: rest, net: {weight: 1}, match: {address: \"0.0.0.0/0\"}}\n");
	struct weir_policy *copy;
	const struct policy_net *n;

	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p);
	CHECK_STR(copy->network->devices[0].name, "eth0");
	CHECK_STR(copy->network->machines[0], "udp:10.0.4.1:7100");
	CHECK_NEAR(
		policy_net_capacity(copy->network, POLICY_NET_RACK, POLICY_NET_IN), 80 * gbit, 1);
	n = copy->tenants[0].net;
	for (int d = 0; d < 2; d++) {
		CHECK_NEAR(n->share[POLICY_NET_MACHINE][d].max, 8 * gbit, 1);
		CHECK_NEAR(n->share[POLICY_NET_MACHINE][d].weight, 4, 0);
		CHECK_NEAR(n->share[POLICY_NET_RACK][d].min, 20 * gbit, 1);
		CHECK(isinf(n->share[POLICY_NET_RACK][d].max));
	}
	CHECK_INT(n->burst, 3 << 20);
	CHECK_INT(n->n_match, 2);
	CHECK_INT(n->match[0].port, 9866);
	CHECK_INT(copy->tenants[0].n_match, 1);
	CHECK_STR(copy->tenants[0].match[0].export_, "d");
	n = copy->tenants[1].net;
	CHECK_NEAR(n->share[POLICY_NET_MACHINE][POLICY_NET_OUT].min, gbit, 1);
	CHECK_NEAR(n->share[POLICY_NET_MACHINE][POLICY_NET_IN].min, 0, 0);
	CHECK_INT(n->share[POLICY_NET_MACHINE][POLICY_NET_IN].bound_size, 1 << 20);
	CHECK_INT(n->share[POLICY_NET_MACHINE][POLICY_NET_OUT].bound_time, 0);
	CHECK_INT(n->match[0].port_last, 90);
	CHECK_INT(n->match[0].dscp, 8);
	weir_policy_free(copy);
}

/* The first error of a policy that has several. */
static void first_error(const char *text, const char *why)
{
	struct weir_policy *p;

	CHECK(weir_policy_parse_all(text, strlen(text), "t.yaml", NULL, NULL, &p, &remarks) < 0);
	if (!strstr(remarks.errors[0].text, why))
		FAIL("'%s' does not say '%s'", remarks.errors[0].text, why);
}

static void refusals(void)
{
	refused(ONE("min: 5 iops"), "t.yaml:6:");
	refused(ONE("min: 5 iops"), "must be a rate of bits or bytes");
	refused(ONE("weight: 0"), "must be more than 0");
	refused(ONE("max: 0 bit/s"), "cut off");
	first_error(ONE("max: 11 Gbit/s"), "machine m17 in: 't' has a max of 11 Gbit/s, above");
	first_error(ONE("min: 3 Gbit/s, max: 2 Gbit/s"), "below its min of 3 Gbit/s");
	refused(ONE("burst: 0 B"), "must be more than 0");
	refused(ONE("bound: \"1 MiB\""), "a size and a time");
	refused(ONE("rack: {in: {mim: 1 Gbit/s}}"), "did you mean 'min'");
	refused("network: {devices: []}\n", "needs 'devices'");
	refused("network: {devices: [{name: lo}]}\n", "loopback");
	refused("network: {devices: [{name: a}, {name: a}]}\n", "a second device 'a'");
#define BEGIN                                                                                      \
	"network: {devices: [{name: a}], rack: {name: r, up: 1 Gbit/s, down: 1 Gbit/s, key: k, "
	refused(BEGIN "machines: []}}\n", "needs 'machines'");
	refused(BEGIN "machines: [\"udp:10.0.0.1:7100\", \"udp:10.0.0.2:7101\"]}}\n",
		"all machines must have one port");
	refused(BEGIN "nic: 0 Gbit/s, machines: [\"udp:10.0.0.1:7100\"]}}\n",
		"must be more than 0");
	refused("network: {devices: [{name: a}], rack: {name: r, up: 1 Gbit/s, down: 1 Gbit/s, "
		"machines: [\"udp:10.0.0.1:7100\"]}}\n",
		"needs 'key'");
	refused("network: {devices: [{name: a}], fabric: \"udp:x:1\"}\n", "tcp:broker");
	refused("network: {devices: [{name: a}], fabric: \"tcp:x:1\"}\n", "needs 'key'");
	refused("network: {fabric: {key: k}}\n", "needs 'address'");
	refused("network: {fabric: {address: \"tcp:x:1\", key: k, period: 1ms}}\n", "from 500ms");
	refused("network: {machine: m}\n", "needs 'devices'");
	refused(NETWORK "links: [{name: l, rate: 1 Gbit/s, device: eth1, dir: out}]\n",
		"no device 'eth1'");
	refused(NETWORK "links: [{name: l, rate: 1 Gbit/s, device: eth0, dir: out, dscp: [64]}]\n",
		"from 0 to 63");
	refused(NETWORK "links: [{name: l, rate: 1 Gbit/s, dscp: [46]}]\n", "'dir: out'");
	refused(NETWORK "links: [{name: l, rate: 11 Gbit/s, device: eth0, dir: out}]\n",
		"above the rate of 'eth0'");
}

static void admission(void)
{
	first_error(TWO("rack: {min: 40 Gbit/s}", "rack: {min: 45 Gbit/s}"),
		"rack r4 down: dfs 40 + web 45 over 80 Gbit/s");
	refused(TWO("rack: {out: {min: 40 Gbit/s}}", "rack: {out: {min: 45 Gbit/s}}"),
		"rack r4 up: dfs 40 + web 45 over 80 Gbit/s");
	refused(TWO("in: {min: 6 Gbit/s}", "in: {min: 5 Gbit/s}"),
		"machine m17 in: dfs 6 + web 5 over 10 Gbit/s");
	weir_policy_free(parse(TWO("in: {min: 6 Gbit/s}", "in: {min: 4 Gbit/s}")));
	weir_policy_free(parse(TWO("in: {min: 6 Gbit/s}", "out: {min: 5 Gbit/s}")));
	first_error(NETWORK
		"tenants: [{name: a, net: {in: {min: 3 Gbit/s}}, children: [{name: b, net: "
		"{min: 2 Gbit/s}}, {name: c, net: {min: 2 Gbit/s}}]}]\n",
		"'a' has a min of 3, below its children's 4 Gbit/s together");
	/* 20 ms for 1 MiB on 10 Gbit/s, with a burst of 3 ms of the link: a load of 0.808. */
	refused(TWO("in: {bound: \"1 MiB < 20ms\"}", "in: {min: 9 Gbit/s}"),
		"web 9 over 8.081 Gbit/s, the load that the bound of 'dfs' allows");
	refused(ONE("in: {bound: \"1 MiB < 3ms\"}"), "needs a link 1.28 times as fast");
}

static void matches(void)
{
	refused(MATCHES("{port: 9866}", "{port: 9866}"), "port 9866 is in 'dfs', too (line 6)");
	refused(MATCHES("{port: 1-10}", "{port: 5-14}"), "neither is more specific");
	refused(MATCHES("{cgroup: \"a*\"}", "{cgroup: \"*b\"}"), "neither is more specific");
	refused(MATCHES("{port: 0}", "{port: 1}"), "must be a port");
	refused(MATCHES("{port: 70000}", "{port: 1}"), "must be a port");
	refused(MATCHES("{dscp: 64}", "{port: 1}"), "63");
	refused(MATCHES("{address: 10.0.0.0/33}", "{port: 1}"), "must be an address");
	refused(MATCHES("{port: 1, export: x}", "{port: 2}"), "export");
	refused("tenants: [{name: v, each: {match: {port: 5}}}]\n", "not of packets");
	weir_policy_free(parse(MATCHES("{port: 1-10}", "{port: 5}")));
	weir_policy_free(parse(MATCHES("{address: 10.0.0.0/8}", "{address: 10.1.0.0/16}")));
	weir_policy_free(parse(MATCHES("{port: 5, dscp: 1}", "{port: 5, dscp: 2}")));
	weir_policy_free(parse(MATCHES("{port: 5}", "{port: 5, cgroup: x}")));
}

int main(void)
{
	keys();
	refusals();
	admission();
	matches();
	return 0;
}
