/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/queue.h"
#include <errno.h>
#include <stdlib.h>

#define QUEUE_FEW 16 /* cells: so many at the most are asked one by one */

uint32_t queue_count(const struct timer *t)
{
	return TIMER_Q_GROUP + ((t->mask + 1) >> TIMER_GROUP_BITS);
}

int queue_init(struct timer *t, uint32_t calendar, uint32_t room)
{
	/* A slot that time reaches brings its own few to the ticks. */
	uint32_t cells = queue_most(room) + TIMER_PLACES;
	uint32_t queues = TIMER_Q_GROUP + (calendar >> TIMER_GROUP_BITS);
	/* There is one more queue while there is weeding; and up to three may be joined: what comes into the
	 * calendar, the group that is split, and what is due. */
	uint32_t blocks = cells / CELLS_BLOCK + 2 * (queues + 4);

	t->queue = malloc(queues * sizeof *t->queue);
	if (!t->queue || cells_init(&t->store, (blocks < cells ? blocks : cells) + 1))
		return -ENOMEM;
	for (uint32_t q = 0; q < queues; q++)
		t->queue[q].tail = CELLS_EMPTY;
	t->kept.tail = CELLS_EMPTY;
	return 0;
}

void queue_free(struct timer *t)
{
	free(t->queue);
	cells_free(&t->store);
}

/* Does what is beyond come in, so that all far half turns are those of the next round? */
static bool queue_round_ends(const struct timer *t)
{
	return t->pour == TIMER_Q_BEYOND;
}

int64_t queue_base(const struct timer *t, uint32_t q)
{
	int64_t last = queue_last_turn(t), round = (last + queue_round_ends(t)) / TIMER_FAR;

	if (q < TIMER_Q_FAR || q > TIMER_Q_BEYOND)
		return t->now;
	/* Half turns of the same round as the last one in the calendar; or those of the next. */
	last = round * TIMER_FAR + (q < TIMER_Q_BEYOND ? q - TIMER_Q_FAR : TIMER_FAR);
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
	return slot >> TIMER_GROUP_BITS < t->split
		       ? TIMER_Q_SLOT + (uint32_t)(slot % (2 * TIMER_GROUP))
		       : TIMER_Q_GROUP + (((uint32_t)slot & t->mask) >> TIMER_GROUP_BITS);
}

/* Up to so many cells of the first group that is not split go to the queues of their slots. How many of
 * these steps are left? */
static unsigned queue_split(struct timer *t, unsigned left)
{
	uint32_t q = queue_of_slot(t, t->split << TIMER_GROUP_BITS);
	struct cells *from = &t->queue[q];

	queue_whole(t, q);
	for (; left && !cells_empty(from); left--) {
		uint64_t cell = cells_pop(&t->store, from);
		int64_t slot = queue_tick(cell, t->now) >> TIMER_COARSE_BITS;

		cells_append(&t->store, &t->queue[TIMER_Q_SLOT + slot % (2 * TIMER_GROUP)], cell);
		t->steps++;
	}
	t->split += cells_empty(from);
	return left;
}

/* Those before it are over: nothing is in their queues. */
static int64_t queue_group(struct timer *t, int64_t slot)
{
	int64_t group = slot >> TIMER_GROUP_BITS;

	t->split = t->split > group ? t->split : group;
	return group;
}

struct cells queue_take_slot(struct timer *t, int64_t slot)
{
	while (t->split <= queue_group(t, slot))
		queue_split(t, UINT32_MAX);
	return queue_take(t, queue_of_slot(t, slot));
}

struct cells queue_take(struct timer *t, uint32_t q)
{
	queue_whole(t, q);
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

static uint32_t queue_peek_some(
	const struct timer *t, const struct cells *c, uint32_t *ret, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t at = c->head; n < max && !cells_empty(c); at = cells_after(&t->store, at)) {
		ret[n++] = queue_number(*cells_word(&t->store, at));
		if (at + 1 == c->tail)
			break;
	}
	return n;
}

uint32_t queue_peek(const struct timer *t, uint32_t q, uint32_t *ret, uint32_t max)
{
	uint32_t n = t->weed == q + 1 ? queue_peek_some(t, &t->kept, ret, max) : 0;

	return n + queue_peek_some(t, &t->queue[q], ret + n, max - n);
}

/* ---- what holds */

