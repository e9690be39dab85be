/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan: a plan's file (weir-plan(1), PLAN FILE) as it is read.
 *
 *   file.c     reads one
 *   values.c   reads its values
 *   profile.c  reads the profiles that a policy names
 *
 * A plan never changes once it is read, and is freed with its last reference.
 */
#pragma once

#include "policy/impl.h"
#include "serve/gateway/plan/profile.h"
#include <stdatomic.h>

struct gateway_plan_stage {
	const char *name;
	bool time; /* its buckets are of device time; else of bytes */
	struct policy_claim claim;
};

struct gateway_plan_tenant {
	const char *path;
	double percentile;
	double latency, bound; /* s; bound: INFINITY: there is none */
	struct gateway_plan_stage *stages;
	size_t n_stages;
};

struct gateway_plan {
	atomic_uint references;
	uint64_t number; /* counts the plans of a gateway, from 1 on */
	double applied;  /* s since 1970 */
	char policy[GATEWAY_DIGEST];
	/* of the file as the cluster's controller has sent it, and of the file of tenants for which it was made; "": it is for this
	 * gateway's policy */
	char digest[GATEWAY_DIGEST];
	char tenants_digest[GATEWAY_DIGEST];
	const char *made; /* as the file has it; "": it does not say */
	struct gateway_plan_profile {
		const char *resource;
		char digest[GATEWAY_DIGEST];
	} * profiles;
	size_t n_profiles;
	struct gateway_plan_tenant *tenants; /* in the order of their paths */
	size_t n_tenants;
	char *text; /* the file's */
	size_t len;
	struct arena memory;
};

/* Read a plan's file. 0; -EINVAL with a message; -ENOMEM. */
int gateway_plan_read(
	const char *text, size_t len, struct gateway_plan **ret_plan, struct weir_err *err);
struct gateway_plan *gateway_plan_hold(struct gateway_plan *p); /* NULL is fine, here and there */
void gateway_plan_drop(struct gateway_plan *p);
const struct gateway_plan_tenant *gateway_plan_tenant(
	const struct gateway_plan *p, const char *path); /* or NULL */

/* A version's claims, by resource and tenant; NULL: the plan has no stage there. */
struct gateway_claims {
	struct policy_claim **of;
	size_t n;
};
void gateway_claims_free(struct gateway_claims *c);
