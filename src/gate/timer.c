/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/timer.h"

#define TIMER_LOOK  8 /* entries that timer_next reads at most */
#define TIMER_AHEAD 4 /* blocks of a far slot, of which there may be thousands, fetched ahead */

void timer_init(struct timer *t)
{
	*t = (struct timer){0};
	chain_init(&t->store);
}

int timer_fit(struct timer *t, struct timer_entry *entries, uint32_t room)
{
	/* A block each at the worst, and one while those of a slot go to lower wheels. */
	int r = chain_room(&t->store, room + 1);

	if (!r)
		t->entries = (char *)entries;
	return r;
}

void timer_free(struct timer *t)
{
	chain_free(&t->store);
}

/* Per wheel: the first bit of its digit, how many bits, its first word of words and of bits, its first
 * slot. */
static const struct {
	uint8_t shift, bits, words;
	uint16_t word, slot;
} timer_wheel[TIMER_WHEELS] = {
	{.shift = 0, .bits = 5, .words = 0, .word = 0, .slot = 0},
	{.shift = 5, .bits = 14, .words = 1, .word = 1, .slot = TIMER_COARSE},
	{.shift = 19,
		.bits = 8,
		.words = 1 + TIMER_MIDDLE / 4096,
		.word = 1 + TIMER_MIDDLE / 64,
		.slot = TIMER_COARSE + TIMER_MIDDLE},
	{.shift = 27, /* beyond */
		.bits = 0,
		.words = 2 + TIMER_MIDDLE / 4096,
		.word = TIMER_WORDS - 1,
		.slot = TIMER_SLOTS - 1},
};
_Static_assert(1 << 5 == TIMER_COARSE && 1 << 14 == TIMER_MIDDLE && 1 << 8 == TIMER_FAR, "digits");

static unsigned timer_wheel_of(uint32_t slot)
{
	unsigned wheel = TIMER_WHEELS - 1;

	while (slot < timer_wheel[wheel].slot)
		wheel--;
	return wheel;
}

/* Entry i becomes the last of its slot. The wheel is a constant. */
POOL_HOT void timer_put(struct timer *t, struct timer_entry *e, uint32_t i, unsigned wheel)
{
	uint32_t digit = (uint32_t)(e->tick >> timer_wheel[wheel].shift) &
			 ((1u << timer_wheel[wheel].bits) - 1);
	uint32_t slot = timer_wheel[wheel].slot + digit;
	uint64_t *word = &t->bits[timer_wheel[wheel].word + digit / 64];
	uint64_t bit = UINT64_C(1) << (digit % 64);

	if (*word & bit) {
		e->place = chain_append(&t->store, &t->slot[slot], i, slot);
		return;
	}
	e->place = chain_begin(&t->store, &t->slot[slot], i, slot);
	*word |= bit;
	t->words[timer_wheel[wheel].words + digit / 4096] |= UINT64_C(1) << (digit / 64 % 64);
	t->top[wheel] |= UINT64_C(1) << (digit / 4096);
}

static __attribute__((noinline)) void timer_link_far(
	struct timer *t, struct timer_entry *e, uint32_t i)
{
	uint64_t differ = (uint64_t)(e->tick ^ t->now);

	if (differ < 1 << 5)
		timer_put(t, e, i, 0);
	else if (differ < 1 << 27)
		timer_put(t, e, i, 2);
	else
		timer_put(t, e, i, 3);
}

POOL_HOT void timer_link(struct timer *t, struct timer_entry *e, uint32_t i)
{
	uint64_t differ = (uint64_t)(e->tick ^ t->now);

	if (differ >> 5 && !(differ >> 19))
		timer_put(t, e, i, 1); /* where most go */
	else
		timer_link_far(t, e, i);
}

POOL_HOT void timer_empty(struct timer *t, unsigned wheel, uint32_t digit)
{
	uint64_t *word = &t->bits[timer_wheel[wheel].word + digit / 64];
	uint64_t *words = &t->words[timer_wheel[wheel].words + digit / 4096];

	*word &= ~(UINT64_C(1) << (digit % 64));
	if (*word)
		return;
	*words &= ~(UINT64_C(1) << (digit / 64 % 64));
	if (!*words)
		t->top[wheel] &= ~(UINT64_C(1) << (digit / 4096));
}

