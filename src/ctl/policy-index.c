/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  Sorted lists: tenants by path; exports by name; matches whose export is a plain name, by that. The matches
 *         with a pattern stand in a list of their own, which is short where it matters: a policy with
 *         ten thousand tenants names their exports one by one, or has one pattern a group.
 * COST    O(n log n) once; a client that lists ten thousand exports costs ten thousand lookups of
 *         O(log n + patterns) and not of O(n).
 */
#include "ctl/policy-index.h"
#include "ctl/policy-pattern.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct policy_index {
	const struct weir_tenant **tenants; /* by path */
	size_t n_tenants;
	const struct weir_export **exports; /* by name */
	struct policy_index_entry *plain;   /* by export */
	size_t n_plain;
	struct policy_index_entry *other; /* in the order of the policy */
	size_t n_other;
};

static bool is_plain(const char *pattern)
{
	return pattern && !strpbrk(pattern, "*?[\\");
}

static int by_path(const void *a, const void *b)
{
	const struct weir_tenant *const *x = a, *const *y = b;

	return strcmp((*x)->path, (*y)->path);
}

static int by_name(const void *a, const void *b)
{
	const struct weir_export *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int by_export(const void *a, const void *b)
{
	const struct policy_index_entry *x = a, *y = b;

	return strcmp(x->export_, y->export_);
}

static void add(struct policy_index *x, const struct weir_match *m, uint32_t tenant, uint32_t match)
{
	struct policy_index_entry e = {m->export_, tenant, match};

	if (is_plain(m->export_))
		x->plain[x->n_plain++] = e;
	else
		x->other[x->n_other++] = e;
}

void policy_index_make(struct policy_reading *r)
{
	struct weir_policy *p = r->policy;
	struct policy_index *x = policy_alloc(r, sizeof(*x));
	size_t n = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		n += p->tenants[i].n_match;
	if (r->no_memory || !(x->exports = policy_alloc(r, p->n_exports * sizeof(*x->exports))) ||
		!(x->tenants = policy_alloc(r, p->n_tenants * sizeof(*x->tenants))) ||
		!(x->plain = policy_alloc(r, n * sizeof(*x->plain))) ||
		!(x->other = policy_alloc(r, n * sizeof(*x->other))))
		return;
	for (size_t i = 0; i < p->n_exports; i++)
		x->exports[i] = &p->exports[i];
	x->n_tenants = p->n_tenants;
	for (size_t i = 0; i < p->n_tenants; i++)
		x->tenants[i] = &p->tenants[i];
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match; k++)
			add(x, &p->tenants[i].match[k], (uint32_t)i, k);
	qsort(x->tenants, p->n_tenants, sizeof(*x->tenants), by_path);
	qsort(x->exports, p->n_exports, sizeof(*x->exports), by_name);
	qsort(x->plain, x->n_plain, sizeof(*x->plain), by_export);
	p->index = x;
}

int policy_index_tenant(const struct weir_policy *p, const char *path)
{
	const struct weir_tenant wanted = {.path = path}, *key = &wanted, **found;
	const struct policy_index *x = p->index;

	found = bsearch(&key, x->tenants, x->n_tenants, sizeof(*x->tenants), by_path);
	if (found)
		return (int)(*found - p->tenants);
	for (size_t i = x->n_tenants; i < p->n_tenants; i++) /* added since */
		if (strcmp(p->tenants[i].path, path) == 0)
			return (int)i;
	return -ENOENT;
}

int policy_index_export(const struct weir_policy *p, const char *name)
{
	const struct weir_export wanted = {.name = name}, *key = &wanted, **found;

	if (p->index) {
		found = bsearch(
			&key, p->index->exports, p->n_exports, sizeof(*p->index->exports), by_name);
		return found ? (int)(*found - p->exports) : -ENOENT;
	}
	for (size_t i = 0; i < p->n_exports; i++)
		if (strcmp(p->exports[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

/* The first place, by name, of what does not come before these `len` bytes. */
static size_t lower_export(const struct weir_policy *p, const char *begin, size_t len)
{
	size_t from = 0, to = p->n_exports;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strncmp(p->index->exports[middle]->name, begin, len) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Names are unique: who was found last time is found again, and we go on behind it. */
static int next_by_name(const struct weir_policy *p, const char *pattern, int after)
{
	const struct weir_export **exports = p->index->exports;
	size_t len = strcspn(pattern, "*?[\\"), i = lower_export(p, pattern, len);

	if (after >= 0)
		i = lower_export(p, p->exports[after].name, strlen(p->exports[after].name) + 1) + 1;
	for (; i < p->n_exports && strncmp(exports[i]->name, pattern, len) == 0; i++)
		if (policy_pattern_fits(pattern, exports[i]->name))
			return (int)(exports[i] - p->exports);
	return -ENOENT;
}

int policy_index_next(const struct weir_policy *p, const char *pattern, int after)
{
	if (is_plain(pattern)) {
		int found = policy_index_export(p, pattern);

		return found > after ? found : -ENOENT;
	}
	if (p->index)
		return next_by_name(p, pattern ? pattern : "*", after);
	for (size_t i = (size_t)after + 1; i < p->n_exports; i++) /* -1 and 1 are 0 */
		if (!pattern || policy_pattern_fits(pattern, p->exports[i].name))
			return (int)i;
	return -ENOENT;
}

/* The first in [0, n) that is not before the name. */
static size_t lower(const struct policy_index_entry *list, size_t n, const char *name)
{
	size_t from = 0;

	while (from < n) {
		size_t middle = from + (n - from) / 2;

		if (strcmp(list[middle].export_, name) < 0)
			from = middle + 1;
		else
			n = middle;
	}
	return from;
}

void policy_index_matches(
	const struct weir_policy *p, const char *export_, struct policy_index_span ret[2])
{
	const struct policy_index *x = p->index;
	size_t from = lower(x->plain, x->n_plain, export_), to = from;

	while (to < x->n_plain && strcmp(x->plain[to].export_, export_) == 0)
		to++;
	ret[0] = (struct policy_index_span){x->plain + from, to - from};
	ret[1] = (struct policy_index_span){x->other, x->n_other};
}
