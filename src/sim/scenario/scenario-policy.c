/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scenario-policy: the policies of hosts and of devices' own gates, read by the policy's reader.
 *
 * METHOD  A host's policy is laid over the one that all hosts share, key by key, and keys of a resource that are written at the
 *         top are put into the resource of the host's device. The result is a policy as weir-policy(5) has it, made of the
 *         file's own nodes, so that messages have their places.
 */
#include "base/no-memory.h"
#include "policy/policy.h"
#include "policy/each.h"
#include "policy/impl.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys that have moved */

#define IN(place) (1u << SCENARIO_##place)
int scenario_moved_check(yamldoc_node map, enum scenario_place place, struct weir_err *err)
{
	static const struct {
		const char *old, *now;
		unsigned places;
	} moved[] = {{"window", "'depth' of a policy", IN(HOST) | IN(POLICY) | IN(CHANGE)},
		{"distance", "'run_distance' of a policy", IN(HOST) | IN(POLICY) | IN(CHANGE)},
		{"order", "in 'lab' of a policy", IN(HOST) | IN(POLICY)},
		{"estimate", "in 'lab' of a policy", IN(HOST) | IN(POLICY)},
		{"cost", "in the policy", IN(HOST)}, {"run", "in the policy", IN(HOST)},
		{"credit", "in the policy", IN(HOST)}, {"io_unit", "in the policy", IN(HOST)},
		{"flush_cost", "in the policy", IN(HOST)}, {"trim_cost", "in the policy", IN(HOST)},
		{"tenants", "in the policy, and their workloads are 'clients' of the host",
			IN(HOST)},
		{"gate", "'policy'", IN(DEVICE)},
		{"per", "'tenants' of the policy", IN(DEVICE) | IN(POLICY)},
		{"controllers", "'controller' of a policy", IN(TOP)},
		{"workloads", "'clients' of the host", IN(TENANT)},
		{"for", "'match: {export: HOST/TENANT}'", IN(TENANT)},
		{"priority", "in 'lab'", IN(TENANT) | IN(CHANGE)},
		{"deadline", "in 'lab'", IN(TENANT) | IN(CHANGE)},
		{"profile", "in 'lab'", IN(TENANT) | IN(CHANGE)},
		{"rtokens", "in 'lab'", IN(TENANT) | IN(CHANGE)},
		{"ltokens", "in 'lab'", IN(TENANT) | IN(CHANGE)},
		{"rgrant", "in 'lab'", IN(CHANGE)}, {"lgrant", "in 'lab'", IN(CHANGE)}};

	for (size_t i = 0; i < sizeof(moved) / sizeof(moved[0]); i++)
		if (moved[i].places & 1u << place && yamldoc_has(map, moved[i].old))
			return yamldoc_error(map, err, "'%s' is now %s: see weir-scenario(5)",
				moved[i].old, moved[i].now);
	return 0;
}

#undef IN

/* The same for a list of tenants, and a policy. */
static int check_tenants(yamldoc_node list, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < yamldoc_size(list); i++) {
		r = scenario_moved_check(yamldoc_at(list, i), SCENARIO_TENANT, err);
		if (r == 0)
			r = check_tenants(yamldoc_get(yamldoc_at(list, i), "children"), err);
	}
	return r;
}

static int check_policy(yamldoc_node map, struct weir_err *err)
{
	int r = scenario_moved_check(map, SCENARIO_POLICY, err);

	return r ? r : check_tenants(yamldoc_get(map, "tenants"), err);
}

/* ---- one policy out of several maps */

