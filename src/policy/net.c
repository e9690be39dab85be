/* SPDX-License-Identifier: BSD-3-Clause */
/* net: read `network` of the top level, and `net` and the matches of packets of a tenant. */
#include "policy/impl.h"
#include "policy/pattern.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_KEYS "min", "max", "weight", "bound"
static const char *const network_keys[] = {"devices", "machine", "rack", "fabric", "period", NULL};
static const char *const device_keys[] = {"name", "rate", NULL};
static const char *const rack_keys[] = {"name", "up", "down", "machines", "key", "nic", NULL};
static const char *const fabric_keys[] = {"address", "key", "period", NULL};
static const char *const net_keys[] = {SHARE_KEYS, "in", "out", "rack", "fabric", "burst", NULL};
static const char *const level_keys[] = {SHARE_KEYS, "in", "out", NULL};
static const char *const share_keys[] = {SHARE_KEYS, NULL};
static const char *const match_keys[] = {"port", "address", "cgroup", "interface", "dscp", NULL};

/* Read a rate of a map, in bytes/s. Return 0, -ENOENT, or another negative number: it was refused. */
static int read_rate(struct policy_reading *r, yamldoc_node map, const char *key, double *ret)
{
	struct weir_rate rate;
	int rc = policy_took(r, yamldoc_rate(map, key, &rate, &r->err));

	if (rc)
		return rc;
	if (rate.unit != WEIR_UNIT_BYTES || !(rate.per_second >= 0)) {
		policy_refuse(r, yamldoc_get(map, key),
			"must be a rate of bits or bytes, as in 2 Gbit/s");
		return -EINVAL;
	}
	*ret = rate.per_second;
	return 0;
}

/* ---- the top level */

static void read_device(struct policy_reading *r, yamldoc_node n, struct policy_network *to)
{
	struct policy_device *d = &to->devices[to->n_devices];
	const char *rate = yamldoc_text(yamldoc_get(n, "rate"));

	if (!policy_keys(r, n, device_keys))
		return;
	*d = (struct policy_device){
		.name = policy_get_string(r, n, "name"), .at = policy_place(r, n)};
	if (!yamldoc_has(n, "name"))
		policy_refuse(r, n, "a device needs a name");
	if (!d->name)
		return;
	for (size_t i = 0; i < to->n_devices; i++)
		if (strcmp(to->devices[i].name, d->name) == 0)
			policy_refuse(r, n, "a second device '%s'", d->name);
	if (strcmp(d->name, "lo") == 0)
		policy_refuse(r, yamldoc_get(n, "name"), "loopback cannot be shaped");
	if (!(rate && strcmp(rate, "auto") == 0) && read_rate(r, n, "rate", &d->rate) == 0 &&
		!(d->rate > 0))
		policy_refuse(r, yamldoc_get(n, "rate"), "must be more than 0, or auto");
	to->n_devices++;
}

static void read_devices(struct policy_reading *r, yamldoc_node network, struct policy_network *to)
{
	yamldoc_node list = yamldoc_get(network, "devices");

	if (!list.id || (yamldoc_kind(list) == YAMLDOC_LIST && !yamldoc_size(list))) {
		policy_refuse(r, network, "needs 'devices', as in [{name: eth0}]");
		return;
	}
	if (policy_took(r, yamldoc_list(list, &r->err)) != 0)
		return;
	to->devices = policy_alloc(r, yamldoc_size(list) * sizeof(*to->devices));
	for (size_t i = 0; to->devices && i < yamldoc_size(list); i++)
		read_device(r, yamldoc_at(list, i), to);
}

static void read_link(struct policy_reading *r, yamldoc_node rack, const char *key, double *to)
{
	if (!yamldoc_has(rack, key))
		policy_refuse(
			r, rack, "needs '%s', the capacity of its links, as in 80 Gbit/s", key);
	else if (read_rate(r, rack, key, to) == 0 && !(*to > 0))
		policy_refuse(r, yamldoc_get(rack, key), "must be more than 0");
}

