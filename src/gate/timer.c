/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/timer.h"
#include "gate/pool.h"
#include <errno.h>
#include <stdlib.h>

#define TIMER_LOOK 8 /* entries that timer_next reads at most */

int timer_grow(struct timer *t, uint32_t room)
{
	struct timer_entry *p =
		pool_array(t->entries, (size_t)t->room * sizeof *p, (size_t)room * sizeof *p);

	if (!p)
		return -ENOMEM;
	for (uint32_t i = t->room; i < room; i++)
		p[i].tick = -1;
	t->entries = p;
	t->room = room;
	return 0;
}

int timer_init(struct timer *t, uint32_t room)
{
	*t = (struct timer){0};
	return timer_grow(t, room);
}

void timer_free(struct timer *t)
{
	free(t->entries);
	*t = (struct timer){0};
}

/* Per wheel: the first bit of its digit, how many bits, its first word of bits, its first slot. */
static const struct {
	uint8_t shift, bits, word;
	uint16_t slot;
} timer_wheel[TIMER_WHEELS] = {
	{.shift = 0, .bits = 5, .word = 0, .slot = 0},
	{.shift = 5, .bits = 12, .word = 1, .slot = TIMER_COARSE},
	{.shift = 17, .bits = 10, .word = 65, .slot = TIMER_COARSE + 4096},
	{.shift = 27, .bits = 0, .word = 81, .slot = TIMER_COARSE + 4096 + 1024}, /* beyond */
};

static unsigned timer_wheel_of(uint32_t slot)
{
	unsigned wheel = TIMER_WHEELS - 1;

	while (slot < timer_wheel[wheel].slot)
		wheel--;
	return wheel;
}

/* Entry i becomes the last of its slot. */
static inline void timer_put(struct timer *t, uint32_t i, unsigned wheel)
{
	struct timer_entry *e = &t->entries[i];
	uint32_t digit = (uint32_t)(e->tick >> timer_wheel[wheel].shift) &
			 ((1u << timer_wheel[wheel].bits) - 1);
	uint32_t slot = timer_wheel[wheel].slot + digit;
	uint64_t *word = &t->bits[timer_wheel[wheel].word + digit / 64];
	uint64_t bit = UINT64_C(1) << (digit % 64);

	e->next = slot | TIMER_END;
	if (*word & bit) {
		e->prev = t->last[slot];
		t->entries[e->prev].next = i;
	} else {
		e->prev = slot | TIMER_END;
		t->first[slot] = i;
	}
	t->last[slot] = i;
	*word |= bit;
	t->top[wheel] |= UINT64_C(1) << (digit / 64);
}

static __attribute__((noinline)) void timer_link_far(struct timer *t, uint32_t i)
{
	uint64_t differ = (uint64_t)(t->entries[i].tick ^ t->now);

	timer_put(t, i, differ < 1 << 5 ? 0 : differ < 1 << 27 ? 2 : 3);
}

static inline void timer_link(struct timer *t, uint32_t i)
{
	uint64_t differ = (uint64_t)(t->entries[i].tick ^ t->now);

	if (differ >> 5 && !(differ >> 17))
		timer_put(t, i, 1); /* where most go, with its constants */
	else
		timer_link_far(t, i);
}

static void timer_empty(struct timer *t, uint32_t slot)
{
	unsigned wheel = timer_wheel_of(slot);
	uint32_t digit = slot - timer_wheel[wheel].slot;
	uint64_t *word = &t->bits[timer_wheel[wheel].word + digit / 64];

	*word &= ~(UINT64_C(1) << (digit % 64));
	if (!*word)
		t->top[wheel] &= ~(UINT64_C(1) << (digit / 64));
}

static void timer_unlink(struct timer *t, uint32_t i)
{
	const struct timer_entry *e = &t->entries[i];

	if (e->next & e->prev & TIMER_END) {
		timer_empty(t, e->next & ~TIMER_END);
		return;
	}
	if (e->next & TIMER_END)
		t->last[e->next & ~TIMER_END] = e->prev;
	else
		t->entries[e->next].prev = e->prev;
	if (e->prev & TIMER_END)
		t->first[e->prev & ~TIMER_END] = e->next;
	else
		t->entries[e->prev].next = e->next;
}

void timer_set_tick(struct timer *t, uint32_t i, int64_t tick)
{
	struct timer_entry *e = &t->entries[i];

	if (tick < t->now)
		tick = t->now;
	if (e->tick >= 0) {
		if (e->tick <= tick)
			return;
		timer_unlink(t, i);
	} else {
		t->set++;
	}
	e->tick = tick;
	timer_link(t, i);
}

