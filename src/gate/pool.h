/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool: memory in cache lines, close together.
 *
 * A gate with 100,000 tenants touches the lines of a few of them, far apart, for every request; besides the cache
 * misses that costs TLB misses. So the small pieces that belong to nodes are cut from large chunks instead of being
 * allocated one by one.
 */
#pragma once

#include <stddef.h>

/* For the path of every request: inlined wherever it is called, even in several places. */
#define POOL_HOT static inline __attribute__((always_inline))

#define POOL_LINE      64 /* bytes per cache line */
#define POOL_LINES_MAX 48 /* lines of the largest piece */
#define POOL_STRIDE                                                                                \
	320 /* bytes per node (node.h), which contains its lane entries and its
	       timer */

/* Return an array of `size` bytes, aligned to a line if it is that long: the first `old_size` are those of `old`,
 * which is freed, and the others zero. NULL without memory; then `old` is untouched. */
void *pool_array(void *old, size_t old_size, size_t size);
/* The same without zeroing the others: a large array grows without being copied or read. */
void *pool_array_more(void *old, size_t old_size, size_t size);
void pool_array_free(void *array); /* NULL: do nothing */

struct pool {
	struct pool_chunk *chunks;
	char *at, *end; /* unused part of the newest chunk */
	void **free;    /* free pieces, by lines − 1: each holds the next. In the first chunk */
	size_t bytes;   /* size of all chunks */
};

void *pool_get(struct pool *p, size_t lines); /* zeroed; NULL without memory */
void pool_put(struct pool *p, void *piece, size_t lines);
void pool_free(struct pool *p); /* and every piece */
