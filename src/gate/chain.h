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
	uint32_t next, prev; /* blocks; CHAIN_NIL: none */
	uint8_t live;        /* which cells hold a number: a bit each; never 0 in a chain */
	uint8_t end;         /* cells used so far, those let go included */
	uint16_t owner;      /* which of the owner's chains it is in */
	uint32_t cell[CHAIN_CELLS];
};
_Static_assert(sizeof(struct chain_block) == 32, "two to a cache line");

/* The owner knows whether it is empty; if so, both are undefined. */
struct chain {
	uint32_t first, last;
};

struct chain_store {
	struct chain_block *blocks;
	uint32_t room, used; /* blocks; used: those beyond were never needed */
	uint32_t free;       /* list by next */
};

void chain_init(struct chain_store *s);
void chain_free(struct chain_store *s);
/* Room for so many blocks. 0 or -ENOMEM, then unchanged. */
int chain_room(struct chain_store *s, uint32_t blocks);

POOL_HOT uint32_t chain_block_new(struct chain_store *s)
{
	uint32_t k = s->free;

	if (k == CHAIN_NIL)
		return s->used++;
	s->free = s->blocks[k].next;
	return k;
}

POOL_HOT void chain_block_free(struct chain_store *s, uint32_t k)
{
	s->blocks[k].next = s->free;
	s->free = k;
}

/* Puts a number into an empty chain; its place. */
POOL_HOT uint32_t chain_begin(
	struct chain_store *s, struct chain *c, uint32_t number, uint16_t owner)
{
	uint32_t k = chain_block_new(s);

	c->first = c->last = k;
	s->blocks[k] = (struct chain_block){.next = CHAIN_NIL,
		.prev = CHAIN_NIL,
		.live = 1,
		.end = 1,
		.owner = owner,
		.cell = {number}};
	return k * CHAIN_STEP;
}

/* Puts a number at the end of a chain that is not empty; its place. */
POOL_HOT uint32_t chain_append(struct chain_store *s, struct chain *c, uint32_t number)
{
	struct chain_block *b = &s->blocks[c->last];
	unsigned at = b->end;

	if (at == CHAIN_CELLS) {
		uint32_t k = chain_block_new(s), last = c->last;

		s->blocks[last].next = k;
		s->blocks[k] = (struct chain_block){.next = CHAIN_NIL,
			.prev = last,
			.live = 1,
			.end = 1,
			.owner = s->blocks[last].owner,
			.cell = {number}};
		c->last = k;
		return k * CHAIN_STEP;
	}
	b->cell[at] = number;
	b->live |= (uint8_t)(1u << at);
	b->end = (uint8_t)(at + 1);
	return c->last * CHAIN_STEP + at;
}

POOL_HOT uint32_t chain_first(const struct chain_store *s, const struct chain *c)
{
	const struct chain_block *b = &s->blocks[c->first];

	return b->cell[__builtin_ctz(b->live)];
}

/* Takes the first number out. Is the chain empty now? */
POOL_HOT bool chain_pop(struct chain_store *s, struct chain *c)
{
	uint32_t k = c->first;
	struct chain_block *b = &s->blocks[k];

	b->live &= (uint8_t)(b->live - 1);
	if (b->live)
		return false;
	bool empty = k == c->last;

	c->first = b->next;
	if (!empty)
		s->blocks[b->next].prev = CHAIN_NIL;
	chain_block_free(s, k);
	return empty;
}

/* Takes the number at a place out of its chain `c`. Is that empty now? */
static inline bool chain_remove(struct chain_store *s, struct chain *c, uint32_t place)
{
	uint32_t k = place / CHAIN_STEP;
	struct chain_block *b = &s->blocks[k];

	b->live &= (uint8_t) ~(1u << place % CHAIN_STEP);
	if (b->live)
		return false;
	bool empty = c->first == c->last;

	if (k == c->first)
		c->first = b->next;
	else
		s->blocks[b->prev].next = b->next;
	if (k == c->last)
		c->last = b->prev;
	else
		s->blocks[b->next].prev = b->prev;
	chain_block_free(s, k);
	return empty;
}

static inline uint16_t chain_owner(const struct chain_store *s, uint32_t place)
{
	return s->blocks[place / CHAIN_STEP].owner;
}

/* The numbers of chain `c`, first to last, up to `max` of them: how many. */
static inline uint32_t chain_peek(
	const struct chain_store *s, const struct chain *c, uint32_t *ret, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t k = c->first; k != CHAIN_NIL && n < max; k = s->blocks[k].next) {
		const struct chain_block *b = &s->blocks[k];

		for (unsigned live = b->live; live && n < max; live &= live - 1)
			ret[n++] = b->cell[__builtin_ctz(live)];
	}
	return n;
}

#endif
