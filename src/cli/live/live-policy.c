/* SPDX-License-Identifier: BSD-3-Clause */
/* live-policy: write the policy of each gateway to a file in the scratch folder. */
#include "cli/live/live-impl.h"
#include <inttypes.h>
#include <string.h>

/* Return the gate of a server; NULL: a device without one. */
static const struct scenario_gate *gate_of(const struct live *l, const struct live_server *v)
{
	return v->host < 0 ? l->s->stations[v->device].gate
			   : &l->s->groups[l->s->hosts[v->host].group].gate;
}

/* ---- the model behind a device's gateway, with the scenario's keys */

static void put_model(FILE *f, const struct live *l, const struct live_server *v)
{
	static const char *const not [] = {"name", "kind", "policy", "capacity", NULL};
	yamldoc_node device = live_text_device(l->s, v->device);

	fprintf(f, "model:%s", yamldoc_text(yamldoc_get(device, "kind")));
	for (size_t i = 0; i < yamldoc_map_size(device); i++) {
		const char *key, *const *k = not ;
		yamldoc_node value = yamldoc_map_at(device, i, &key);

		while (*k && strcmp(*k, key) != 0)
			k++;
		if (!*k && yamldoc_text(value))
			fprintf(f, ",%s=%s", key, yamldoc_text(value));
	}
	fprintf(f, "+memory:%" PRIu64 " B", v->size ? v->size : 1 << 20);
}

/* ---- resources and exports */

/* Return the name of a host's export at a device with a gate: its first tenant's, since all its tenants are one there. */
static const char *live_host_export(const struct live *l, const struct live_server *v)
{
	for (size_t i = 0; i < l->n_tenants; i++)
		if (l->tenants[i].host == (uint32_t)v->host)
			return l->tenants[i].export_;
	return v->name;
}

const char *live_depth(const struct live_server *v, char text[LIVE_DEPTH])
{
	if (v->depth_bytes)
		snprintf(text, LIVE_DEPTH, "{requests: %.17g, bytes: %" PRIu64 " B}", v->depth,
			v->depth_bytes);
	else
		snprintf(text, LIVE_DEPTH, "%.17g", v->depth);
	return text;
}

/* Return the map of a server's resource in its policy; id 0: none. */
static yamldoc_node resource_node(const struct live *l, const struct live_server *v)
{
	const struct scenario_gate *g = gate_of(l, v);
	yamldoc_node list = g ? yamldoc_get(g->node, "resources") : (yamldoc_node){0};

	for (size_t i = 0; i < yamldoc_size(list); i++) {
		const char *name = yamldoc_text(yamldoc_get(yamldoc_at(list, i), "name"));

		if (name && strcmp(name, l->s->stations[v->device].name) == 0)
			return yamldoc_at(list, i);
	}
	return (yamldoc_node){0};
}

static void put_resource(FILE *f, const struct live *l, const struct live_server *v)
{
	static const char *const not [] = {"name", "back", "depth", "lab", NULL};
	const struct scenario_station *st = &l->s->stations[v->device];
	char depth[LIVE_DEPTH];

	fprintf(f, "resources:\n  - {name: \"%s\", back: \"", st->name);
	if (v->host < 0)
		put_model(f, l, v);
	else
		fprintf(f, "nbd+unix:///%s?socket=%s", st->gate ? live_host_export(l, v) : st->name,
			l->servers[v->device].socket);
	fprintf(f, "\", depth: %s, ", live_depth(v, depth));
	live_text_keys(f, resource_node(l, v), not );
	live_lab_put_resource(f, l, v, yamldoc_get(resource_node(l, v), "lab"));
	fputs("}\n", f);
}

static void put_export(FILE *f, const char *name, uint64_t offset, uint64_t size)
{
	fprintf(f, "  - {name: \"%s\", offset: %" PRIu64 " B, size: %" PRIu64 " B}\n", name, offset,
		size);
}

/*
 * Write the exports of the tenants that the server serves, and of the hosts in front of a device
 * that has a gate.
 */
