/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * chain: first-in-first-out queues of small integers, many of them over one store of blocks.
 *
 * METHOD  A block, half a cache line, holds up to CHAIN_CELLS numbers; a chain is a list of blocks.
 *         The numbers stand in the chain itself and not in what they are the numbers of: whoever
 *         wants to know who comes soon reads them off without going from one tenant's memory to the
 *         next's, and putting one in touches nobody else's. A number is taken out of the middle by
 *         its place, O(1); a block with nothing left in it goes back to the store.
 * LAW     A chain that lets go only at its front has blocks ≤ 2 + (numbers − 2)/CHAIN_CELLS; any
 *         chain has blocks ≤ numbers. Room for that many is made beforehand: putting in cannot fail.
 */
#ifndef WEIR_GATE_CHAIN_H
#define WEIR_GATE_CHAIN_H

#include "gate/pool.h"
#include <stdbool.h>
#include <stdint.h>

#define CHAIN_NIL   UINT32_MAX
#define CHAIN_CELLS 5
#define CHAIN_STEP  8 /* places per block; a power of 2, above CHAIN_CELLS */

struct chain_block {
	uint32_t next, prev;        /* blocks; CHAIN_NIL: none */
	uint32_t owner;             /* which of the owner's chains it is in */
	uint32_t cell[CHAIN_CELLS]; /* CHAIN_NIL: taken out of the middle */
};
_Static_assert(sizeof(struct chain_block) == 32, "two to a cache line");

/* Places: a block's number · CHAIN_STEP + a cell's. The owner knows whether the chain is empty; if so,
 * both are undefined. */
struct chain {
	uint32_t head; /* of the first number */
	uint32_t tail; /* after the last one, which is in the same block */
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

/* Takes the number at a place out of its chain `c`. Is that empty now? */
bool chain_remove(struct chain_store *s, struct chain *c, uint32_t place);
/* The numbers of chain `c`, first to last, up to `max` of them: how many. */
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

/* As many words to a block as places: the cell of a place is found without taking it apart. */
_Static_assert(sizeof(struct chain_block) == CHAIN_STEP * sizeof(uint32_t), "a word a place");
POOL_HOT uint32_t *chain_cell(const struct chain_store *s, uint32_t place)
{
	return (uint32_t *)s->blocks + offsetof(struct chain_block, cell) / sizeof(uint32_t) +
	       place;
}

/* Puts a number into an empty chain; its place. */
POOL_HOT uint32_t chain_begin(
	struct chain_store *s, struct chain *c, uint32_t number, uint32_t owner)
{
	uint32_t k = chain_block_new(s);
	struct chain_block *b = &s->blocks[k];

	b->next = b->prev = CHAIN_NIL;
	b->owner = owner;
	b->cell[0] = number;
	c->head = k * CHAIN_STEP;
	c->tail = c->head + 1;
	return c->head;
}

/* Puts a number at the end of a chain that is not empty; its place. Nothing of the block is read,
 * which may be far from the cache. */
POOL_HOT uint32_t chain_append(
	struct chain_store *s, struct chain *c, uint32_t number, uint32_t owner)
{
	uint32_t place = c->tail;

	if (place % CHAIN_STEP == CHAIN_CELLS) {
		uint32_t k = chain_block_new(s), last = place / CHAIN_STEP;
		struct chain_block *b = &s->blocks[k];

		s->blocks[last].next = k;
		b->next = CHAIN_NIL;
		b->prev = last;
		b->owner = owner;
		place = k * CHAIN_STEP;
	}
	*chain_cell(s, place) = number;
	c->tail = place + 1;
	return place;
}

POOL_HOT uint32_t chain_first(const struct chain_store *s, const struct chain *c)
{
	return *chain_cell(s, c->head);
}

/* Takes the first number out. Is the chain empty now? */
POOL_HOT bool chain_pop(struct chain_store *s, struct chain *c)
{
	do {
		uint32_t k = c->head / CHAIN_STEP;

		if (++c->head == c->tail) {
			chain_block_free(s, k);
			return true;
		}
		if (c->head % CHAIN_STEP == CHAIN_CELLS) {
			c->head = s->blocks[k].next * CHAIN_STEP;
			s->blocks[c->head / CHAIN_STEP].prev = CHAIN_NIL;
			chain_block_free(s, k);
		}
	} while (chain_first(s, c) == CHAIN_NIL);
	return false;
}

static inline uint32_t chain_owner(const struct chain_store *s, uint32_t place)
{
	return s->blocks[place / CHAIN_STEP].owner;
}

#endif
