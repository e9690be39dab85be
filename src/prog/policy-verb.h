/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-verb: what the files of `weir policy` share. */
#ifndef WEIR_PROG_POLICY_VERB_H
#define WEIR_PROG_POLICY_VERB_H

#include "ctl/policy.h"

/* To standard output. 0, or -ENOMEM. */
int policy_show_table(const struct weir_policy *p);
int policy_show_json(const struct weir_policy *p);

#endif
