/* SPDX-License-Identifier: BSD-3-Clause */
/* world-build: create a world from a scenario. Allocates everything that a run needs, except
 * IOs. */
#include "sim/world/controller.h"
#include "sim/world/measure.h"
#include "sim/world/world.h"
#include "base/no-memory.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sizes */

static bool is_leaf(const struct scenario_gate *g, size_t tenant)
{
	return g->policy->tenants[tenant].first_child < 0;
}

static void count_all(struct world *w)
{
	const struct scenario *s = w->scenario;

	for (uint32_t i = 0; i < s->n_groups; i++) {
		const struct scenario_gate *g = &s->groups[i].gate;
		uint32_t tenants = 0, loads = 0;
		for (size_t t = 0; t < g->policy->n_tenants; t++) {
			tenants += is_leaf(g, t);
			loads += (uint32_t)g->tenants[t].n_workloads;
		}
		w->n_tenants += tenants * s->groups[i].count;
		w->n_loads += loads * s->groups[i].count;
	}
	w->n_gates = s->n_hosts;
	for (uint32_t i = 0; i < s->n_stations; i++)
		w->n_gates += s->stations[i].gate != NULL;
	w->gate_events = s->n_stations;
	w->load_events = w->gate_events + w->n_gates;
	w->other_events = w->load_events + w->n_loads;
	w->io_events = w->other_events + WORLD_EVENT_CONTROLLERS + (uint32_t)s->n_controllers;
}

static int allocate_arrays(struct world *w)
{
	const struct scenario *s = w->scenario;

	w->stations = calloc(s->n_stations, sizeof(*w->stations));
	w->gates = calloc(w->n_gates, sizeof(*w->gates));
	w->hosts = calloc(s->n_hosts, sizeof(*w->hosts));
	w->tenants = calloc(w->n_tenants + 1, sizeof(*w->tenants));
	w->loads = calloc(w->n_loads + 1, sizeof(*w->loads));
	w->controllers = calloc(s->n_controllers + 1, sizeof(*w->controllers));
	w->dirty = calloc(w->n_gates, sizeof(*w->dirty));
	if (!w->stations || !w->gates || !w->hosts || !w->tenants || !w->loads || !w->controllers ||
		!w->dirty)
		return -ENOMEM;
	return event_reserve(&w->events, w->io_events);
}

/* ---- the parts */

static int build_stations(struct world *w, struct weir_err *err)
{
	const struct scenario *s = w->scenario;
	uint32_t gate = s->n_hosts;
	char name[300];
	int r;

	for (uint32_t i = 0; i < s->n_stations; i++) {
		struct world_station *st = &w->stations[i];

		st->config = &s->stations[i];
		st->event = i;
		snprintf(name, sizeof(name), "%s/%s", i < s->n_devices ? "device" : "link",
			st->config->name);
		r = station_new(&st->config->config, w->seed, name, &st->device, err);
		if (r)
			return r;
		if (!st->config->gate)
			continue;
		st->gate = &w->gates[gate];
		st->gate->config = st->config->gate;
		st->gate->station = st;
		st->gate->event = w->gate_events + gate++;
		if ((r = world_gate_build(w, st->gate, err)))
			return r;
	}
	return 0;
}

int world_load_source(const struct world *w, const struct world_tenant *t,
	const struct scenario_workload *config, weir_time shift, struct workload **ret,
	struct weir_err *err)
{
	uint32_t replica = w->scenario->hosts[t->host - w->hosts].replica;
	struct workload_config c = config->config;
	char name[700];

	if ((config->trace_path || config->folder) && !config->loaded)
		return weir_err_at(err, -ENOENT, yamldoc_place(config->node),
			"the trace '%s' was not loaded",
			config->folder ? config->folder : config->trace_path);
	if (config->folder)
		c.trace = &config->traces[replica % config->n_traces];
	snprintf(name, sizeof(name), "host/%s/%s/%s", t->host->name,
		t->host->group->gate.policy->tenants[t->index].path, config->name);
	c.base += config->spread * replica;
	c.start += shift;
	return workload_new(&c, w->seed, name, ret, err);
}

