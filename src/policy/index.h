/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * index: which tenants, exports and matches of a policy have to do with one name, without looking at all.
 *
 * A policy that was parsed or copied has one (p->index), in its own memory; one that was put together by
 * hand has none, and everything is looked at instead. Tenants' values may change under it, and tenants
 * be added behind those that there are; exports and matches may not.
 */
#ifndef WEIR_POLICY_INDEX_H
#define WEIR_POLICY_INDEX_H

#include "policy/impl.h"

/* Makes r->policy->index; without memory r->no_memory is set. */
void policy_index_make(struct policy_reading *r);

/* The tenant of that path: index, or -ENOENT. O(log tenants). The policy has an index. */
int policy_index_tenant(const struct weir_policy *p, const char *path);

/* The export of that name: index, or -ENOENT. O(log exports). */
int policy_index_export(const struct weir_policy *p, const char *name);

/* The export that follows `after` (-1: the first) among those that the pattern fits (NULL: any), in an order of the
 * index's own, or -ENOENT. Looks at those that begin as the pattern does; a name that is no pattern is
 * looked up. */
int policy_index_next(const struct weir_policy *p, const char *pattern, int after);

struct policy_index_entry {
	const char *
		key; /* what a field of the match must be, when that is a name and no pattern; else NULL */
	uint32_t field; /* which */
	uint32_t tenant, match;
};
struct policy_index_span {
	const struct policy_index_entry *at;
	size_t n;
};
/* The only matches that can fit a request: those with a field that is just what it is for the request, and
 * all that have none but patterns. O(log matches). The policy has an index. */
#define POLICY_INDEX_SPANS (POLICY_MATCH_FIELDS + 1)
void policy_index_matches(const struct weir_policy *p, const struct weir_who *who,
	struct policy_index_span ret[POLICY_INDEX_SPANS]);

#endif
