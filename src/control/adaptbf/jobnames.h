/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jobnames: small numbers for the names of jobs, for as long as somebody needs them.
 *
 * A controller knows its jobs by number; people, files and other runs know them by name. A name has the
 * same number from the time it is added until it is dropped; then the number is free for another.
 *
 * METHOD  An array by number, and a table of numbers by a hash of the name, made anew when it is too small:
 *         O(1) a name, and O(names) then. Free numbers are found by a walk that begins where the last one ended.
 *
 * Nothing here locks.
 */
#ifndef WEIR_CONTROL_ADAPTBF_JOBNAMES_H
#define WEIR_CONTROL_ADAPTBF_JOBNAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jobnames {          /* zero it */
	char **names;      /* by number − 1; NULL: free */
	size_t n, room;    /* numbers given so far, free ones included */
	size_t used;       /* names */
	size_t low;        /* no number below is free */
	size_t swept;      /* as far as the sweep is */
	uint32_t *table;   /* numbers; 0: empty */
	size_t table_room; /* a power of 2, over twice the names */
};

/* The name's number, ≥ 1, a new one if it has none; 0: out of memory. */
uint64_t jobnames_add(struct jobnames *j, const char *name);
uint64_t jobnames_find(const struct jobnames *j, const char *name); /* 0: it has none */
const char *jobnames_name(const struct jobnames *j, uint64_t id);   /* NULL: nobody's */
/* Looks at the next n names, in turn, and drops those for which `keep` is false. The numbers of the others stay. */
void jobnames_sweep(struct jobnames *j, size_t n, bool (*keep)(uint64_t id, void *arg), void *arg);
void jobnames_free(struct jobnames *j);

#endif
