/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jobnames: small numbers for the names of jobs.
 *
 * A controller knows its jobs by number; people, files and other runs know them by name. A name
 * keeps its number from the time it is added until it is dropped; then the number can be reused.
 *
 * METHOD  An array by number, and a table of numbers by a hash of the name, rebuilt when it is too
 *         small: O(1) a name, O(names) for a rebuild. Free numbers are found by a walk that
 *         continues where the last one ended.
 *
 * Nothing here locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jobnames {          /* zero-initialised by the caller */
	char **names;      /* by number − 1; NULL: free */
	size_t n, room;    /* numbers given so far, free ones included */
	size_t used;       /* names */
	size_t low;        /* no number below is free */
	size_t swept;      /* progress of the sweep */
	uint32_t *table;   /* numbers; 0: empty */
	size_t table_room; /* a power of 2, over twice the names */
};

/* Return the name's number, ≥ 1, a new one if it has none; 0: out of memory. */
uint64_t jobnames_add(struct jobnames *j, const char *name);
uint64_t jobnames_find(const struct jobnames *j, const char *name); /* 0: unknown name */
const char *jobnames_name(const struct jobnames *j, uint64_t id);   /* NULL: unused number */
/* Check the next n names, in turn, and drop those for which `keep` is false. The numbers of the
 * others stay. */
void jobnames_sweep(struct jobnames *j, size_t n, bool (*keep)(uint64_t id, void *arg), void *arg);
void jobnames_free(struct jobnames *j);
