/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world-knobs: turn a scenario's settings of gates and tenants, and its changes, into knobs.
 *
 * All changes of one entry of `at:` at one gate are one weir_gate_set: all or none, and between two
 * requests.
 */
#include "policy/impl.h"
#include "sim/world/world.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct set { /* knobs for one gate */
	struct weir_knob *knobs;
	struct weir_bucket_spec *buckets; /* POLICY_BUCKETS per tenant */
	struct weir_bounds *bounds;
	size_t n, n_buckets;
};

static int set_new(struct set *s, size_t tenants, size_t changes)
{
	/* Per tenant: weight, buckets, priority, deadline, two grants. Per change: five knobs of
	 * the gate. */
	s->knobs = calloc(6 * tenants + 5 * changes + 1, sizeof(*s->knobs));
	s->buckets = calloc(tenants ? tenants : 1, POLICY_BUCKETS * sizeof(*s->buckets));
	s->bounds = calloc(tenants ? tenants : 1, sizeof(*s->bounds));
	s->n = s->n_buckets = 0;
	return s->knobs && s->buckets && s->bounds ? 0 : -ENOMEM;
}

static void set_free(struct set *s)
{
	free(s->knobs);
	free(s->buckets);
	free(s->bounds);
}

static void add_knob(struct set *s, weir_node node, enum weir_knob_kind kind, double value)
{
	s->knobs[s->n++] = (struct weir_knob){.node = node, .kind = kind, .value = value};
}

/* Return the current settings of a tenant of the gate's policy. */
static const struct scenario_knobs *knobs_of(const struct world_gate *g, size_t tenant)
{
	return g->knobs ? &g->knobs[tenant] : &g->config->tenants[tenant].knobs;
}

/* Add the policy's buckets and the scenario's own together: the knob replaces all of a node's
 * buckets. */
static void add_buckets(struct set *s, const struct world_gate *g, size_t tenant)
{
	const struct scenario_knobs *k = knobs_of(g, tenant);
	struct weir_bucket_spec *b = &s->buckets[POLICY_BUCKETS * s->n_buckets++];
	unsigned n = policy_install_buckets(&g->policy->tenants[tenant], &s->bounds[tenant], b);

	for (unsigned i = 0; i < k->lab.n_profile; i++)
		b[n++] = k->lab.profile[i];
	if (k->lab.rtokens.size > 0)
		b[n++] = k->lab.rtokens;
	if (k->lab.ltokens.size > 0)
		b[n++] = k->lab.ltokens;
	s->knobs[s->n++] = (struct weir_knob){
		.node = g->nodes[tenant], .kind = WEIR_KNOB_BUCKETS, .buckets = b, .n_buckets = n};
}

static void add_tenant(struct set *s, const struct world_gate *g, size_t tenant, unsigned given)
{
	const struct scenario_knobs *k = knobs_of(g, tenant);
	weir_node node = g->nodes[tenant];

	if (given & SCENARIO_WEIGHT)
		add_knob(s, node, WEIR_KNOB_WEIGHT, k->weight);
	if (given & POLICY_LAB_PRIORITY)
		add_knob(s, node, WEIR_KNOB_PRIORITY, k->lab.priority);
	if (given & POLICY_LAB_DEADLINE)
		add_knob(s, node, WEIR_KNOB_DEADLINE, (double)k->lab.deadline);
	if (given & SCENARIO_BUCKETS_GIVEN)
		add_buckets(s, g, tenant);
	if (given & POLICY_LAB_RGRANT)
		add_knob(s, node, WEIR_KNOB_RGRANT, k->lab.rgrant);
	if (given & POLICY_LAB_LGRANT)
		add_knob(s, node, WEIR_KNOB_LGRANT, k->lab.lgrant);
}

int world_gate_set(struct world *w, struct world_gate *g, const struct weir_knob *knobs, size_t n,
	struct weir_err *err)
{
	int r = weir_gate_set(g->gate, w->now, knobs, n, err);

	if (r == 0)
		world_touch(w, g);
	return r;
}

/* ---- at the start */

/* Create the gate and its tree, and set its tenants' knobs. For a gate without a policy the caller
 * adds the leaves. */
int world_gate_build(struct world *w, struct world_gate *g, struct weir_err *err)
{
	static const struct weir_policy none;
	struct weir_gate_config config = g->config->config;
	struct set s = {0};
	int r;

	g->policy = g->config->policy ? g->config->policy : &none;
	config.nodes = (uint32_t)g->policy->n_tenants + 1;
	r = weir_gate_new(&config, &g->gate);
	if (r)
		return weir_err_set(err, r, "the gate: %s", strerror(-r));
	/* 0 in a gate's config means the default, in a scenario a closed window. */
	if (g->config->given & SCENARIO_GATE_WINDOW) {
		struct weir_knob shut = {WEIR_ROOT, WEIR_KNOB_WINDOW, config.window, NULL, 0};
		if (config.window <= 0 && (r = weir_gate_set(g->gate, 0, &shut, 1, err)))
			return r;
	}
	if (!g->config->policy)
		return 0;
	g->nodes = calloc(g->policy->n_tenants + 1, sizeof(*g->nodes));
	r = g->nodes ? set_new(&s, g->policy->n_tenants, 0) : -ENOMEM;
	if (r || (r = weir_policy_bounds(g->policy, s.bounds)))
		weir_err_set(err, r, "out of memory");
	if (r == 0)
		r = weir_policy_install(g->policy, g->gate, w->now, g->nodes, err);
	for (size_t i = 0; r == 0 && i < g->policy->n_tenants; i++)
		add_tenant(&s, g, i, knobs_of(g, i)->given);
	if (r == 0 && s.n)
		r = world_gate_set(w, g, s.knobs, s.n, err);
	set_free(&s);
	return r;
}