static void put_exports(FILE *f, const struct live *l, size_t server)
{
	const struct live_server *v = &l->servers[server];

	if (v->host < 0 && !l->s->stations[v->device].gate)
		return; /* the whole resource, by its name */
	fputs("exports:\n", f);
	for (size_t i = 0; i < l->n_tenants; i++)
		if (l->tenants[i].server == server && l->tenants[i].size)
			put_export(
				f, l->tenants[i].export_, l->tenants[i].offset, l->tenants[i].size);
	for (size_t i = l->s->n_devices; v->host < 0 && i < l->n_servers; i++)
		if (l->servers[i].device == v->device)
			put_export(f, live_host_export(l, &l->servers[i]), l->servers[i].offset,
				l->servers[i].size);
}

/* ---- tenants */

/* Write the match of a leaf whose policy has none: the exports that belong to it. */
static void put_match(FILE *f, const struct live *l, size_t server, const char *path)
{
	const struct live_server *v = &l->servers[server];
	size_t n = 0;

	for (size_t i = 0; i < l->n_tenants; i++) {
		const struct live_tenant *t = &l->tenants[i];
		bool is_host = v->host < 0 && l->host_server[t->host] >= 0 &&
			       l->servers[t->server].device == v->device;

		if (is_host && i && l->tenants[i - 1].host == t->host)
			continue; /* once per host: all its tenants are one here */
		if (is_host ? strcmp(live_device_path(l, t), path) == 0
			    : t->server == server && t->size && strcmp(t->server_path, path) == 0)
			fprintf(f, "%s{export: \"%s\"}, ", n++ ? "" : "match: [", t->export_);
	}
	fputs(n ? "]" : "", f);
}

static void put_tenants(
	FILE *f, const struct live *l, size_t server, yamldoc_node list, const char *above)
{
	static const char *const not [] = {"children", "lab", NULL};

	fputs("[", f);
	for (size_t i = 0; i < yamldoc_size(list); i++) {
		yamldoc_node map = yamldoc_at(list, i), children = yamldoc_get(map, "children");
		char path[1024];

		snprintf(path, sizeof(path), "%s%s%s", above, *above ? "/" : "",
			yamldoc_text(yamldoc_get(map, "name")));
		fputs(i ? ",\n  {" : "{", f);
		live_text_keys(f, map, not );
		if (yamldoc_size(children)) {
			fputs("children: ", f);
			put_tenants(f, l, server, children, path);
		} else {
			live_lab_put_tenant(f, l, &l->servers[server], path);
			if (!yamldoc_has(map, "match"))
				put_match(f, l, server, path);
		}
		fputs("}", f);
	}
	fputs("]", f);
}

/* Write the tenants of a gate without a list of tenants: one for each host. */
static void put_default_tenants(FILE *f, const struct live *l, size_t server)
{
	fputs("[", f);
	for (size_t i = 0; i < l->n_tenants; i++) {
		const struct live_tenant *t = &l->tenants[i];

		if (l->servers[t->server].device != l->servers[server].device ||
			(i && l->tenants[i - 1].host == t->host))
			continue;
		fprintf(f, "{name: \"%s\", ", l->s->hosts[t->host].name);
		put_match(f, l, server, l->s->hosts[t->host].name);
		fputs("}, ", f);
	}
	fputs("]", f);
}

static void put_tree(FILE *f, const struct live *l, size_t server)
{
	const struct scenario_gate *g = gate_of(l, &l->servers[server]);

	if (!g)
		return; /* all clients are one tenant */
	fputs("tenants:\n  ", f);
	if (g->policy)
		put_tenants(f, l, server, yamldoc_get(g->node, "tenants"), "");
	else
		put_default_tenants(f, l, server);
	fputs("\n", f);
}

/* ---- the file */

static void put_policy(FILE *f, const struct live *l, size_t server)
{
	const struct live_server *v = &l->servers[server];

	fprintf(f, "listen: \"unix:%s\"\napi: \"unix:%s\"\nthreads: 1\nlog: warning\n%s", v->socket,
		v->api, v->top ? v->top : "");
	put_resource(f, l, v);
	put_exports(f, l, server);
	put_tree(f, l, server);
}

int live_policy_write(struct live *l, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_servers; i++) {
		const char *path = l->servers[i].file;
		FILE *f;

		r = live_lab_write_profile(l, &l->servers[i], err);
		if (r == 0)
			r = files_create(path, &f, err);
		if (r == 0) {
			put_policy(f, l, i);
			r = files_close(f, path, 0, err);
		}
	}
	return r;
}
