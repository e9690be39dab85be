/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * override: one value of a policy, changed as if it stood so in the file.
 *
 *   prod/db.max      5k iops            the value is written as in the file, also [2k iops, 20 MiB/s]
 *   prod/db.weight   3                  or {reads: 5k iops}; `none` takes a min, max, burst or slo away
 *   prod/db.min, .burst, .slo
 *   array1.depth     64, auto, {requests: 8, bytes: 512 KiB}
 *   array1.capacity  3.3k iops, auto
 *   enforce          true, false
 *
 * What stands before the last dot is a tenant's path or a resource's name; which, the key says.
 */
#ifndef WEIR_POLICY_OVERRIDE_H
#define WEIR_POLICY_OVERRIDE_H

#include "policy/policy.h"

#define POLICY_OVERRIDE_TEXT 512 /* bytes that hold any value as policy_override_show writes it */

/* Changes p. 0; -ENOENT: there is no such tenant, resource or key; -EINVAL: not such a value; -ENOMEM.
 * On error p is as it was. What the parts of a policy forbid each other is not looked at: several may
 * be right only together. */
int policy_override_set(
	struct weir_policy *p, const char *key, const char *value, struct weir_err *err);

/* After the last: is the policy still one that could be read from a file? 0, or -EINVAL / -ENOMEM and
 * the first reason. remarks (may be NULL): everything that there is to say. */
int policy_override_check(
	struct weir_policy *p, struct weir_policy_remarks *remarks, struct weir_err *err);

/* Do two policies say the same for a key? false also when one of them has no such thing. */
bool policy_override_same(
	const struct weir_policy *a, const struct weir_policy *b, const char *key);

/* The value of a key as it would be written, to within 0.05 %; "none" where there is none. 0 or
 * -ENOENT. */
int policy_override_show(
	const struct weir_policy *p, const char *key, char ret_text[POLICY_OVERRIDE_TEXT]);

#endif
