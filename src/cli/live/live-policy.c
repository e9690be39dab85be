/* SPDX-License-Identifier: BSD-3-Clause */
/* live-policy: write the policy of each gateway to a file in the scratch folder. */
#include "cli/common/files.h"
#include "cli/live/live-impl.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Keys of a host's gate, and of a device's own. Keys that are not copied are written from the
 * parsed scenario, or checked by live-plan.c.
 */
static const struct live_key gate_keys[] = {{"name", NULL}, {"count", NULL}, {"device", NULL},
	{"retry", NULL}, {"workloads", NULL}, {"tenants", NULL}, {"window", NULL}, {"order", NULL},
	{"per", NULL}, {"io_unit", NULL}, {"cost", "cost"}, {"run", "run"},
	{"distance", "run_distance"}, {"credit", "credit"}, {"flush_cost", "flush_cost"},
	{"trim_cost", "trim_cost"}, {NULL, NULL}};
static const struct live_key tenant_keys[] = {{"children", NULL}, {"match", NULL}, {"for", NULL},
	{"workloads", NULL}, {"name", "name"}, {"weight", "weight"}, {"min", "min"}, {"max", "max"},
	{"burst", "burst"}, {"slo", "slo"}, {NULL, NULL}};

/* ---- the model behind a device's gateway, with the scenario's keys */

static const char *model_kind(yamldoc_node device)
{
	const char *kind = yamldoc_text(yamldoc_get(device, "kind"));
	const char *preset = yamldoc_text(yamldoc_get(device, "preset"));

	if (preset && strcmp(preset, "cx3-small") == 0)
		return "array-small";
	return preset && strcmp(preset, "10k") == 0 ? "disk-10k" : kind;
}

