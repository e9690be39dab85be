/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bounds: compute what the mins and maxes of a tree guarantee and allow at each node.
 *
 * SOURCE  Parley (Jeyakumar et al., §3.2: min, max and weight at every node of a tree).
 * LAW     Up:   u = min(max, Σ children's u),   g = min(u, max(min, Σ children's g)).
 *         Down: a node that has x passes on x_i = g_i + min(u_i − g_i, λ·w_i), with the largest λ
 *         such that Σ x_i ≤ x. A top-level node has x = g.
 * SYMBOLS u the most a node can take, g the least it is guaranteed, x its guarantee with its part
 *         of the parent's own min, w weight; all but w per second, in one slot: a unit and an
 *         operation class. Reads and writes together make all, so g_all ≥ g_reads + g_writes,
 *         u_reads, u_writes ≤ u_all ≤ u_reads + u_writes.
 * METHOD  Parents are before children, so one pass backwards goes up and one forwards down. λ by
 *         rounds: divide the rest by weight, give nodes that would exceed their room just that, and
 *         repeat among the others. O(nodes), times the rounds, which are few.
 * DIFFERS Parley divides by demand, again and again; a gate's R-tokens stay where they were
 *         granted. So the part of a parent's min beyond its children's is divided once, by weight,
 *         and the part of an idle child does not become a sibling's guarantee (it is shared like
 *         all spare capacity). State mins at the leaves if that matters.
 * EXAMPLE prod has min 2000; db (weight 3) has min 800, web (weight 1) none: the 1200 beyond are
 *         divided 3:1, so db has 800 + 900 = 1700 and web 300.
 */
#include "policy/impl.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { ALL = 0, READS = 1, WRITES = 2, CLASSES = 3 };
#define SLOT(unit, class_) ((unit)*CLASSES + (class_))

/* A millionth is negligible, and sums of decimal fractions are not exact. */
#define CRUMB 1e-6

static void own_bounds(const struct weir_tenant *t, struct weir_bounds *ret)
{
	for (unsigned s = 0; s < WEIR_LIMITS; s++) {
		ret->min[s] = 0;
		ret->max[s] = INFINITY;
	}
	for (unsigned i = 0; i < t->n_min; i++)
		ret->min[weir_limit_slot(t->min[i].unit, t->min[i].ops)] = t->min[i].rate;
	for (unsigned i = 0; i < t->n_max; i++)
		ret->max[weir_limit_slot(t->max[i].unit, t->max[i].ops)] = t->max[i].rate;
}

/* Make the classes of each unit consistent. */
static void reconcile(struct weir_bounds *b)
{
	for (unsigned unit = 0; unit < 2; unit++) {
		double *min = &b->min[SLOT(unit, 0)], *max = &b->max[SLOT(unit, 0)];

		min[ALL] = fmax(min[ALL], min[READS] + min[WRITES]);
		max[ALL] = fmin(max[ALL], max[READS] + max[WRITES]);
		max[READS] = fmin(max[READS], max[ALL]);
		max[WRITES] = fmin(max[WRITES], max[ALL]);
	}
}

void policy_bounds_leaf(const struct weir_tenant *t, struct weir_bounds *ret_need)
{
	own_bounds(t, ret_need);
	reconcile(ret_need);
}

void policy_bounds_needs(const struct weir_policy *p, struct weir_bounds *ret_needs)
{
	for (size_t i = p->n_tenants; i-- > 0;) {
		struct weir_bounds sum = {{0}, {0}}, *own = &ret_needs[i];

		own_bounds(&p->tenants[i], own);
		for (int c = p->tenants[i].first_child; c >= 0; c = p->tenants[c].next_sibling)
			for (unsigned s = 0; s < WEIR_LIMITS; s++) {
				sum.min[s] += ret_needs[c].min[s];
				sum.max[s] += ret_needs[c].max[s];
			}
		for (unsigned s = 0; s < WEIR_LIMITS && p->tenants[i].first_child >= 0; s++) {
			own->min[s] = fmax(own->min[s], sum.min[s]);
			own->max[s] = fmin(own->max[s], sum.max[s]);
		}
		reconcile(own);
	}
}

/* The tenant for a template's other clients is mostly idle: a guarantee would be lost there. */
static bool has_room(const struct weir_policy *p, int c, unsigned s, const struct weir_bounds *x,
	const struct weir_bounds *needs)
{
	return !p->tenants[c].others && x[c].min[s] < needs[c].max[s];
}

