/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * each: templates: `each` of a tenant makes one tenant below it for every export, client, uid or TLS
 * identity that matches.
 *
 *   name: vms
 *   each: {match: {export: "vm-*"}, class: silver}
 *
 * A policy as read has the template (weir_tenant.each) and one tenant below it, `others`. The caller keeps
 * the list of senders for which there are tenants, and makes them in each version of the policy:
 *
 *   policy_each_match    which tenant; or which template has none for this sender yet
 *   policy_each_expand   makes the tenants of a list of senders
 *   policy_override_set  changes some
 *   policy_size_resolve  (by-size.h) limits by size
 *   policy_each_fit      takes the mins that do not fit away again
 *   policy_override_check
 *
 * After that they are tenants as any other. A sender for which there is no tenant (the template has max_tenants, or
 * the sender lacks the field by which they differ) shares `others`.
 */
#pragma once

#include "policy/policy.h"

#define POLICY_EACH_NAME   64 /* bytes that hold a tenant's name */
#define POLICY_EACH_OTHERS "others"

/* Return the tenant of a request as weir_policy_match does, but -EAGAIN with *ret_template, the template's tenant, if that
 * should have one more tenant for this sender. */
int policy_each_match(const struct weir_policy *p, const struct weir_who *who, int *ret_template);

/* Write the name of the template's tenant for the sender. Return false if the sender has none. A name that no tenant may
 * have is cut, its bad characters replaced, and a hash of it added. */
bool policy_each_name(
	const struct weir_each *e, const struct weir_who *who, char ret_name[POLICY_EACH_NAME]);

struct policy_instance { /* a sender that has, or shall have, a tenant of a template */
	struct weir_who who;
	bool gone;   /* its export does not exist: a template by export makes no tenant for it */
	int tenant;  /* returned: its index; -1: no template has a tenant for it */
	void *texts; /* the caller's */
};

/* Make the tenants of the senders, in their order until the template has max_tenants. Two senders may have the same tenant.
 * Indices of tenants change. 0 or -ENOMEM: then p can only be freed. */
int policy_each_expand(struct weir_policy *p, struct policy_instance *list, size_t n);

/* Take away the mins of tenants made, and mins by size, that do not fit (min_off). After policy_each_expand with the same list.
 * was: the policy in force until now, or NULL. The mins in force there come first, then the others in the order of the list;
 * one that does not fit takes none from those after it. strict: the mins of tenants that exist in `was` stay, unless
 * they were off there; if they do not fit, the check refuses the policy. 0 or -ENOMEM. */
int policy_each_fit(struct weir_policy *p, const struct policy_instance *list, size_t n,
	const struct weir_policy *was, bool strict);

/* Return true if the path is that of a tenant that a template may make and has not made. */
bool policy_each_absent(const struct weir_policy *p, const char *path);
/* Make those of the paths that policy_each_absent says, as if their first clients had come; other paths are left. Limits by size
 * hold where the policy states the export's size. 0, -ENOMEM; or -EINVAL with a message: no sender has such a tenant. */
int policy_each_make(
	struct weir_policy *p, const char *const *paths, size_t n, struct weir_err *err);
