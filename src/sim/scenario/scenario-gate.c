/* SPDX-License-Identifier: BSD-3-Clause */
/* scenario-gate: the keys of a gate and of its tenants. */
#include "base/no-memory.h"
#include "sim/scenario/scenario.h"
#include "policy/impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest size or cost: the gate's buckets hold it, and a double holds it exactly. */
#define QUANTITY_MAX 4503599627370496.0

const char *const scenario_gate_keys[] = {"window", "order", "cost", "run", "distance", "credit",
	"io_unit", "flush_cost", "trim_cost", "estimate", "tenants", "per", NULL};
const char *const scenario_knob_keys[] = {"weight", "min", "max", "burst", "priority", "deadline",
	"profile", "rtokens", "ltokens", NULL};

static const char *const order_words[] = {"fair", "fifo", "edf", NULL};      /* enum weir_order */
static const char *const cost_words[] = {"requests", "bytes", "time", NULL}; /* enum weir_unit */
static const char *const per_words[] = {"host", "tenant", NULL}; /* enum scenario_per */

/* ---- the gate itself */

/* Read a quantity in a unit that another key determines. */
static int read_in_unit(
	yamldoc_node map, const char *key, enum weir_unit unit, double *ret, struct weir_err *err)
{
	uint64_t bytes;
	weir_time time;
	double found;
	int r;

	switch (unit) {
	case WEIR_UNIT_BYTES:
		r = yamldoc_size_of(map, key, &bytes, err);
		found = r ? 0 : (double)bytes;
		break;
	case WEIR_UNIT_TIME:
		r = yamldoc_time(map, key, &time, err);
		found = r ? 0 : (double)time;
		break;
	default:
		r = yamldoc_count(map, key, &found, err);
		break;
	}
	if (r)
		return r;
	if (found > QUANTITY_MAX)
		return yamldoc_error(yamldoc_get(map, key), err, "is too large");
	*ret = found;
	return 0;
}

static bool is_none(yamldoc_node map, const char *key)
{
	const char *text = yamldoc_text(yamldoc_get(map, key));

	return text && strcmp(text, "none") == 0;
}

static int read_window_requests(
	yamldoc_node map, const char *key, struct scenario_gate *g, struct weir_err *err)
{
	int r;

	if (is_none(map, key)) {
		g->config.window = POLICY_DEPTH_OPEN;
	} else {
		r = yamldoc_count(map, key, &g->config.window, err);
		if (r)
			return yamldoc_optional(r);
		if (g->config.window > POLICY_DEPTH_OPEN)
			g->config.window = POLICY_DEPTH_OPEN;
	}
	g->given |= SCENARIO_GATE_WINDOW;
	return 0;
}

static int read_window_bytes(yamldoc_node map, struct scenario_gate *g, struct weir_err *err)
{
	int r = is_none(map, "bytes") ? 0
				      : yamldoc_size_of(map, "bytes", &g->config.window_bytes, err);

	if (r)
		return yamldoc_optional(r);
	if ((double)g->config.window_bytes > QUANTITY_MAX)
		return yamldoc_error(yamldoc_get(map, "bytes"), err, "is too large");
	g->given |= SCENARIO_GATE_WINDOW_BYTES;
	return 0;
}

/* `window: 8`, or `window: {requests: 8, bytes: 512 KiB}`; each may be `none`. */
static int read_window(yamldoc_node map, struct scenario_gate *g, struct weir_err *err)
{
	static const char *const keys[] = {"requests", "bytes", NULL};
	yamldoc_node n = yamldoc_get(map, "window");
	int r;

	if (yamldoc_kind(n) != YAMLDOC_MAP)
		return read_window_requests(map, "window", g, err);
	if ((r = yamldoc_map(n, keys, err)) || (r = read_window_requests(n, "requests", g, err)))
		return r;
	return read_window_bytes(n, g, err);
}

static int read_runs(yamldoc_node map, struct scenario_gate *g, struct weir_err *err)
{
	int64_t run = 0;
	double credit = 0;
	int r;

	r = yamldoc_int(map, "run", 0, 1 << 20, &run, err);
	if (r == 0) {
		g->config.run = (uint32_t)run;
		g->given |= SCENARIO_GATE_RUN;
	}
	if (r && r != -ENOENT)
		return r;
	r = yamldoc_size_of(map, "distance", &g->config.run_distance, err);
	if (r == 0)
		g->given |= SCENARIO_GATE_DISTANCE;
	if (r && r != -ENOENT)
		return r;
	r = read_in_unit(map, "credit", g->config.cost, &credit, err);
	if (r == 0) {
		g->config.credit = (uint64_t)credit;
		g->given |= SCENARIO_GATE_CREDIT;
	}
	return yamldoc_optional(r);
}

