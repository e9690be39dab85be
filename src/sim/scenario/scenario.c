/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario: what all readers share; devices and links; the end of a scenario; its files. */
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include "sim/network/network.h"
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- shared by all readers */

bool scenario_fits(const char *glob, const char *name)
{
	return fnmatch(glob, name, 0) == 0;
}

/* Names are part of paths and of the names of metrics. */
static int check_name(yamldoc_node name, struct weir_err *err)
{
	const char *text = yamldoc_text(name);

	for (const char *p = text; *p; p++) {
		if (!isalnum((unsigned char)*p) && *p != '-' && *p != '_')
			return yamldoc_error(name, err,
				"'%s': a name is made of letters, digits, '-' and '_'", text);
	}
	return text[0] ? 0 : yamldoc_error(name, err, "a name must not be empty");
}

int scenario_name_read(yamldoc_node map, const char **ret, struct weir_err *err)
{
	const char *name;
	int r = yamldoc_string(map, "name", &name, err);

	if (r == -ENOENT)
		return yamldoc_error(map, err, "needs a 'name'");
	if (r || (r = check_name(yamldoc_get(map, "name"), err)))
		return r;
	*ret = name;
	return 0;
}

int scenario_refused(yamldoc_node map, const char *text, struct weir_err *err)
{
	size_t names = strcspn(text, ":");
	const char *why = text + names + strspn(text + names, ": ");

	for (size_t from = 0, len; from < names; from += len + strspn(text + from + len, ", ")) {
		char key[32];

		len = strcspn(text + from, ",:");
		snprintf(key, sizeof(key), "%.*s", (int)len, text + from);
		if (yamldoc_get(map, key).id)
			return yamldoc_error(yamldoc_get(map, key), err, "%s", why);
	}
	return yamldoc_error(map, err, "%s", text);
}

int scenario_keys(
	yamldoc_node map, const char *const *a, const char *const *b, struct weir_err *err)
{
	const char *all[64];
	size_t n = 0;

	while (*a)
		all[n++] = *a++;
	while (*b)
		all[n++] = *b++;
	all[n] = NULL;
	return yamldoc_map(map, all, err);
}

int scenario_list(yamldoc_node root, const char *key, size_t *ret_n, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(root, key);
	int r;

	*ret_n = 0;
	if (!list.id)
		return 0;
	if ((r = yamldoc_list(list, err)))
		return r;
	*ret_n = yamldoc_size(list);
	return 0;
}

/* ---- devices and links */

int scenario_station_find(const struct scenario *s, const char *name, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		if (strcmp(s->stations[i].name, name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

int scenario_stations_read(yamldoc_node root, struct scenario *s, struct weir_err *err)
{
	size_t devices, links;
	int r;

	if ((r = scenario_list(root, "devices", &devices, err)) ||
		(r = scenario_list(root, "links", &links, err)))
		return r;
	if (devices == 0)
		return yamldoc_error(root, err, "a scenario needs 'devices'");
	s->stations = calloc(devices + links, sizeof(*s->stations));
	if (!s->stations)
		return no_memory(err);
	s->n_devices = (uint32_t)devices;
	for (size_t i = 0; i < devices + links; i++) {
		bool link = i >= devices;
		yamldoc_node list = yamldoc_get(root, link ? "links" : "devices");
		yamldoc_node map = yamldoc_at(list, link ? i - devices : i);

		s->n_stations = (uint32_t)i + 1;
		if ((r = scenario_station_read(map, link, &s->stations[i], err)) ||
			(r = scenario_device_policy_read(map, s, &s->stations[i], err)))
			return r;
		if (scenario_station_find(s, s->stations[i].name, 0, (uint32_t)i) >= 0)
			return yamldoc_error(map, err, "two devices or links are named '%s'",
				s->stations[i].name);
	}
	return 0;
}

/* ---- the end, and the files that a scenario names */

void scenario_free(struct scenario *s)
{
	if (!s)
		return;
	scenario_moments_free(s);
	for (uint32_t i = 0; i < s->n_groups; i++)
		scenario_gate_clear(&s->groups[i].gate);
	for (uint32_t i = 0; i < s->n_stations; i++) {
		if (s->stations[i].gate)
			scenario_gate_clear(s->stations[i].gate);
		free(s->stations[i].gate);
	}
	free(s->groups);
	free(s->stations);
	free(s->hosts);
	free(s->controllers);
	free(s->cluster);
	sim_network_config_free(s->network);
	free(s->network);
	free(s->systems);
	yamldoc_free(s->doc);
	free(s->names);
	free(s->file);
	free(s);
}

static int load_profile(
	struct scenario_gate *g, scenario_read *read, void *arg, struct weir_err *err)
{
	const char *path = g->resource.lab.profile;
	struct weir_err why = {""};
	char *text;
	size_t len;
	int r;

	if (!path || g->estimate)
		return 0;
	g->estimate = malloc(sizeof(*g->estimate));
	if (!g->estimate)
		return no_memory(err);
	r = read(path, arg, &text, &len, &why);
	if (r == 0) {
		r = estimate_read(text, len, path, g->estimate, &why);
		free(text);
	}
	if (r) {
		free(g->estimate);
		g->estimate = NULL;
		return weir_err_at(err, r, g->resource.lab.at, "%s", why.text);
	}
	return 0;
}

int scenario_load(struct scenario *s, scenario_read *read, void *arg, struct weir_err *err)
{
	s->read = read;
	s->read_arg = arg;
	for (uint32_t i = 0; i < s->n_groups; i++) {
		struct scenario_gate *g = &s->groups[i].gate;
		int r = load_profile(g, read, arg, err);

		if (r)
			return r;
		for (size_t t = 0; t < g->policy->n_tenants; t++) {
			for (size_t w = 0; w < g->tenants[t].n_workloads; w++) {
				struct scenario_workload *load = &g->tenants[t].workloads[w];
				r = load->folder ? scenario_traces_draw(load, s->groups[i].count,
							   s->seed, read, arg, err)
						 : scenario_workload_load(load, read, arg, err);
				if (r)
					return r;
			}
		}
	}
	for (uint32_t i = 0; i < s->n_stations; i++) {
		int r = s->stations[i].gate ? load_profile(s->stations[i].gate, read, arg, err) : 0;

		if (r)
			return r;
	}
	return 0;
}
