/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster: servers under one controller: keys, defaults, copies, tokens, and errors. */
#include "control/pshift/keys.h"
#include "policy/policy.h"
#include "policy/impl.h"
#include "policy/text.h"

#define HEAD                                                                                       \
	"cluster: {key: k, controller: \"tcp:c:1\", servers: [b, a]}\n"                            \
	"resources: [{name: a, controller: pshift, capacity: 100 iops}]\n"

static void as_written(void)
{
	struct weir_policy *p = parse("cluster:\n"
				      "  name: prod\n"
				      "  key: /etc/weir/key\n"
				      "  controller: [\"tcp:c1:7400\", \"tcp:c2:7400\"]\n"
				      "  listen: \"tcp::7400\"\n"
				      "  servers: [c, a, b]\n"
				      "  period: 1s\n"
				      "  interval: 200ms\n");
	struct weir_policy *copy;
	const struct weir_policy_cluster *c;

	CHECK_INT(policy_copy(p, &copy), 0);
	weir_policy_free(p);
	c = &copy->cluster;
	CHECK_STR(c->name, "prod");
	CHECK_STR(c->key, "/etc/weir/key");
	CHECK_INT(c->n_controllers, 2);
	CHECK_STR(c->controllers[1], "tcp:c2:7400");
	CHECK_INT(c->n_listen, 1);
	CHECK_STR(c->listen[0], "tcp::7400");
	CHECK_INT(c->n_servers, 3);
	CHECK_STR(c->servers[0], "a");
	CHECK_STR(c->servers[2], "c");
	CHECK_INT(c->period, WEIR_SEC);
	CHECK_INT(c->interval, 200 * WEIR_MS);
	weir_policy_free(copy);
}

static void defaults(void)
{
	struct weir_policy *p = parse(HEAD);

	CHECK_STR(p->cluster.name, "weir");
	CHECK_INT(p->cluster.n_listen, 0);
	CHECK_INT(p->cluster.period, 5 * WEIR_SEC);
	CHECK_INT(p->cluster.interval, 0);
	CHECK(p->resources[0].controller == &pshift_controller);
	weir_policy_free(p);
	p = parse("tenants: [{name: t, max: 3 iops}]\n");
	CHECK_INT(p->cluster.n_servers, 0);
	weir_policy_free(p);
}

/* A min above one machine's capacity is valid; a group's min is that of its members. */
static void tokens(void)
{
	struct weir_policy *p = parse(HEAD "tenants:\n"
					   "  - {name: x, min: 300 iops, max: 600.1 iops}\n"
					   "  - name: g\n"
					   "    min: 30 iops\n"
					   "    children:\n"
					   "      - {name: y, weight: 2}\n"
					   "      - {name: z}\n"
					   "  - {name: w, max: 0.5 iops, min: 0.45 iops}\n");
	struct weir_bounds bounds[8];
	struct policy_cluster_tokens t;

	CHECK_INT(weir_policy_bounds(p, bounds), 0);
	policy_cluster_tokens(p, (size_t)weir_policy_find(p, "x"), bounds, &t);
	CHECK_INT(t.reservation, 1500);
	CHECK_INT(t.limit, 3000);
	policy_cluster_tokens(p, (size_t)weir_policy_find(p, "g/y"), bounds, &t);
	CHECK_INT(t.reservation, 100);
	CHECK(t.limit == INT64_MAX);
	policy_cluster_tokens(p, (size_t)weir_policy_find(p, "w"), bounds, &t);
	CHECK_INT(t.reservation, 2); /* 2.25 would be 3, if the limit were higher */
	CHECK_INT(t.limit, 2);
	weir_policy_free(p);
}

static void at_some(void)
{
	struct weir_policy *made = parse(HEAD "tenants:\n"
					      "  - {name: x, servers: [b]}\n"
					      "  - {name: y}\n"),
			   *p;

	CHECK_INT(policy_copy(made, &p), 0);
	weir_policy_free(made);
	CHECK(!policy_cluster_at(p, 0, "a") && policy_cluster_at(p, 0, "b"));
	CHECK(policy_cluster_at(p, 1, "a") && policy_cluster_at(p, 1, "b"));
	CHECK_INT(policy_cluster_parts(p, 0), 1);
	CHECK_INT(policy_cluster_parts(p, 1), 2);
	weir_policy_free(p);
}