/* The tick of a cell of a queue whose ticks are from `base` on; of one beyond, as the entry has it. */
static int64_t queue_tick_of(const struct timer *t, uint32_t q, uint64_t cell, int64_t base)
{
	int64_t tick = queue_entry(t, cell)->tick;

	if (q != TIMER_Q_BEYOND && q != TIMER_Q_BACK)
		return queue_tick(cell, base);
	return tick >= 0 && queue_tick(cell, tick) == tick ? tick : TIMER_NONE;
}

bool queue_holds_in(const struct timer *t, uint32_t q, uint64_t cell, int64_t base)
{
	return queue_holds(queue_entry(t, cell), cell, queue_tick_of(t, q, cell, base));
}

/* The first tick of what holds; `base` if there are more cells than `most`. */
static int64_t queue_least_of(struct timer *t, uint32_t q, int64_t base, uint32_t most)
{
	struct cells *c = &t->queue[q];
	int64_t least = TIMER_NONE;
	uint32_t n = 0;

	queue_whole(t, q);
	while (!cells_empty(c) && !queue_holds_in(t, q, *cells_word(&t->store, c->head), base))
		queue_pop(t, c);
	for (uint32_t at = c->head; !cells_empty(c); at = cells_after(&t->store, at)) {
		uint64_t cell = *cells_word(&t->store, at);
		int64_t tick = queue_tick_of(t, q, cell, base);

		if (++n > most)
			return base;
		if (queue_holds(queue_entry(t, cell), cell, tick))
			least = tick < least ? tick : least;
		if (at + 1 == c->tail)
			break;
	}
	return least;
}

int64_t queue_least(struct timer *t, uint32_t q, int64_t base)
{
	return queue_least_of(t, q, base, QUEUE_FEW);
}

int64_t queue_leap(struct timer *t, int64_t next, int64_t to)
{
	if (next >= timer_turn(t, to))
		return next;
	int64_t least = queue_least_of(t, TIMER_Q_BEYOND, 0, UINT32_MAX);
	int64_t turn = timer_turn(t, least < to ? least : to) / TIMER_FAR * TIMER_FAR;

	return turn > next ? turn : next;
}

/* ---- weeding: what is kept of a queue waits apart while there is a rest of it, and comes before that */

void queue_whole(struct timer *t, uint32_t q)
{
	if (t->weed != q + 1)
		return;
	cells_join(&t->store, &t->kept, &t->queue[q]);
	t->weed--;
}

/* All of a queue's cells that were there, or so many. The same of steps. */
static unsigned queue_weed_one(struct timer *t, uint32_t q, unsigned left)
{
	struct cells *c = &t->queue[q];
	int64_t base = queue_base(t, q);

	for (; left && !cells_empty(c); left--) {
		uint64_t cell = queue_pop(t, c);

		if (queue_holds_in(t, q, cell, base))
			cells_append(&t->store, &t->kept, cell);
		t->steps++;
	}
	return left;
}

/* From the last queue to the first: cells that move on do so to one that is yet to be weeded. Those of a queue
 * out of which they go by themselves are left alone: `busy`, and what comes into the calendar. */
static void queue_weed_some(struct timer *t, uint32_t busy, unsigned left)
{
	if (!t->weed && t->store.n >= queue_enough(t->room))
		t->weed = queue_count(t);
	while (left && t->weed) {
		uint32_t q = t->weed - 1;

		if (q != busy && q != t->pour) {
			left = queue_weed_one(t, q, left);
			if (!cells_empty(&t->queue[q]))
				break;
		}
		/* At once: whoever asks whether it is empty need not know of weeding. */
		queue_whole(t, q);
		t->steps++;
		left -= left > 0;
	}
}

void queue_work(struct timer *t)
{
	int64_t group = queue_group(t, t->now >> TIMER_COARSE_BITS);
	uint32_t busy = TIMER_NIL;

	if (t->split <= group + 1) {
		queue_split(t, QUEUE_STEPS);
		if (t->split <= group + 1)
			busy = queue_of_slot(t, t->split << TIMER_GROUP_BITS);
	}
	queue_weed_some(t, busy, QUEUE_STEPS);
}

void queue_weed(struct timer *t)
{
	if (t->weed)
		queue_whole(t, t->weed - 1);
	t->weed = 0;
	for (uint32_t q = 0; q < queue_count(t); q++) {
		queue_weed_one(t, q, UINT32_MAX);
		cells_join(&t->store, &t->kept, &t->queue[q]);
	}
}