/* Lay the keys over the resource of this name in the list, or add a resource with them. */
static int put_resource(struct scenario *s, yamldoc_node list, yamldoc_node keys, const char *name,
	yamldoc_node *ret)
{
	size_t n = yamldoc_size(list);
	yamldoc_node *items = calloc(n + 1, sizeof(*items)), own;
	struct yamldoc_pair named = {.key = "name"};
	bool found = false;
	int r = items ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		const char *text = yamldoc_text(yamldoc_get(yamldoc_at(list, i), "name"));

		items[i] = yamldoc_at(list, i);
		if (!text || strcmp(text, name) != 0)
			continue;
		found = true;
		r = yamldoc_make_over(s->doc, items[i], keys, &items[i]);
	}
	if (r == 0 && !found && (!n || yamldoc_map_size(keys))) {
		r = yamldoc_make_text(s->doc, keys, name, &named.value);
		if (r == 0)
			r = yamldoc_make_map(s->doc, keys, &named, 1, &own);
		if (r == 0)
			r = yamldoc_make_over(s->doc, own, keys, &items[n++]);
	}
	if (r == 0)
		r = yamldoc_make_list(s->doc, keys, items, n, ret);
	free(items);
	return r;
}

/* `tenants: [{name: main}]` */
static int make_main(struct scenario *s, yamldoc_node like, yamldoc_node *ret)
{
	struct yamldoc_pair name = {.key = "name"};
	yamldoc_node tenant;
	int r = yamldoc_make_text(s->doc, like, "main", &name.value);

	if (r == 0)
		r = yamldoc_make_map(s->doc, like, &name, 1, &tenant);
	return r == 0 ? yamldoc_make_list(s->doc, like, &tenant, 1, ret) : r;
}

/* Move the resource's keys of `from` into its `resources`; add the tenant "main" if `main` and there are none. */
static int arrange(
	struct scenario *s, yamldoc_node from, const char *device, bool main, yamldoc_node *ret)
{
	size_t n = yamldoc_map_size(from), n_top = 0, n_keys = 0;
	struct yamldoc_pair *top = calloc(2 * n + 4, sizeof(*top)),
			    *keys = top ? top + n + 2 : NULL;
	yamldoc_node map;
	int r = top ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct yamldoc_pair p;

		p.value = yamldoc_map_at(from, i, &p.key);
		if (policy_key_is_resources(p.key))
			keys[n_keys++] = p;
		else if (strcmp(p.key, "resources") != 0 || yamldoc_kind(p.value) != YAMLDOC_LIST)
			top[n_top++] = p;
	}
	if (r == 0)
		r = yamldoc_make_map(s->doc, from, keys, n_keys, &map);
	if (r == 0) {
		top[n_top].key = "resources";
		r = put_resource(
			s, yamldoc_get(from, "resources"), map, device, &top[n_top++].value);
	}
	if (r == 0 && main && !yamldoc_has(from, "tenants")) {
		top[n_top].key = "tenants";
		r = make_main(s, from, &top[n_top++].value);
	}
	if (r == 0)
		r = yamldoc_make_map(s->doc, from, top, n_top, ret);
	free(top);
	return r;
}

/* ---- reading */

/* Write the name of a file beside the scenario, for messages. */
static const char *name_beside(const struct scenario *s, const char *name, char *buf, size_t len)
{
	const char *slash = strrchr(s->file, '/');

	if (!slash || name[0] == '/')
		return name;
	snprintf(buf, len, "%.*s/%s", (int)(slash - s->file), s->file, name);
	return buf;
}

static int read_file(
	struct scenario *s, yamldoc_node from, struct scenario_gate *g, struct weir_err *err)
{
	const char *name = yamldoc_text(from);
	char shown[1024];
	struct weir_err why = {""};
	char *text;
	size_t len;
	int r;

	if (!s->reader)
		return yamldoc_error(from, err, "'%s': a file cannot be read from here", name);
	r = s->reader(s->reader_arg, s->file, name, &text, &len, &why);
	if (r)
		return yamldoc_error(from, err, "%s", why.text);
	r = yamldoc_parse(text, len, name_beside(s, name, shown, sizeof(shown)), &g->doc, err);
	free(text);
	if (r)
		return r;
	g->node = yamldoc_root(g->doc);
	r = policy_node_parse(g->node, s->reader, s->reader_arg, &g->whole, err);
	return r == 0 && policy_copy_everybody(g->whole) < 0 ? no_memory(err) : r;
}

