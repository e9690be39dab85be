/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-verb: what the files of `weir policy` share. */
#ifndef WEIR_CLI_POLICY_VERB_H
#define WEIR_CLI_POLICY_VERB_H

#include <weir/policy.h>
#include "serve/api/policy-show.h"
#include "cli/common/verb.h"

extern const struct verb verb_policy;

/* policy-live.c: of a running gateway; which: remote.h. Both return the exit status. */
struct policy_live {
	const char *socket, *url, *token_file;
};
int policy_apply(const struct policy_live *q, const char *file, bool keep, bool dry);
int policy_show_live(const struct policy_live *q, bool json);

#endif
