/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-control: controllers in a live run. Their settings are in the policies, which the gateways
 * read; here are the peers of hosts that hear each other, the relay between them, and the facts that
 * the gateways report, as metrics.
 */
#include "cli/live/live-impl.h"
#include "serve/show/facts-json.h"
#include "sim/world/measure-facts.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/*
 * Datagrams on one machine may take this long anyway; reports with a longer delay go through the
 * relay.
 */
#define DELAY_NONE WEIR_MS

/* ---- which hosts */

/* Return true if the controller of hosts moves the host's window. */
static bool moves_window(
	const struct scenario *s, const struct scenario_controller *c, uint32_t host)
{
	const struct scenario_group *g = &s->groups[s->hosts[host].group];

	return c->gate && g->device == c->station &&
	       g->gate.resource.controller == c->gate->resource.controller;
}

bool live_controlled(const struct live *l, uint32_t host)
{
	const struct controller *c = l->s->groups[l->s->hosts[host].group].gate.resource.controller;

	return c && c->sets_window;
}

/* ---- hosts that exchange datagrams */

int live_key(const struct live *l, struct weir_err *err)
{
	char path[LIVE_PATH];

	snprintf(path, sizeof(path), "%s/key", l->dir);
	return files_write_key(path, err);
}

struct group { /* the gateways of one controller */
	struct live_server *members[LIVE_SERVERS];
	uint16_t ports[LIVE_SERVERS];
	int fds[LIVE_SERVERS]; /* keep the ports until all have one, so that all differ */
	size_t n;
	const struct live_relay *relay; /* between them; NULL: none */
};

static int find_members(
	struct live *l, const struct scenario_controller *c, struct group *g, struct weir_err *err)
{
	for (uint32_t h = 0; h < l->s->n_hosts; h++) {
		struct live_server *v;
		int r;

		if (!moves_window(l->s, c, h) || l->host_server[h] < 0)
			continue;
		v = &l->servers[l->host_server[h]];
		r = process_bind_udp(&v->port, &g->fds[g->n]);
		if (r < 0)
			return weir_err_set(err, r, "no port for datagrams: %s", strerror(-r));
		g->ports[g->n] = v->port;
		g->members[g->n++] = v;
	}
	return 0;
}

/* Start the relay, if reports are delayed or lost. */
static int start_relay(
	struct live *l, const struct scenario_controller *c, struct group *g, struct weir_err *err)
{
	struct live_relay_config config = {.ports = g->ports,
		.n = g->n,
		.delay = l->network.delay,
		.loss = l->network.loss,
		.seed = l->seed};
	int r;

	if (config.delay <= DELAY_NONE && config.loss <= 0)
		return 0;
	if (l->relay)
		return yamldoc_error(yamldoc_get(yamldoc_root(l->s->doc), "messages"), err,
			"cannot run live: only the hosts of one device may have a delay or a loss");
	r = live_relay_new(&config, &l->relay, err);
	g->relay = l->relay;
	return r;
}

/* Write "peers: …" of one host. */
static void add_peers(
	struct live *l, const struct scenario_controller *c, const struct group *g, size_t member)
{
	struct live_server *v = g->members[member];

	v->top = live_text(l,
		"peers:\n  host: \"%s\"\n  key: \"%s/key\"\n  period: %.9gs\n"
		"  listen: \"udp:127.0.0.1:%u\"\n  to: [",
		v->name, l->dir, (double)c->gate->whole->peers.period / WEIR_SEC, v->port);
	for (size_t i = 0; i < g->n; i++)
		if (i != member)
			v->top = live_text(l, "%s\"udp:127.0.0.1:%u\", ", v->top,
				g->relay ? live_relay_port(g->relay, member, i) : g->ports[i]);
	v->top = live_text(l, "%s]\n", v->top);
}

/*
 * For a crash the host's gateway is killed, with its clients, and both are restarted when the fault
 * ends (live.c). Other kinds cannot run live.
 */
static int check_faults(const struct live *l, struct weir_err *err)
{
	for (size_t i = 0; i < l->network.n_faults; i++) {
		const struct hosts_fault *f = &l->network.faults[i];

		if (f->kind != HOSTS_CRASH)
			return yamldoc_error(
				f->node, err, "cannot run live: only the fault 'crash' can");
		if (l->host_server[f->host] < 0)
			return yamldoc_error(f->node, err,
				"cannot run live: host '%s' has no gateway",
				l->s->hosts[f->host].name);
	}
	return 0;
}

static int plan_hosts(struct live *l, const struct scenario_controller *c, struct weir_err *err)
{
	struct group g = {.n = 0};
	int r = l->network.faults ? 0 : hosts_network_read(l->s, &l->network, err);

	if (r == 0)
		r = check_faults(l, err);
	if (r == 0)
		r = find_members(l, c, &g, err);
	if (r == 0)
		r = start_relay(l, c, &g, err);
	for (size_t i = 0; i < g.n; i++)
		close(g.fds[i]);
	if (r == 0)
		r = live_key(l, err);
	for (size_t i = 0; r == 0 && g.n > 1 && i < g.n; i++)
		add_peers(l, c, &g, i);
	return r;
}

/* ---- all */

int live_control(struct live *l, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->s->n_controllers; i++) {
		const struct scenario_controller *c = &l->s->controllers[i];

		if (c->gate)
			r = live_lab_check(c->gate, err);
		if (r == 0 && c->gate && c->gate->resource.controller->has_peers)
			r = plan_hosts(l, c, err);
	}
	return r;
}

/* Name the tenants of a host's gateway after the host, as the simulator does. */
static void name_rows(const struct live_server *v, struct facts *f, struct arena *memory)
{
	for (size_t i = 0; v->host >= 0 && i < FACTS_TABLES && f->kind->tables[i].size; i++)
		for (size_t k = 0; k < f->tables[i].n; k++) {
			struct facts_row *row = facts_row(&f->kind->tables[i], &f->tables[i], k);
			char name[1024];

			snprintf(name, sizeof(name), "%s/%s", v->name, row->key[0]);
			row->key[0] = arena_text(memory, name);
		}
}

int live_control_facts(struct live *l, double t)
{
	int r = 0;

	for (size_t i = 0; i < l->n_servers; i++) {
		const struct live_server *v = &l->servers[i];
		const json_t *resource = json_array_get(json_object_get(v->now, "resources"), 0);

		for (size_t k = 0; r == 0 && !v->down && facts_kind(k); k++) {
			const json_t *part = json_object_get(resource, facts_kind(k)->name);
			struct arena memory = {0};
			struct facts facts;

			if (!json_is_object(part))
				continue;
			facts_json_show_all(part, resource, facts_kind(k), &memory, &facts);
			name_rows(v, &facts, &memory);
			r = memory.failed ? -ENOMEM
					  : measure_facts(l->metrics, &facts,
						    v->host < 0 ? "server" : v->name, t);
			arena_free(&memory);
		}
	}
	return r;
}
