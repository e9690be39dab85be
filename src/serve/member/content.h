/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * content: a stored version as a policy.
 *
 * Its text is a policy, or only a list of tenants, as a cluster's is: then resources and listeners are each member's own.
 */
#pragma once

#include "policy/policy.h"
#include "serve/versions/versions.h"
#include "serve/snapshot/note.h"

/* Parse a text, whose last `tenants` bytes are the file of tenants that it names. 0, -ENOMEM, or -EINVAL with remarks. */
int content_parse(const char *text, size_t length, size_t tenants, const char *name,
	struct weir_policy **ret_policy, struct weir_policy_remarks *ret_remarks);
/* Parse the policy of a member whose own file is `local`, with the tenants of a text that has only tenants. */
int content_parse_at(const char *local, const char *local_name, const char *text, size_t length,
	const char *name, struct weir_policy **ret_policy, struct weir_policy_remarks *ret_remarks);
/* Return true if the text is a list, of tenants. */
bool content_is_list(const char *text, size_t n);
/* A version, with the values that were set. 0, -ENOMEM, or -EINVAL with a message. */
int content_policy(
	const struct versions_text *v, struct weir_policy **ret_policy, struct weir_err *err);
/* Set the values of a version that have not ended in its policy; those of keys that it does not have are left out. */
void content_sets(struct weir_policy *p, const struct record *r, double now);
/* List the differences of two versions; if one is not a policy here, the lines that differ. */
void content_differences(const struct versions_text *from, const struct versions_text *to,
	struct gateway_note *note);
