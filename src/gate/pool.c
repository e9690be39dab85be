/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/pool.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define POOL_LEAST 4096       /* bytes of the first chunk; each is as large as all before it */
#define POOL_MOST  (2u << 20) /* bytes of a chunk */
#define POOL_LARGE (1u << 20) /* bytes: an array that large begins on a page */
#define POOL_PAGE  4096

/* Return the allocation of an array: its address is stored before the array's first byte. */
static void *pool_raw(char *array)
{
	void *raw = NULL;

	if (array)
		memcpy(&raw, array - sizeof raw, sizeof raw);
	return raw;
}

void *pool_array_more(void *old, size_t old_size, size_t size)
{
	size_t align = size < POOL_LINE    ? 2 * sizeof(void *)
		       : size < POOL_LARGE ? POOL_LINE
					   : POOL_PAGE;
	size_t was = 0;
	char *raw = pool_raw(old);

	if (old)
		was = (size_t)((char *)old - raw);
	/* For a large array the allocator only remaps the pages. */
	raw = realloc(raw, size + align);
	if (!raw)
		return NULL;
	size_t at =
		align - (uintptr_t)raw % align; /* room for the pointer: memory is aligned to two */

	if (old && at != was)
		memmove(raw + at, raw + was, old_size);
	memcpy(raw + at - sizeof raw, &raw, sizeof raw);
	return raw + at;
}

void *pool_array(void *old, size_t old_size, size_t size)
{
	char *p = pool_array_more(old, old_size, size);

	if (p)
		memset(p + old_size, 0, size - old_size);
	return p;
}

void pool_array_free(void *array)
{
	free(pool_raw(array));
}

struct pool_chunk {
	_Alignas(POOL_LINE) struct pool_chunk *next;
};
_Static_assert(POOL_LINES_MAX * sizeof(void *) % POOL_LINE == 0, "pieces are aligned");
_Static_assert(
	sizeof(struct pool_chunk) + POOL_LINES_MAX * (sizeof(void *) + POOL_LINE) <= POOL_LEAST,
	"the first chunk has room for the largest piece");

static int pool_more(struct pool *p)
{
	size_t size = p->bytes < POOL_LEAST ? POOL_LEAST : p->bytes;

	if (size > POOL_MOST)
		size = POOL_MOST;
	struct pool_chunk *c = aligned_alloc(POOL_LINE, size);

	if (!c)
		return -1;
	c->next = p->chunks;
	p->chunks = c;
	p->at = (char *)(c + 1);
	p->end = (char *)c + size;
	p->bytes += size;
	if (!p->free) {
		p->free = memset(p->at, 0, POOL_LINES_MAX * sizeof *p->free);
		p->at += POOL_LINES_MAX * sizeof *p->free;
	}
	return 0;
}

void *pool_get(struct pool *p, size_t lines)
{
	void *piece = p->free ? p->free[lines - 1] : NULL;

	if (piece) {
		memcpy(&p->free[lines - 1], piece, sizeof piece);
	} else {
		if ((size_t)(p->end - p->at) < lines * POOL_LINE && pool_more(p))
			return NULL;
		piece = p->at;
		p->at += lines * POOL_LINE;
	}
	return memset(piece, 0, lines * POOL_LINE);
}

void pool_put(struct pool *p, void *piece, size_t lines)
{
	memcpy(piece, &p->free[lines - 1], sizeof piece);
	p->free[lines - 1] = piece;
}

void pool_free(struct pool *p)
{
	for (struct pool_chunk *c = p->chunks, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	*p = (struct pool){0};
}
