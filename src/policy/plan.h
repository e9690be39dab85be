/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: what a planner asks of a policy. */
#pragma once

#include "policy/policy.h"

/* Find a resource or a link by its name; false: there is none. */
bool policy_plan_stage(const struct weir_policy *p, const char *name, struct policy_stage *ret);

/* Return true if a name is a server of the cluster, and no resource or link of this policy. */
bool policy_cluster_elsewhere(const struct weir_policy *p, const char *name);

/* Return the most requests inside: the depth, or the most to which its controller raises it; below 1: not stated. */
double policy_plan_depth(const struct weir_resource *r);

/* Write the one or two hold buckets of a part of a max (policy/knobs/install.c); return their number. */
unsigned policy_install_max(
	const struct weir_limit *max, double part, struct weir_bucket_spec ret[2]);

/* Return the number of the group of tenants whose bursts come together, or 0. */
static inline unsigned policy_plan_together(const struct weir_policy *p, size_t tenant)
{
	const struct policy_planned *of = p->tenants[tenant].planned;

	return of ? of->together : 0;
}

/* Write an slo as it is read: "p99.9 reads < 10ms over 5m". Return buf. */
#define POLICY_SLO_TEXT 128
char *policy_plan_show_slo(const struct weir_tenant *t, char buf[POLICY_SLO_TEXT]);
