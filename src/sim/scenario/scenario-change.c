/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario-change: the `at:` list of changes during a run. */
#include "base/no-memory.h"
#include "policy/impl.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const gate_change_keys[] = {"depth", "run", "run_distance", "credit", NULL};
static const char *const tenant_change_keys[] = {
	"weight", "min", "max", "burst", "slo", "lab", NULL};

/* Read a resource's keys with the policy's readers. */
static void read_resource(struct policy_reading *r, yamldoc_node map, void *to)
{
	yamldoc_node depth = yamldoc_get(map, "depth");
	bool both = yamldoc_kind(depth) == YAMLDOC_MAP;
	struct scenario_gate *g = to;

	policy_resource_read_depth(r, map, &g->resource);
	policy_resource_read_runs(r, map, &g->resource);
	weir_policy_gate(&g->resource, &g->config);
	if (depth.id && (!both || yamldoc_has(depth, "requests")))
		g->given |= SCENARIO_GATE_WINDOW;
	if (depth.id && both && yamldoc_has(depth, "bytes"))
		g->given |= SCENARIO_GATE_WINDOW_BYTES;
	if (yamldoc_has(map, "run"))
		g->given |= SCENARIO_GATE_RUN;
	if (yamldoc_has(map, "run_distance"))
		g->given |= SCENARIO_GATE_DISTANCE;
	if (yamldoc_has(map, "credit"))
		g->given |= SCENARIO_GATE_CREDIT;
	if (g->given & SCENARIO_GATE_WINDOW && g->resource.depth == 0)
		policy_refuse(r, depth, "must be a number in a change, and not auto");
}

static int read_gate(yamldoc_node map, struct scenario_gate *g, struct weir_err *err)
{
	g->resource.cost = g->config.cost;
	return policy_part_read(read_resource, map, g, err);
}

/* Read a tenant's keys with the policy's readers. */
static void read_limits(struct policy_reading *r, yamldoc_node map, void *to)
{
	yamldoc_node min = yamldoc_get(map, "min"), max = yamldoc_get(map, "max"),
		     burst = yamldoc_get(map, "burst");
	struct weir_tenant tenant = {.weight = 1};
	struct scenario_knobs *k = to;

	policy_tenant_read_weight(r, map, &tenant.weight);
	policy_plan_read_slo(r, yamldoc_get(map, "slo"), &tenant);
	if (tenant.slo_percentile > 0)
		k->given |= SCENARIO_SLO;
	k->slo_percentile = tenant.slo_percentile;
	k->slo_latency = tenant.slo_latency;
	if (yamldoc_get(map, "weight").id)
		k->given |= SCENARIO_WEIGHT;
	k->weight = tenant.weight;
	if (min.id && policy_limit_read(r, min, "min", k->min, &k->n_min))
		k->given |= SCENARIO_MIN;
	if (max.id && policy_limit_read(r, max, "max", k->max, &k->n_max))
		k->given |= SCENARIO_MAX;
	if (burst.id && max.id)
		policy_limit_read_bursts(r, burst, k->max, k->n_max);
	else if (burst.id)
		policy_refuse(r, burst, "needs a 'max' beside it");
	for (unsigned i = 0; i < WEIR_LIMITS; i++) /* places are in the policy's memory */
		k->min[i].at = k->max[i].at = (struct weir_place){0};
}

static int read_knobs(yamldoc_node map, struct scenario_knobs *ret, struct weir_err *err)
{
	yamldoc_node lab = yamldoc_get(map, "lab");
	int r = policy_part_read(read_limits, map, ret, err);

	if (r == 0)
		r = lab.id ? policy_lab_tenant_read(lab, true, &ret->lab, err) : 0;
	ret->given |= ret->lab.given;
	return r;
}