void timer_clear(struct timer *t, uint32_t i)
{
	if (t->entries[i].tick < 0)
		return;
	timer_unlink(t, i);
	t->entries[i].tick = -1;
	t->set--;
}

/* The first tick at which a slot begins that has entries, and that slot. Entries of a higher wheel
 * all come after those of a lower one. */
static int64_t timer_slot(const struct timer *t, uint32_t *ret_slot)
{
	for (unsigned wheel = 0; wheel < TIMER_WHEELS; wheel++) {
		if (!t->top[wheel])
			continue;
		unsigned shift = timer_wheel[wheel].shift, above = shift + timer_wheel[wheel].bits;

		if (wheel == TIMER_WHEELS - 1) {
			*ret_slot = timer_wheel[wheel].slot;
			return ((t->now >> shift) + 1) << shift;
		}
		unsigned word = (unsigned)__builtin_ctzll(t->top[wheel]);
		unsigned bit = (unsigned)__builtin_ctzll(t->bits[timer_wheel[wheel].word + word]);

		*ret_slot = timer_wheel[wheel].slot + word * 64 + bit;
		return t->now >> above << above | (int64_t)(word * 64 + bit) << shift;
	}
	return INT64_MAX;
}

/* Time has reached this slot: its entries are due, up to `max` of them, or go to lower wheels. */
static uint32_t timer_cascade(struct timer *t, uint32_t slot, uint32_t *ret, uint32_t max)
{
	uint32_t i = t->first[slot], n = 0;

	timer_empty(t, slot);
	while (i < TIMER_END) {
		struct timer_entry *e = &t->entries[i];
		uint32_t next = e->next;

		if (e->tick <= t->now && n < max) {
			e->tick = -1;
			ret[n++] = i;
		} else {
			timer_link(t, i);
		}
		i = next;
	}
	return n;
}

/* The slot's tick is now: all its entries are due; up to `max` of them. */
static uint32_t timer_take(struct timer *t, uint32_t slot, uint32_t *ret, uint32_t max)
{
	uint32_t i = t->first[slot], n = 0;

	while (i < TIMER_END && n < max) {
		t->entries[i].tick = -1;
		ret[n++] = i;
		i = t->entries[i].next;
	}
	if (i >= TIMER_END) {
		timer_empty(t, slot);
	} else {
		t->first[slot] = i;
		t->entries[i].prev = slot | TIMER_END;
	}
	return n;
}

uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max)
{
	int64_t to = now >> TIMER_TICK_BITS;
	uint32_t n = 0;

	while (n < max) {
		uint32_t slot = 0;
		int64_t tick = timer_slot(t, &slot);

		if (tick > to) {
			if (to > t->now)
				t->now = to;
			break;
		}
		if (tick > t->now)
			t->now = tick;
		n += slot < TIMER_COARSE ? timer_take(t, slot, ret + n, max - n)
					 : timer_cascade(t, slot, ret + n, max - n);
	}
	t->set -= n;
	return n;
}

uint32_t timer_walk_slot(const struct timer *t, struct timer_walk *w)
{
	const uint64_t *bits = &t->bits[timer_wheel[1].word];
	uint32_t word = w->digit / 64;
	uint64_t left = bits[word] & (~UINT64_C(0) << (w->digit % 64));

	if (!left) {
		uint64_t words = t->top[1] & ~((UINT64_C(2) << word) - 1);

		if (!words)
			return TIMER_NIL;
		word = (uint32_t)__builtin_ctzll(words);
		left = bits[word];
	}
	uint32_t digit = word * 64 + (uint32_t)__builtin_ctzll(left);

	w->digit = (digit + 1) & 4095; /* at the end of the wheel: round, to what comes after */
	w->at = t->first[timer_wheel[1].slot + digit];
	return w->at;
}

weir_time timer_next(const struct timer *t)
{
	uint32_t slot = 0;
	int64_t tick = timer_slot(t, &slot), first;
	unsigned looked = 0;

	if (tick == INT64_MAX)
		return WEIR_NEVER;
	if (slot < TIMER_COARSE)
		return tick << TIMER_TICK_BITS;
	/* On a higher wheel the slot's beginning would do, but saves a look for nothing if the entries
	 * are few enough to be asked. (A slot that was found holds one at least.) */
	first = t->entries[t->first[slot]].tick;
	for (uint32_t i = t->first[slot]; i < TIMER_END; i = t->entries[i].next) {
		if (++looked > TIMER_LOOK)
			return tick << TIMER_TICK_BITS;
		if (t->entries[i].tick < first)
			first = t->entries[i].tick;
	}
	return first << TIMER_TICK_BITS;
}
