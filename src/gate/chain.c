/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/chain.h"
#include "gate/pool.h"
#include <errno.h>
#include <stdlib.h>

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
	p = pool_array(s->blocks, (size_t)s->room * sizeof *p, (size_t)blocks * sizeof *p);
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
	return s->room * (sizeof *s->blocks + sizeof *s->free);
}

/* A block after the other. */
uint32_t chain_peek(const struct chain_store *s, const struct chain *c, uint32_t *ret, uint32_t max)
{
	const uint32_t *cells = (const uint32_t *)s->blocks, tail = c->tail;
	uint32_t n = 0, at = c->head;

	if (tail == 0 && max)
		ret[n++] = at;
	while (tail && n < max && at != tail) {
		uint32_t last = (at | (CHAIN_STEP - 1)) + 1; /* after the block */
		uint32_t end = (at ^ (tail - 1)) < CHAIN_STEP ? tail : last;

		end = end - at < max - n ? end : at + (max - n);
		while (at != end)
			ret[n++] = cells[at++];
		if (at == last && at != tail)
			at = cells[at - CHAIN_STEP] * CHAIN_STEP + 1;
	}
	return n;
}
