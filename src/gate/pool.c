/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/pool.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define POOL_HUGE                                                                                  \
	(2u << 20)      /* bytes of a huge page: where the system gives them by itself, it can */
#define POOL_LEAST 4096 /* of the first chunk; each is as large as all before it */

static void *pool_alloc(size_t size)
{
	size_t align = size < POOL_HUGE ? POOL_LINE : POOL_HUGE;

	return aligned_alloc(align, (size + align - 1) / align * align);
}

void *pool_array(void *old, size_t old_size, size_t size)
{
	char *p = pool_alloc(size);

	if (!p)
		return NULL;
	if (old)
		memcpy(p, old, old_size);
	memset(p + old_size, 0, size - old_size);
	free(old);
	return p;
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

	if (size > POOL_HUGE)
		size = POOL_HUGE;
	struct pool_chunk *c = pool_alloc(size);

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
