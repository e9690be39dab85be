/* SPDX-License-Identifier: BSD-3-Clause */
/* copy: copy a policy with all its strings, to change a value in the copy. */
#pragma once

#include "policy/policy.h"

/* 0 or -ENOMEM. Freed by weir_policy_free, like the original. */
int policy_copy(const struct weir_policy *from, struct weir_policy **ret_policy);

/* In a policy without tenants all clients are equal: add one tenant, called "everybody", for all
 * unmatched requests. Does nothing if there are tenants. 0 or -ENOMEM. */
int policy_copy_everybody(struct weir_policy *p);
