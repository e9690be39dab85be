/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kept: the plan in force in the state folder, of a gateway and of a cluster's controller:
 *   {"number": 3, "applied": 1763467200, "digest": "…", "tenants": "…", "plan": {…}}
 * with null as the plan after one was removed. Digests are those of a plan that came from a controller; else empty.
 */
#pragma once

#include "serve/gateway/plan/plan.h"

struct plan_kept {
	uint64_t number; /* of the last change; 0: there was none */
	double applied;  /* s since 1970 */
	const char *digest, *tenants;
	const char *text; /* the plan's; NULL: none is in force */
};

/* 0; -ENOMEM, or -EIO with a message: the file is then unchanged. */
int plan_kept_write(
	const char *folder, const char *name, const struct plan_kept *k, struct weir_err *err);
/* Read it, without spaces between the plan's values. *ret_plan: the plan with its number; NULL: none is in force. Without a file
 * both are 0. 0 or -ENOMEM. */
int plan_kept_read(const char *folder, const char *name, uint64_t *ret_number,
	struct gateway_plan **ret_plan, struct weir_err *err);
