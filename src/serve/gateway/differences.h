/* SPDX-License-Identifier: BSD-3-Clause */
/* differences: the differences of two policies, as lines. */
#pragma once

#include "policy/policy.h"
#include "serve/snapshot/note.h"

/* List the differences in `to`: a line for each tenant that is added, removed or changed, for the
 * keys of resources and exports, and for changes that need a restart. At most 100, then the number
 * of others. */
void gateway_note_changes(struct gateway_note *n, const struct weir_policy *from,
	const struct weir_policy *to, bool own);