static int read_costs(yamldoc_node map, struct scenario_gate *g, struct weir_err *err)
{
	uint64_t io_unit = 0;
	int r;

	/* Unlike a resource's default, a scenario's requests cost one each unless it says otherwise, as in the
	 * papers' figures. */
	g->resource.io_unit = 0;
	g->resource.flush_cost = g->resource.trim_cost = 1;
	if ((r = yamldoc_optional(yamldoc_size_of(map, "io_unit", &io_unit, err))) ||
		(r = yamldoc_optional(
			 yamldoc_count(map, "flush_cost", &g->resource.flush_cost, err))) ||
		(r = yamldoc_optional(yamldoc_count(map, "trim_cost", &g->resource.trim_cost, err))))
		return r;
	if (io_unit > UINT32_MAX)
		return yamldoc_error(yamldoc_get(map, "io_unit"), err, "must be at most 4 GiB");
	if (g->resource.flush_cost < 1 || g->resource.trim_cost < 1)
		return yamldoc_error(map, err, "flush_cost, trim_cost: at least 1");
	g->resource.io_unit = (uint32_t)io_unit;
	return 0;
}

static int read_estimate(yamldoc_node map, struct scenario_gate *g, struct weir_err *err)
{
	static const char *const keys[] = {"io", "rate", NULL};
	yamldoc_node n = yamldoc_get(map, "estimate");
	struct weir_rate rate = {0, WEIR_UNIT_BYTES};
	int r;

	g->resource.lab.estimate_io = WEIR_MS;
	if (!n.id)
		return 0;
	if ((r = yamldoc_map(n, keys, err)) ||
		(r = yamldoc_optional(yamldoc_time(n, "io", &g->resource.lab.estimate_io, err))) ||
		(r = yamldoc_optional(yamldoc_rate(n, "rate", &rate, err))))
		return r;
	if (rate.unit != WEIR_UNIT_BYTES)
		return yamldoc_error(
			yamldoc_get(n, "rate"), err, "must be bytes per second, as in '100 MB/s'");
	g->resource.lab.estimate_rate = rate.per_second;
	return 0;
}

int scenario_gate_read(yamldoc_node map, struct scenario_gate *ret, struct weir_err *err)
{
	int order = WEIR_FAIR, cost = (int)ret->config.cost, per = SCENARIO_PER_HOST, r;

	if ((r = yamldoc_optional(yamldoc_choice(map, "order", order_words, &order, err))) ||
		(r = yamldoc_optional(yamldoc_choice(map, "cost", cost_words, &cost, err))) ||
		(r = yamldoc_optional(yamldoc_choice(map, "per", per_words, &per, err))))
		return r;
	ret->config.order = (enum weir_order)order;
	ret->config.cost = (enum weir_unit)cost;
	ret->per = (enum scenario_per)per;
	if ((r = read_window(map, ret, err)) || (r = read_runs(map, ret, err)) ||
		(r = read_costs(map, ret, err)) || (r = read_estimate(map, ret, err)))
		return r;
	return 0;
}

/* ---- the knobs of a tenant */

/* Read a tenant's keys with the policy's readers. */
static void read_limits(struct policy_reading *r, yamldoc_node map, void *to)
{
	yamldoc_node min = yamldoc_get(map, "min"), max = yamldoc_get(map, "max"),
		     burst = yamldoc_get(map, "burst");
	struct weir_tenant tenant = {.weight = 1};
	struct scenario_knobs *k = to;

	policy_tenant_read_weight(r, map, &tenant);
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

int scenario_knobs_read(yamldoc_node map, struct scenario_knobs *ret, struct weir_err *err)
{
	yamldoc_node lab = yamldoc_get(map, "lab");
	int r = policy_part_read(read_limits, map, ret, err);

	if (r == 0)
		r = lab.id ? policy_lab_tenant_read(lab, true, &ret->lab, err)
			   : policy_lab_tenant_values(map, &ret->lab, err);
	ret->given |= ret->lab.given;
	return r;
}

/* ---- the tree */

static const char *const tenant_more[] = {
	"workloads", "priority", "deadline", "profile", "rtokens", "ltokens", NULL};
static const char *const server_more[] = {
	"for", "priority", "deadline", "profile", "rtokens", "ltokens", NULL};

static int read_for(yamldoc_node map, struct scenario_tenant *t, struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, "for");
	bool list = yamldoc_kind(n) == YAMLDOC_LIST;

	if (!n.id)
		return 0;
	t->n_for = list ? yamldoc_size(n) : 1;
	t->for_ = calloc(t->n_for ? t->n_for : 1, sizeof(*t->for_));
	if (!t->for_)
		return no_memory(err);
	for (size_t i = 0; i < t->n_for; i++) {
		yamldoc_node one = list ? yamldoc_at(n, i) : n;
		t->for_[i] = yamldoc_text(one);
		if (!t->for_[i])
			return yamldoc_error(one, err, "must be a name such as 'h1' or 'h*/vm1'");
	}
	return 0;
}

