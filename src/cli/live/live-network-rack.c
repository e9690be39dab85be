/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-network-rack: the machines of a live network and the switches between them.
 *
 * Each machine is a network namespace with one device, v0. One more holds the switches: a bridge for each rack, whose ports have the
 * machines' rate, and, with several racks, one between them, with the racks' rates up and down. A port's queue is HTB with a
 * single class. A script makes all of it, with iproute2.
 */
#include "cli/live/live-network.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGENT 7100 /* port of shapers */
/* Shapers send to each other every second, which proves their presence before there is load. */
#define ACQUAINTED (2200 * WEIR_MS)

void live_net_name(const struct live_net *n, uint32_t machine, char *ret, size_t len)
{
	for (size_t i = 0; i < n->config->n_racks; i++) {
		const struct net_rack *k = &n->config->racks[i];

		if (machine - k->first < k->machines)
			snprintf(ret, len, "%s.%u", k->name, machine - k->first + 1);
	}
}

void live_net_address(uint32_t machine, char ret[20])
{
	snprintf(ret, 20, "10.9.%u.%u", machine / 250, machine % 250 + 1);
}

void live_net_space(const struct live_net *n, uint32_t machine, char ret[LIVE_NET_SPACE])
{
	snprintf(ret, LIVE_NET_SPACE, "/run/netns/weir-live-%d-%u", n->id, machine);
}

static double rate_of(const struct live_net *n, double rate)
{
	return rate / n->config->live_rate;
}

/* ---- the script */

/* The queue in front of a link. */
static void put_port(const struct live_net *n, FILE *f, const char *device, double rate)
{
	if (!(rate < INFINITY))
		return;
	fprintf(f, "tc -n $sw qdisc add dev %s root handle 1: htb default 1\n", device);
	fprintf(f,
		"tc -n $sw class add dev %s parent 1: classid 1:1 htb rate %.0fbit burst 3000 "
		"cburst 3000 quantum 1514\n",
		device, rate_of(n, rate) * 8);
	fprintf(f, "tc -n $sw qdisc add dev %s parent 1:1 bfifo limit %llu\n", device,
		(unsigned long long)n->config->buffer);
}

static void put_rack(const struct live_net *n, FILE *f, size_t rack)
{
	const struct net_rack *k = &n->config->racks[rack];
	char device[32];

	fprintf(f, "ip -n $sw link add br%zu up type bridge\n", rack);
	for (uint32_t m = k->first; m < k->first + k->machines; m++) {
		char address[20];

		live_net_address(m, address);
		fprintf(f,
			"ip netns add $base-%u\nip -n $base-%u link set lo up\n"
			"ip link add v0 netns $base-%u type veth peer name p%u netns $sw\n"
			"ip -n $sw link set p%u master br%zu up\n"
			"ip -n $base-%u addr add %s/16 dev v0\nip -n $base-%u link set v0 up\n",
			m, m, m, m, m, rack, m, address, m);
		snprintf(device, sizeof(device), "p%u", m);
		put_port(n, f, device, k->rate);
	}
	if (n->config->n_racks < 2)
		return;
	fprintf(f, "ip -n $sw link add up%zu type veth peer name down%zu\n", rack, rack);
	fprintf(f, "ip -n $sw link set up%zu master br%zu up\n", rack, rack);
	fprintf(f, "ip -n $sw link set down%zu master core up\n", rack);
	snprintf(device, sizeof(device), "up%zu", rack);
	put_port(n, f, device, k->up);
	snprintf(device, sizeof(device), "down%zu", rack);
	put_port(n, f, device, k->down);
}

static int run_script(const char *path, const char *log, struct weir_err *err)
{
	const char *const argv[] = {"sh", path, NULL};
	struct peer p = {0};
	char said[250];
	int status, r = peer_start(&p, argv, -1, NULL, log, err);

	while (r == 0 && !peer_ended(&p, &status))
		process_pause(5 * WEIR_MS);
	if (r == 0 && status != 0)
		r = weir_err_set(err, -EPERM,
			"network namespaces with links cannot be made here (root, iproute2): %s",
			peer_said(log, said, sizeof(said)));
	return r;
}

int live_net_make(struct live_net *n, struct weir_err *err)
{
	char path[LIVE_PATH], log[LIVE_PATH];
	FILE *f;

	if (geteuid() != 0)
		return weir_err_set(
			err, -EPERM, "network namespaces with links may only be made by root");
	snprintf(path, sizeof(path), "%s/net.sh", n->live->dir);
	snprintf(log, sizeof(log), "%s/net.log", n->live->dir);
	f = fopen(path, "we");
	if (!f)
		return weir_err_set(err, -errno, "%s: %s", path, strerror(errno));
	fprintf(f, "set -e\nbase=weir-live-%d\nsw=$base-switch\nip netns add $sw\n", n->id);
	if (n->config->n_racks > 1)
		fprintf(f, "ip -n $sw link add core up type bridge\n");
	for (size_t i = 0; i < n->config->n_racks; i++)
		put_rack(n, f, i);
	if (fclose(f) != 0)
		return weir_err_set(err, -EIO, "%s: cannot be written", path);
	n->made = true;
	return run_script(path, log, err);
}

void live_net_unmake(struct live_net *n)
{
	char path[LIVE_PATH];
	struct weir_err err;
	FILE *f;

	if (!n->made)
		return;
	snprintf(path, sizeof(path), "%s/down.sh", n->live->dir);
	f = fopen(path, "we");
	if (!f)
		return;
	fprintf(f, "for i in switch $(seq 0 %u); do ip netns delete weir-live-%d-$i; done; true\n",
		n->config->n_machines - 1, n->id);
	fclose(f);
	run_script(path, "/dev/null", &err);
}

