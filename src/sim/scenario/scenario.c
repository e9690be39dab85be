/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario: the top level of a scenario file. */
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include "sim/cluster/cluster.h"
#include "sim/network/network.h"
#include "sim/systems.h"
#include "sim/control/controller.h"
#include "sim/control/device.h"
#include "sim/control/hosts.h"
#include "sim/control/learner.h"
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

static int read_stations(yamldoc_node root, struct scenario *s, struct weir_err *err)
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

/* ---- controllers */

/* Add the controller of a gate's resource. host: whose gate it is; UINT32_MAX: the device's, or that of several hosts. */
static void add_controller(struct scenario *s, const struct scenario_gate *g, uint32_t station,
	uint32_t host, const struct sim_controller_ops *ops)
{
	struct scenario_controller *c = &s->controllers[s->n_controllers++];

	*c = (struct scenario_controller){.name = g->resource.controller->name,
		.ops = ops,
		.period = g->whole->peers.period,
		.gate = g,
		.station = station,
		.host = host,
		.at = g->resource.at};
	if (ops->phases)
		c->period = c->period / ops->phases + !(c->period / ops->phases);
}

/* Add a controller that knows only its own gate, for each host of the group. */
static int add_host_controllers(struct scenario *s, uint32_t group, struct weir_err *err)
{
	const struct scenario_gate *g = &s->groups[group].gate;

	if (g->resource.controller->in_cluster)
		return weir_err_at(err, -EINVAL, g->resource.at,
			"'%s' is simulated by 'cluster:' only", g->resource.controller->name);
	for (uint32_t h = 0; h < s->n_hosts; h++)
		if (s->hosts[h].group == group)
			add_controller(s, g, s->groups[group].device, h, &device_controller);
	return 0;
}

/* Hosts in front of one device that hear each other have one controller, with the same settings. */
static int add_hosts_controller(struct scenario *s, uint32_t device, struct weir_err *err)
{
	const struct scenario_gate *first = NULL;

	for (uint32_t i = 0; i < s->n_groups; i++) {
		const struct scenario_gate *g = &s->groups[i].gate;

		if (s->groups[i].device != device || !g->resource.controller)
			continue;
		if (!g->resource.controller->has_peers) {
			int r = add_host_controllers(s, i, err);

			if (r)
				return r;
			continue;
		}
		if (!first)
			add_controller(s, first = g, device, UINT32_MAX, &hosts_controller);
		else if (first->resource.controller != g->resource.controller ||
			 first->whole->peers.period != g->whole->peers.period ||
			 first->resource.settings_len != g->resource.settings_len ||
			 memcmp(first->resource.settings, g->resource.settings,
				 g->resource.settings_len) != 0)
			return weir_err_at(err, -EINVAL, g->resource.at,
				"all hosts in front of '%s' that have a controller need the same "
				"one, with the same settings",
				s->stations[device].name);
	}
	return 0;
}

static int add_device_controller(struct scenario *s, uint32_t device, struct weir_err *err)
{
	const struct scenario_gate *g = s->stations[device].gate;
	const struct controller *c = g ? g->resource.controller : NULL;

	if (!c)
		return 0;
	if (c->has_peers || c->in_cluster)
		return weir_err_at(err, -EINVAL, g->resource.at,
			"'%s' cannot be the controller of a device's own gate", c->name);
	if (!g->policy)
		return weir_err_at(err, -EINVAL, g->resource.at,
			"'%s' needs 'tenants' in the device's policy", c->name);
	add_controller(s, g, device, UINT32_MAX, &device_controller);
	return 0;
}

static int find_controllers(struct scenario *s, struct weir_err *err)
{
	int r;

	s->controllers = calloc(3 * s->n_devices + s->n_hosts, sizeof(*s->controllers));
	if (!s->controllers)
		return no_memory(err);
	for (uint32_t i = 0; i < s->n_devices; i++)
		if ((r = add_hosts_controller(s, i, err)))
			return r;
	for (uint32_t i = 0; i < s->n_devices; i++)
		if ((r = add_device_controller(s, i, err)))
			return r;
	for (size_t i = 0; i < s->n_controllers; i++)
		if (s->controllers[i].ops->check &&
			(r = s->controllers[i].ops->check(s, &s->controllers[i], err)))
			return r;
	for (uint32_t i = 0; i < s->n_devices; i++) {
		const struct sim_controller_ops *ops = &learner_capacity;

		if (s->stations[i].capacity_auto)
			s->controllers[s->n_controllers++] =
				(struct scenario_controller){.name = ops->name,
					.ops = ops,
					.period = ops->period,
					.station = i,
					.at = s->stations[i].at};
	}
	return 0;
}

/* ---- the file */

static const char *const top_keys[] = {"name", "description", "seed", "duration", "warmup",
	"sample", "devices", "links", "hosts", "at", "cluster", "network", "systems", "policy",
	"messages", "faults", NULL};

