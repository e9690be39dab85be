/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: a plan (weir-plan(1), PLAN FILE) in force: priorities and profile buckets of tenants, kept beside the policy.
 *
 *   plan/         reads one
 *   plan.c        compares it with a policy, and turns it into claims (policy/impl.h)
 *   plan-put.c    puts one in force, and keeps it across a restart
 *
 * Each version of the policy has one. A plan is taken
 * only by the policy and the profiles for which it was made; one from the cluster's controller, whose policy is another, by the
 * tenants' file, which is the same, and its stages at other servers count nothing here. It stays when the policy changes: a tenant that remains keeps its
 * claim, and the lines of gateway_plan_untrue say what is not as it was.
 */
#pragma once

#include "serve/gateway/plan/plan.h"

struct gateway;
struct gateway_change;
struct gateway_draft;
struct gateway_note;
struct gateway_version;

/* Write the digest of the file of tenants, or of none: a server and its controller have the same. */
void gateway_plan_tenants(const struct weir_policy *p, char ret[GATEWAY_DIGEST]);

/* Note what is not as it was when the plan was made: a line each, at most some. digest: of the policy. */
void gateway_plan_untrue(const struct gateway_plan *plan, const struct weir_policy *p,
	const char *digest, const struct gateway_profiles *profiles, struct gateway_note *note);

/* Make the claims of a plan under a policy. 0 or -ENOMEM. */
int gateway_claims_make(const struct gateway_plan *plan, const struct weir_policy *p,
	const struct gateway_profiles *profiles, struct gateway_claims *ret);

/* ---- plan-put.c */

double gateway_plan_age(const struct gateway_plan *p); /* s since it was applied; NULL: 0 */

/* Give a version that is being made the plan in force (taken; NULL: none). 0 or -ENOMEM. */
int gateway_plan_give(struct gateway_version *v, struct gateway_plan *plan);
/* Make the draft of a change of the plan alone: it shares the policy in force. Sets rc, note and err of the change. */
void gateway_plan_draft(struct gateway *g, struct gateway_change *c);
/* Put the state folder back to the plan in force. */
void gateway_plan_unkeep(struct gateway *g);
/* Main thread: give the draft the members of the gateway that it does not change. */
void gateway_plan_borrow(struct gateway *g, struct gateway_draft *d);
/* Log what is new among the reasons by which the plan in force is not true any more. was: the version before; NULL: none. */
void gateway_plan_log(const struct gateway *g, const struct gateway_version *was);
/* At the start: read the plan that was kept, if there is one; *ret_plan NULL: none. */
int gateway_plan_load(struct gateway *g, struct gateway_plan **ret_plan, struct weir_err *err);
