/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plans: POST /v1/plan and /v1/plan/admit, of a gateway and of a cluster's controller: a plan of the policy in force is made aside,
 * and answered when it is there.
 */
#pragma once

#include "policy/policy.h"
#include "serve/http/http.h"

struct gateway;
struct plans; /* the thread, and the last plan */

struct plans_of {
	struct loop *loop;
	const char *text, *file; /* the policy in force; the operator's file, NULL: none */
	weir_policy_reader *reader;
	void *reader_arg;
	const struct gateway *gateway; /* whose values of weir set count; NULL: none */
};
/* Answer q later, on the loop. *plans is made with the first call. Return false without memory: nothing is kept. */
bool plans_post(struct plans **plans, const struct plans_of *of, struct http_request *q, bool admit,
	void (*done)(void *arg, struct http_reply *r), void *arg);
void plans_free(struct plans *x); /* the loop does not run */
