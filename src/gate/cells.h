/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cells: first-in-first-out queues of 64-bit words, many of them over one store of blocks.
 *
 * METHOD  A block, a cache line, holds up to CELLS_BLOCK words; a queue is a list of blocks. Putting a
 *         word in writes to the last block and reads none, and whoever wants to know what is inside
 *         reads it off, a line for several. One queue is put before another without moving a
 *         word: the blocks where they meet need not be full. (Those of numbers that mostly have
 *         one or none are chain.h.)
 * LAW     n words in q queues that are not empty take at most n/CELLS_BLOCK + 2q blocks, and at most n;
 *         every two that were joined, 2 more until what was the first is gone. Room for that many, and
 *         one more for a word that goes from one queue to another, is made beforehand: putting in
 *         cannot fail.
 */
#ifndef WEIR_GATE_CELLS_H
#define WEIR_GATE_CELLS_H

#include "gate/pool.h"
#include <stdbool.h>
#include <stdint.h>

#define CELLS_BLOCK 7
#define CELLS_STEP  8 /* places per block; a power of 2 */

struct cells_block {
	uint64_t word[CELLS_BLOCK];
	uint32_t next; /* block, unless it is the last; of those that are free, the next that is */
	uint8_t begin; /* of its words, unless it is the first; */
	uint8_t end;   /* and after the last of them, unless it is the last */
};
_Static_assert(sizeof(struct cells_block) == POOL_LINE, "a cache line");

/* Places: CELLS_STEP to a block, of which the last is none. Block 0 is never used. */
struct cells {
	uint32_t head; /* of the first word */
	uint32_t tail; /* after the last one; CELLS_EMPTY: there is none */
};
#define CELLS_EMPTY CELLS_BLOCK

struct cells_store {
	struct cells_block *blocks;
	uint32_t free;       /* the first block that was given back; 0: none */
	uint32_t room, used; /* blocks; used: those beyond were never needed */
	uint32_t n;          /* words inside, of all queues */
};

/* Room for so many blocks in a new store. 0 or -ENOMEM. */
int cells_init(struct cells_store *s, uint32_t blocks);
void cells_free(struct cells_store *s);
size_t cells_memory(const struct cells_store *s);

POOL_HOT bool cells_empty(const struct cells *c)
{
	return c->tail == CELLS_EMPTY;
}

POOL_HOT uint64_t *cells_word(const struct cells_store *s, uint32_t place)
{
	return (uint64_t *)s->blocks + place;
}

/* A new last block. Was the queue empty? */
POOL_HOT bool cells_extend(struct cells_store *s, struct cells *c)
{
	bool empty = cells_empty(c);
	uint32_t k = s->free;

	if (k)
		s->free = s->blocks[k].next;
	else
		k = s->used++;
	if (empty)
		c->head = k * CELLS_STEP;
	else
		s->blocks[c->tail / CELLS_STEP].next = k;
	c->tail = k * CELLS_STEP;
	s->blocks[k].begin = 0;
	s->blocks[k].end = CELLS_BLOCK;
	return empty;
}

/* Puts a word at the end. Was the queue empty? */
POOL_HOT bool cells_append(struct cells_store *s, struct cells *c, uint64_t word)
{
	bool empty = c->tail % CELLS_STEP == CELLS_BLOCK && cells_extend(s, c);

	*cells_word(s, c->tail++) = word;
	s->n++;
	return empty;
}

/* The first place of the block after one that is not the last. What follows that is fetched. */
POOL_HOT uint32_t cells_next(const struct cells_store *s, uint32_t k)
{
	k = s->blocks[k].next;
	__builtin_prefetch(&s->blocks[s->blocks[k].next], 1);
	return k * CELLS_STEP + s->blocks[k].begin;
}

/* The place after one at which there is a word, if it is not the last. */
POOL_HOT uint32_t cells_after(const struct cells_store *s, uint32_t place)
{
	uint32_t k = place / CELLS_STEP;

	return ++place % CELLS_STEP == s->blocks[k].end ? cells_next(s, k) : place;
}

/* Takes the first word out of a queue that has one. */
POOL_HOT uint64_t cells_pop(struct cells_store *s, struct cells *c)
{
	uint32_t at = c->head, k = at / CELLS_STEP;
	uint64_t word = *cells_word(s, at);

	s->n--;
	if (++at == c->tail)
		c->tail = CELLS_EMPTY;
	else if (at % CELLS_STEP != s->blocks[k].end) {
		c->head = at;
		return word;
	} else
		c->head = cells_next(s, k);
	s->blocks[k].next = s->free;
	s->free = k;
	return word;
}

/* All of `first`, which is empty then, comes before what is in c. */
static inline void cells_join(struct cells_store *s, struct cells *first, struct cells *c)
{
	struct cells all = *first;

	if (cells_empty(first))
		return;
	if (!cells_empty(c)) {
		uint32_t last = (first->tail - 1) / CELLS_STEP, k = c->head / CELLS_STEP;

		s->blocks[last].next = k;
		s->blocks[last].end = (uint8_t)(first->tail - last * CELLS_STEP);
		s->blocks[k].begin = (uint8_t)(c->head % CELLS_STEP);
		all.tail = c->tail;
	}
	*c = all;
	first->tail = CELLS_EMPTY;
}

#endif
