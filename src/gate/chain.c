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

uint32_t chain_peek(const struct chain_store *s, const struct chain *c, uint32_t *ret, uint32_t max)
{
	uint32_t n = 0;

	if (c->tail == 0 && max)
		ret[n++] = c->head;
	for (uint32_t at = c->head; c->tail && n < max && at != c->tail;) {
		ret[n++] = *chain_cell(s, at);
		if (++at % CHAIN_STEP == 0 && at != c->tail)
			at = s->blocks[at / CHAIN_STEP - 1].next * CHAIN_STEP + 1;
	}
	return n;
}