static int build_load(struct world *w, struct world_tenant *t,
	const struct scenario_workload *config, struct world_load *l, struct weir_err *err)
{
	const struct workload_config *c = &config->config;
	int r = world_load_source(w, t, config, 0, &l->source, err);

	if (r)
		return r;
	l->config = config;
	l->running = !config->stopped;
	l->tenant = t;
	l->gate = t->host->gate;
	l->group = t->host->group;
	l->event = w->load_events + (uint32_t)(l - w->loads);
	l->closed = workload_closed(l->source);
	if (c->on > 0 && !c->on_off_random && !(l->bursts = calloc(1, sizeof(*l->bursts))))
		return no_memory(err);
	return 0;
}

static int build_tenant(struct world *w, struct world_host *h, size_t index, struct world_tenant *t,
	struct world_load **loads, struct weir_err *err)
{
	const struct scenario_gate *g = &h->group->gate;
	const struct scenario_tenant *st = &g->tenants[index];
	int r;

	t->host = h;
	t->index = (uint32_t)index;
	t->number = (uint32_t)(t - w->tenants);
	t->node = h->gate->nodes[index];
	if (g->policy->tenants[index].slo_percentile > 0)
		t->slo_latency = g->policy->tenants[index].slo_latency;
	t->loads = *loads;
	t->n_loads = st->n_workloads;
	for (size_t i = 0; i < st->n_workloads; i++) {
		r = build_load(w, t, &st->workloads[i], (*loads)++, err);
		if (r)
			return r;
	}
	return 0;
}

static int build_hosts(struct world *w, struct weir_err *err)
{
	const struct scenario *s = w->scenario;
	struct world_tenant *t = w->tenants;
	struct world_load *loads = w->loads;
	int r;

	for (uint32_t i = 0; i < s->n_hosts; i++) {
		struct world_host *h = &w->hosts[i];

		h->name = s->hosts[i].name;
		h->group = &s->groups[s->hosts[i].group];
		h->gate = &w->gates[i];
		h->gate->config = &h->group->gate;
		h->gate->host = h;
		h->gate->event = w->gate_events + i;
		if ((r = world_gate_build(w, h->gate, err)))
			return r;
		h->tenants = t;
		for (size_t k = 0; k < h->group->gate.policy->n_tenants; k++) {
			if (!is_leaf(&h->group->gate, k))
				continue;
			h->n_tenants++;
			if ((r = build_tenant(w, h, k, t++, &loads, err)))
				return r;
		}
	}
	return 0;
}

/* ---- leaves at a device's gate */

/* At a gate without tenants: add one leaf under the root per host. */
static int add_leaf(
	struct world *w, struct world_gate *g, struct world_tenant *t, struct weir_err *err)
{
	const struct world_tenant *before = t > w->tenants ? t - 1 : NULL;
	int r;

	if (before && before->host == t->host) {
		t->device_node = before->device_node;
		return 0;
	}
	r = weir_gate_add(g->gate, WEIR_ROOT, &t->device_node);
	return r ? weir_err_set(err, r, "no room in the gate of '%s'", g->station->config->name)
		 : 0;
}

static void join_links(
	struct world *w, const struct world_tenant *t, const uint32_t *links, unsigned n)
{
	const char *path = t->host->group->gate.policy->tenants[t->index].path;

	for (unsigned i = 0; i < n; i++) {
		const struct world_gate *g = w->stations[links[i]].gate;

		if (g)
			*world_link_node(w, t, links[i]) =
				g->nodes[scenario_leaf_for(g->config, t->host->name, path)];
	}
}

