/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check: check the parts of a policy against each other.
 *
 * LAW     Guarantees must fit: at every node the children's mins within its own min, if it has one,
 *         and its own and theirs within its max; all of them within the capacity of the resources
 *         that they can reach. Each request must match exactly one tenant. Only leaves take
 *         requests. A limit that is valid but can never be reached is a warning.
 * SYMBOLS needs[i]: policy_bounds_needs, g and u of every node; per slot (unit × class).
 */
#include "policy/folder.h"
#include "policy/index.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums of decimal fractions are not exact: 0.1 + 0.2 > 0.3. */
#define SLACK (1 + 1e-9)
#define TEXT  64 /* of a rate and its class */

struct shown { /* two rates that a message compares, each with its class */
	char a[TEXT], b[TEXT];
};

static const char *of_class(uint8_t ops)
{
	return ops == WEIR_OPS_READS ? " of reads" : ops == WEIR_OPS_WRITES ? " of writes" : "";
}

static struct shown show_two(enum weir_unit unit, uint8_t ops_a, double a, uint8_t ops_b, double b)
{
	char rate_a[32], rate_b[32];
	struct shown s;

	weir_units_show_rates((struct weir_rate){a, unit}, (struct weir_rate){b, unit}, rate_a,
		rate_b, sizeof(rate_a));
	snprintf(s.a, sizeof(s.a), "%s%s", rate_a, of_class(ops_a));
	snprintf(s.b, sizeof(s.b), "%s%s", rate_b, of_class(ops_b));
	return s;
}

/* Format a limit, and another rate of its class. */
static struct shown show_limit(const struct weir_limit *l, double other)
{
	return show_two(l->unit, l->ops, l->rate, l->ops, other);
}

static const struct weir_limit *find_limit(
	const struct weir_limit *limits, unsigned n, enum weir_unit unit, uint8_t ops)
{
	for (unsigned i = 0; i < n; i++)
		if (limits[i].unit == unit && limits[i].ops == ops)
			return &limits[i];
	return NULL;
}

/* ---- names, and what only leaves may have */

struct named {
	int parent, index;
	const char *name;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int c = x->parent != y->parent ? (x->parent < y->parent ? -1 : 1)
				       : strcmp(x->name, y->name);

	return c ? c : x->index - y->index;
}

static void check_names(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	struct named *names = policy_scratch(r, p->n_tenants, sizeof(*names));

	if (!names)
		return;
	for (size_t i = 0; i < p->n_tenants; i++)
		names[i] = (struct named){p->tenants[i].parent, (int)i, p->tenants[i].name};
	qsort(names, p->n_tenants, sizeof(*names), by_name);
	for (size_t i = 1; i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[names[i].index];

		/* "?" stands for a name that was refused already. */
		if (names[i].parent == names[i - 1].parent &&
			strcmp(names[i].name, names[i - 1].name) == 0 && strcmp(t->name, "?") != 0)
			policy_refuse_at(r, t->at, "a second tenant '%s'; the first is in line %u",
				t->path, p->tenants[names[i - 1].index].at.line);
	}
	free(names);
}

static void check_inner(struct policy_reading *r, const struct weir_tenant *t)
{
	if (t->first_child < 0)
		return;
	if (t->n_match && !t->each)
		policy_refuse_at(r, t->match[0].at,
			"'%s' has children, and only tenants without take requests: move its match "
			"to one of them",
			t->path);
	if (t->slo_percentile > 0)
		policy_refuse_at(r, t->slo_at,
			"'%s' has children, and only tenants without take requests: move its slo "
			"to them",
			t->path);
}

/* ---- min and max of one node, and of those above and below it */

static double children_min(const struct weir_policy *p, const struct weir_tenant *t, unsigned slot,
	const struct weir_bounds *needs)
{
	double sum = 0;

	for (int c = t->first_child; c >= 0; c = p->tenants[c].next_sibling)
		sum += needs[c].min[slot];
	return sum;
}

static double children_max(const struct weir_policy *p, const struct weir_tenant *t, unsigned slot,
	const struct weir_bounds *needs)
{
	double sum = 0;

	for (int c = t->first_child; c >= 0; c = p->tenants[c].next_sibling)
		sum += needs[c].max[slot];
	return sum;
}

static void check_min(struct policy_reading *r, const struct weir_tenant *t,
	const struct weir_limit *min, const struct weir_bounds *needs)
{
	unsigned slot = weir_limit_slot(min->unit, min->ops);
	double below = children_min(r->policy, t, slot, needs);
	struct shown s;

	if (t->first_child < 0)
		return;
	s = show_limit(min, below);
	if (below > min->rate * SLACK)
		policy_refuse_at(r, min->at,
			"the mins of the children of '%s' add up to %s, over its own min of %s",
			t->path, s.b, s.a);
	below = children_max(r->policy, t, slot, needs);
	s = show_limit(min, below);
	if (min->rate > below * SLACK)
		policy_warn_at(r, min->at,
			"'%s' can never use its min of %s: its children's max is %s together",
			t->path, s.a, s.b);
}

