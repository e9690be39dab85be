/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-plan: plan the processes of a live run, and the part of a device that each tenant uses.
 *
 *   scenario                      live
 *   a device                      weir serve, its back end a model of it over memory
 *   a host                        weir serve, its back end the device's export
 *   a host whose gate is open,    none: its clients go to the device's gateway, since a gateway
 *   before a device with a gate   in between would make them one client
 *   a workload                    a client on an export of its tenant
 *   a controller                  the same keys in the policy of the same gateway
 *
 * OFFSETS A gateway distinguishes tenants by their exports, and exports must not overlap; but
 *         tenants may use the same part of a device. Beyond a model's end its offsets wrap around,
 *         so a tenant whose part is taken gets it one or more wraps further on: another export, the
 *         same cylinders.
 */
#include "cli/live/live-impl.h"
#include "base/no-memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct scenario_group *group_of(const struct live *l, uint32_t host)
{
	return &l->s->groups[l->s->hosts[host].group];
}

/* ---- servers */

static double window_of(const struct scenario_gate *g)
{
	return g->config.window;
}

/* Return true for `depth: none` without a window in bytes. */
static bool is_open(const struct scenario_gate *g)
{
	return window_of(g) > LIVE_WINDOW_MAX && !g->config.window_bytes;
}

static bool needs_no_gateway(const struct live *l, uint32_t host)
{
	const struct scenario_group *g = group_of(l, host);

	return l->s->stations[g->device].gate && is_open(&g->gate) && !live_controlled(l, host);
}

void live_server_paths(const struct live *l, const char *stem, struct live_server *v)
{
	snprintf(v->socket, LIVE_PATH, "%s/%s.sock", l->dir, stem);
	snprintf(v->api, LIVE_PATH, "%s/%s.api", l->dir, stem);
	snprintf(v->file, LIVE_PATH, "%s/%s.yaml", l->dir, stem);
	snprintf(v->log, LIVE_PATH, "%s/%s.log", l->dir, stem);
	snprintf(v->data, LIVE_PATH, "%s/%s.data", l->dir, stem);
	snprintf(v->profile, LIVE_PATH, "%s/%s.profile", l->dir, stem);
}

struct live_server *live_server_add(struct live *l, const char *name, int host, uint32_t device)
{
	struct live_server *v = &l->servers[l->n_servers];
	char stem[24];

	*v = (struct live_server){.name = name, .host = host, .device = device};
	snprintf(stem, sizeof(stem), "%zu", l->n_servers++);
	live_server_paths(l, stem, v);
	return v;
}

static void add_server(
	struct live *l, const char *name, int host, uint32_t device, const struct scenario_gate *g)
{
	struct live_server *v = live_server_add(l, name, host, device);

	v->depth = !g || window_of(g) > LIVE_WINDOW_MAX ? LIVE_WINDOW_MAX : window_of(g);
	v->depth_bytes = g ? g->config.window_bytes : 0;
}

static int check_window(const struct scenario_gate *g, struct weir_err *err)
{
	return window_of(g) < 1 ? weir_err_at(err, -EINVAL, g->resource.at,
					  "depth: cannot run live: it must be 1 or more")
				: live_lab_check(g, err);
}

static int add_servers(struct live *l, struct weir_err *err)
{
	const struct scenario *s = l->s;
	int r = 0;

	if (!s->n_devices)
		return weir_err_set(
			err, -EINVAL, "%s: cannot run live: it has no devices", s->file);
	if (s->n_stations > s->n_devices)
		return weir_err_at(err, -EINVAL, s->stations[s->n_devices].at,
			"link '%s' cannot run live", s->stations[s->n_devices].name);
	if (s->n_devices + s->n_hosts > LIVE_SERVERS)
		return weir_err_set(err, -EINVAL,
			"%u devices and hosts cannot run live: %d processes are the most",
			s->n_devices + s->n_hosts, LIVE_SERVERS);
	l->servers = calloc(s->n_devices + s->n_hosts, sizeof(*l->servers));
	l->host_server = calloc(s->n_hosts, sizeof(*l->host_server));
	if (!l->servers || !l->host_server)
		return no_memory(err);
	for (uint32_t i = 0; r == 0 && i < s->n_devices; i++) {
		add_server(l, s->stations[i].name, -1, i, s->stations[i].gate);
		if (s->stations[i].gate)
			r = check_window(s->stations[i].gate, err);
	}
	for (uint32_t i = 0; r == 0 && i < s->n_hosts; i++) {
		const struct scenario_group *g = group_of(l, i);

		l->host_server[i] = needs_no_gateway(l, i) ? -1 : (int)l->n_servers;
		if (l->host_server[i] >= 0)
			add_server(l, s->hosts[i].name, (int)i, g->device, &g->gate);
		r = check_window(&g->gate, err);
	}
	return r;
}

