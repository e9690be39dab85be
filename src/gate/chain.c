/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/chain.h"
#include "gate/pool.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void chain_init(struct chain_store *s)
{
	*s = (struct chain_store){0};
}

void chain_free(struct chain_store *s)
{
	free(s->blocks);
	free(s->free);
	chain_init(s);
}

int chain_room(struct chain_store *s, uint32_t blocks)
{
	struct chain_block *p;
	uint32_t *f;

	if (blocks <= s->room)
		return 0;
	/* (One more, into which a peek may read that begins in the last.) */
	p = pool_array(s->blocks, (size_t)s->room * sizeof *p, ((size_t)blocks + 1) * sizeof *p);
	if (!p)
		return -ENOMEM;
	s->blocks = p;
	f = pool_array(s->free, (size_t)s->room * sizeof *f, (size_t)blocks * sizeof *f);
	if (!f)
		return -ENOMEM;
	s->free = f;
	s->room = blocks;
	return 0;
}

size_t chain_memory(const struct chain_store *s)
{
	size_t n = s->room;

	return n ? (n + 1) * sizeof *s->blocks + n * sizeof *s->free : 0;
}

/* A block after the other. How many numbers there are, and whether they have a block, nobody can predict:
 * there is one branch, on whether there is another block. */
uint32_t chain_peek(const struct chain_store *s, const struct chain *c, uint32_t *ret, uint32_t max)
{
	const uint32_t *cells = (const uint32_t *)s->blocks, tail = c->tail;
	uint32_t at = tail ? c->head : 1, end = tail ? tail : 2, n = 0;

	for (;;) {
		bool last = (at ^ (end - 1)) < CHAIN_STEP;

		memcpy(ret + n, cells + at, CHAIN_CELLS * sizeof *ret);
		n += (last ? end : (at | (CHAIN_STEP - 1)) + 1) - at;
		if (last || n >= max)
			break;
		at = cells[at / CHAIN_STEP * CHAIN_STEP] * CHAIN_STEP + 1;
	}
	ret[0] = tail ? ret[0] : c->head;
	return n < max ? n : max;
}
