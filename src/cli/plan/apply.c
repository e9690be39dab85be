/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/plan/apply.h"
#include "cli/common/remote.h"
#include "cli/plan/plan.h"
#include "serve/http/http.h"

int plan_apply(const char *const *at, const char *text, size_t len)
{
	struct remote *r;
	json_t *reply;
	int status;

	if (len > HTTP_BODY_MAX)
		return opts_fail(&verb_plan, "the plan is too large for the gateway's API");
	status = remote_of_options(&verb_plan, at, &r);
	if (status >= 0)
		return status;
	status = remote_ask(r, "PUT", "/v1/plan", text, len, &reply);
	remote_close(r);
	if (status >= 0)
		return status;
	remote_notes(reply);
	puts("the plan is in force");
	json_decref(reply);
	return 0;
}