/* Split "h1/prod/db" into where, tenant and, with `tail`, the last part. The parts belong to the change. */
static int split_target(yamldoc_node n, bool tail, struct scenario_change *c, struct weir_err *err)
{
	const char *text = yamldoc_text(n);
	char *copy, *slash, *last;

	if (!text || !(slash = strchr(text, '/')) || slash == text || !slash[1])
		return yamldoc_error(n, err, "must be HOST/TENANT%s, as in 'h1/vm1%s'",
			tail ? "/WORKLOAD" : "", tail ? "/w1" : "");
	copy = strdup(text);
	if (!copy)
		return no_memory(err);
	c->where = copy;
	slash = strchr(copy, '/');
	*slash = '\0';
	c->tenant = slash + 1;
	if (!tail)
		return 0;
	last = strrchr(slash + 1, '/');
	if (!last || !last[1])
		return yamldoc_error(n, err, "must be HOST/TENANT/WORKLOAD, as in 'h1/vm1/w1'");
	*last = '\0';
	c->workload = last + 1;
	return 0;
}

static int read_tenant_change(yamldoc_node map, struct scenario_change *c, struct weir_err *err)
{
	static const char *const more[] = {"tenant", "device_tenant", NULL};
	yamldoc_node target = yamldoc_get(map, "tenant");
	int r;

	c->target = SCENARIO_ON_TENANT;
	if (!target.id) {
		target = yamldoc_get(map, "device_tenant");
		c->at_device = true;
	}
	if ((r = scenario_keys(map, more, tenant_change_keys, err)) ||
		(r = split_target(target, false, c, err)) || (r = read_knobs(map, &c->knobs, err)))
		return r;
	if (!c->knobs.given)
		return yamldoc_error(map, err, "changes nothing: give weight, max, lab …");
	if (c->at_device && c->knobs.given & SCENARIO_SLO)
		return yamldoc_error(yamldoc_get(map, "slo"), err, "is that of a host's tenant");
	return 0;
}

static int read_where(
	yamldoc_node map, const char *key, struct scenario_change *c, struct weir_err *err)
{
	const char *text;
	int r = yamldoc_string(map, key, &text, err);

	if (r)
		return r;
	c->where = strdup(text);
	return c->where ? 0 : no_memory(err);
}

static int read_host_change(
	yamldoc_node map, const struct scenario *s, struct scenario_change *c, struct weir_err *err)
{
	static const char *const more[] = {"host", NULL};
	int r;

	c->target = SCENARIO_ON_HOST;
	if ((r = scenario_keys(map, more, gate_change_keys, err)) ||
		(r = read_where(map, "host", c, err)))
		return r;
	for (uint32_t i = 0; i < s->n_hosts; i++) { /* `credit` is in the unit of the gate's cost */
		if (scenario_fits(c->where, s->hosts[i].name))
			c->gate.config.cost = s->groups[s->hosts[i].group].gate.config.cost;
	}
	if ((r = read_gate(map, &c->gate, err)))
		return r;
	if (!c->gate.given)
		return yamldoc_error(
			map, err, "changes nothing: give depth, run, run_distance or credit");
	return 0;
}

static int read_device_change(
	yamldoc_node map, const struct scenario *s, struct scenario_change *c, struct weir_err *err)
{
	static const char *const more[] = {"device", "link", "rate", NULL};
	const char *key = yamldoc_get(map, "device").id ? "device" : "link";
	struct weir_rate rate = {0, WEIR_UNIT_REQUESTS};
	int r;

	c->target = SCENARIO_ON_DEVICE;
	c->on_link = key[0] == 'l';
	if ((r = scenario_keys(map, more, gate_change_keys, err)) ||
		(r = read_where(map, key, c, err)))
		return r;
	for (uint32_t i = 0; i < s->n_devices; i++) {
		if (s->stations[i].gate && scenario_fits(c->where, s->stations[i].name))
			c->gate.config.cost = s->stations[i].gate->config.cost;
	}
	if ((r = read_gate(map, &c->gate, err)) ||
		(r = yamldoc_optional(yamldoc_rate(map, "rate", &rate, err))))
		return r;
	if (yamldoc_get(map, "rate").id) {
		enum weir_unit unit = c->on_link ? WEIR_UNIT_BYTES : WEIR_UNIT_REQUESTS;
		if (rate.per_second <= 0 || rate.unit != unit)
			return yamldoc_error(yamldoc_get(map, "rate"), err,
				"must be more than 0; a server's in iops, a link's in bytes or "
				"bits "
				"per second");
	}
	c->rate = rate.per_second;
	if (!c->gate.given && c->rate <= 0)
		return yamldoc_error(map, err, "changes nothing: give rate, or depth …");
	return 0;
}

