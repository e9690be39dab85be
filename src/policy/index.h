/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index: find the tenants, exports and matches of a policy by name without a full search.
 *
 * A policy that was parsed or copied has an index (p->index), in its own memory; one that was made
 * by hand has none, and is searched instead. Tenants' values may change while indexed, and tenants
 * be appended; exports and matches may not.
 */
#pragma once

#include "policy/impl.h"

/* Make r->policy->index; without memory r->no_memory is set. */
void policy_index_make(struct policy_reading *r);

/* Return the index of the tenant of that path, or -ENOENT. O(log tenants). The policy has an
 * index. */
int policy_index_tenant(const struct weir_policy *p, const char *path);

/* Return the index of the export of that name, or -ENOENT. O(log exports). */
int policy_index_export(const struct weir_policy *p, const char *name);

/* Return the export that follows `after` (-1: the first) among those that fit the pattern (NULL:
 * any), in the index's order, or -ENOENT. Checks only names with the pattern's literal beginning; a
 * name without wildcards is looked up. */
int policy_index_next(const struct weir_policy *p, const char *pattern, int after);

/* The same, for resources: exports of the same resource as `after` may be left out, and are where the pattern is only a
 * beginning (NULL, "*", "vm*"). So a tenant without a pattern costs O(log exports), however many exports there are. */
int policy_index_other(const struct weir_policy *p, const char *pattern, int after);

struct policy_index_entry {
	/* exact value of a field of the match, if it is a name and no pattern; else NULL */
	const char *key;
	uint32_t field; /* which */
	uint32_t tenant, match;
};
struct policy_index_span {
	const struct policy_index_entry *at;
	size_t n;
};
/* Get the only matches that can fit a request: those with a field of exactly the request's value,
 * and all that have only patterns. O(log matches). The policy has an index. */
#define POLICY_INDEX_SPANS (POLICY_MATCH_FIELDS + 1)
void policy_index_matches(const struct weir_policy *p, const struct weir_who *who,
	struct policy_index_span ret[POLICY_INDEX_SPANS]);
