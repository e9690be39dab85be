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

/* Does a block, which is not the first, hold any number? */
static bool chain_holds(const struct chain_store *s, const struct chain *c, uint32_t k)
{
	unsigned end = k == c->tail / CHAIN_STEP ? c->tail % CHAIN_STEP : CHAIN_CELLS;

	for (unsigned i = 0; i < end; i++)
		if (s->blocks[k].cell[i] != CHAIN_NIL)
			return true;
	return false;
}

bool chain_remove(struct chain_store *s, struct chain *c, uint32_t place)
{
	uint32_t k = place / CHAIN_STEP;
	const struct chain_block *b = &s->blocks[k];

	if (place == c->head)
		return chain_pop(s, c);
	*chain_cell(s, place) = CHAIN_NIL;
	if (k == c->head / CHAIN_STEP || chain_holds(s, c, k))
		return false;
	s->blocks[b->prev].next = b->next;
	if (k == c->tail / CHAIN_STEP)
		c->tail = b->prev * CHAIN_STEP + CHAIN_CELLS;
	else
		s->blocks[b->next].prev = b->prev;
	chain_block_free(s, k);
	return false;
}

uint32_t chain_peek(const struct chain_store *s, const struct chain *c, uint32_t *ret, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t at = c->head; n < max && at != c->tail;) {
		uint32_t number = *chain_cell(s, at);

		ret[n] = number;
		n += number != CHAIN_NIL;
		if (++at % CHAIN_STEP == CHAIN_CELLS && at != c->tail)
			at = s->blocks[at / CHAIN_STEP].next * CHAIN_STEP;
	}
	return n;
}
