/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: memory in cache lines, close together.
 *
 * A gate of 100,000 tenants touches the lines of a few of them, far apart, for every request; what
 * that costs is, besides the lines, to find their pages. So the small pieces that belong to nodes are cut from
 * large chunks instead of being allocated one by one.
 */
#ifndef WEIR_GATE_POOL_H
#define WEIR_GATE_POOL_H

#include <stddef.h>

/* On the way of every request: inlined wherever it is used, though that is in several places. */
#define POOL_HOT static inline __attribute__((always_inline))

#define POOL_LINE      64  /* bytes of a cache line */
#define POOL_LINES_MAX 48  /* the largest piece */
#define POOL_STRIDE    320 /* bytes of a node (node.h), which its lanes and its timer are part of */

/* An array of `size` bytes, aligned to a line if it is that long: the first `old_size` are those of `old`, which is gone then, and the others
 * zero. NULL: no memory, and `old` is untouched. */
void *pool_array(void *old, size_t old_size, size_t size);
/* The same with any values in the others: a large array grows without being copied or read. */
void *pool_array_more(void *old, size_t old_size, size_t size);
void pool_array_free(void *array); /* NULL: nothing */

struct pool {
	struct pool_chunk *chunks;
	char *at, *end; /* what is left of the newest chunk */
	void **free; /* pieces given back, by lines − 1: each holds the next. In the first chunk */
	size_t bytes; /* of all chunks */
};

void *pool_get(struct pool *p, size_t lines); /* all zero; NULL: no memory */
void pool_put(struct pool *p, void *piece, size_t lines);
void pool_free(struct pool *p); /* and every piece with it */

#endif
