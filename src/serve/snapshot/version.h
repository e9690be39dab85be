/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * version: one version of the policy in force, with the data derived from it.
 *
 * It never changes once it is made, and is freed with its last reference. So a reader on any thread
 * keeps a version while the gateway changes to the next.
 */
#pragma once

#include "policy/policy.h"
#include "serve/gateway/plan/plan.h"
#include "serve/show/policy-show.h"
#include "serve/snapshot/note.h"
#include <stdatomic.h>

struct gateway_version {
	atomic_uint references;
	struct weir_policy *policy;
	struct weir_bounds *bounds;    /* by tenant */
	double *of_parent, *of_all;    /* by tenant: weir_policy_share */
	struct policy_show_width show; /* of its table */
	char *text, *name;             /* of the file */
	/* of the text and the tenants' file, for plans; "": not computed: only a version with a plan needs it */
	char digest[GATEWAY_DIGEST];
	/* A line for each thing that is not as the policy says, and stops no volume. Filled before it is in force. */
	struct gateway_note remarks;
	struct gateway_profiles profiles; /* by resource. Filled before it is in force */
	/* The same: the plan, NULL: none; its claims; and a line for each thing by which it is not true any more. */
	struct gateway_plan *plan;
	struct gateway_claims claims;
	struct gateway_note untrue;
	struct gateway_version *
		owner; /* held: the version that owns all of the above but the plan; NULL: itself */
};

/* Take the policy on success; text and name are copied. The caller has one reference. O(tenants):
 * not for a thread that must not pause. 0 or -ENOMEM. */
int gateway_version_new(struct weir_policy *p, const char *text, const char *name,
	struct gateway_version **ret_version);
/* Make a version of the same policy, without a plan. Any thread. 0 or -ENOMEM. */
int gateway_version_share(struct gateway_version *v, struct gateway_version **ret_version);
struct gateway_version *gateway_version_hold(struct gateway_version *v);
void gateway_version_drop(struct gateway_version *v); /* NULL is fine */
