/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * override: change one value of a policy, as if it were in the file.
 *
 *   prod/db.max      5k iops     the value is written as in the file, also [2k iops, 20 MiB/s]
 *   prod/db.weight   3           or {reads: 5k iops}; `none` removes a min, max, burst or slo
 *   prod/db.min, .burst, .slo
 *   array1.depth     64, auto, {requests: 8, bytes: 512 KiB}
 *   array1.capacity  3.3k iops, auto
 *   enforce          true, false
 *
 * The text before the last dot is a tenant's path or a resource's name, depending on the key.
 */
#pragma once

#include "policy/policy.h"

#define POLICY_OVERRIDE_TEXT 1024 /* bytes that hold any value as policy_override_show writes it */

/* Change p. 0; -ENOENT: no such tenant, resource or key; -EINVAL: an invalid value; -ENOMEM. On
 * error p is unchanged. Values are not checked against each other: several changes may be valid
 * only together. */
int policy_override_set(
	struct weir_policy *p, const char *key, const char *value, struct weir_err *err);

/* The same for a share of the machine's links, at a shaper:
 *   prod/db.net.max  1 Gbit/s    also .net.in.max, .net.out.max, and min and weight; `none`: as if it were not stated
 * A max is never refused for the mins below it, which give way. p->tenants[…].net is replaced, and its matches are shared. */
int policy_override_net(
	struct weir_policy *p, const char *key, const char *value, struct weir_err *err);

/* Check a value for a tenant that a template may make and has not made: 0; -ENOENT: it is none; -EINVAL, -ENOMEM. */
int policy_override_later(
	struct weir_policy *p, const char *key, const char *value, struct weir_err *err);

/* After the last change: check that the policy is still valid. 0, or -EINVAL / -ENOMEM and the
 * first reason. remarks (may be NULL): all errors and warnings. */
int policy_override_check(
	struct weir_policy *p, struct weir_policy_remarks *remarks, struct weir_err *err);

/* Return true if two policies have the same value for a key; false also if one of them has no such
 * key. */
bool policy_override_same(
	const struct weir_policy *a, const struct weir_policy *b, const char *key);

/* Write the value of a key as in a file, to within 0.05 %; "none" if there is none. 0 or
 * -ENOENT. */
/* The same for a tenant that is in no policy, or a class; key: weight, min, max, burst or slo. */
void policy_override_show_tenant(
	const struct weir_tenant *t, const char *key, char ret_text[POLICY_OVERRIDE_TEXT]);
int policy_override_show(
	const struct weir_policy *p, const char *key, char ret_text[POLICY_OVERRIDE_TEXT]);