/* Next to the controller's socket, at the address in the policy, or nowhere. */
static void stand_ins(void)
{
	char at[POLICY_CLUSTER_ADDRESS];
	struct weir_policy *made = parse("cluster: {key: k, controller: \"unix:/run/c\", "
					 "servers: [d, b, a, c]}\n"),
			   *p;

	CHECK_STR(policy_cluster_stand_in(made, 0, at, sizeof(at)), "a");
	CHECK_STR(at, "unix:/run/c.a");
	CHECK_STR(policy_cluster_stand_in(made, 2, at, sizeof(at)), "c");
	CHECK_STR(at, "unix:/run/c.c");
	CHECK(!policy_cluster_stand_in(made, 0, at, 8)); /* the buffer is too small */
	weir_policy_free(made);
	made = parse("cluster: {key: k, controller: \"tcp:c:1\", servers: [b, a], "
		     "stand_in: [\"tcp:h:2\"]}\n");
	CHECK_INT(policy_copy(made, &p), 0);
	weir_policy_free(made);
	CHECK_STR(policy_cluster_stand_in(p, 0, at, sizeof(at)), "a");
	CHECK_STR(at, "tcp:h:2");
	CHECK(!policy_cluster_stand_in(p, 1, at, sizeof(at)));
	weir_policy_free(p);
	p = parse("cluster: {key: k, controller: \"tcp:c:1\", servers: [a], stand_in: true}\n");
	CHECK(!policy_cluster_stand_in(p, 0, at, sizeof(at)));
	weir_policy_free(p);
	p = parse("cluster: {key: k, controller: \"unix:/c\", servers: [a], stand_in: false}\n");
	CHECK(!policy_cluster_stand_in(p, 0, at, sizeof(at)));
	weir_policy_free(p);
}

static void invalid_clusters_are_refused(void)
{
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a], "
		"stand_in: [\"tcp:a:1\", \"tcp:b:1\"]}\n",
		"more than there are servers");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a], stand_in: maybe}\n",
		"is no address");
	refused("cluster: {controller: \"tcp:c:1\", servers: [a]}\n", "1:10: cluster: needs a key");
	refused("cluster: {key: k, servers: [a]}\n", "needs its controller");
	refused("cluster: {key: k, controller: \"tcp:c:1\"}\n", "needs its servers");
	refused("cluster: {key: k, controller: c, servers: [a]}\n", "is no address");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a, b, a]}\n",
		"names 'a' twice");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [\"a b\"]}\n",
		"without spaces");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: a}\n",
		"1:51: cluster.servers: must be a list");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a], period: 1ms}\n",
		"from 100 ms to 60 s");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a], interval: 6s}\n",
		"10 ms to the period");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a], keys: k}\n",
		"unknown key");
	refused("resources: [{name: a, controller: pshift}]\n", "needs a 'cluster'");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [b]}\n"
		"resources: [{name: a, controller: pshift}]\n",
		"2:13: 'a' is not a server of the cluster");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a]}\n"
		"resources: [{name: a, controller: pshift}, {name: b, controller: none}]\n",
		"every resource has 'controller: pshift'");
	/* without the key it is implied */
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a]}\n"
		"resources: [{name: a}, {name: b}]\n",
		"'b' is not a server of the cluster");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a]}\n"
		"resources: [{name: a, controller: pshift, capacity: 3 MiB/s}]\n",
		"the capacity in iops");
	refused("cluster: {key: k, controller: \"tcp:c:1\", servers: [a]}\n"
		"resources: [{name: a, controller: pshift, io_unit: 4 KiB}]\n",
		"every request is one token");
	refused(HEAD "tenants: [{name: t, max: 3 MiB/s}]\n", "3:26: the max of 't'");
	refused(HEAD "tenants: [{name: t, min: {reads: 3 iops}}]\n", "the min of 't'");
	refused(HEAD "tenants: [{name: t, max: 3 iops, burst: 6 iops for 2s}]\n",
		"the burst of 't'");
	refused(HEAD "tenants: [{name: t, max: 3 iops, children: [{name: u}]}]\n",
		"only tenants without have a max");
	refused("tenants: [{name: t, servers: [a]}]\n", "is for tenants of a cluster");
	refused(HEAD "tenants: [{name: t, servers: [c]}]\n", "3:31");
	refused(HEAD "tenants: [{name: t, servers: [a, a]}]\n", "names 'a' twice");
	refused(HEAD "tenants: [{name: t, servers: []}]\n", "must name at least one");
	refused(HEAD "tenants: [{name: t, servers: [a], children: [{name: u}]}]\n",
		"give 'servers' to them");
	refused(HEAD "exports: [{name: x, resource: a}]\n"
		     "tenants: [{name: t, servers: [b], match: {export: x}}]\n",
		"3:11: export 'x' is on 'a'");
}

int main(void)
{
	RUN(as_written);
	RUN(defaults);
	RUN(tokens);
	RUN(at_some);
	RUN(stand_ins);
	RUN(invalid_clusters_are_refused);
	return 0;
}