/* ---- policies and shapers */

static void put_rate(FILE *f, const char *key, double rate)
{
	if (rate > 0 && rate < INFINITY)
		fprintf(f, "%s: %.0f bit/s, ", key, rate * 8);
}

static void put_share(
	const struct live_net *n, FILE *f, const struct policy_net_share *s, double weight)
{
	put_rate(f, "min", rate_of(n, s->min));
	put_rate(f, "max", rate_of(n, s->max));
	fprintf(f, "weight: %.6g", s->weight * weight);
}

/* A sender's weight is that of its service for what goes out. */
static double weight_of(const struct live_net *n, uint32_t machine, size_t service)
{
	for (uint32_t f = 0; f < n->n_flows; f++)
		if (n->flows[f].from == machine &&
			n->config->groups[n->flows[f].group].service == service)
			return n->config->groups[n->flows[f].group].weight;
	return 1;
}

static void put_tenant(
	const struct live_net *n, FILE *f, uint32_t machine, size_t service, int depth)
{
	const struct weir_tenant *t = &n->config->policy->tenants[service];

	fprintf(f, "%*s- name: %s\n", depth, "", t->name);
	if (t->net) {
		const struct policy_net_share *s = t->net->share[POLICY_NET_MACHINE];

		fprintf(f, "%*s  net: {in: {", depth, "");
		put_share(n, f, &s[POLICY_NET_IN], 1);
		fprintf(f, "}, out: {");
		put_share(n, f, &s[POLICY_NET_OUT], weight_of(n, machine, service));
		fprintf(f, "}}\n");
	}
	if (t->first_child < 0)
		fprintf(f, "%*s  match: {port: %zu-%zu}\n", depth, "",
			LIVE_NET_PORT + service * LIVE_NET_PORTS,
			LIVE_NET_PORT + (service + 1) * LIVE_NET_PORTS - 1);
	else
		fprintf(f, "%*s  children:\n", depth, "");
	for (int c = t->first_child; c >= 0; c = n->config->policy->tenants[c].next_sibling)
		put_tenant(n, f, machine, (size_t)c, depth + 4);
}

static int write_policy(
	struct live_net *n, uint32_t machine, const struct live_server *v, struct weir_err *err)
{
	const struct net_rack *k = n->config->racks;
	FILE *f = fopen(v->file, "we");
	char address[20];

	while (machine - k->first >= k->machines)
		k++;
	if (!f)
		return weir_err_set(err, -errno, "%s: %s", v->file, strerror(errno));
	fprintf(f, "network:\n  devices: [{name: v0, rate: %.0f bit/s}]\n  machine: %s\n",
		rate_of(n, k->rate) * 8, v->name);
	fprintf(f, "  rack: {name: %s, key: %s/key, up: %.0f bit/s, down: %.0f bit/s, machines: [",
		k->name, n->live->dir, rate_of(n, fmin(k->up, k->rate * k->machines)) * 8,
		rate_of(n, fmin(k->down, k->rate * k->machines)) * 8);
	for (uint32_t m = k->first; m < k->first + k->machines; m++) {
		live_net_address(m, address);
		fprintf(f, "%s\"udp:%s:%d\"", m > k->first ? ", " : "", address, AGENT);
	}
	fprintf(f, "]}\ntenants:\n");
	for (size_t i = 0; i < n->config->policy->n_tenants; i++)
		if (n->config->policy->tenants[i].parent < 0)
			put_tenant(n, f, machine, i, 2);
	return fclose(f) == 0 ? 0 : weir_err_set(err, -EIO, "%s: cannot be written", v->file);
}

static int start_shaper(struct live_net *n, uint32_t machine, struct weir_err *err)
{
	struct live_server *v = &n->machines[machine];
	char space[LIVE_NET_SPACE + 8] = "--net=", state[LIVE_PATH + 8], api[LIVE_PATH + 8],
				    self[512];
	const char *const argv[] = {"nsenter", space, self, "shape", "run", "--state", state,
		"--api", api, "--replace", v->file, NULL};
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int r = write_policy(n, machine, v, err);

	self[len > 0 ? len : 0] = '\0';
	live_net_space(n, machine, space + strlen(space));
	snprintf(state, sizeof(state), "%s/state", n->live->dir);
	snprintf(api, sizeof(api), "unix:%s", v->api);
	return r ? r : peer_start(&v->peer, argv, -1, v->api, v->log, err);
}

static const struct verb verb = {.name = "experiment"}; /* for messages */

/* A shaper answers once its shares hold. */
static int wait_for(struct live_server *v, struct weir_err *err)
{
	struct weir_err why;
	json_t *now;
	char said[250];
	int status;

	if (remote_open(&verb, v->api, NULL, NULL, NULL, &v->remote) >= 0)
		return weir_err_set(err, -EIO, "the API of '%s' cannot be reached", v->name);
	if (remote_try(v->remote, "GET", "/v1/status", NULL, 0, &now, &why) == 0) {
		json_decref(now);
		return 0;
	}
	peer_ended(&v->peer, &status);
	return weir_err_set(err, -ECHILD, "the shaper of '%s' does not run: %s", v->name,
		peer_said(v->log, said, sizeof(said)));
}

int live_net_shapers(struct live_net *n, struct weir_err *err)
{
	int r = live_key(n->live, err);

	for (uint32_t m = 0; r == 0 && m < n->config->n_machines; m++)
		r = start_shaper(n, m, err);
	for (uint32_t m = 0; r == 0 && m < n->config->n_machines; m++)
		r = wait_for(&n->machines[m], err);
	if (r == 0)
		process_pause(ACQUAINTED);
	return r;
}
