/* SPDX-License-Identifier: BSD-3-Clause */
/* policy-verb: shared by the files of `weir policy`. */
#pragma once

#include "policy/policy.h"
#include "serve/show/policy-show.h"
#include "cli/common/verb.h"

extern const struct verb verb_policy;

/* policy-live.c: for a running gateway; `at`: as in remote_of_options. Both return the exit status. */
int policy_apply(const char *const *at, const char *file, bool keep, bool dry);
int policy_show_live(const char *const *at, bool json);

/* policy-keys.c: print the settings of a controller, or of all (NULL). Return the exit status. */
int policy_keys_show(const char *name, bool pod);
