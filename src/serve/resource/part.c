/* SPDX-License-Identifier: BSD-3-Clause */
/* part: the data that a resource keeps for every tenant of one version of the policy. */
#include "serve/resource/impl.h"
#include <errno.h>
#include <stdlib.h>

void resource_part_free(struct resource_part *t)
{
	free(t->own_bounds);
	free(t->first);
	free(t->rows);
	free(t->rules);
	free(t->seen);
	*t = (struct resource_part){0};
}

int resource_part_new(const struct weir_policy *p, const struct weir_bounds *bounds, bool rules,
	struct resource_part *ret)
{
	size_t n = p->n_tenants + 1;
	struct resource_part t = {
		.bounds = bounds,
		.own_bounds = bounds ? NULL : calloc(n, sizeof(*t.own_bounds)),
		.rules = rules ? calloc(n, sizeof(*t.rules)) : NULL,
		.seen = calloc(n, sizeof(*t.seen)),
	};

	if (t.own_bounds && weir_policy_bounds(p, t.own_bounds) == 0)
		t.bounds = t.own_bounds;
	if (t.bounds)
		t.first = policy_install_first(p, t.bounds);
	if (t.first)
		t.rows = calloc((size_t)t.first[p->n_tenants] + 1, sizeof(*t.rows));
	if (!t.rows || (rules && !t.rules) || !t.seen) {
		resource_part_free(&t);
		return -ENOMEM;
	}
	for (uint32_t k = 0; k < t.first[p->n_tenants]; k++)
		t.rows[k] = 1;
	for (size_t i = 0; rules && i < p->n_tenants; i++)
		t.rules[i].scale = 1;
	*ret = t;
	return 0;
}

void resource_part_give(const struct weir_policy *to, const int *was, const double *rows,
	struct resource_part *part)
{
	for (size_t i = 0; i < to->n_tenants; i++)
		for (uint32_t k = part->first[i]; k < part->first[i + 1]; k++)
			if (was[i] < 0 || rows[k] > 0)
				part->rows[k] = rows[k];
}

/* Limits that a tenant had before keep their parts. */
static void keep_rows(const struct weir_tenant *from, const struct weir_tenant *to,
	const struct resource_part *old, size_t was, struct resource_part *part, size_t is)
{
	uint8_t slots[POLICY_ROWS], before[POLICY_ROWS];
	unsigned n = policy_install_rows(to, &part->bounds[is], slots);
	unsigned m = policy_install_rows(from, &old->bounds[was], before);

	for (unsigned k = 0; k < n; k++)
		for (unsigned l = 0; l < m; l++)
			if (slots[k] == before[l])
				part->rows[part->first[is] + k] = old->rows[old->first[was] + l];
}

void resource_part_keep(const struct weir_policy *from, const struct weir_policy *to,
	const int *was, const struct resource_part *old, struct resource_part *part)
{
	for (size_t i = 0; from && old->rows && i < to->n_tenants; i++) {
		if (was[i] < 0)
			continue;
		keep_rows(&from->tenants[was[i]], &to->tenants[i], old, (size_t)was[i], part, i);
		part->seen[i] = old->seen[was[i]];
	}
}
