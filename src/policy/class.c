/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * class: `classes` of the top level: named sets of knobs, for tenants, templates, exports and volumes.
 *
 * LAW     A tenant's own key comes before its class's. A class's burst holds for the tenant's own max, too, where it is above
 *         it. The class of an export comes before a template's class and before the template's own keys.
 */
#include "policy/impl.h"
#include <stdlib.h>
#include <string.h>

void policy_class_lay(struct weir_tenant *t, const struct weir_tenant *from, unsigned given)
{
	if (given & POLICY_GIVEN_WEIGHT)
		t->weight = from->weight;
	if (given & POLICY_GIVEN_MIN) {
		memcpy(t->min, from->min, sizeof(t->min));
		t->n_min = from->n_min;
		t->min_by_size = from->min_by_size;
		t->n_min_by_size = from->n_min_by_size;
	}
	if (given & POLICY_GIVEN_MAX) {
		memcpy(t->max, from->max, sizeof(t->max));
		t->n_max = from->n_max;
		t->max_by_size = from->max_by_size;
		t->n_max_by_size = from->n_max_by_size;
	}
	if (given & POLICY_GIVEN_SLO) {
		t->slo_percentile = from->slo_percentile;
		t->slo_latency = from->slo_latency;
		t->slo_ops = from->slo_ops;
		t->slo_window = from->slo_window;
		t->slo_at = from->slo_at;
	}
}

unsigned policy_class_read_keys(struct policy_reading *r, yamldoc_node n, struct weir_tenant *t)
{
	yamldoc_node max = yamldoc_get(n, "max"), burst = yamldoc_get(n, "burst");
	unsigned given = 0;

	if (yamldoc_has(n, "weight")) {
		policy_tenant_read_weight(r, n, &t->weight);
		given |= POLICY_GIVEN_WEIGHT;
	}
	if (yamldoc_get(n, "min").id) {
		policy_limit_read_tenant(r, yamldoc_get(n, "min"), false, t);
		given |= POLICY_GIVEN_MIN;
	}
	if (max.id) {
		/* If max itself is refused, do not report a burst that lacks it. */
		if (policy_limit_read_tenant(r, max, true, t) && burst.id)
			policy_limit_read_bursts_tenant(r, burst, t);
		given |= POLICY_GIVEN_MAX;
	}
	if (yamldoc_get(n, "slo").id) {
		policy_plan_read_slo(r, yamldoc_get(n, "slo"), t);
		given |= POLICY_GIVEN_SLO;
	}
	return given;
}

/* Take the class's bursts for maxes of the same unit and operations that are below them. */
static void keep_bursts(const struct weir_tenant *class_, struct weir_tenant *t)
{
	for (unsigned i = 0; i < class_->n_max; i++)
		for (unsigned k = 0; k < t->n_max; k++) {
			const struct weir_limit *from = &class_->max[i];
			struct weir_limit *to = &t->max[k];

			if (to->unit != from->unit || to->ops != from->ops ||
				from->burst_rate <= to->rate)
				continue;
			to->burst_rate = from->burst_rate;
			to->burst_for = from->burst_for;
		}
}

void policy_class_join(struct policy_reading *r, yamldoc_node n, const struct policy_class *c,
	const struct weir_tenant *own, unsigned given, struct weir_tenant *t)
{
	yamldoc_node burst = yamldoc_get(n, "burst");

	if (c) {
		policy_class_lay(t, &c->knobs, c->given);
		t->class_ = c->name;
	}
	policy_class_lay(t, own, given);
	if (burst.id && !(given & POLICY_GIVEN_MAX))
		policy_limit_read_bursts_tenant(r, burst, t);
	else if (c && !burst.id && given & POLICY_GIVEN_MAX)
		keep_bursts(&c->knobs, t);
}

const struct policy_class *policy_class_find(const struct weir_policy *p, const char *name)
{
	for (size_t i = 0; i < p->n_classes; i++)
		if (strcmp(p->classes[i].name, name) == 0)
			return &p->classes[i];
	return NULL;
}

const struct policy_class *policy_class_get(struct policy_reading *r, yamldoc_node n)
{
	const struct weir_policy *p = r->policy;
	const char *name = policy_get_string(r, n, "class"), *near = NULL;
	const struct policy_class *c = name ? policy_class_find(p, name) : NULL;
	const char **names;

	if (!name || c)
		return c;
	names = policy_scratch(r, p->n_classes, sizeof(*names));
	for (size_t i = 0; names && i < p->n_classes; i++)
		names[i] = p->classes[i].name;
	if (names)
		near = weir_err_near(name, names);
	free(names);
	policy_refuse(r, yamldoc_get(n, "class"), "no class '%s'%s%s%s", name,
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
	return NULL;
}

void policy_class_read(struct policy_reading *r, yamldoc_node classes)
{
	static const char *const keys[] = {POLICY_CLASS_KEYS, NULL};
	struct weir_policy *p = r->policy;
	size_t n = yamldoc_map_size(classes);

	if (!classes.id)
		return;
	if (yamldoc_kind(classes) != YAMLDOC_MAP) {
		policy_refuse(r, classes, "must be a map, as in {gold: {weight: 4}}");
		return;
	}
	p->classes = policy_alloc(r, n * sizeof(*p->classes));
	for (size_t i = 0; p->classes && i < n; i++) {
		struct policy_class *c = &p->classes[p->n_classes];
		const char *name, *bad;
		yamldoc_node map = yamldoc_map_at(classes, i, &name);

		bad = policy_tenant_name_bad(name);
		if (bad)
			policy_refuse(r, map, "%s", bad);
		if (!policy_keys(r, map, keys))
			continue;
		*c = (struct policy_class){.name = policy_string(r, name),
			.knobs = {.parent = -1, .first_child = -1, .next_sibling = -1, .weight = 1},
			.at = policy_place(r, map)};
		c->given = policy_class_read_keys(r, map, &c->knobs);
		if (yamldoc_get(map, "burst").id && !(c->given & POLICY_GIVEN_MAX))
			policy_limit_read_bursts_tenant(r, yamldoc_get(map, "burst"), &c->knobs);
		p->n_classes += c->name != NULL;
	}
}
