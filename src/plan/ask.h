/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ask: a plan as an API asks for it: one object in, one out (weir-api(7), POST /v1/plan).
 *
 * A body may name no file: the policy and the files that it names are the operator's, and a new tenant's trace comes inside the
 * body.
 */
#ifndef WEIR_PLAN_ASK_H
#define WEIR_PLAN_ASK_H

#include "plan/planning.h"

struct planning_ask {
	struct policy_text policy;
	/* reads the files that the policy names; NULL: none may be read, since the policy is not the operator's own file */
	weir_policy_reader *reader;
	void *reader_arg;
	const struct planning_override *overrides;
	size_t n_overrides;
	bool admit;                  /* the body has new tenants */
	const struct planning *base; /* as in planning_options */
	void (*run)(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg);
	void *pool;
};

/* Plan as a body of `len` bytes asks. ret_planning is the plan, for planning_free. 0; or -EINVAL, -ENOMEM or what the
 * reader returns, and the reason. */
int planning_ask(const struct planning_ask *a, const char *body, size_t len,
	struct planning *ret_planning, json_t **ret_json, struct weir_err *err);

#endif