static const char *read_address(
	struct policy_reading *r, yamldoc_node n, const char *scheme, const char *example)
{
	const char *text = yamldoc_text(n), *port = text ? strrchr(text, ':') : NULL;

	if (!text || strncmp(text, scheme, strlen(scheme)) != 0 || port < text + strlen(scheme) ||
		strtol(port + 1, NULL, 10) < 1 || strtol(port + 1, NULL, 10) > 65535) {
		policy_refuse(r, n, "must be an address, as in %s", example);
		return NULL;
	}
	return policy_string(r, text);
}

static void read_rack(struct policy_reading *r, yamldoc_node n, struct policy_network *to)
{
	yamldoc_node machines = yamldoc_get(n, "machines");

	if (!n.id || !policy_keys(r, n, rack_keys))
		return;
	to->rack_at = policy_place(r, n);
	to->rack = policy_get_string(r, n, "name");
	if (!yamldoc_has(n, "name"))
		policy_refuse(r, n, "a rack needs a name");
	read_link(r, n, "up", &to->capacity[POLICY_NET_OUT]);
	read_link(r, n, "down", &to->capacity[POLICY_NET_IN]);
	to->rack_key = policy_get_string(r, n, "key");
	if (!yamldoc_has(n, "key"))
		policy_refuse(
			r, n, "needs 'key', a file: without it any machine could report usage");
	if (read_rate(r, n, "nic", &to->nic) == 0 && !(to->nic > 0))
		policy_refuse(r, yamldoc_get(n, "nic"), "must be more than 0");
	if (!machines.id || (yamldoc_kind(machines) == YAMLDOC_LIST && !yamldoc_size(machines))) {
		policy_refuse(r, n, "needs 'machines', as in [\"udp:10.0.4.1:7100\"]");
		return;
	}
	if (policy_took(r, yamldoc_list(machines, &r->err)) != 0)
		return;
	to->machines = policy_alloc(r, yamldoc_size(machines) * sizeof(*to->machines));
	for (size_t i = 0; to->machines && i < yamldoc_size(machines); i++)
		if ((to->machines[to->n_machines] = read_address(
			     r, yamldoc_at(machines, i), "udp:", "udp:10.0.4.1:7100")))
			to->n_machines++;
	for (size_t i = 1; i < to->n_machines; i++)
		if (strcmp(strrchr(to->machines[i], ':'), strrchr(to->machines[0], ':')) != 0)
			policy_refuse(r, machines, "all machines must have one port");
}

/* Read an address, or a map with it. */
static void read_fabric(struct policy_reading *r, yamldoc_node n, struct policy_network *to)
{
	bool map = yamldoc_kind(n) == YAMLDOC_MAP;
	yamldoc_node address = map ? yamldoc_get(n, "address") : n;

	if (!n.id || (map && !policy_keys(r, n, fabric_keys)))
		return;
	if (!address.id) {
		policy_refuse(r, n, "needs 'address', as in tcp:broker.example:7101");
		return;
	}
	to->fabric = read_address(r, address, "tcp:", "tcp:broker.example:7101");
	if (map) {
		to->fabric_key = policy_get_string(r, n, "key");
		if (policy_took(r, yamldoc_time(n, "period", &to->fabric_period, &r->err)) == 0 &&
			(to->fabric_period < WEIR_SEC / 2 || to->fabric_period > 600 * WEIR_SEC))
			policy_refuse(r, yamldoc_get(n, "period"), "must be from 500ms to 10m");
	}
	if (to->fabric && !to->fabric_key && !to->rack_key)
		policy_refuse(r, n, "needs 'key', a file, where there is no rack that has one");
}

