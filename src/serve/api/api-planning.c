/* SPDX-License-Identifier: BSD-3-Clause */
/* api-planning: POST /v1/plan and /v1/plan/admit of a gateway. */
#include "serve/api/api-impl.h"
#include "serve/host/plans.h"

static void answer_call(void *arg, struct http_reply *r)
{
	api_answer(api_keep(arg), r);
}

static void start(struct api *a, struct http_request *q, bool admit)
{
	struct plans_of of = {.loop = gateway_loop(a->gateway),
		.text = gateway_policy_text(a->gateway),
		.gateway = a->gateway};

	of.file = gateway_own_file(a->gateway, &of.reader, &of.reader_arg);
	if (plans_post(&a->plans, &of, q, admit, answer_call, q))
		api_keep(q);
}

void api_post_plan(struct api *a, struct http_request *q, struct http_reply *ret)
{
	start(a, q, false);
}

void api_post_admit(struct api *a, struct http_request *q, struct http_reply *ret)
{
	start(a, q, true);
}

void api_plans_stop(struct api *a)
{
	plans_free(a->plans);
}
