/* SPDX-License-Identifier: BSD-3-Clause */
/* yamldoc-load: the part of yamldoc that uses libyaml: bytes in, values out. */
#pragma once

#include "base/yamldoc.h"

struct yamldoc_value { /* small: a policy of 100,000 tenants has over a million */
	union {
		const char *text; /* of a scalar */
		const int *items; /* ids: a list's values; a map's keys and values, alternating */
	};
	unsigned n;            /* values, or pairs */
	unsigned line, column; /* from 1 */
	unsigned kind : 8;     /* enum yamldoc_kind; a null is a scalar */
	unsigned null : 1;     /* a plain ~, null or nothing */
	unsigned nul : 1;      /* its text contains a NUL character */
};

struct yamldoc_values { /* by id − 1; the root is the first. Chunks hold texts and items */
	struct yamldoc_value *of;
	size_t n, room;
	int tagged;      /* the first value with a non-YAML tag, or 0 */
	const char *tag; /* of that value */
	struct yamldoc_chunk *chunks;
	size_t left; /* free bytes in the first chunk */
};

/* Load one document, whose root is not null. Return -EINVAL with a message, or -ENOMEM without. An
 * alias is the id of its target, which does not contain the alias. */
int yamldoc_load(const char *text, size_t len, const char *name, struct yamldoc_values *ret,
	struct weir_err *err);
void yamldoc_values_free(struct yamldoc_values *v);
/* Allocate from the chunks, aligned for ids. NULL: no memory. */
void *yamldoc_allocate(struct yamldoc_values *v, size_t size);