void policy_net_read(struct policy_reading *r, yamldoc_node n)
{
	struct policy_network *to;

	if (!n.id || !policy_keys(r, n, network_keys) || !(to = policy_alloc(r, sizeof(*to))))
		return;
	*to = (struct policy_network){.at = policy_place(r, n)};
	if (yamldoc_has(n, "devices") || !yamldoc_get(n, "fabric").id) /* its broker has none */
		read_devices(r, n, to);
	to->machine = policy_get_string(r, n, "machine");
	read_rack(r, yamldoc_get(n, "rack"), to);
	read_fabric(r, yamldoc_get(n, "fabric"), to);
	if (policy_took(r, yamldoc_time(n, "period", &to->period, &r->err)) == 0 &&
		(to->period < WEIR_MS / 5 || to->period > WEIR_SEC / 2))
		policy_refuse(r, yamldoc_get(n, "period"), "must be from 200us to 500ms");
	r->policy->network = to;
}

int policy_net_device(const struct weir_policy *p, const char *name)
{
	for (size_t i = 0; p->network && i < p->network->n_devices; i++)
		if (strcmp(p->network->devices[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

/* ---- a tenant's shares */

/* Read "1 MiB < 20ms". */
static void read_bound(struct policy_reading *r, yamldoc_node n, struct policy_net_share *to)
{
	const char *text = yamldoc_text(n), *less = text ? strchr(text, '<') : NULL;
	char size[64];
	struct weir_err err;

	if (!n.id)
		return;
	if (!less || (size_t)(less - text) >= sizeof(size)) {
		policy_refuse(r, n, "must be a size and a time, as in 1 MiB < 20ms");
		return;
	}
	snprintf(size, sizeof(size), "%.*s", (int)(less - text), text);
	if (weir_units_size(size, &to->bound_size, &err) < 0 ||
		weir_units_time(less + 1, &to->bound_time, &err) < 0)
		policy_refuse(r, n, "%s", err.text);
	else if (!to->bound_size || to->bound_time <= 0)
		policy_refuse(r, n, "the size and the time must be more than 0");
}

void policy_net_read_share(struct policy_reading *r, yamldoc_node n, struct policy_net_share *to)
{
	to->at = policy_place(r, n);
	read_rate(r, n, "min", &to->min);
	if (read_rate(r, n, "max", &to->max) == 0 && !(to->max > 0))
		policy_refuse(r, yamldoc_get(n, "max"),
			"must be more than 0: the service would be cut off");
	policy_tenant_read_weight(r, n, &to->weight);
	read_bound(r, yamldoc_get(n, "bound"), to);
}

static void read_level(
	struct policy_reading *r, yamldoc_node n, struct policy_net_share to[POLICY_NET_DIRS])
{
	static const char *const names[POLICY_NET_DIRS] = {"in", "out"};

	policy_net_read_share(r, n, &to[0]);
	to[1] = to[0];
	for (int d = 0; d < POLICY_NET_DIRS; d++) {
		yamldoc_node map = yamldoc_get(n, names[d]);

		if (map.id && policy_keys(r, map, share_keys))
			policy_net_read_share(r, map, &to[d]);
	}
}

static struct policy_net *blank(struct policy_reading *r, yamldoc_node n)
{
	struct policy_net *to = policy_alloc(r, sizeof(*to));

	if (!to)
		return NULL;
	*to = (struct policy_net){.at = policy_place(r, n)};
	for (int l = 0; l < POLICY_NET_LEVELS; l++)
		for (int d = 0; d < POLICY_NET_DIRS; d++)
			to->share[l][d] = (struct policy_net_share){
				.max = INFINITY, .weight = 1, .at = to->at};
	return to;
}

/* ---- matches */

bool policy_net_is_match(yamldoc_node n)
{
	for (const char *const *key = match_keys; *key; key++)
		if (yamldoc_has(n, *key))
			return true;
	return false;
}

/* Read a port or a range of ports, 6000-6010. */
static void read_port(struct policy_reading *r, yamldoc_node n, struct policy_net_match *m)
{
	const char *text = yamldoc_text(n);
	unsigned long first, last;
	char *end;

	if (!n.id)
		return;
	first = last = strtoul(text ? text : "", &end, 10);
	if (*end == '-')
		last = strtoul(end + 1, &end, 10);
	if (!text || *end || first < 1 || last < first || last > 65535) {
		policy_refuse(r, n, "must be a port or a range of ports, as in 9866 or 6000-6010");
		return;
	}
	m->port = (uint16_t)first;
	m->port_last = (uint16_t)last;
}

static const char *read_pattern(struct policy_reading *r, yamldoc_node map, const char *key)
{
	const char *text = policy_get_string(r, map, key), *p = text;
	struct policy_token t;

	while (p && *p)
		p = policy_pattern_next(p, &t);
	if (text && (!p || strlen(text) > POLICY_PATTERN_MAX)) {
		policy_refuse(r, yamldoc_get(map, key),
			"must be a pattern of at most %d bytes, with each '[' closed",
			POLICY_PATTERN_MAX);
		return NULL;
	}
	return text;
}

static void read_match(struct policy_reading *r, yamldoc_node n, struct policy_net_match *m)
{
	struct policy_addresses block;
	int64_t dscp = -1;

	*m = (struct policy_net_match){.at = policy_place(r, n)};
	policy_keys(r, n, match_keys);
	read_port(r, yamldoc_get(n, "port"), m);
	m->cgroup = read_pattern(r, n, "cgroup");
	m->interface = read_pattern(r, n, "interface");
	m->address = policy_get_string(r, n, "address");
	if (m->address && !policy_pattern_block(m->address, &block))
		policy_refuse(r, yamldoc_get(n, "address"),
			"must be an address or a block, as in 10.0.0.0/24 or fd00::/8");
	policy_took(r, yamldoc_int(n, "dscp", 0, 63, &dscp, &r->err));
	m->dscp = (int)dscp;
}

/* Read those of a tenant's matches that are of packets. */
static void read_matches(struct policy_reading *r, yamldoc_node n, struct policy_net *to)
{
	bool list = yamldoc_kind(n) == YAMLDOC_LIST;
	size_t many = list ? yamldoc_size(n) : 1;
	struct policy_net_match *m = policy_alloc(r, many * sizeof(*m));

	for (size_t i = 0; m && i < many; i++) {
		yamldoc_node one = list ? yamldoc_at(n, i) : n;

		if (policy_net_is_match(one))
			read_match(r, one, &m[to->n_match++]);
	}
	to->match = m;
}

static bool has_match(yamldoc_node n)
{
	for (size_t i = 0; i < yamldoc_size(n); i++)
		if (policy_net_is_match(yamldoc_at(n, i)))
			return true;
	return policy_net_is_match(n);
}

void policy_net_read_tenant(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t)
{
	yamldoc_node net = yamldoc_get(n, "net"), match = yamldoc_get(n, "match");
	struct policy_net *to;

	if ((!net.id && !has_match(match)) || !(to = blank(r, net.id ? net : n)))
		return;
	t->net = to;
	if (has_match(match))
		read_matches(r, match, to);
	if (!net.id || !policy_keys(r, net, net_keys))
		return;
	if (t->each)
		policy_refuse(r, net, "not for a template: its tenants are of storage");
	read_level(r, net, to->share[POLICY_NET_MACHINE]);
	if (yamldoc_get(net, "rack").id && policy_keys(r, yamldoc_get(net, "rack"), level_keys))
		read_level(r, yamldoc_get(net, "rack"), to->share[POLICY_NET_RACK]);
	if (yamldoc_get(net, "fabric").id && policy_keys(r, yamldoc_get(net, "fabric"), level_keys))
		read_level(r, yamldoc_get(net, "fabric"), to->share[POLICY_NET_FABRIC]);
	if (policy_took(r, yamldoc_size_of(net, "burst", &to->burst, &r->err)) == 0 && !to->burst)
		policy_refuse(r, yamldoc_get(net, "burst"), "must be more than 0");
}
