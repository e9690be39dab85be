/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * planning: POST /v1/plan and /v1/plan/admit, of a gateway and of a cluster's controller: a plan of the policy in force is made aside,
 * and answered when it is there.
 */
#pragma once

#include "policy/policy.h"
#include "serve/api/http.h"

struct gateway;
struct api_plans; /* the thread, and the last plan */

struct api_planned {
	struct loop *loop;
	const char *text, *file; /* the policy in force; the operator's file, NULL: none */
	weir_policy_reader *reader;
	void *reader_arg;
	const struct gateway *gateway; /* whose values of weir set count; NULL: none */
};
/* Answer q later, on the loop. *plans is made with the first call. Return false without memory: nothing is kept. */
bool api_plans_post(struct api_plans **plans, const struct api_planned *of, struct http_request *q,
	bool admit, void (*done)(void *arg, struct http_reply *r), void *arg);
void api_plans_free(struct api_plans *x); /* the loop does not run */