static void timer_unlink(struct timer *t, const struct timer_entry *e)
{
	uint32_t slot = chain_owner(&t->store, e->place);

	if (chain_remove(&t->store, &t->slot[slot], e->place)) {
		unsigned wheel = timer_wheel_of(slot);

		timer_empty(t, wheel, slot - timer_wheel[wheel].slot);
	}
}

void timer_move(struct timer *t, uint32_t i, int64_t tick)
{
	struct timer_entry *e = timer_entry(t, i);

	if (tick < t->now)
		tick = t->now;
	if (e->tick >= 0) {
		if (e->tick <= tick)
			return;
		timer_unlink(t, e);
	} else {
		t->set++;
	}
	e->tick = tick;
	timer_link(t, e, i);
}

void timer_clear(struct timer *t, uint32_t i)
{
	struct timer_entry *e = timer_entry(t, i);

	if (e->tick < 0)
		return;
	timer_unlink(t, e);
	e->tick = -1;
	t->set--;
}

/* The first tick at which a slot begins that has entries, and that slot. Entries of a higher wheel
 * all come after those of a lower one. */
POOL_HOT int64_t timer_first_of(const struct timer *t, unsigned wheel, uint32_t *ret_digit)
{
	unsigned shift = timer_wheel[wheel].shift, above = shift + timer_wheel[wheel].bits;

	if (wheel == TIMER_WHEELS - 1) {
		*ret_digit = 0;
		return ((t->now >> shift) + 1) << shift;
	}
	uint32_t high = (uint32_t)__builtin_ctzll(t->top[wheel]);
	uint64_t words = t->words[timer_wheel[wheel].words + high];
	uint32_t word = high * 64 + (uint32_t)__builtin_ctzll(words);

	*ret_digit = word * 64 + (uint32_t)__builtin_ctzll(t->bits[timer_wheel[wheel].word + word]);
	return t->now >> above << above | (int64_t)*ret_digit << shift;
}

/* Asks for the entries of one block, and says which comes after it; CHAIN_NIL: none. */
static uint32_t timer_fetch(const struct timer *t, uint32_t k)
{
	const struct chain_block *b = &t->store.blocks[k];

	if (k == CHAIN_NIL)
		return CHAIN_NIL;
	for (unsigned i = 0; i < CHAIN_CELLS; i++)
		if (b->cell[i] < t->store.room) /* else there is nothing in it */
			__builtin_prefetch(timer_entry(t, b->cell[i]), 1);
	return b->next;
}

/* Time has reached this slot: its entries are due, up to `max` of them, or go to lower wheels. Also
 * those that are due, but too many: to the lowest, where they come next. */
POOL_HOT uint32_t timer_pour(
	struct timer *t, unsigned wheel, uint32_t digit, uint32_t *ret, uint32_t max)
{
	const struct chain c = t->slot[timer_wheel[wheel].slot + digit];
	int64_t now = t->now;
	uint32_t n = 0, ahead = c.head / CHAIN_STEP;

	timer_empty(t, wheel, digit);
	for (unsigned i = 0; wheel > 1 && i < TIMER_AHEAD; i++)
		ahead = timer_fetch(t, ahead);
	for (uint32_t at = c.head;;) {
		uint32_t i = *chain_cell(&t->store, at), k = at / CHAIN_STEP;

		if (i != CHAIN_NIL) {
			struct timer_entry *e = timer_entry(t, i);

			if (e->tick > now || n == max) {
				timer_link(t, e, i);
			} else {
				e->tick = -1;
				ret[n++] = i;
			}
		}
		if (++at == c.tail) {
			chain_block_free(&t->store, k);
			return n;
		}
		if (at % CHAIN_STEP == CHAIN_CELLS) {
			at = t->store.blocks[k].next * CHAIN_STEP;
			chain_block_free(&t->store, k);
			if (wheel > 1)
				ahead = timer_fetch(t, ahead);
		}
	}
}