/* Divide `left` of slot s among the children of `parent`, on top of x, up to u, by weight. */
static void divide(const struct weir_policy *p, size_t parent, unsigned s, double left,
	struct weir_bounds *x, const struct weir_bounds *needs)
{
	const double crumb = left * CRUMB;
	double weights = 1;

	while (left > crumb && weights > 0) {
		double given = 0, level;
		bool filled = false;

		weights = 0;
		for (int c = p->tenants[parent].first_child; c >= 0; c = p->tenants[c].next_sibling)
			if (has_room(p, c, s, x, needs))
				weights += p->tenants[c].weight;
		level = weights > 0 ? left / weights : 0;
		for (int c = p->tenants[parent].first_child; c >= 0;
			c = p->tenants[c].next_sibling) {
			double room = needs[c].max[s] - x[c].min[s];
			double part = level * p->tenants[c].weight;

			if (has_room(p, c, s, x, needs) && room <= part) {
				x[c].min[s] = needs[c].max[s];
				given += room;
				filled = true;
			}
		}
		if (filled) { /* their rest is more for the others: repeat */
			left -= given;
			continue;
		}
		for (int c = p->tenants[parent].first_child; c >= 0; c = p->tenants[c].next_sibling)
			if (has_room(p, c, s, x, needs))
				x[c].min[s] += level * p->tenants[c].weight;
		left = 0;
	}
}

/* Pass x of `parent` on to its children, whose x is their g so far. */
static void pass_on(const struct weir_policy *p, size_t parent, struct weir_bounds *x,
	const struct weir_bounds *needs)
{
	static const int order[CLASSES] = {READS, WRITES, ALL}; /* all holds the other two */

	for (unsigned unit = 0; unit < 2; unit++)
		for (int k = 0; k < CLASSES; k++) {
			unsigned s = SLOT(unit, (unsigned)order[k]);
			double sum = 0;

			for (int c = p->tenants[parent].first_child; c >= 0;
				c = p->tenants[c].next_sibling) {
				double *min = &x[c].min[SLOT(unit, 0)];

				min[ALL] = fmax(min[ALL], min[READS] + min[WRITES]);
				sum += x[c].min[s];
			}
			if (x[parent].min[s] > sum * (1 + CRUMB))
				divide(p, parent, s, x[parent].min[s] - sum, x, needs);
		}
}

int weir_policy_bounds(const struct weir_policy *p, struct weir_bounds *ret_bounds)
{
	struct weir_bounds *needs = calloc(p->n_tenants ? p->n_tenants : 1, sizeof(*needs));

	if (!needs)
		return -ENOMEM;
	policy_bounds_needs(p, needs);
	for (size_t i = 0; i < p->n_tenants; i++) {
		struct weir_bounds own;
		int parent = p->tenants[i].parent;

		own_bounds(&p->tenants[i], &own);
		for (unsigned s = 0; s < WEIR_LIMITS; s++) {
			ret_bounds[i].min[s] = needs[i].min[s];
			ret_bounds[i].max[s] =
				parent < 0 ? own.max[s]
					   : fmin(own.max[s], ret_bounds[parent].max[s]);
		}
	}
	for (size_t i = 0; i < p->n_tenants; i++)
		if (p->tenants[i].first_child >= 0)
			pass_on(p, i, ret_bounds, needs);
	free(needs);
	return 0;
}

/* The tenant for a template's other clients counts only for itself: it has none as a rule.
 * Children follow their parent, so going backwards a parent's slot holds the sum of its children's
 * weights until the last of them has used it. */
void weir_policy_share(const struct weir_policy *p, double *ret_of_parent, double *ret_of_all)
{
	const struct weir_tenant *t = p->tenants;
	double top = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		ret_of_parent[i] = 0;
	for (size_t i = 0; i < p->n_tenants; i++)
		*(t[i].parent < 0 ? &top : &ret_of_parent[t[i].parent]) +=
			t[i].others ? 0 : t[i].weight;
	for (size_t i = p->n_tenants; i-- > 0;) {
		double sum = t[i].parent < 0 ? top : ret_of_parent[t[i].parent];

		ret_of_parent[i] = t[i].weight / (t[i].others ? sum + t[i].weight : sum);
	}
	for (size_t i = 0; i < p->n_tenants; i++)
		ret_of_all[i] = ret_of_parent[i] * (t[i].parent < 0 ? 1 : ret_of_all[t[i].parent]);
}