static int read_top(yamldoc_node root, struct scenario *s, struct weir_err *err)
{
	int64_t seed = 1;
	int r;

	s->sample = WEIR_SEC;
	s->name = s->file;
	s->about = "";
	if ((r = scenario_moved_check(root, SCENARIO_TOP, err)) ||
		(r = yamldoc_map(root, top_keys, err)) ||
		(r = yamldoc_optional(yamldoc_string(root, "name", &s->name, err))) ||
		(r = yamldoc_optional(yamldoc_string(root, "description", &s->about, err))) ||
		(r = yamldoc_optional(yamldoc_int(root, "seed", 0, INT64_MAX, &seed, err))) ||
		(r = yamldoc_optional(yamldoc_time(root, "warmup", &s->warmup, err))) ||
		(r = yamldoc_optional(yamldoc_time(root, "sample", &s->sample, err))))
		return r;
	s->seed = (uint64_t)seed;
	r = yamldoc_time(root, "duration", &s->duration, err);
	if (r == -ENOENT)
		return yamldoc_error(root, err, "a scenario needs a 'duration', as in '60s'");
	if (r)
		return r;
	if (s->duration <= 0)
		return yamldoc_error(yamldoc_get(root, "duration"), err, "must be more than 0");
	if (s->warmup >= s->duration)
		return yamldoc_error(
			yamldoc_get(root, "warmup"), err, "must be less than the duration");
	if (s->sample && s->duration / s->sample > SCENARIO_SAMPLES)
		return yamldoc_error(yamldoc_get(root, "duration"), err,
			"has more than %d samples; give a longer 'sample', or 0s for none",
			SCENARIO_SAMPLES);
	return 0;
}

/* Read a scenario with `cluster:`, which has nothing else but names and times. */
static int read_cluster(yamldoc_node root, struct scenario *s, struct weir_err *err)
{
	static const char *const beside[] = {
		"name", "description", "seed", "duration", "cluster", NULL};
	int r = yamldoc_map(root, beside, err);

	if (r)
		return r;
	s->cluster = calloc(1, sizeof(*s->cluster));
	if (!s->cluster)
		return no_memory(err);
	s->run_cluster = sim_cluster_run;
	return sim_cluster_read(yamldoc_get(root, "cluster"), s->cluster, err);
}

static int read_network(yamldoc_node root, struct scenario *s, struct weir_err *err)
{
	static const char *const beside[] = {
		"name", "description", "seed", "duration", "network", NULL};
	int r = yamldoc_map(root, beside, err);

	if (r)
		return r;
	s->network = calloc(1, sizeof(*s->network));
	s->run_network = sim_network_run;
	return s->network ? sim_network_read(yamldoc_get(root, "network"), s->network, err)
			  : no_memory(err);
}

static int read_systems(yamldoc_node root, struct scenario *s, struct weir_err *err)
{
	static const char *const beside[] = {
		"name", "description", "seed", "duration", "systems", NULL};
	int r = yamldoc_map(root, beside, err);

	if (r)
		return r;
	s->systems = calloc(1, sizeof(*s->systems));
	return s->systems ? sim_systems_read(yamldoc_get(root, "systems"), s->systems, err)
			  : no_memory(err);
}

static int read_all(struct scenario *s, struct weir_err *err)
{
	yamldoc_node root = yamldoc_root(s->doc);
	int r;

	if ((r = read_top(root, s, err)))
		return r;
	if (yamldoc_kind(yamldoc_get(root, "cluster")) != YAMLDOC_NONE)
		return read_cluster(root, s, err);
	if (yamldoc_kind(yamldoc_get(root, "network")) != YAMLDOC_NONE)
		return read_network(root, s, err);
	if (yamldoc_kind(yamldoc_get(root, "systems")) != YAMLDOC_NONE)
		return read_systems(root, s, err);
	if ((r = read_stations(root, s, err)) || (r = scenario_hosts_read(root, s, err)) ||
		(r = scenario_leaves_check(s, err)) || (r = find_controllers(s, err)))
		return r;
	return scenario_moments_read(root, s, err);
}

int scenario_parse(const char *text, size_t len, const char *name,
	const struct scenario_set *overrides, size_t n_overrides, struct scenario **ret,
	struct weir_err *err)
{
	return scenario_parse_files(text, len, name, overrides, n_overrides, NULL, NULL, ret, err);
}

int scenario_parse_files(const char *text, size_t len, const char *name,
	const struct scenario_set *overrides, size_t n_overrides, weir_policy_reader *reader,
	void *reader_arg, struct scenario **ret, struct weir_err *err)
{
	struct scenario *s = calloc(1, sizeof(*s));
	char *edited = NULL;
	int r;

	if (!s || !(s->file = strdup(name))) {
		free(s);
		return no_memory(err);
	}
	s->reader = reader;
	s->reader_arg = reader_arg;
	r = scenario_override(text, len, s->file, overrides, n_overrides, &edited, &len, err);
	if (r == 0)
		r = yamldoc_parse(edited, len, s->file, &s->doc, err);
	free(edited);
	if (r == 0)
		r = read_all(s, err);
	if (r) {
		scenario_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

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
	if (s->systems) {
		s->systems->read = read;
		s->systems->arg = arg;
	}
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
