/* SPDX-License-Identifier: BSD-3-Clause */
/* copy: a policy of one's own, with all its strings, to change a value of. */
#ifndef WEIR_POLICY_COPY_H
#define WEIR_POLICY_COPY_H

#include "policy/policy.h"

/* 0 or -ENOMEM. Freed by weir_policy_free, as its original. */
int policy_copy(const struct weir_policy *from, struct weir_policy **ret_policy);

/* A policy without tenants means that all are equal: gives it one, called "everybody", that takes what
 * nobody matches. Nothing if there are tenants. 0 or -ENOMEM. */
int policy_copy_everybody(struct weir_policy *p);

#endif