static void check_max(struct policy_reading *r, const struct weir_tenant *t,
	const struct weir_limit *max, const struct weir_bounds *need)
{
	double g = need->min[weir_limit_slot(max->unit, max->ops)];
	const struct weir_limit *min = find_limit(t->min, t->n_min, max->unit, max->ops);
	bool own = min && min->rate > max->rate;
	struct shown s;

	if (g <= max->rate * SLACK)
		return;
	s = show_limit(max, own ? min->rate : g);
	if (own)
		policy_refuse_at(
			r, max->at, "the max of '%s', %s, is below its min, %s", t->path, s.a, s.b);
	else
		policy_refuse_at(r, max->at, "the max of '%s', %s, is below the mins %s, %s",
			t->path, s.a,
			t->first_child >= 0 ? "of its children together"
					    : "of its reads and writes together",
			s.b);
}

/* A max for reads and one for writes imply one for all. */
static void check_max_sum(
	struct policy_reading *r, const struct weir_tenant *t, const struct weir_bounds *need)
{
	for (int u = 0; u < 2; u++) {
		enum weir_unit unit = (enum weir_unit)u;
		const struct weir_limit *reads = find_limit(t->max, t->n_max, unit, WEIR_OPS_READS);
		const struct weir_limit *writes =
			find_limit(t->max, t->n_max, unit, WEIR_OPS_WRITES);
		double g = need->min[weir_limit_slot(unit, WEIR_OPS_ALL)];
		struct shown s;

		/* If one of them is below its own min, that was reported. */
		if (!reads || !writes || g <= (reads->rate + writes->rate) * SLACK ||
			need->min[weir_limit_slot(unit, WEIR_OPS_READS)] > reads->rate ||
			need->min[weir_limit_slot(unit, WEIR_OPS_WRITES)] > writes->rate)
			continue;
		s = show_two(unit, WEIR_OPS_ALL, reads->rate + writes->rate, WEIR_OPS_ALL, g);
		policy_refuse_at(r, reads->at,
			"the maxes of reads and writes of '%s', %s together, are below the min of "
			"%s",
			t->path, s.a, s.b);
	}
}

static double peak(const struct weir_limit *max)
{
	return max->burst_rate > 0 ? max->burst_rate : max->rate;
}

/* Warn about a max, or a burst, above that of an ancestor. */
static void warn_unreachable(
	struct policy_reading *r, const struct weir_tenant *t, const struct weir_limit *max)
{
	const struct weir_policy *p = r->policy;

	for (int i = t->parent; i >= 0; i = p->tenants[i].parent) {
		const struct weir_tenant *above = &p->tenants[i];

		for (unsigned k = 0; k < above->n_max; k++) {
			const struct weir_limit *its = &above->max[k];
			bool even_max = max->rate > peak(its);
			struct shown s;

			if (its->unit != max->unit ||
				(its->ops != max->ops && its->ops != WEIR_OPS_ALL) ||
				peak(max) <= peak(its) * SLACK)
				continue;
			s = show_two(max->unit, max->ops, even_max ? max->rate : peak(max),
				its->ops, peak(its));
			policy_warn_at(r, max->at,
				"'%s' can never reach its %s of %s: '%s' above it lets %s through",
				t->path, even_max ? "max" : "burst", s.a, above->path, s.b);
			return;
		}
	}
}

static void check_maxes(
	struct policy_reading *r, const struct weir_tenant *t, const struct weir_bounds *need)
{
	for (unsigned k = 0; k < t->n_max; k++) {
		check_max(r, t, &t->max[k], need);
		warn_unreachable(r, t, &t->max[k]);
	}
	check_max_sum(r, t, need);
}

void policy_check_leaf(struct policy_reading *r, const struct weir_tenant *t)
{
	struct weir_bounds need;

	policy_bounds_leaf(t, &need);
	check_maxes(r, t, &need);
}

static void check_bounds(struct policy_reading *r, const struct weir_bounds *needs)
{
	const struct weir_policy *p = r->policy;

	for (size_t i = 0; i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];

		for (unsigned k = 0; k < t->n_min; k++)
			check_min(r, t, &t->min[k], needs);
		check_maxes(r, t, &needs[i]);
	}
}

/* ---- mins against capacity */

enum { REACH_NONE = -2, REACH_SEVERAL = -1 }; /* else the index of the only resource */

static int reach_join(int a, int b)
{
	if (a == REACH_NONE || a == b)
		return b;
	return b == REACH_NONE ? a : REACH_SEVERAL;
}

