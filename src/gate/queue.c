/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/queue.h"
#include <errno.h>
#include <stdlib.h>

#define QUEUE_FEW  16                  /* cells: so many at the most are asked one by one */
#define QUEUE_SEEN (UINT32_C(1) << 31) /* in an entry's count, while weeding: its cell was found */

uint32_t queue_count(const struct timer *t)
{
	return TIMER_Q_GROUP + ((t->mask + 1) >> TIMER_GROUP_BITS);
}

int queue_init(struct timer *t, uint32_t calendar, uint32_t room)
{
	/* A slot that time reaches brings its own few to the ticks. */
	uint32_t cells = queue_most(room) + TIMER_PLACES;
	uint32_t queues = TIMER_Q_GROUP + (calendar >> TIMER_GROUP_BITS);
	uint32_t blocks = cells / CELLS_BLOCK + 2 * queues;

	t->queue = malloc(queues * sizeof *t->queue);
	if (!t->queue || cells_init(&t->store, (blocks < cells ? blocks : cells) + 1))
		return -ENOMEM;
	for (uint32_t q = 0; q < queues; q++)
		t->queue[q].tail = CELLS_EMPTY;
	return 0;
}

void queue_free(struct timer *t)
{
	free(t->queue);
	cells_free(&t->store);
}

int64_t queue_base(const struct timer *t, uint32_t q)
{
	int64_t last = queue_last_turn(t);

	if (q < TIMER_Q_FAR || q > TIMER_Q_BEYOND)
		return t->now;
	/* Half turns of the same round as the last one in the calendar; or those of the next. */
	last = q < TIMER_Q_BEYOND ? last / TIMER_FAR * TIMER_FAR + (q - TIMER_Q_FAR)
				  : (last / TIMER_FAR + 1) * TIMER_FAR;
	return last << (TIMER_COARSE_BITS + t->half);
}

/* ---- far ones */

int64_t queue_next_turn(const struct timer *t)
{
	/* They are in the same round of TIMER_FAR as the last one of the calendar, and after it. */
	int64_t round = queue_last_turn(t) / TIMER_FAR;

	for (unsigned w = 0; w < TIMER_FAR / 64; w++)
		if (t->far[w])
			return round * TIMER_FAR + 64 * w + __builtin_ctzll(t->far[w]);
	return cells_empty(&t->queue[TIMER_Q_BEYOND]) ? TIMER_NONE : (round + 1) * TIMER_FAR;
}

uint32_t queue_of_turn(const struct timer *t, int64_t turn)
{
	return turn / TIMER_FAR == queue_last_turn(t) / TIMER_FAR
		       ? TIMER_Q_FAR + (uint32_t)(turn % TIMER_FAR)
		       : TIMER_Q_BEYOND;
}

/* ---- in and out */

void queue_put(struct timer *t, struct timer_entry *e, uint32_t i, uint32_t q)
{
	e->place = TIMER_NIL;
	e->count = (e->count + 1) % TIMER_COUNTS;
	cells_append(&t->store, &t->queue[q],
		(uint64_t)e->tick << (64 - TIMER_LOW_BITS) | (uint64_t)e->count << 32 | i);
}

void queue_put_tick(struct timer *t, uint64_t cell, int64_t tick)
{
	t->ticks |= 1u << (tick % TIMER_COARSE);
	cells_append(&t->store, &t->queue[TIMER_Q_TICK + tick % TIMER_COARSE], cell);
}

uint32_t queue_of_slot(const struct timer *t, int64_t slot)
{
	return slot >> TIMER_GROUP_BITS == t->group
		       ? TIMER_Q_SLOT + (uint32_t)(slot % TIMER_GROUP)
		       : TIMER_Q_GROUP + (((uint32_t)slot & t->mask) >> TIMER_GROUP_BITS);
}

void queue_group(struct timer *t, int64_t slot)
{
	if (slot >> TIMER_GROUP_BITS == t->group)
		return;
	struct cells from = queue_take(t, queue_of_slot(t, slot));

	t->group = slot >> TIMER_GROUP_BITS;
	while (!cells_empty(&from)) {
		uint64_t cell = cells_pop(&t->store, &from);
		int64_t at = queue_tick(cell, t->now) >> TIMER_COARSE_BITS;

		cells_append(&t->store, &t->queue[TIMER_Q_SLOT + at % TIMER_GROUP], cell);
	}
}