/* The same for one of the lowest wheel, whose entries are all due; but those too many stay. */
static uint32_t timer_take(struct timer *t, uint32_t slot, uint32_t *ret, uint32_t max)
{
	struct chain *c = &t->slot[slot];

	for (uint32_t n = 0; n < max;) {
		ret[n] = chain_first(&t->store, c);
		timer_entry(t, ret[n++])->tick = -1;
		if (chain_pop(&t->store, c)) {
			timer_empty(t, 0, slot);
			return n;
		}
	}
	return max;
}

static __attribute__((noinline)) uint32_t timer_pour_far(
	struct timer *t, unsigned wheel, uint32_t digit, uint32_t *ret, uint32_t max)
{
	return timer_pour(t, wheel, digit, ret, max);
}

/* Moves on to the first slot of this wheel, which is not empty, and empties it, if that is no later
 * than `to`: else false. Adds up in *n how many of `max` are due. */
POOL_HOT bool timer_step(
	struct timer *t, unsigned wheel, int64_t to, uint32_t *ret, uint32_t max, uint32_t *n)
{
	uint32_t digit;
	int64_t tick = timer_first_of(t, wheel, &digit);

	if (tick > to)
		return false;
	if (tick > t->now)
		t->now = tick;
	*n += wheel == 0   ? timer_take(t, digit, ret + *n, max - *n)
	      : wheel == 1 ? timer_pour(t, 1, digit, ret + *n, max - *n)
			   : timer_pour_far(t, wheel, digit, ret + *n, max - *n);
	return true;
}

uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max)
{
	int64_t to = now >> TIMER_TICK_BITS;
	uint32_t n = 0;
	bool more = true;

	while (more && n < max) {
		if (t->top[0])
			more = timer_step(t, 0, to, ret, max, &n);
		else if (t->top[1])
			more = timer_step(t, 1, to, ret, max, &n);
		else if (t->top[2])
			more = timer_step(t, 2, to, ret, max, &n);
		else
			more = t->top[3] && timer_step(t, 3, to, ret, max, &n);
	}
	if (!more && to > t->now)
		t->now = to;
	t->set -= n;
	return n;
}

uint32_t timer_soon(const struct timer *t, uint32_t *ret, uint32_t max)
{
	const uint64_t *bits = &t->bits[timer_wheel[1].word];
	const struct chain *slots = &t->slot[timer_wheel[1].slot];
	uint32_t n = 0, high;

	/* Only the middle wheel, which has what is neither due at once nor far; and of that what comes
	 * in a stretch of 134 ms. */
	if (!t->top[1])
		return 0;
	high = (uint32_t)__builtin_ctzll(t->top[1]) * 64;
	for (uint64_t words = t->words[timer_wheel[1].words + high / 64]; words && n < max;
		words &= words - 1) {
		uint32_t word = high + (uint32_t)__builtin_ctzll(words);

		for (uint64_t left = bits[word]; left && n < max; left &= left - 1) {
			uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(left);

			n += chain_peek(&t->store, &slots[slot], ret + n, max - n);
		}
	}
	return n;
}

weir_time timer_next(const struct timer *t)
{
	uint32_t digit, near[TIMER_LOOK + 1], n;
	int64_t tick, first = INT64_MAX;
	unsigned wheel = 0;

	while (wheel < TIMER_WHEELS && !t->top[wheel])
		wheel++;
	if (wheel == TIMER_WHEELS)
		return WEIR_NEVER;
	tick = timer_first_of(t, wheel, &digit);
	if (wheel == 0)
		return tick << TIMER_TICK_BITS;
	/* On a higher wheel the slot's beginning would do, but saves a look for nothing if the entries
	 * are few enough to be asked. (A slot that was found holds one at least.) */
	n = chain_peek(&t->store, &t->slot[timer_wheel[wheel].slot + digit], near, TIMER_LOOK + 1);
	if (n > TIMER_LOOK)
		return tick << TIMER_TICK_BITS;
	for (uint32_t i = 0; i < n; i++)
		if (timer_entry(t, near[i])->tick < first)
			first = timer_entry(t, near[i])->tick;
	return first << TIMER_TICK_BITS;
}