static int read_policy(struct scenario *s, yamldoc_node shared, yamldoc_node own, yamldoc_node like,
	const char *device, bool main, struct scenario_gate *g, struct weir_err *err)
{
	yamldoc_node from = own.id ? own : shared;

	if (from.id && yamldoc_text(from))
		return read_file(s, from, g, err);
	if (from.id && yamldoc_kind(from) != YAMLDOC_MAP)
		return yamldoc_error(from, err, "must be a policy, or the name of its file");
	if ((shared.id && check_policy(shared, err)) || (own.id && check_policy(own, err)))
		return -EINVAL;
	if (own.id && yamldoc_text(shared))
		return yamldoc_error(own, err,
			"the policy of all hosts is a file, and cannot be changed for one of them");
	if (own.id && yamldoc_make_over(s->doc, shared, own, &from))
		return no_memory(err);
	if (!from.id && yamldoc_make_map(s->doc, like, NULL, 0, &from))
		return no_memory(err);
	if (arrange(s, from, device, main, &g->node))
		return no_memory(err);
	return policy_node_parse(g->node, s->reader, s->reader_arg, &g->whole, err);
}

/* The gate of the policy's resource of this name, in front of a device. */
static int make_gate(const struct weir_policy *p, const struct scenario_station *device,
	struct scenario_gate *g, struct weir_err *err)
{
	const struct weir_resource *r = weir_policy_resource(p, device->name);
	uint64_t bytes;

	if (!r && p->n_resources)
		return weir_err_at(err, -EINVAL, p->resources[0].at,
			"no resource of the policy is named '%s', as the device is", device->name);
	if (r)
		g->resource = *r;
	else
		policy_resource_default(device->name, &g->resource);
	weir_policy_gate(&g->resource, &g->config);
	if (g->resource.depth == 0 && device->config.kind == STATION_LINK) {
		g->config.window = POLICY_DEPTH_OPEN;
	} else if (g->resource.depth == 0) {
		g->config.window = station_depth(&device->config, &bytes);
		if (g->resource.cost == WEIR_UNIT_TIME && !g->config.window_bytes)
			g->config.window_bytes = bytes;
	}
	if (!p->enforce)
		g->config.window = POLICY_DEPTH_OPEN;
	g->given = SCENARIO_GATE_WINDOW;
	return 0;
}

static int make_tenants(struct scenario_gate *g, struct weir_err *err)
{
	const struct weir_policy *p = g->policy;

	g->tenants = calloc(p->n_tenants + 1, sizeof(*g->tenants));
	if (!g->tenants)
		return no_memory(err);
	for (size_t i = 0; i < p->n_tenants; i++) {
		const struct policy_lab_tenant *lab = policy_lab_of(p, i);
		const struct weir_tenant *w = &p->tenants[i];
		struct scenario_knobs *k = &g->tenants[i].knobs;

		g->tenants[i].at = w->at;
		k->weight = w->weight;
		memcpy(k->min, w->min, sizeof(w->min));
		memcpy(k->max, w->max, sizeof(w->max));
		k->n_min = w->n_min;
		k->n_max = w->n_max;
		k->lab.priority = -1;
		if (lab) {
			k->lab = *lab;
			k->given = lab->given;
		}
	}
	return 0;
}

/* ---- clients */

static int add_clients(
	struct scenario_gate *g, size_t tenant, yamldoc_node list, struct weir_err *err)
{
	struct scenario_tenant *t = &g->tenants[tenant];

	return scenario_workloads_read(list, &t->workloads, &t->n_workloads, err);
}