static void put_model(FILE *f, const struct live *l, const struct live_server *v)
{
	static const char *const not [] = {"name", "kind", "preset", "gate", "capacity", NULL};
	yamldoc_node device = live_text_device(l->s, v->device);

	fprintf(f, "model:%s", model_kind(device));
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

const char *live_depth(const struct live_server *v, char text[LIVE_DEPTH])
{
	if (v->depth_bytes)
		snprintf(text, LIVE_DEPTH, "{requests: %.17g, bytes: %" PRIu64 " B}", v->depth,
			v->depth_bytes);
	else
		snprintf(text, LIVE_DEPTH, "%.17g", v->depth);
	return text;
}

static int put_resource(
	FILE *f, const struct live *l, const struct live_server *v, struct weir_err *err)
{
	const struct scenario_station *st = &l->s->stations[v->device];
	const struct live_server *up = &l->servers[v->device];
	const struct scenario_gate *g =
		v->host < 0 ? st->gate : &l->s->groups[l->s->hosts[v->host].group].gate;
	yamldoc_node map = v->host < 0 ? yamldoc_get(live_text_device(l->s, v->device), "gate")
				       : live_text_host(l->s, l->s->hosts[v->host].group);
	char depth[LIVE_DEPTH];
	int r;

	fprintf(f, "resources:\n  - {name: \"%s\", back: \"", st->name);
	if (v->host < 0)
		put_model(f, l, v);
	else
		fprintf(f, "nbd+unix:///%s?socket=%s", st->gate ? v->name : st->name, up->socket);
	fprintf(f, "\", depth: %s, ", live_depth(v, depth));
	if (g && g->resource.io_unit)
		fprintf(f, "io_unit: %" PRIu64 " B, ", (uint64_t)g->resource.io_unit);
	else
		fputs("io_unit: 2 GiB, ", f); /* the largest: each request counts one */
	r = live_text_keys(f, map, gate_keys, err);
	fprintf(f, "%s}\n", v->keys ? v->keys : "");
	return r;
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
			put_export(f, l->servers[i].name, l->servers[i].offset, l->servers[i].size);
}

/* ---- tenants */

/*
 * Write the match of a leaf of this server's policy: the exports of the tenants that are counted
 * there; at a device also those of the hosts that it stands for.
 */
static void put_match(FILE *f, const struct live *l, size_t server, const char *path)
{
	const struct live_server *v = &l->servers[server];
	const struct scenario_gate *g = l->s->stations[v->device].gate;
	size_t n = 0;

	for (size_t i = 0; i < l->n_tenants; i++)
		if (l->tenants[i].server == server && l->tenants[i].size &&
			strcmp(l->tenants[i].server_path, path) == 0)
			fprintf(f, "%s{export: \"%s\"}, ", n++ ? "" : "match: [",
				l->tenants[i].export_);
	for (size_t i = 0; v->host < 0 && i < l->n_tenants; i++) {
		const struct live_tenant *t = &l->tenants[i];
		const char *host = l->s->hosts[t->host].name;
		int leaf;

		if (l->host_server[t->host] < 0 || l->servers[t->server].device != v->device ||
			(i && l->tenants[i - 1].host == t->host))
			continue; /* once per host: all its tenants are one here */
		leaf = scenario_leaf_for(g, host, t->path);
		if (strcmp(leaf < 0 ? host : g->policy->tenants[leaf].path, path) == 0)
			fprintf(f, "%s{export: \"%s\"}, ", n++ ? "" : "match: [", host);
	}
	fputs(n ? "]" : "", f);
}

static int put_tenants(FILE *f, const struct live *l, size_t server, yamldoc_node list,
	const char *above, struct weir_err *err)
{
	int r = 0;

	fputs("[", f);
	for (size_t i = 0; r == 0 && i < yamldoc_size(list); i++) {
		yamldoc_node map = yamldoc_at(list, i), children = yamldoc_get(map, "children");
		char path[1024];

		snprintf(path, sizeof(path), "%s%s%s", above, *above ? "/" : "",
			yamldoc_text(yamldoc_get(map, "name")));
		fputs(i ? ",\n  {" : "{", f);
		r = live_text_keys(f, map, tenant_keys, err);
		if (yamldoc_size(children)) {
			fputs("children: ", f);
			r = r ? r : put_tenants(f, l, server, children, path, err);
		} else {
			put_match(f, l, server, path);
		}
		fputs("}", f);
	}
	fputs("]", f);
	return r;
}

/*
 * Write the tenants of a gate without a list of tenants: one for each host, or for each tenant of
 * each host.
 */
static void put_default_tenants(FILE *f, const struct live *l, size_t server)
{
	bool per_host = l->s->stations[l->servers[server].device].gate->per == SCENARIO_PER_HOST;

	fputs("[", f);
	for (size_t i = 0; i < l->n_tenants; i++) {
		const struct live_tenant *t = &l->tenants[i];
		const char *host = l->s->hosts[t->host].name;
		bool direct = l->host_server[t->host] < 0;
		const char *path = direct && !per_host ? t->server_path : host;

		if (l->servers[t->server].device != l->servers[server].device ||
			(!direct && i && l->tenants[i - 1].host == t->host))
			continue;
		fprintf(f, "{name: \"%s\", ", path);
		put_match(f, l, server, path);
		fputs("}, ", f);
	}
	fputs("]", f);
}

static int put_tree(FILE *f, const struct live *l, size_t server, struct weir_err *err)
{
	const struct live_server *v = &l->servers[server];
	yamldoc_node map = v->host < 0 ? yamldoc_get(live_text_device(l->s, v->device), "gate")
				       : live_text_host(l->s, l->s->hosts[v->host].group);
	yamldoc_node list = yamldoc_get(map, "tenants");
	int r = 0;

	if (v->host < 0 && !l->s->stations[v->device].gate)
		return 0; /* all clients are one tenant */
	fputs("tenants:\n  ", f);
	if (list.id) {
		r = put_tenants(f, l, server, list, "", err);
	} else if (v->host < 0) {
		put_default_tenants(f, l, server);
	} else {
		fputs("[{name: main, ", f);
		put_match(f, l, server, "main");
		fputs("}]", f);
	}
	fputs("\n", f);
	return r;
}

/* ---- the file */

static int put_policy(FILE *f, const struct live *l, size_t server, struct weir_err *err)
{
	const struct live_server *v = &l->servers[server];
	int r;

	fprintf(f, "listen: \"unix:%s\"\napi: \"unix:%s\"\nthreads: 1\nlog: warning\n%s", v->socket,
		v->api, v->top ? v->top : "");
	r = put_resource(f, l, v, err);
	put_exports(f, l, server);
	return r ? r : put_tree(f, l, server, err);
}

int live_policy_write(struct live *l, struct weir_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < l->n_servers; i++) {
		const char *path = l->servers[i].file;
		FILE *f;

		r = files_create(path, &f, err);
		if (r == 0)
			r = files_close(f, path, put_policy(f, l, i, err), err);
	}
	return r;
}
