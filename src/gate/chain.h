/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain: first-in-first-out queues of small integers, many of them over one store of blocks.
 *
 * METHOD  A block, half a cache line, holds up to CHAIN_CELLS numbers; a chain is a list of blocks,
 *         or a single number without one. The numbers stand in the chain itself and not in what they
 *         are the numbers of: whoever wants to know who comes soon reads them off without going from
 *         one tenant's memory to the next's, and putting one in touches nobody else's. A block with
 *         nothing left in it goes back to the store.
 * LAW     A chain has blocks ≤ 2 + (numbers − 2)/CHAIN_CELLS, and ≤ numbers. Room for that many is made
 *         beforehand: putting in cannot fail.
 */
#ifndef WEIR_GATE_CHAIN_H
#define WEIR_GATE_CHAIN_H

#include "gate/pool.h"
#include <stdbool.h>
#include <stdint.h>

#define CHAIN_CELLS 7
#define CHAIN_STEP  8 /* words of a block; a power of 2 */

struct chain_block {
	uint32_t next; /* block, unless it is the last */
	uint32_t cell[CHAIN_CELLS];
};
_Static_assert(sizeof(struct chain_block) == CHAIN_STEP * sizeof(uint32_t), "a word a place");

/* Places: words, counted from the first block. The owner knows whether the chain is empty; if so, both are
 * undefined. */
struct chain {
	uint32_t
		head; /* of the first number; or that itself, if it is the only one and has no block */
	uint32_t tail; /* after the last one, which is in the block before; 0: no block */
};

struct chain_store {
	struct chain_block *blocks;
	uint32_t *free;      /* blocks that were given back */
	uint32_t n_free;     /* how many */
	uint32_t room, used; /* blocks; used: those beyond were never needed */
};

void chain_init(struct chain_store *s);
void chain_free(struct chain_store *s);
/* Room for so many blocks. 0 or -ENOMEM, then unchanged. */
int chain_room(struct chain_store *s, uint32_t blocks);
size_t chain_memory(const struct chain_store *s);

/* The numbers of chain `c`, first to last, up to `max` ≥ 1 of them: how many. There is to be room for
 * max + CHAIN_CELLS, and in the store for a block. */
uint32_t chain_peek(
	const struct chain_store *s, const struct chain *c, uint32_t *ret, uint32_t max);

POOL_HOT uint32_t chain_block_new(struct chain_store *s)
{
	return s->n_free ? s->free[--s->n_free] : s->used++;
}

POOL_HOT void chain_block_free(struct chain_store *s, uint32_t k)
{
	s->free[s->n_free++] = k;
}

POOL_HOT uint32_t *chain_cell(const struct chain_store *s, uint32_t place)
{
	return (uint32_t *)s->blocks + place;
}

/* Puts a number into an empty chain. */
POOL_HOT void chain_begin(struct chain *c, uint32_t number)
{
	c->head = number;
	c->tail = 0;
}

/* The only number gets a block, in which there is room for the next. */
POOL_HOT void chain_unfold(struct chain_store *s, struct chain *c)
{
	uint32_t place = chain_block_new(s) * CHAIN_STEP + 1;

	*chain_cell(s, place) = c->head;
	c->head = place;
	c->tail = place + 1;
}

/* Puts a number at the end of a chain that is not empty. Nothing of the block is read, which may be far
 * from the cache. */
POOL_HOT void chain_append(struct chain_store *s, struct chain *c, uint32_t number)
{
	if (c->tail == 0)
		chain_unfold(s, c);
	if (c->tail % CHAIN_STEP == 0) {
		uint32_t k = chain_block_new(s);

		s->blocks[c->tail / CHAIN_STEP - 1].next = k;
		c->tail = k * CHAIN_STEP + 1;
	}
	*chain_cell(s, c->tail++) = number;
}

POOL_HOT uint32_t chain_first(const struct chain_store *s, const struct chain *c)
{
	return c->tail ? *chain_cell(s, c->head) : c->head;
}

/* Takes the first number out. Is the chain empty now? */
POOL_HOT bool chain_pop(struct chain_store *s, struct chain *c)
{
	if (c->tail == 0)
		return true;
	uint32_t k = c->head++ / CHAIN_STEP;

	if (c->head == c->tail) {
		chain_block_free(s, k);
		return true;
	}
	if (c->head % CHAIN_STEP == 0) {
		c->head = s->blocks[k].next * CHAIN_STEP + 1;
		chain_block_free(s, k);
	}
	return false;
}

#endif