static int read_tenant(yamldoc_node map, int index, struct scenario_gate *g, struct weir_err *err)
{
	struct scenario_tenant *t = &g->tenants[index];
	const struct weir_tenant *w = &g->policy->tenants[index];
	yamldoc_node workloads = yamldoc_get(map, "workloads");
	int r;

	t->at = yamldoc_place(map);
	t->knobs.weight = w->weight;
	memcpy(t->knobs.min, w->min, sizeof(w->min));
	memcpy(t->knobs.max, w->max, sizeof(w->max));
	t->knobs.n_min = w->n_min;
	t->knobs.n_max = w->n_max;
	if ((r = scenario_name_check(yamldoc_get(map, "name"), err)) ||
		(r = policy_lab_tenant_values(map, &t->knobs.lab, err)) ||
		(r = read_for(map, t, err)))
		return r;
	t->knobs.given |= t->knobs.lab.given;
	if (w->first_child >= 0 && (workloads.id || t->n_for || t->knobs.given))
		return yamldoc_error(map, err,
			"'%s' has children: workloads, for, priority, deadline, profile and tokens "
			"belong to tenants without",
			w->path);
	if (workloads.id)
		return scenario_workloads_read(workloads, &t->workloads, &t->n_workloads, err);
	return 0;
}

/* Walk the lists as the policy did, and find each tenant by its path. */
static int read_tree(
	yamldoc_node list, const char *above, struct scenario_gate *g, struct weir_err *err)
{
	char path[512];
	int r;

	for (size_t i = 0; i < yamldoc_size(list); i++) {
		yamldoc_node map = yamldoc_at(list, i), children = yamldoc_get(map, "children");
		const char *name = yamldoc_text(yamldoc_get(map, "name"));
		int index;

		if ((size_t)snprintf(path, sizeof(path), "%s%s%s", above, above[0] ? "/" : "",
			    name) >= sizeof(path))
			return yamldoc_error(map, err, "the path of this tenant is too long");
		index = weir_policy_find(g->policy, path);
		if (index < 0)
			return yamldoc_error(map, err, "the policy has no tenant '%s'", path);
		if ((r = read_tenant(map, index, g, err)))
			return r;
		if (children.id && (r = read_tree(children, path, g, err)))
			return r;
	}
	return 0;
}

/* Read `workloads:` of the host itself: one tenant, "main". */
static int read_only_tenant(yamldoc_node host, struct scenario_gate *g, struct weir_err *err)
{
	static const char text[] = "tenants: [{name: main}]";
	int r = weir_policy_parse(text, sizeof(text) - 1, "built in", &g->policy, err);

	if (r)
		return r;
	g->tenants = calloc(1, sizeof(*g->tenants));
	if (!g->tenants)
		return no_memory(err);
	g->tenants[0].knobs = (struct scenario_knobs){.weight = 1, .lab = {.priority = -1}};
	g->tenants[0].at = yamldoc_place(host);
	return scenario_workloads_read(yamldoc_get(host, "workloads"), &g->tenants[0].workloads,
		&g->tenants[0].n_workloads, err);
}

int scenario_tenants_read(
	yamldoc_node host, bool server, struct scenario_gate *gate, struct weir_err *err)
{
	yamldoc_node list = yamldoc_get(host, "tenants");
	int r;

	if (!list.id && server)
		return 0;
	if (!server && yamldoc_get(host, "workloads").id) {
		if (list.id)
			return yamldoc_error(
				host, err, "give 'tenants' or 'workloads' of the host, not both");
		return read_only_tenant(host, gate, err);
	}
	if (!list.id)
		return yamldoc_error(host, err, "a host needs 'tenants' (or 'workloads')");
	r = policy_tree_parse(list, server ? server_more : tenant_more, &gate->policy, err);
	if (r)
		return r;
	gate->tenants = calloc(gate->policy->n_tenants + 1, sizeof(*gate->tenants));
	if (!gate->tenants)
		return no_memory(err);
	return read_tree(list, "", gate, err);
}

void scenario_gate_clear(struct scenario_gate *g)
{
	for (size_t i = 0; g->policy && g->tenants && i < g->policy->n_tenants; i++) {
		scenario_workloads_free(g->tenants[i].workloads, g->tenants[i].n_workloads);
		free(g->tenants[i].for_);
	}
	free(g->tenants);
	weir_policy_free(g->whole ? g->whole : g->policy);
}
