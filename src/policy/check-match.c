/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check-match: find ambiguous matches, matches that fit nothing, and exports that overlap.
 */
#include "policy/folder.h"
#include "policy/index.h"
#include <stdio.h>
#include <stdlib.h>

/* A match without fields was refused already. */
static bool no_fields(const struct weir_match *m)
{
	return !m->export_ && !m->client && !m->uid && !m->tls && !m->path;
}

/* Return false if neither match is more specific. */
static bool check_pair(struct policy_reading *r, const struct weir_tenant *t,
	const struct weir_tenant *u, const struct weir_match *a, const struct weir_match *b)
{
	if (policy_match_same(a, b))
		policy_refuse_at(r, b->at, "'%s' matches the same as '%s' in line %u", u->path,
			t->path, a->at.line);
	else if (policy_match_overlap(a, b))
		policy_refuse_at(r, b->at,
			"'%s' and '%s' (line %u) can match the same request, and neither is more "
			"specific",
			u->path, t->path, a->at.line);
	else
		return false;
	return true;
}

struct keyed {
	struct policy_match_key key;
	uint64_t end; /* policy_match_end, among those of an equal key */
	size_t tenant;
	const struct weir_match *match;
};

static int by_key(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int c = policy_match_key_order(&x->key, &y->key);

	if (c)
		return c;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	if (x->tenant != y->tenant)
		return x->tenant < y->tenant ? -1 : 1;
	return x->match < y->match ? -1 : x->match > y->match;
}

#define UNMATCHED 100 /* exports without a tenant that are counted */
/* About a second of work. Patterns that differ at their beginning or end are not compared with each
 * other, so no usual policy comes near. */
#define PAIRS_MAX (1u << 22)

/* Compare each with those before it until an ambiguous one is found. Return false if it takes too
 * long. */
static bool check_alike(struct policy_reading *r, const struct keyed *all, size_t n, size_t *pairs)
{
	const struct weir_tenant *t = r->policy->tenants;

	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++) {
			if (all[j].tenant == all[i].tenant)
				continue;
			if (++*pairs > PAIRS_MAX) {
				policy_refuse_at(r, all[i].match->at,
					"too many similar matches to compare them all: let their "
					"patterns differ at the beginning or the end");
				return false;
			}
			if (check_pair(r, &t[all[j].tenant], &t[all[i].tenant], all[j].match,
				    all[i].match))
				break;
		}
	return true;
}

/* Sort matches of an equal key by the ends of their fields, as far as all of them have literal
 * ends. */
static void sort_group(struct keyed *all, size_t n)
{
	uint8_t least[POLICY_MATCH_FIELDS], lens[POLICY_MATCH_FIELDS];

	policy_match_ends(all[0].match, least);
	for (size_t i = 1; i < n; i++) {
		policy_match_ends(all[i].match, lens);
		for (int f = 0; f < POLICY_MATCH_FIELDS; f++)
			least[f] = lens[f] < least[f] ? lens[f] : least[f];
	}
	for (size_t i = 0; i < n; i++)
		all[i].end = policy_match_end(all[i].match, least);
	qsort(all, n, sizeof(*all), by_key);
}

static bool alike(const struct keyed *a, const struct keyed *b, bool ends)
{
	return policy_match_key_order(&a->key, &b->key) == 0 && (!ends || a->end == b->end);
}

/* Return how many from the first on are alike. */
static size_t span(const struct keyed *all, size_t n, bool ends)
{
	size_t i = 1;

	while (i < n && alike(&all[0], &all[i], ends))
		i++;
	return i;
}

/* Matches with different keys, or ends, cannot tie. */
static void check_keyed(struct policy_reading *r, struct keyed *all, size_t n)
{
	size_t pairs = 0, group, many;

	for (size_t from = 0; from < n; from += group) {
		group = span(all + from, n - from, false);
		if (group > 1)
			sort_group(all + from, group);
		for (size_t i = from; i < from + group; i += many) {
			many = span(all + i, from + group - i, true);
			if (!check_alike(r, all + i, many, &pairs))
				return;
		}
	}
}

