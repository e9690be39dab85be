/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/host/fabric-host.h"
#include "base/container.h"
#include "base/no-memory.h"
#include "control/parley/fabric.h"
#include "serve/lease/lease-hub.h"
#include "serve/loop/log.h"
#include "serve/show/metrics-text.h"
#include "wire/bytes.h"
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER "weir-fabric"
#define WORDS   (UINT32_C(1) << 16) /* of a report, at most: policies may differ */

struct fabric_host_link { /* a leader's connection */
	struct fabric_host_link *next, **link;
	struct lease_hub_server *server;
	char rack[PEER_NAME_MAX + 1];
};

struct fabric_host {
	struct fabric_host_config config;
	struct fabric *fabric;
	size_t *tenant; /* by service */
	size_t n;
	uint64_t *words; /* scratch: a report, or limits */
	uint8_t *bytes;
	struct peer_key key;
	struct lease_hub *hub;
	struct fabric_host_link *links;
	struct loop_timer timer;
	weir_time began;
	uint64_t rounds;
};

static weir_time period_of(const struct fabric_host *h)
{
	weir_time stated = h->config.policy->network->fabric_period;

	return stated ? stated : FABRIC_PERIOD;
}

/* ---- services */

/* List the tenants that are services, or have some in them. Return how many, or -ENOMEM. */
static int64_t list_services(const struct weir_policy *p, size_t **ret)
{
	size_t *list = calloc(p->n_tenants + 1, sizeof(*list)), n = 0;
	bool *has = calloc(p->n_tenants + 1, sizeof(*has));

	for (size_t i = p->n_tenants; list && has && i-- > 0;) { /* parents come first */
		has[i] |= p->tenants[i].net != NULL;
		if (has[i] && p->tenants[i].parent >= 0)
			has[p->tenants[i].parent] = true;
	}
	for (size_t i = 0; list && has && i < p->n_tenants; i++)
		if (has[i])
			list[n++] = i;
	free(has);
	if (!list || !has) {
		free(list);
		return -ENOMEM;
	}
	*ret = list;
	return (int64_t)n;
}

/* Replace the parents' tenants by their places in the list. */
static int place_of(const size_t *tenant, size_t n, int parent)
{
	for (size_t i = 0; parent >= 0 && i < n; i++)
		if (tenant[i] == (size_t)parent)
			return (int)i;
	return -1;
}

static int make_fabric(const struct weir_policy *p, weir_time period, const size_t *tenant,
	size_t n, struct fabric **ret)
{
	struct parley_service *s = calloc(FABRIC_DIRS * n + 1, sizeof(*s));
	uint32_t *ids = calloc(n + 1, sizeof(*ids));
	struct fabric_config c = {ids, {s, s + n}, n, period};
	int r = s && ids ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		ids[i] = (uint32_t)peer_hash(p->tenants[tenant[i]].path);
		for (int d = 0; d < FABRIC_DIRS; d++) {
			struct parley_service *to = &s[(size_t)d * n + i];

			policy_net_service(
				p, tenant[i], POLICY_NET_FABRIC, (enum policy_net_dir)d, to);
			to->parent = place_of(tenant, i, to->parent);
		}
	}
	if (r == 0)
		r = fabric_new(&c, ret);
	free(s);
	free(ids);
	return r;
}

static int take_policy(struct fabric_host *h, struct weir_err *err)
{
	struct fabric *f = NULL;
	size_t *tenant = NULL;
	uint64_t *words;
	uint8_t *bytes;
	int64_t n = list_services(h->config.policy, &tenant);
	int r = n < 0 ? (int)n : make_fabric(h->config.policy, period_of(h), tenant, (size_t)n, &f);

	if (r == 0 && h->fabric)
		r = fabric_adopt(f, h->fabric);
	words = calloc(WORDS > n ? WORDS : (size_t)n, sizeof(*words));
	bytes = calloc((size_t)(n < 0 ? 0 : n) + 1, sizeof(*words));
	if (r || !words || !bytes) {
		fabric_free(f);
		free(tenant);
		free(words);
		free(bytes);
		return r == -EEXIST ? weir_err_set(err, r,
					      "two services have the same number in messages")
				    : no_memory(err);
	}
	fabric_free(h->fabric);
	free(h->tenant);
	free(h->words);
	free(h->bytes);
	h->fabric = f;
	h->tenant = tenant;
	h->n = (size_t)n;
	h->words = words;
	h->bytes = bytes;
	return 0;
}