/* ---- changes */

/* Copy the scenario's settings of the gate's tenants, for changes to write to: until then the hosts
 * of a group share them. */
static int own_tenants(struct world_gate *g)
{
	const struct weir_policy *p = g->config->policy;

	if (!p || g->own)
		return 0;
	g->knobs = calloc(p->n_tenants + 1, sizeof(*g->knobs));
	g->own = calloc(1, sizeof(*g->own) + (p->n_tenants + 1) * sizeof(*p->tenants));
	if (!g->knobs || !g->own)
		return -ENOMEM;
	*g->own = *p;
	g->own->tenants = (struct weir_tenant *)(g->own + 1);
	memcpy(g->own->tenants, p->tenants, p->n_tenants * sizeof(*p->tenants));
	for (size_t i = 0; i < p->n_tenants; i++)
		g->knobs[i] = g->config->tenants[i].knobs;
	g->policy = g->own;
	return 0;
}

/* Replace the settings that the change names. */
static void merge_knobs(struct world_gate *g, size_t tenant, const struct scenario_knobs *from)
{
	struct scenario_knobs *k = &g->knobs[tenant];
	struct weir_tenant *t = &g->policy->tenants[tenant];

	if (from->given & SCENARIO_WEIGHT)
		k->weight = t->weight = from->weight;
	if (from->given & SCENARIO_MIN) {
		memcpy(t->min, from->min, sizeof(t->min));
		t->n_min = from->n_min;
	}
	if (from->given & SCENARIO_MAX) {
		memcpy(t->max, from->max, sizeof(t->max));
		t->n_max = from->n_max;
	}
	if (from->given & SCENARIO_SLO) {
		t->slo_percentile = from->slo_percentile;
		t->slo_latency = from->slo_latency;
	}
	if (from->given & POLICY_LAB_PRIORITY)
		k->lab.priority = from->lab.priority;
	if (from->given & POLICY_LAB_DEADLINE)
		k->lab.deadline = from->lab.deadline;
	if (from->given & POLICY_LAB_PROFILE) {
		memcpy(k->lab.profile, from->lab.profile, sizeof(k->lab.profile));
		k->lab.n_profile = from->lab.n_profile;
	}
	if (from->given & POLICY_LAB_RTOKENS)
		k->lab.rtokens = from->lab.rtokens;
	if (from->given & POLICY_LAB_LTOKENS)
		k->lab.ltokens = from->lab.ltokens;
	if (from->given & POLICY_LAB_RGRANT)
		k->lab.rgrant = from->lab.rgrant;
	if (from->given & POLICY_LAB_LGRANT)
		k->lab.lgrant = from->lab.lgrant;
}

/* Return true if the change moves other tenants' guarantees: an inner tenant's min, or any weight
 * beside a min, changes what every leaf is guaranteed; then the buckets of all are set.
 * weir_gate_set keeps the levels. */
static bool moves_bounds(const struct world_gate *g, unsigned given)
{
	if (given & SCENARIO_MIN)
		return true;
	for (size_t i = 0; (given & SCENARIO_WEIGHT) && i < g->policy->n_tenants; i++) {
		if (g->policy->tenants[i].n_min)
			return true;
	}
	return false;
}

int world_gate_change(struct world *w, struct world_gate *g, size_t tenant,
	const struct scenario_knobs *from, struct weir_err *err)
{
	struct set s = {0};
	int r = set_new(&s, g->policy->n_tenants, 0);

	if (r == 0)
		r = own_tenants(g);
	if (r == 0) {
		merge_knobs(g, tenant, from);
		r = weir_policy_bounds(g->policy, s.bounds);
	}
	if (r == 0) {
		add_tenant(&s, g, tenant, from->given);
		r = world_gate_set(w, g, s.knobs, s.n, err);
	} else {
		weir_err_set(err, r, "out of memory");
	}
	set_free(&s);
	return r;
}