static int read_workload_change(yamldoc_node map, struct scenario_change *c, struct weir_err *err)
{
	static const char *const keys[] = {"workload", "run", NULL};
	int r;

	c->target = SCENARIO_ON_WORKLOAD;
	if ((r = yamldoc_map(map, keys, err)) ||
		(r = split_target(yamldoc_get(map, "workload"), true, c, err)))
		return r;
	r = yamldoc_bool(map, "run", &c->run, err);
	return r == -ENOENT ? yamldoc_error(map, err, "needs 'run: true' or 'run: false'") : r;
}

static int read_plan_change(yamldoc_node map, struct scenario_change *c, struct weir_err *err)
{
	static const char *const keys[] = {"plan", NULL};
	const char *again = yamldoc_text(yamldoc_get(map, "plan"));
	int r = yamldoc_map(map, keys, err);

	c->target = SCENARIO_ON_PLAN;
	if (r == 0 && (!again || strcmp(again, "again") != 0))
		r = yamldoc_error(yamldoc_get(map, "plan"), err, "must be 'again'");
	return r;
}

/* ---- check that the targets exist */

static bool has_tenant(const struct scenario_gate *g, const struct scenario_change *c)
{
	for (size_t t = 0; g->policy && t < g->policy->n_tenants; t++) {
		const struct scenario_tenant *st = &g->tenants[t];
		if (!scenario_fits(c->tenant, g->policy->tenants[t].path))
			continue;
		if (c->target == SCENARIO_ON_TENANT && c->knobs.given & SCENARIO_SLO &&
			g->policy->tenants[t].slo_percentile <= 0)
			continue; /* an slo can change, and not begin */
		if (c->target == SCENARIO_ON_TENANT)
			return true;
		for (size_t w = 0; w < st->n_workloads; w++) {
			if (scenario_fits(c->workload, st->workloads[w].name))
				return true;
		}
	}
	return false;
}

static bool has_host(const struct scenario *s, const struct scenario_change *c)
{
	for (uint32_t i = 0; i < s->n_hosts; i++) {
		if (!scenario_fits(c->where, s->hosts[i].name))
			continue;
		if (c->target == SCENARIO_ON_HOST ||
			has_tenant(&s->groups[s->hosts[i].group].gate, c))
			return true;
	}
	return false;
}

/* Report a target that does not exist. Names may be globs, so there is no nearest one to suggest. */
static int no_target(yamldoc_node map, const struct scenario_change *c, struct weir_err *err)
{
	static const char *const names[] = {[SCENARIO_ON_TENANT] = "tenant",
		[SCENARIO_ON_HOST] = "host",
		[SCENARIO_ON_DEVICE] = "device",
		[SCENARIO_ON_WORKLOAD] = "workload"};
	const char *key = c->at_device ? "device_tenant" : c->on_link ? "link" : names[c->target];

	yamldoc_node n = yamldoc_get(map, key);

	return yamldoc_error(n, err, "there is no %s '%s'%s", c->at_device ? "tenant" : key,
		yamldoc_text(n),
		c->at_device                    ? " at a device"
		: c->knobs.given & SCENARIO_SLO ? " with an slo"
						: "");
}

static int check_device(yamldoc_node map, const struct scenario *s, const struct scenario_change *c,
	struct weir_err *err)
{
	bool found = false;