/* ---- tenants */

const char *live_device_path(const struct live *l, const struct live_tenant *t)
{
	const struct scenario_gate *g = l->s->stations[group_of(l, t->host)->device].gate;
	const char *host = l->s->hosts[t->host].name;
	int leaf = scenario_leaf_for(g, host, t->path);

	return leaf < 0 ? host : g->policy->tenants[leaf].path;
}

/* Set the part of the device that a tenant's workloads use. */
static void set_extent(const struct live *l, struct live_tenant *t)
{
	const struct scenario_host *h = &l->s->hosts[t->host];
	const struct scenario_tenant *st = &l->s->groups[h->group].gate.tenants[t->index];
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < st->n_workloads; i++) {
		const struct scenario_workload *w = &st->workloads[i];
		uint64_t base = w->config.base + w->spread * h->replica;

		low = base < low ? base : low;
		high = base + w->config.region > high ? base + w->config.region : high;
	}
	t->low = high ? low : 0;
	t->size = high ? high - low : 0;
}

static int add_tenant(struct live *l, uint32_t host, uint32_t index, struct weir_err *err)
{
	const struct weir_tenant *p = &group_of(l, host)->gate.policy->tenants[index];
	struct live_tenant *t = &l->tenants[l->n_tenants];
	bool direct = l->host_server[host] < 0;

	*t = (struct live_tenant){.host = host, .index = index, .path = p->path};
	t->server = direct ? group_of(l, host)->device : (size_t)l->host_server[host];
	l->n_tenants++;
	set_extent(l, t);
	t->export_ = live_text(l, "%s/%s", l->s->hosts[host].name, p->path);
	t->server_path = direct ? live_device_path(l, t) : p->path;
	for (size_t i = 0; i + 1 < l->n_tenants; i++)
		if (l->tenants[i].server == t->server &&
			strcmp(l->tenants[i].server_path, t->server_path) == 0)
			return weir_err_at(err, -EINVAL, l->s->stations[t->server].at,
				"'%s/%s' and '%s/%s' are one tenant at the gate of '%s', and "
				"cannot be distinguished live",
				l->s->hosts[l->tenants[i].host].name, l->tenants[i].path,
				l->s->hosts[host].name, t->path, l->s->stations[t->server].name);
	return 0;
}

static int add_tenants(struct live *l, struct weir_err *err)
{
	size_t n = 0;
	int r = 0;

	for (uint32_t h = 0; h < l->s->n_hosts; h++)
		n += group_of(l, h)->gate.policy->n_tenants;
	l->tenants = calloc(n + 1, sizeof(*l->tenants));
	if (!l->tenants)
		return no_memory(err);
	for (uint32_t h = 0; r == 0 && h < l->s->n_hosts; h++) {
		const struct weir_policy *p = group_of(l, h)->gate.policy;

		for (uint32_t i = 0; r == 0 && i < p->n_tenants; i++)
			if (p->tenants[i].first_child < 0)
				r = add_tenant(l, h, i, err);
	}
	return r;
}

/* ---- offsets */

/* Return the number of bytes after which a model's offsets wrap around. */
static int wrap_of(const struct scenario_station *st, uint64_t *ret, struct weir_err *err)
{
	const struct station_config *c = &st->config;
	struct device *d;
	int r;

	switch (c->kind) {
	case STATION_ARRAY:
		r = station_new(c, 1, "size", &d, err);
		if (r < 0)
			return r;
		*ret = array_size(d);
		device_free(d);
		return 0;
	case STATION_DISK:
		*ret = c->disk.spindle.capacity;
		return 0;
	case STATION_SSD: /* a page's die follows from its number */
		*ret = (uint64_t)c->ssd.page * c->ssd.channels * c->ssd.dies;
		return 0;
	default: /* offsets do not matter to a server */
		*ret = 1 << 20;
		return 0;
	}
}

static uint64_t round_up(uint64_t x, uint64_t to)
{
	return (x + to - 1) / to * to;
}

/*
 * Find the first offset for [low, low + size), after any number of wraps, that none of the first
 * `n` tenants of the server uses.
 */
static void place_tenant(struct live *l, size_t n, uint64_t wrap)
{
	struct live_tenant *t = &l->tenants[n];
	struct live_server *v = &l->servers[t->server];
	bool moved = true;

	t->offset = t->low;
	while (moved && t->size) {
		moved = false;
		for (size_t i = 0; i < n; i++) {
			const struct live_tenant *o = &l->tenants[i];

			if (o->server != t->server || !o->size ||
				o->offset >= t->offset + t->size ||
				t->offset >= o->offset + o->size)
				continue;
			t->offset += round_up(o->offset + o->size - t->offset, wrap);
			moved = true;
		}
	}
	if (t->size && t->offset + t->size > v->size)
		v->size = t->offset + t->size;
}

