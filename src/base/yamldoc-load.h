/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of yamldoc that knows libyaml: bytes in, values out. */
#ifndef WEIR_BASE_YAMLDOC_LOAD_H
#define WEIR_BASE_YAMLDOC_LOAD_H

#include "base/yamldoc.h"

struct yamldoc_value {
	unsigned line, column;  /* from 1 */
	enum yamldoc_kind kind; /* of a null: a scalar */
	bool null;              /* a plain ~, null or nothing */
	bool nul;               /* a NUL character stands in its text */
	const char *tag;        /* one that is not YAML's own, or NULL */
	const char *text;       /* a scalar's */
	const int *items;       /* ids: a list's values; a map's keys and values in turn */
	size_t n;               /* values, or pairs */
};

struct yamldoc_values { /* by id − 1; the root is the first. Texts and items are in chunks */
	struct yamldoc_value *of;
	size_t n, room;
	struct yamldoc_chunk *chunks;
	size_t left; /* bytes of the first of them */
};

/* One document, with a root that is no null. -EINVAL with a message, or -ENOMEM without. An alias is the id of what it
 * stands for, which is not around it. */
int yamldoc_load(const char *text, size_t len, const char *name, struct yamldoc_values *ret,
	struct weir_err *err);
void yamldoc_values_free(struct yamldoc_values *v);

#endif
