/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-verb: what the files of `weir policy` share. */
#ifndef WEIR_PROG_POLICY_VERB_H
#define WEIR_PROG_POLICY_VERB_H

#include "ctl/policy.h"
#include "prog/verb.h"
#include <jansson.h>

extern const struct verb verb_policy;

/* To standard output. 0, or -ENOMEM. */
int policy_show_table(const struct weir_policy *p);
int policy_show_json(const struct weir_policy *p);

/* policy-show-gateway.c: exports and what the gateway alone uses, and how it reaches a back end. */
void policy_show_gateway(const struct weir_policy *p);
json_t *policy_show_json_exports(const struct weir_policy *p);
json_t *policy_show_json_gateway(const struct weir_policy *p);
json_t *policy_show_json_reach(const struct weir_resource *r);

/* policy-live.c: of a running gateway; which: remote.h. Both return the exit status. */
struct policy_live {
	const char *socket, *url, *token_file;
};
int policy_apply(const struct policy_live *q, const char *file, bool keep, bool dry);
int policy_show_live(const struct policy_live *q, bool json);

#endif
