/* SPDX-License-Identifier: BSD-3-Clause */
/* parse: the top level of a scenario file: which world it is for, and the controllers of hosts and devices. */
#include "base/no-memory.h"
#include "sim/cluster/cluster.h"
#include "sim/control/device.h"
#include "sim/control/hosts.h"
#include "sim/control/learner.h"
#include "sim/network/network.h"
#include "sim/run/systems.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
		/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each has its ops */
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
	if ((r = scenario_stations_read(root, s, err)) || (r = scenario_hosts_read(root, s, err)) ||
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
