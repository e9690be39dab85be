/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of yamldoc that knows libyaml: bytes in, values out. */
#ifndef WEIR_BASE_YAMLDOC_LOAD_H
#define WEIR_BASE_YAMLDOC_LOAD_H

#include "base/yamldoc.h"

struct yamldoc_value { /* small: a policy of 100,000 tenants has over a million */
	union {
		const char *text; /* a scalar's */
		const int *items; /* ids: a list's values; a map's keys and values in turn */
	};
	unsigned n;            /* values, or pairs */
	unsigned line, column; /* from 1 */
	unsigned kind : 8;     /* enum yamldoc_kind; of a null: a scalar */
	unsigned null : 1;     /* a plain ~, null or nothing */
	unsigned nul : 1;      /* a NUL character stands in its text */
};

struct yamldoc_values { /* by id − 1; the root is the first. Texts and items are in chunks */
	struct yamldoc_value *of;
	size_t n, room;
	int tagged;      /* the first with a tag that is not YAML's own, or 0 */
	const char *tag; /* of it */
	struct yamldoc_chunk *chunks;
	size_t left; /* bytes of the first of them */
};

/* One document, with a root that is no null. -EINVAL with a message, or -ENOMEM without. An alias is the id of what it
 * stands for, which is not around it. */
int yamldoc_load(const char *text, size_t len, const char *name, struct yamldoc_values *ret,
	struct weir_err *err);
void yamldoc_values_free(struct yamldoc_values *v);

#endif
