/* SPDX-License-Identifier: BSD-3-Clause */
/* impl: the keys of overrides, shared by override.c and show.c. */
#pragma once

#include "policy/override/override.h"

enum what { WEIGHT, MIN, MAX, BURST, SLO, DEPTH, CAPACITY, ENFORCE, NOTHING };

struct target { /* the target of a key */
	enum what what;
	int index; /* of the tenant or resource; enforce: 0 */
};

const char *policy_override_words(const struct weir_err *e); /* of a message, without its place */
enum what policy_override_what(const char *name);            /* the last part of a key */
int policy_override_find(
	const struct weir_policy *p, const char *key, struct target *ret, struct weir_err *err);