/* Return the resources that the tenant's requests can reach, by its matches and the exports. */
int policy_check_reach(const struct weir_policy *p, const struct weir_tenant *t)
{
	int reach = REACH_NONE;

	if (p->n_resources == 1)
		return 0;
	if (!p->n_exports || !t->n_match || t->is_default)
		return REACH_SEVERAL;
	for (unsigned k = 0; k < t->n_match; k++) {
		const char *name = t->match[k].export_;
		bool taken = name && policy_index_export(p, name) >= 0; /* no file gets its name */
		int e = -1;

		while (reach != REACH_SEVERAL && (e = policy_index_other(p, name, e)) >= 0)
			reach = reach_join(reach, p->exports[e].resource);
		for (size_t i = 0; !taken && i < p->n_folders; i++)
			if (policy_folder_can(&p->folders[i], name))
				reach = reach_join(reach, p->folders[i].resource);
	}
	return reach;
}

/* Return the mins under node i that only resource `want` can provide (-1: any), in the all-slot of
 * a unit. */
static double confined(const struct weir_policy *p, const struct weir_bounds *needs,
	const int *reach, int i, int want, unsigned slot)
{
	double sum = 0;

	if (want < 0 || reach[i] == want)
		return needs[i].min[slot];
	for (int c = p->tenants[i].first_child; c >= 0; c = p->tenants[c].next_sibling)
		sum += confined(p, needs, reach, c, want, slot);
	return sum;
}

static double all_confined(const struct weir_policy *p, const struct weir_bounds *needs,
	const int *reach, int want, enum weir_unit unit)
{
	double sum = 0;

	for (int i = p->n_tenants ? 0 : -1; i >= 0; i = p->tenants[i].next_sibling)
		sum += confined(p, needs, reach, i, want, weir_limit_slot(unit, WEIR_OPS_ALL));
	return sum;
}

static void check_unit_capacity(struct policy_reading *r, const struct weir_bounds *needs,
	const int *reach, enum weir_unit unit)
{
	const struct weir_policy *p = r->policy;
	double capacity = 0, sum;
	bool stated = true, said = false;
	struct shown s;

	for (size_t k = 0; k < p->n_resources; k++) {
		const struct weir_resource *res = &p->resources[k];
		double c = res->capacity[unit].per_second;

		stated &= c > 0;
		capacity += c;
		sum = all_confined(p, needs, reach, (int)k, unit);
		if (c > 0 && sum > c * SLACK) {
			s = show_two(unit, WEIR_OPS_ALL, sum, WEIR_OPS_ALL, c);
			policy_refuse_at(r, res->capacity_at,
				"the mins add up to %s, over the capacity of '%s', %s", s.a,
				res->name, s.b);
			said = true;
		}
	}
	sum = all_confined(p, needs, reach, -1, unit);
	s = show_two(unit, WEIR_OPS_ALL, sum, WEIR_OPS_ALL, capacity);
	if (!said && p->n_resources && stated && sum > capacity * SLACK)
		policy_refuse_at(r, p->resources[0].capacity_at,
			"the mins add up to %s, over the capacity of all resources, %s", s.a, s.b);
	for (size_t i = 0; stated && p->n_resources && i < p->n_tenants; i++) {
		const struct weir_tenant *t = &p->tenants[i];
		const struct weir_limit *max = find_limit(t->max, t->n_max, unit, WEIR_OPS_ALL);

		if (!max || max->rate <= capacity * SLACK)
			continue;
		s = show_limit(max, capacity);
		policy_warn_at(r, max->at, "'%s' can never reach its max of %s: the capacity is %s",
			t->path, s.a, s.b);
	}
}

static void check_capacity(struct policy_reading *r, const struct weir_bounds *needs)
{
	const struct weir_policy *p = r->policy;
	int *reach = policy_scratch(r, p->n_tenants, sizeof(*reach));

	if (!reach)
		return;
	for (size_t i = p->n_tenants; i-- > 0;) {
		const struct weir_tenant *t = &p->tenants[i];

		reach[i] = REACH_NONE;
		if (t->first_child < 0)
			reach[i] = policy_check_reach(p, t);
		for (int c = t->first_child; c >= 0; c = p->tenants[c].next_sibling)
			reach[i] = reach_join(reach[i], reach[c]);
	}
	check_unit_capacity(r, needs, reach, WEIR_UNIT_REQUESTS);
	check_unit_capacity(r, needs, reach, WEIR_UNIT_BYTES);
	free(reach);
}

void policy_check_limits(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	struct weir_bounds *needs = policy_scratch(r, p->n_tenants, sizeof(*needs));

	if (!needs)
		return;
	policy_bounds_needs(p, needs);
	check_bounds(r, needs);
	if (!p->cluster.n_servers) /* in a cluster a min is not for one machine alone */
		check_capacity(r, needs);
	free(needs);
}

void policy_check(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;

	check_names(r);
	for (size_t i = 0; i < p->n_tenants; i++)
		check_inner(r, &p->tenants[i]);
	policy_each_check(r);
	policy_size_check(r);
	policy_check_limits(r);
	policy_cluster_check(r);
	policy_check_matches(r);
	policy_check_clients(r);
	policy_check_net(r);
}
