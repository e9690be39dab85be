/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena: memory that is freed all at once, so that freeing needs no knowledge of its contents.
 *
 * One piece from malloc per call: for few, large arrays.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct arena { /* zero it */
	struct arena_piece *pieces;
	bool failed; /* it could not give all that was asked for */
};

/* Return zeroed memory for n objects, aligned to 16 bytes, or NULL. */
void *arena_take(struct arena *a, size_t n, size_t size);
char *arena_text(struct arena *a, const char *text); /* a copy; NULL: out of memory */
void arena_free(struct arena *a);