/* The only tenant without children. */
static int find_only(const struct weir_policy *p)
{
	int found = -1;

	for (size_t i = 0; i < p->n_tenants; i++) {
		if (p->tenants[i].first_child >= 0)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

/* Make the tenants of templates that have clients. */
static int make_each(yamldoc_node host, struct scenario_gate *g, struct weir_err *err)
{
	yamldoc_node map = yamldoc_get(host, "clients");
	size_t n = map.id && yamldoc_kind(map) == YAMLDOC_MAP ? yamldoc_map_size(map) : 0;
	const char **paths = calloc(n + 1, sizeof(*paths));
	struct weir_err why;
	int r = paths ? 0 : no_memory(err);

	for (size_t i = 0; r == 0 && i < n; i++)
		yamldoc_map_at(map, i, &paths[i]);
	if (r == 0 && policy_each_make(g->whole, paths, n, &why) < 0)
		r = yamldoc_error(map, err, "%s", why.text);
	free(paths);
	return r;
}

static int read_clients(yamldoc_node host, struct scenario_gate *g, struct weir_err *err)
{
	yamldoc_node map = yamldoc_get(host, "clients"), only = yamldoc_get(host, "workloads");
	int r = 0;

	if (only.id && map.id)
		return yamldoc_error(host, err, "give 'clients' or 'workloads', not both");
	if (only.id && find_only(g->policy) < 0)
		return yamldoc_error(only, err,
			"there are several tenants: give 'clients', as in {prod/db: [...]}");
	if (only.id)
		return add_clients(g, (size_t)find_only(g->policy), only, err);
	if (map.id && (r = yamldoc_map(map, NULL, err)))
		return r;
	for (size_t i = 0; r == 0 && i < yamldoc_map_size(map); i++) {
		const char *path;
		yamldoc_node list = yamldoc_map_at(map, i, &path);
		int tenant = weir_policy_find(g->policy, path);

		if (tenant < 0)
			return yamldoc_error(list, err,
				"the policy has no tenant '%s' (a path is written 'parent/child')",
				path);
		if (g->policy->tenants[tenant].first_child >= 0)
			return yamldoc_error(list, err,
				"'%s' has children, and only tenants without have clients", path);
		r = add_clients(g, (size_t)tenant, list, err);
	}
	return r;
}

/* ---- hosts and devices */

void scenario_gate_clear(struct scenario_gate *g)
{
	for (size_t i = 0; g->tenants && i < g->policy->n_tenants; i++)
		scenario_workloads_free(g->tenants[i].workloads, g->tenants[i].n_workloads);
	free(g->tenants);
	free(g->estimate);
	weir_policy_free(g->whole);
	yamldoc_free(g->doc);
}

int scenario_host_policy_read(
	yamldoc_node host, struct scenario *s, struct scenario_group *g, struct weir_err *err)
{
	yamldoc_node shared = yamldoc_get(yamldoc_root(s->doc), "policy");
	const struct scenario_station *device = &s->stations[g->device];
	int r = read_policy(
		s, shared, yamldoc_get(host, "policy"), host, device->name, true, &g->gate, err);

	if (r)
		return r;
	g->gate.policy = g->gate.whole;
	if ((r = make_each(host, &g->gate, err)) ||
		(r = make_gate(g->gate.policy, device, &g->gate, err)) ||
		(r = make_tenants(&g->gate, err)))
		return r;
	return read_clients(host, &g->gate, err);
}

int scenario_device_policy_read(
	yamldoc_node map, struct scenario *s, struct scenario_station *device, struct weir_err *err)
{
	static const yamldoc_node none;
	yamldoc_node n = yamldoc_get(map, "policy");
	struct scenario_gate *g;
	int r;

	if (!n.id)
		return 0;
	device->gate = g = calloc(1, sizeof(*g));
	if (!g)
		return no_memory(err);
	r = read_policy(s, none, n, map, device->name, false, g, err);
	if (r)
		return r;
	if (g->whole->n_tenants)
		g->policy = g->whole;
	r = make_gate(g->whole, device, g, err);
	return r == 0 && g->policy ? make_tenants(g, err) : r;
}