int fabric_host_policy(struct fabric_host *h, const struct weir_policy *p, struct weir_err *err)
{
	const struct weir_policy *was = h->config.policy;
	int r;

	h->config.policy = p;
	r = take_policy(h, err);
	if (r)
		h->config.policy = was;
	return r;
}

/* ---- leaders */

/* The connection's place in the list; it is new if need be. */
static struct fabric_host_link *link_of(struct fabric_host *h, struct lease_hub_server *g)
{
	struct fabric_host_link *l = lease_hub_user(g);

	if (l || !(l = calloc(1, sizeof(*l))))
		return l;
	*l = (struct fabric_host_link){.next = h->links, .link = &h->links, .server = g};
	if (l->next)
		l->next->link = &l->next;
	h->links = l;
	lease_hub_set_user(g, l);
	return l;
}

static void drop_link(struct fabric_host_link *l)
{
	*l->link = l->next;
	if (l->next)
		l->next->link = l->link;
	free(l);
}

static void gone(void *arg, struct lease_hub_server *g)
{
	struct fabric_host_link *l = lease_hub_user(g);

	if (l)
		drop_link(l);
}

static void receive(void *arg, struct lease_hub_server *g, struct lease_message *m)
{
	struct fabric_host *h = arg;
	struct fabric_host_link *l = link_of(h, g);
	size_t n = m->n / 8;
	bool known = fabric_find(h->fabric, m->rack.name) != SIZE_MAX;
	int r;

	if (!l || n > WORDS)
		return;
	memcpy(l->rack, m->rack.name, sizeof(l->rack));
	for (size_t i = 0; i < n; i++)
		h->words[i] = bytes_get64(m->bytes + 8 * i);
	r = fabric_hear(h->fabric, m->rack.name, m->name, h->words, n, loop_clock());
	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "rack", "rack", m->rack.name, "why", strerror(-r), NULL);
	else if (!known)
		log_event(LOG_LEVEL_INFO, "rack", "rack", m->rack.name, "leader", m->name, "from",
			lease_hub_peer(g), NULL);
}

static void tell(struct fabric_host *h, struct fabric_host_link *l)
{
	struct lease_message m = {
		.kind = LEASE_LIMITS, .rack.span = FABRIC_STALE * period_of(h), .bytes = h->bytes};
	size_t rack = fabric_find(h->fabric, l->rack),
	       n = rack == SIZE_MAX ? 0 : fabric_limits(h->fabric, rack, h->words);

	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		bytes_put64(h->bytes + 8 * i, h->words[i]);
	m.n = 8 * n;
	memcpy(m.rack.name, l->rack, sizeof(l->rack));
	lease_hub_tell(l->server, &m);
}

static void due(struct loop_timer *t, weir_time now)
{
	struct fabric_host *h = container_of(t, struct fabric_host, timer);
	int r = fabric_step(h->fabric, now);

	if (r < 0)
		log_event(LOG_LEVEL_ERROR, "fabric-round", "why", strerror(-r), NULL);
	h->rounds++;
	for (struct fabric_host_link *l = h->links; l; l = l->next)
		tell(h, l);
	loop_set(h->config.loop, t, now + period_of(h));
}

/* ---- from start to end */

static int start(struct fabric_host *h, struct weir_err *err)
{
	const struct policy_network *n = h->config.policy->network;
	struct lease_hub_config c = {.loop = h->config.loop,
		.addresses = h->config.listen ? &h->config.listen : &n->fabric,
		.n_addresses = 1,
		.key = &h->key,
		.fabric = true,
		.cluster = peer_hash(CLUSTER),
		.name = h->config.name,
		.entries = 8 * WORDS,
		.receive = receive,
		.gone = gone,
		.arg = h};
	int r = take_policy(h, err);

	if (r == 0)
		r = peer_key_read(
			n->fabric_key ? n->fabric_key : n->rack_key, CLUSTER, &h->key, err);
	while (r == 0 && !c.instance)
		randombytes_buf(&c.instance, sizeof(c.instance));
	if (r == 0)
		r = lease_hub_new(&c, &h->hub, err);
	if (r == 0 && loop_set(h->config.loop, &h->timer, h->began + period_of(h)) < 0)
		r = no_memory(err);
	return r;
}

