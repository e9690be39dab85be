/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * by-size: limits that follow the size of what a tenant uses: `10 iops/GiB`, `{rate: 0.5 MiB/s/GiB, at_least: 20 MiB/s}`.
 *
 * LAW     rate = per_gib × size / GiB, at least at_least, at most at_most; size: of the exports that the tenant matches by
 *         name, together. A max is never below the tenant's own min, a min never above its max. A burst that is not
 *         above the rate is none. While the size is not known there is no such limit: no client can use the export yet.
 */
#pragma once

#include "policy/policy.h"

/* Return the bytes of an export; 0: not known. */
typedef uint64_t policy_size_fn(void *arg, const char *name);

/* Put the limits by size of all tenants into their min and max. fn NULL: the sizes that the policy states. */
void policy_size_resolve(struct weir_policy *p, policy_size_fn *fn, void *arg);
/* Return true if a limit of the policy is by size. */
bool policy_size_used(const struct weir_policy *p);

/* Write it as in a file: "3 iops/GiB", "{rate: 3 iops/GiB, at_least: 100 iops}". ret has room for POLICY_SIZE_TEXT. */
#define POLICY_SIZE_TEXT 160
char *policy_size_show(const struct weir_by_size *s, char *ret);
