/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volume: volumes that a policy's file does not state: files of a folder, and volumes that came through the API.
 */
#pragma once

#include "policy/policy.h"

struct policy_volume { /* strings are borrowed */
	const char *name, *resource, *back;
	const char *class_; /* NULL: none of its own */
	bool read_only;
	bool found; /* in a folder; else it came through the API */
	struct policy_file file;
};

/* A volume that does not fit the policy: its name is bad or taken, or there is no such resource with volumes. */
typedef void policy_volume_skipped(void *arg, const struct policy_volume *v, const char *why);

/* Add an export for each volume that fits, at the place of its resource, and call `skipped` for each other. Of two with one
 * name the first is added. 0 or -ENOMEM. O((n + exports) log). */
int policy_volumes_add(struct weir_policy *p, const struct policy_volume *list, size_t n,
	policy_volume_skipped *skipped, void *arg);

/* Return 0 if the policy has the class; else -EINVAL with a message that names those it has. */
int policy_volume_class(const struct weir_policy *p, const char *class_, struct weir_err *err);
/* Return why a volume may not have that name; NULL: it may. */
const char *policy_volume_name_bad(const char *name);
