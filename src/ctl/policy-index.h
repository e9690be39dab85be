/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy-index: which tenants, exports and matches of a policy have to do with one name, without looking at all.
 *
 * A policy that was parsed or copied has one (p->index), in its own memory; one that was put together by
 * hand has none, and everything is looked at instead. Tenants' values may change under it, and tenants
 * be added behind those that there are; exports and matches may not.
 */
#ifndef WEIR_CTL_POLICY_INDEX_H
#define WEIR_CTL_POLICY_INDEX_H

#include "ctl/policy-impl.h"

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
	const char *export_; /* of the match, when it is a name and no pattern */
	uint32_t tenant, match;
};
struct policy_index_span {
	const struct policy_index_entry *at;
	size_t n;
};
/* The only matches that can fit a request to that export: those that say just its name, and all with a
 * pattern or none. O(log matches). The policy has an index. */
void policy_index_matches(
	const struct weir_policy *p, const char *export_, struct policy_index_span ret[2]);

#endif
