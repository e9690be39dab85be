/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profile: the profiles that the resources of a policy name, read once and shared by versions of the policy.
 *
 * A table is frozen: its file is read at the start, and when a policy is applied or the gateway's own file is read again; not when
 * a value is set, or a volume comes.
 */
#pragma once

#include "model/estimate.h"
#include "policy/policy.h"
#include <stdatomic.h>

#define GATEWAY_DIGEST 65 /* SHA-256 in hex, with its NUL */

struct gateway_profile {
	atomic_uint references;
	char *name, *path; /* as the policy has it; as it was opened */
	char digest[GATEWAY_DIGEST];
	struct estimate table;
};

struct gateway_profiles { /* by resource of a policy; NULL: it has none */
	struct gateway_profile **all;
	size_t n;
};

/* Write the SHA-256 of a text. */
void gateway_digest(const char *text, size_t len, char ret[GATEWAY_DIGEST]);

/* Get the profiles of a policy's resources. Those that `was` has by the same name are shared, or (reread) read again from the same
 * path. Others are read, beside the file that names them, if the policy is the operator's own; else -EINVAL. */
int gateway_profiles_make(const struct weir_policy *p, const struct gateway_profiles *was, bool own,
	bool reread, struct gateway_profiles *ret, struct weir_err *err);
void gateway_profiles_free(struct gateway_profiles *p);