static int join_gates(struct world *w, struct weir_err *err)
{
	bool gates = false;

	for (uint32_t i = w->scenario->n_devices; i < w->scenario->n_stations; i++)
		gates |= w->stations[i].gate != NULL;
	if (gates)
		w->link_nodes = calloc((size_t)w->n_tenants + 1,
			(w->scenario->n_stations - w->scenario->n_devices) *
				sizeof(*w->link_nodes));
	if (gates && !w->link_nodes)
		return no_memory(err);
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		struct world_tenant *t = &w->tenants[i];
		struct world_gate *g = w->stations[t->host->group->device].gate;
		const char *path = t->host->group->gate.policy->tenants[t->index].path;
		int r = 0;

		if (g && g->config->policy)
			t->device_node =
				g->nodes[scenario_leaf_for(g->config, t->host->name, path)];
		else if (g)
			r = add_leaf(w, g, t, err);
		if (r)
			return r;
		if (gates) {
			join_links(w, t, t->host->group->request, t->host->group->n_request);
			join_links(w, t, t->host->group->reply, t->host->group->n_reply);
		}
	}
	return 0;
}

static int build_controllers(struct world *w, struct weir_err *err)
{
	for (size_t i = 0; i < w->scenario->n_controllers; i++) {
		const struct scenario_controller *c = &w->scenario->controllers[i];
		int r;

		r = c->ops->init(w, c, &w->controllers[i].state, err);
		if (r)
			return r;
		w->controllers[i].config = c;
	}
	return 0;
}

int world_new(const struct scenario *s, uint64_t seed, struct world **ret, struct weir_err *err)
{
	struct world *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return no_memory(err);
	w->scenario = s;
	w->seed = seed;
	w->end = s->duration;
	w->warmup = s->warmup;
	event_init(&w->events);
	count_all(w);
	r = allocate_arrays(w);
	if (r)
		weir_err_set(err, r, "out of memory");
	if (r || (r = build_stations(w, err)) || (r = build_hosts(w, err)) ||
		(r = join_gates(w, err)) || (r = build_controllers(w, err))) {
		world_free(w);
		return r;
	}
	if ((r = world_plan(w, err))) {
		world_free(w);
		return r;
	}
	world_link_priorities(w);
	r = measure_new(w, &w->measure);
	if (r) {
		world_free(w);
		return weir_err_set(err, r, "metrics: %s", strerror(-r));
	}
	*ret = w;
	return 0;
}

static void free_gates(struct world *w)
{
	for (uint32_t i = 0; w->gates && i < w->n_gates; i++) {
		weir_gate_free(w->gates[i].gate);
		free(w->gates[i].nodes);
		free(w->gates[i].knobs);
		free(w->gates[i].own);
	}
	free(w->gates);
}

void world_free(struct world *w)
{
	if (!w)
		return;
	for (size_t i = 0; w->controllers && i < w->scenario->n_controllers; i++) {
		if (w->controllers[i].config && w->controllers[i].config->ops->free)
			w->controllers[i].config->ops->free(w->controllers[i].state);
	}
	free_gates(w);
	for (uint32_t i = 0; w->stations && i < w->scenario->n_stations; i++)
		device_free(w->stations[i].device);
	for (uint32_t i = 0; w->loads && i < w->n_loads; i++) {
		workload_free(w->loads[i].source);
		free(w->loads[i].bursts);
	}
	for (uint32_t i = 0; w->tenants && i < w->n_tenants; i++) {
		measure_tenant_free(w->tenants[i].measure);
		free(w->tenants[i].plan);
	}
	for (uint32_t i = 0; i < w->n_chunks; i++)
		free(w->chunks[i]);
	measure_free(w->measure);
	event_free(&w->events);
	free(w->stations);
	free(w->hosts);
	free(w->tenants);
	free(w->loads);
	free(w->controllers);
	free(w->dirty);
	free(w->link_nodes);
	free(w->chunks);
	free(w);
}
