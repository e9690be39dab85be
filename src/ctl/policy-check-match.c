/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy-check-match: matches of which neither is more specific, matches that nothing fits, and exports
 * that overlap.
 */
#include "ctl/policy-index.h"
#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_match(const struct weir_match *a, const struct weir_match *b)
{
	return same_text(a->export_, b->export_) && same_text(a->client, b->client) &&
	       same_text(a->uid, b->uid) && same_text(a->tls, b->tls) &&
	       same_text(a->path, b->path);
}

/* A match without fields was refused already. */
static bool no_fields(const struct weir_match *m)
{
	return !m->export_ && !m->client && !m->uid && !m->tls && !m->path;
}

static void check_pair(struct policy_reading *r, const struct weir_tenant *t,
	const struct weir_tenant *u, const struct weir_match *a, const struct weir_match *b)
{
	if (same_match(a, b))
		policy_refuse_at(r, b->at, "'%s' matches the same as '%s' in line %u", u->path,
			t->path, a->at.line);
	else if (policy_match_overlap(a, b))
		policy_refuse_at(r, b->at,
			"'%s' and '%s' (line %u) can match the same request, and neither is more "
			"specific",
			u->path, t->path, a->at.line);
}

struct keyed {
	struct policy_match_key key;
	size_t tenant;
	const struct weir_match *match;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int c = policy_match_key_order(&x->key, &y->key);

	if (c)
		return c;
	if (x->tenant != y->tenant)
		return x->tenant < y->tenant ? -1 : 1;
	return x->match < y->match ? -1 : x->match > y->match;
}

/* Among those of equal keys each is compared with all before it; the others cannot tie. */
static void check_keyed(struct policy_reading *r, const struct keyed *all, size_t n)
{
	const struct weir_tenant *t = r->policy->tenants;
	size_t start = 0;

	for (size_t i = 1; i < n; i++) {
		if (policy_match_key_order(&all[start].key, &all[i].key) != 0)
			start = i;
		for (size_t j = start; j < i; j++)
			if (all[j].tenant != all[i].tenant)
				check_pair(r, &t[all[j].tenant], &t[all[i].tenant], all[j].match,
					all[i].match);
	}
}

static void check_matches(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	struct keyed *all;
	size_t n = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		n += p->tenants[i].n_match;
	all = calloc(n ? n : 1, sizeof(*all));
	if (!all) {
		r->no_memory = true;
		return;
	}
	n = 0;
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match; k++) {
			const struct weir_match *m = &p->tenants[i].match[k];

			if (no_fields(m))
				continue;
			policy_match_key(m, &all[n].key);
			all[n].tenant = i;
			all[n++].match = m;
		}
	qsort(all, n, sizeof(*all), by_key);
	check_keyed(r, all, n);
	free(all);
}

static void warn_match(struct policy_reading *r, const struct weir_tenant *t, bool any)
{
	const struct weir_policy *p = r->policy;

	if (any && t->first_child < 0 && !t->n_match && !t->is_default)
		policy_warn_at(
			r, t->at, "'%s' has no match, so no request is ever its own", t->path);
	/* A cluster's tenants stand in one file for all of its machines. */
	for (unsigned k = 0; k < t->n_match && p->n_exports && !p->cluster.n_servers; k++) {
		const char *glob = t->match[k].export_;

		if (policy_index_next(p, glob, -1) < 0)
			policy_warn_at(
				r, t->match[k].at, "'%s': no export is called '%s'", t->path, glob);
	}
}

static void warn_matches(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	bool any = false;

	for (size_t i = 0; i < p->n_tenants; i++)
		any |= p->tenants[i].n_match > 0;
	for (size_t i = 0; i < p->n_tenants; i++)
		warn_match(r, &p->tenants[i], any);
}

/* ---- exports */

static bool exports_overlap(const struct weir_export *a, const struct weir_export *b)
{
	uint64_t end_a = a->size ? a->offset + a->size : UINT64_MAX;
	uint64_t end_b = b->size ? b->offset + b->size : UINT64_MAX;

	return a->resource == b->resource && a->offset < end_b && b->offset < end_a;
}

static void check_exports(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;

	for (size_t i = 0; i < p->n_exports; i++)
		for (size_t j = 0; j < i; j++) {
			const struct weir_export *a = &p->exports[j], *b = &p->exports[i];

			if (exports_overlap(a, b))
				policy_refuse_at(r, b->at,
					"export '%s' overlaps export '%s' (line %u) on resource "
					"'%s'",
					b->name, a->name, a->at.line,
					p->resources[a->resource].name);
		}
}

void policy_check_matches(struct policy_reading *r)
{
	check_matches(r);
	warn_matches(r);
	check_exports(r);
}