struct cells queue_take(struct timer *t, uint32_t q)
{
	struct cells was = t->queue[q];

	t->queue[q].tail = CELLS_EMPTY;
	return was;
}

/* The entries of the block after the first. */
static void queue_fetch(const struct timer *t, const struct cells *c)
{
	uint32_t k = c->head / CELLS_STEP;

	if ((c->tail - 1) / CELLS_STEP == k)
		return;
	const struct cells_block *next = &t->store.blocks[t->store.blocks[k].next];

	for (unsigned j = 0; j < CELLS_BLOCK; j++)
		if (queue_number(next->word[j]) < t->room) /* (the last may have fewer) */
			__builtin_prefetch(queue_entry(t, next->word[j]), 1);
}

uint64_t queue_pop(struct timer *t, struct cells *c)
{
	if (c->head % CELLS_STEP == 0)
		queue_fetch(t, c);
	return cells_pop(&t->store, c);
}

uint32_t queue_peek(const struct timer *t, uint32_t q, uint32_t *ret, uint32_t max)
{
	const struct cells *c = &t->queue[q];
	uint32_t n = 0;

	if (cells_empty(c))
		return 0;
	for (uint32_t at = c->head; n < max; at = cells_after(&t->store, at)) {
		ret[n++] = queue_number(*cells_word(&t->store, at));
		if (at + 1 == c->tail)
			break;
	}
	return n;
}

/* ---- what holds */

/* The tick of a cell of a queue whose ticks are from `base` on; of one beyond, as the entry has it. */
static int64_t queue_tick_of(const struct timer *t, uint32_t q, uint64_t cell, int64_t base)
{
	int64_t tick = queue_entry(t, cell)->tick;

	if (q != TIMER_Q_BEYOND)
		return queue_tick(cell, base);
	return tick >= 0 && queue_tick(cell, tick) == tick ? tick : TIMER_NONE;
}

int64_t queue_least(struct timer *t, uint32_t q, int64_t base)
{
	struct cells c = t->queue[q];
	int64_t least = TIMER_NONE;
	uint32_t n = 0;

	for (uint32_t at = c.head; !cells_empty(&c); at = cells_after(&t->store, at)) {
		uint64_t cell = *cells_word(&t->store, at);
		int64_t tick = queue_tick_of(t, q, cell, base);

		if (++n > QUEUE_FEW && least != TIMER_NONE)
			return base;
		if (queue_holds(queue_entry(t, cell), cell, tick))
			least = tick < least ? tick : least;
		if (at + 1 == c.tail)
			break;
	}
	if (least == TIMER_NONE)
		for (c = queue_take(t, q); !cells_empty(&c);)
			cells_pop(&t->store, &c);
	return least;
}

static void queue_weed_one(struct timer *t, uint32_t q)
{
	struct cells from = queue_take(t, q);
	int64_t base = queue_base(t, q);

	while (!cells_empty(&from)) {
		uint64_t cell = queue_pop(t, &from);
		struct timer_entry *e = queue_entry(t, cell);

		/* (The count of one that was seen is no cell's.) */
		if (!queue_holds(e, cell, queue_tick_of(t, q, cell, base)))
			continue;
		e->count |= QUEUE_SEEN;
		cells_append(&t->store, &t->queue[q], cell);
	}
}

static void queue_unsee(struct timer *t, const struct cells *c)
{
	for (uint32_t at = c->head; !cells_empty(c); at = cells_after(&t->store, at)) {
		queue_entry(t, *cells_word(&t->store, at))->count &= ~QUEUE_SEEN;
		if (at + 1 == c->tail)
			break;
	}
}

void queue_weed(struct timer *t)
{
	for (uint32_t q = 0; q < queue_count(t); q++)
		queue_weed_one(t, q);
	for (uint32_t q = 0; q < queue_count(t); q++)
		queue_unsee(t, &t->queue[q]);
}