int fabric_host_new(
	const struct fabric_host_config *c, struct fabric_host **ret, struct weir_err *err)
{
	struct fabric_host *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return no_memory(err);
	*h = (struct fabric_host){.config = *c, .timer = {.due = due}, .began = loop_clock()};
	r = start(h, err);
	if (r) {
		fabric_host_free(h);
		return r;
	}
	*ret = h;
	return 0;
}

void fabric_host_free(struct fabric_host *h)
{
	if (!h)
		return;
	loop_set(h->config.loop, &h->timer, WEIR_NEVER);
	lease_hub_free(h->hub);
	while (h->links)
		drop_link(h->links);
	fabric_free(h->fabric);
	free(h->tenant);
	free(h->words);
	free(h->bytes);
	peer_key_forget(&h->key);
	free(h);
}

const char *fabric_host_address(const struct fabric_host *h)
{
	return lease_hub_address(h->hub, 0);
}

/* ---- what is said */

static json_t *racks_json(const struct fabric_host *h, weir_time now)
{
	json_t *list = json_array();

	for (size_t i = 0; i < fabric_racks(h->fabric); i++) {
		struct fabric_rack k;

		fabric_rack(h->fabric, i, &k);
		json_array_append_new(list,
			json_pack("{s:s, s:s, s:b, s:f, s:I, s:I}", "rack", k.name, "leader",
				k.leader, "silent", now - k.heard > FABRIC_STALE * period_of(h),
				"heard_s", (double)(now - k.heard) / 1e9, "reports",
				(json_int_t)k.reports, "led", (json_int_t)k.led));
	}
	return list;
}

static json_t *services_json(const struct fabric_host *h)
{
	static const char *const dirs[FABRIC_DIRS] = {"in", "out"};
	json_t *list = json_array();

	for (size_t i = 0; i < h->n; i++)
		for (int d = 0; d < FABRIC_DIRS; d++) {
			struct parley_service s;

			policy_net_service(h->config.policy, h->tenant[i], POLICY_NET_FABRIC,
				(enum policy_net_dir)d, &s);
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:f, s:o, s:f, s:f}", "service",
					      h->config.policy->tenants[h->tenant[i]].path, "dir",
					      dirs[d], "min", s.min, "max",
					      s.max < INFINITY ? json_real(s.max) : json_null(),
					      "used", fabric_usage(h->fabric, d, i), "given",
					      fabric_rate(h->fabric, d, i)));
		}
	return list;
}

json_t *fabric_host_json(const struct fabric_host *h)
{
	struct lease_hub_stats s;

	lease_hub_stats(h->hub, &s);
	return json_pack("{s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "address",
		fabric_host_address(h), "period_s", (double)period_of(h) / 1e9, "rounds",
		(json_int_t)h->rounds, "connected", (json_int_t)s.proven, "refused",
		(json_int_t)s.refused, "received_bytes", (json_int_t)s.conn.received_bytes,
		"sent_bytes", (json_int_t)s.conn.sent_bytes, "racks", racks_json(h, loop_clock()),
		"services", services_json(h));
}

void fabric_host_metrics(const struct fabric_host *h, FILE *to)
{
	struct lease_hub_stats s;

	lease_hub_stats(h->hub, &s);
	metrics_single(to, "weir_fabric_racks", "gauge", "Racks that have reported.",
		(double)fabric_racks(h->fabric));
	metrics_single(to, "weir_fabric_leaders", "gauge", "Machines that are connected.",
		(double)s.proven);
	metrics_single(to, "weir_fabric_rounds_total", "counter", "Divisions.", (double)h->rounds);
	metrics_single(to, "weir_fabric_received_bytes_total", "counter", "From leaders of racks.",
		(double)s.conn.received_bytes);
	metrics_single(to, "weir_fabric_sent_bytes_total", "counter", "To leaders of racks.",
		(double)s.conn.sent_bytes);
	metrics_single(to, "weir_fabric_refused_total", "counter",
		"Connections that were closed for a fault.", (double)s.refused);
}