static void check_matches(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	struct keyed *all;
	size_t n = 0;

	for (size_t i = 0; i < p->n_tenants; i++)
		n += p->tenants[i].n_match;
	all = policy_scratch(r, n, sizeof(*all));
	if (!all)
		return;
	n = 0;
	for (size_t i = 0; i < p->n_tenants; i++)
		for (unsigned k = 0; k < p->tenants[i].n_match && !p->tenants[i].made; k++) {
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

/* Return true if a file that may come to a folder is such an export. */
static bool in_folder(const struct weir_policy *p, const char *pattern)
{
	for (size_t i = 0; i < p->n_folders; i++)
		if (policy_folder_can(&p->folders[i], pattern))
			return true;
	return false;
}

static void warn_match(struct policy_reading *r, const struct weir_tenant *t, bool any)
{
	const struct weir_policy *p = r->policy;

	if (t->made)
		return;
	if (any && t->first_child < 0 && !t->n_match && !t->is_default && !t->others &&
		!(t->net && t->net->n_match))
		policy_warn_at(r, t->at, "'%s' has no match, so it never gets a request", t->path);
	/* A cluster's tenants are in one file for all of its machines. */
	for (unsigned k = 0; k < t->n_match && p->n_exports && !p->cluster.n_servers && !t->each;
		k++) {
		const char *glob = t->match[k].export_;

		if (policy_index_next(p, glob, -1) < 0 && !in_folder(p, glob))
			policy_warn_at(
				r, t->match[k].at, "'%s': no export is called '%s'", t->path, glob);
	}
}

/* Write one line for all exports whose clients are all refused, at the place of the first. */
static void warn_unmatched(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	const struct weir_export *first = NULL;
	char more[40] = "";
	size_t n = 0;

	for (size_t i = 0; i < p->n_exports && n < UNMATCHED; i++)
		if (!policy_match_serves(p, p->exports[i].name) && !n++)
			first = &p->exports[i];
	if (n > 1)
		snprintf(more, sizeof(more), " and %s%zu more", n == UNMATCHED ? "at least " : "",
			n - 1);
	if (first)
		policy_warn_at(r, first->at, "no tenant matches export '%s'%s: clients are refused",
			first->name, more);
}

static void warn_matches(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	bool any = false;

	for (size_t i = 0; i < p->n_tenants; i++)
		any |= p->tenants[i].n_match > 0;
	for (size_t i = 0; i < p->n_tenants; i++)
		warn_match(r, &p->tenants[i], any);
	if (any)
		warn_unmatched(r);
}

/* ---- exports */

static uint64_t end_of(const struct weir_export *e)
{
	return e->size ? e->offset + e->size : UINT64_MAX;
}

static int by_place(const void *a, const void *b)
{
	const struct weir_export *x = *(const struct weir_export *const *)a,
				 *y = *(const struct weir_export *const *)b;

	if (x->resource != y->resource)
		return x->resource < y->resource ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void refuse_overlap(
	struct policy_reading *r, const struct weir_export *a, const struct weir_export *b)
{
	if (a > b) { /* report the later one */
		const struct weir_export *first = b;

		b = a;
		a = first;
	}
	policy_refuse_at(r, b->at, "export '%s' overlaps export '%s' (line %u) on resource '%s'",
		b->name, a->name, a->at.line, r->policy->resources[a->resource].name);
}

/* In order of their offsets, compare each with the one before it that reaches furthest. */
static void check_exports(struct policy_reading *r)
{
	const struct weir_policy *p = r->policy;
	const struct weir_export **all = policy_scratch(r, p->n_exports, sizeof(*all)),
				 *furthest = NULL;
	size_t n = 0;

	for (size_t i = 0; all && i < p->n_exports; i++)
		if (!p->exports[i].back)
			all[n++] = &p->exports[i];
	if (all)
		qsort(all, n, sizeof(*all), by_place);
	for (size_t i = 0; all && i < n; i++) {
		bool same = furthest && furthest->resource == all[i]->resource;

		if (same && all[i]->offset < end_of(furthest))
			refuse_overlap(r, furthest, all[i]);
		if (!same || end_of(all[i]) > end_of(furthest))
			furthest = all[i];
	}
	free(all);
}

void policy_check_matches(struct policy_reading *r)
{
	check_matches(r);
	warn_matches(r);
	check_exports(r);
}