static int place_all(struct live *l, struct weir_err *err)
{
	uint64_t wrap = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_tenants; i++) {
		uint32_t device = group_of(l, l->tenants[i].host)->device;

		r = wrap_of(&l->s->stations[device], &wrap, err);
		if (r == 0)
			place_tenant(l, i, wrap);
	}
	/*
	 * A device without a gate is one export, which all its hosts share; with a gate, each host
	 * has its own export, after the others'.
	 */
	for (size_t i = l->s->n_devices; r == 0 && i < l->n_servers; i++) {
		struct live_server *v = &l->servers[i], *d = &l->servers[v->device];

		r = wrap_of(&l->s->stations[v->device], &wrap, err);
		if (r < 0)
			break;
		if (!l->s->stations[v->device].gate) {
			d->size = v->size > d->size ? v->size : d->size;
		} else {
			v->offset = round_up(d->size, wrap);
			d->size = v->offset + v->size;
		}
	}
	return r;
}

/*
 * A host with a gateway is one client of the device's: refuse it if its tenants are different ones
 * there.
 */
static int check_together(const struct live *l, struct weir_err *err)
{
	for (size_t i = 0; i < l->n_tenants; i++) {
		const struct live_tenant *t = &l->tenants[i];
		const struct scenario_group *g = group_of(l, t->host);
		const struct scenario_station *st = &l->s->stations[g->device];
		const char *host = l->s->hosts[t->host].name;

		if (!st->gate || l->host_server[t->host] < 0)
			continue;
		for (size_t k = 0; k < i; k++)
			if (l->tenants[k].host == t->host &&
				scenario_leaf_for(st->gate, host, l->tenants[k].path) !=
					scenario_leaf_for(st->gate, host, t->path))
				return weir_err_at(err, -EINVAL, g->at,
					"host '%s' has a window, and the gate of '%s' "
					"distinguishes "
					"its tenants: both cannot run live",
					host, st->name);
	}
	return 0;
}

/* ---- clients */

static int add_client(struct live *l, const struct live_tenant *t,
	const struct scenario_workload *w, struct weir_err *err)
{
	struct live_client *c = &l->clients[l->n_clients];
	int n = snprintf(
		c->name, sizeof(c->name), "%s/%s/%s", l->s->hosts[t->host].name, t->path, w->name);

	if (n >= (int)sizeof(c->name))
		return weir_err_at(
			err, -EINVAL, yamldoc_place(w->node), "the names are too long to run live");
	c->tenant = t;
	c->workload = w;
	c->start = w->config.start;
	c->stop = w->config.stop ? w->config.stop : WEIR_NEVER;
	c->held = w->stopped;
	snprintf(c->log, LIVE_PATH, "%s/c%zu.log", l->dir, l->n_clients);
	l->n_clients++;
	return live_client_check(c, err);
}

static int add_clients(struct live *l, struct weir_err *err)
{
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < l->n_tenants; i++)
		n += group_of(l, l->tenants[i].host)->gate.tenants[l->tenants[i].index].n_workloads;
	l->clients = calloc(n + 1, sizeof(*l->clients));
	if (!l->clients)
		return no_memory(err);
	for (size_t i = 0; i < l->n_tenants; i++) {
		const struct live_tenant *t = &l->tenants[i];
		const struct scenario_tenant *st = &group_of(l, t->host)->gate.tenants[t->index];

		for (size_t w = 0; r == 0 && w < st->n_workloads; w++)
			r = add_client(l, t, &st->workloads[w], err);
	}
	return r;
}

int live_plan(struct live *l, struct weir_err *err)
{
	static int (*const steps[])(struct live *, struct weir_err *) = {
		add_servers, live_control, add_tenants, place_all, add_clients, live_lab};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(steps) / sizeof(*steps); i++)
		r = steps[i](l, err);
	if (r == 0)
		r = check_together(l, err);
	if (r == 0)
		r = live_change_check(l, err);
	if (r == 0 && l->memory.failed)
		r = no_memory(err);
	return r ? r : live_policy_write(l, err);
}

void live_plan_free(struct live *l)
{
	for (size_t i = 0; i < l->n_clients; i++)
		live_words_free(&l->clients[i].words);
	live_lab_free(l);
	free(l->servers);
	free(l->host_server);
	free(l->tenants);
	free(l->clients);
	free(l->network.faults);
	arena_free(&l->memory);
}