static void gate_knobs(struct set *s, const struct scenario_gate *c)
{
	if (c->given & SCENARIO_GATE_WINDOW)
		add_knob(s, WEIR_ROOT, WEIR_KNOB_WINDOW, c->config.window);
	if (c->given & SCENARIO_GATE_WINDOW_BYTES)
		add_knob(s, WEIR_ROOT, WEIR_KNOB_WINDOW_BYTES, (double)c->config.window_bytes);
	if (c->given & SCENARIO_GATE_RUN)
		add_knob(s, WEIR_ROOT, WEIR_KNOB_RUN, c->config.run);
	if (c->given & SCENARIO_GATE_DISTANCE)
		add_knob(s, WEIR_ROOT, WEIR_KNOB_DISTANCE, (double)c->config.run_distance);
	if (c->given & SCENARIO_GATE_CREDIT)
		add_knob(s, WEIR_ROOT, WEIR_KNOB_CREDIT, (double)c->config.credit);
}

static bool is_target(const struct world_gate *g, const struct scenario_change *c)
{
	if (c->target == SCENARIO_ON_HOST || (c->target == SCENARIO_ON_TENANT && !c->at_device))
		return g->host && scenario_fits(c->where, g->host->name);
	if (c->target == SCENARIO_ON_DEVICE || c->target == SCENARIO_ON_TENANT)
		return g->station && scenario_fits(c->where, g->station->config->name);
	return false;
}

/* Apply all changes of one moment to one gate. */
static int change_gate(struct world *w, struct world_gate *g, const struct scenario_moment *m,
	struct weir_err *err)
{
	size_t n = g->policy->n_tenants;
	unsigned *given = calloc(n ? n : 1, sizeof(*given));
	struct set s = {0};
	bool all = false;
	int r = given ? set_new(&s, n, m->n) : -ENOMEM;

	if (r == 0)
		r = own_tenants(g);
	for (size_t i = 0; r == 0 && i < m->n; i++) {
		const struct scenario_change *c = &m->changes[i];
		if (!is_target(g, c))
			continue;
		if (c->target != SCENARIO_ON_TENANT)
			gate_knobs(&s, &c->gate);
		for (size_t t = 0; c->target == SCENARIO_ON_TENANT && t < n; t++) {
			if (!scenario_fits(c->tenant, g->policy->tenants[t].path))
				continue;
			merge_knobs(g, t, &c->knobs);
			given[t] |= c->knobs.given;
			all |= moves_bounds(g, c->knobs.given);
		}
	}
	if (r == 0 && n)
		r = weir_policy_bounds(g->policy, s.bounds);
	for (size_t t = 0; r == 0 && t < n; t++)
		add_tenant(&s, g, t, given[t] | (all ? SCENARIO_MIN : 0));
	if (r == 0 && s.n)
		r = world_gate_set(w, g, s.knobs, s.n, err);
	set_free(&s);
	free(given);
	return r;
}

/* Set the tenants' priorities on links with strict order: the tenant's own, or the last without
 * one. */
void world_link_priorities(struct world *w)
{
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		struct world_tenant *t = &w->tenants[i];
		int priority = knobs_of(t->host->gate, t->index)->lab.priority;

		t->link_priority = priority < 0 ? LINK_CLASSES - 1 : (uint8_t)priority;
	}
}

static int change_station(struct world *w, struct world_station *st, double rate)
{
	int r;

	world_station_step(w, st);
	r = station_set_rate(&st->config->config, st->device, w->now, rate);
	world_station_look(w, st);
	return r;
}

/* Judge requests from now on by the slos of the policies. */
static void set_slos(struct world *w)
{
	for (uint32_t i = 0; i < w->n_tenants; i++) {
		struct world_tenant *t = &w->tenants[i];

		if (t->slo_latency)
			t->slo_latency = t->host->gate->policy->tenants[t->index].slo_latency;
	}
}

static void change_loads(struct world *w, const struct scenario_change *c)
{
	for (uint32_t i = 0; i < w->n_loads; i++) {
		struct world_load *l = &w->loads[i];
		const struct world_host *h = l->tenant->host;

		if (scenario_fits(c->where, h->name) &&
			scenario_fits(c->tenant,
				h->gate->config->policy->tenants[l->tenant->index].path) &&
			scenario_fits(c->workload, l->config->name))
			world_load_run(w, l, c->run);
	}
}

int world_change(struct world *w, const struct scenario_moment *m, struct weir_err *err)
{
	bool plan = false;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < w->n_gates; i++) {
		bool any = false;
		for (size_t k = 0; !any && k < m->n; k++)
			any = is_target(&w->gates[i], &m->changes[k]);
		if (any)
			r = change_gate(w, &w->gates[i], m, err);
	}
	set_slos(w);
	for (size_t k = 0; r == 0 && k < m->n; k++) {
		const struct scenario_change *c = &m->changes[k];

		plan |= c->target == SCENARIO_ON_PLAN;
		if (c->target == SCENARIO_ON_WORKLOAD)
			change_loads(w, c);
		for (uint32_t i = 0; c->rate > 0 && r == 0 && i < w->scenario->n_stations; i++) {
			bool link = i >= w->scenario->n_devices;
			if (link == c->on_link &&
				scenario_fits(c->where, w->scenario->stations[i].name))
				r = change_station(w, &w->stations[i], c->rate);
		}
	}
	if (r == 0 && plan)
		r = world_plan(w, err);
	world_link_priorities(w);
	return r;
}