	for (uint32_t i = 0; i < s->n_stations; i++) {
		const struct scenario_station *st = &s->stations[i];
		if (!scenario_fits(c->where, st->name) || c->on_link != (i >= s->n_devices))
			continue;
		if (c->target == SCENARIO_ON_TENANT) {
			found |= st->gate && has_tenant(st->gate, c);
			continue;
		}
		found = true;
		if (c->rate > 0 && !station_has_rate(st->config.kind))
			return yamldoc_error(yamldoc_get(map, "rate"), err,
				"'%s' has no rate; only servers and links do", st->name);
		if (c->gate.given && !st->gate)
			return yamldoc_error(map, err, "'%s' has no gate of its own", st->name);
	}
	return found ? 0 : no_target(map, c, err);
}

static int read_change(
	yamldoc_node map, const struct scenario *s, struct scenario_change *c, struct weir_err *err)
{
	int r;

	c->at = yamldoc_place(map);
	c->node = map;
	if (yamldoc_kind(map) != YAMLDOC_MAP)
		return yamldoc_error(map, err, "must be a map");
	if ((r = scenario_moved_check(map, SCENARIO_CHANGE, err)))
		return r;
	if (yamldoc_get(map, "tenant").id || yamldoc_get(map, "device_tenant").id)
		r = read_tenant_change(map, c, err);
	else if (yamldoc_get(map, "host").id)
		r = read_host_change(map, s, c, err);
	else if (yamldoc_get(map, "device").id || yamldoc_get(map, "link").id)
		r = read_device_change(map, s, c, err);
	else if (yamldoc_get(map, "workload").id)
		r = read_workload_change(map, c, err);
	else if (yamldoc_get(map, "plan").id)
		return read_plan_change(map, c, err);
	else
		return yamldoc_error(map, err,
			"must name what to change: tenant, device_tenant, host, device, link, "
			"workload or plan");
	if (r)
		return r;
	if (c->target == SCENARIO_ON_DEVICE || c->at_device)
		return check_device(map, s, c, err);
	return has_host(s, c) ? 0 : no_target(map, c, err);
}

static int read_moment(
	yamldoc_node map, const struct scenario *s, struct scenario_moment *m, struct weir_err *err)
{
	static const char *const keys[] = {"time", "set", NULL};
	yamldoc_node set = yamldoc_get(map, "set");
	bool list = yamldoc_kind(set) == YAMLDOC_LIST;
	size_t n = list ? yamldoc_size(set) : 1;
	int r;

	if ((r = yamldoc_map(map, keys, err)))
		return r;
	r = yamldoc_time(map, "time", &m->time, err);
	if (r)
		return r == -ENOENT ? yamldoc_error(map, err, "needs a 'time'") : r;
	if (m->time > s->duration)
		return yamldoc_error(yamldoc_get(map, "time"), err, "is beyond the duration");
	if (!set.id)
		return yamldoc_error(map, err, "needs a 'set'");
	m->changes = calloc(n ? n : 1, sizeof(*m->changes));
	if (!m->changes)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		m->n = i + 1;
		if ((r = read_change(list ? yamldoc_at(set, i) : set, s, &m->changes[i], err)))
			return r;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct scenario_moment *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

int scenario_moments_read(yamldoc_node root, struct scenario *s, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(root, "at");
	bool many = yamldoc_kind(list) == YAMLDOC_LIST;
	size_t n = !list.id ? 0 : many ? yamldoc_size(list) : 1;
	int r;

	s->moments = calloc(n ? n : 1, sizeof(*s->moments));
	if (!s->moments)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		s->n_moments = i + 1;
		if ((r = read_moment(many ? yamldoc_at(list, i) : list, s, &s->moments[i], err)))
			return r;
		for (size_t j = 0; j < i; j++) {
			if (s->moments[j].time == s->moments[i].time)
				return yamldoc_error(yamldoc_at(list, i), err,
					"two entries for one time; put both under one 'set'");
		}
	}
	qsort(s->moments, n, sizeof(*s->moments), by_time);
	return 0;
}

void scenario_moments_free(struct scenario *s)
{
	for (size_t i = 0; i < s->n_moments; i++) {
		for (size_t j = 0; j < s->moments[i].n; j++)
			free((char *)s->moments[i].changes[j].where);
		free(s->moments[i].changes);
	}
	free(s->moments);
}
