/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/timer.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMER_LOOK 8 /* entries that timer_next reads at most */

static struct timer_entry *timer_at(struct timer *t, uint32_t i)
{
	return &t->entries[TIMER_SLOTS + i];
}

int timer_init(struct timer *t, uint32_t room)
{
	*t = (struct timer){0};
	t->entries = malloc((TIMER_SLOTS + (size_t)room) * sizeof *t->entries);
	if (!t->entries)
		return -ENOMEM;
	t->room = room;
	for (uint32_t i = 0; i < TIMER_SLOTS + room; i++)
		t->entries[i] = (struct timer_entry){.tick = -1, .next = i, .prev = i};
	return 0;
}

int timer_grow(struct timer *t, uint32_t room)
{
	struct timer_entry *p = realloc(t->entries, (TIMER_SLOTS + (size_t)room) * sizeof *p);

	if (!p)
		return -ENOMEM;
	t->entries = p;
	for (uint32_t i = TIMER_SLOTS + t->room; i < TIMER_SLOTS + room; i++)
		p[i] = (struct timer_entry){.tick = -1, .next = i, .prev = i};
	t->room = room;
	return 0;
}

void timer_free(struct timer *t)
{
	free(t->entries);
	*t = (struct timer){0};
}

/* Per wheel: the first bit of its digit, its first slot, its first word of bits. */
static const struct {
	uint8_t shift, bits, word;
	uint16_t slot;
} timer_wheel[TIMER_WHEELS] = {
	{.shift = 0, .bits = 6, .word = 0, .slot = 0},
	{.shift = 6, .bits = 10, .word = 1, .slot = 64},
	{.shift = 16, .bits = 10, .word = 17, .slot = 64 + 1024},
	{.shift = 26, .bits = 0, .word = 33, .slot = 64 + 1024 + 1024}, /* beyond: one slot */
};

static unsigned timer_wheel_of(uint32_t slot)
{
	return slot < 64 ? 0 : slot < 64 + 1024 ? 1 : slot < 64 + 2048 ? 2 : 3;
}

static void timer_link(struct timer *t, uint32_t at)
{
	struct timer_entry *e = &t->entries[at];
	uint64_t differ = (uint64_t)(e->tick ^ t->now);
	unsigned wheel = differ < 64 ? 0 : differ < 1 << 16 ? 1 : differ < 1 << 26 ? 2 : 3;
	uint32_t digit = (uint32_t)(e->tick >> timer_wheel[wheel].shift) &
			 ((1u << timer_wheel[wheel].bits) - 1);
	uint32_t head = timer_wheel[wheel].slot + digit;

	e->next = head;
	e->prev = t->entries[head].prev;
	t->entries[e->prev].next = at;
	t->entries[head].prev = at;
	t->bits[timer_wheel[wheel].word + digit / 64] |= UINT64_C(1) << (digit % 64);
	t->top[wheel] |= UINT64_C(1) << (digit / 64);
}

static void timer_empty(struct timer *t, uint32_t head)
{
	unsigned wheel = timer_wheel_of(head);
	uint32_t digit = head - timer_wheel[wheel].slot;
	uint64_t *word = &t->bits[timer_wheel[wheel].word + digit / 64];

	*word &= ~(UINT64_C(1) << (digit % 64));
	if (!*word)
		t->top[wheel] &= ~(UINT64_C(1) << (digit / 64));
}

static void timer_unlink(struct timer *t, uint32_t at)
{
	struct timer_entry *e = &t->entries[at];

	t->entries[e->prev].next = e->next;
	t->entries[e->next].prev = e->prev;
	if (e->next == e->prev && e->next < TIMER_SLOTS) /* was the slot's last */
		timer_empty(t, e->next);
}

void timer_set(struct timer *t, uint32_t i, weir_time when)
{
	struct timer_entry *e = timer_at(t, i);
	int64_t tick;

	if (when > WEIR_NEVER - TIMER_TICK)
		return; /* never */
	tick = (when + TIMER_TICK - 1) >> TIMER_TICK_BITS;
	if (tick < t->now)
		tick = t->now;
	if (e->tick >= 0) {
		if (e->tick <= tick)
			return;
		timer_unlink(t, TIMER_SLOTS + i);
	} else {
		t->set++;
	}
	e->tick = tick;
	timer_link(t, TIMER_SLOTS + i);
}

void timer_clear(struct timer *t, uint32_t i)
{
	struct timer_entry *e = timer_at(t, i);

	if (e->tick < 0)
		return;
	timer_unlink(t, TIMER_SLOTS + i);
	e->tick = -1;
	t->set--;
}

/* The first tick at which a slot begins that has entries, and that slot. Entries of a higher wheel
 * all come after those of a lower one. */
static int64_t timer_slot(const struct timer *t, uint32_t *ret_head)
{
	for (unsigned wheel = 0; wheel < TIMER_WHEELS; wheel++) {
		if (!t->top[wheel])
			continue;
		if (wheel == 3) {
			*ret_head = timer_wheel[3].slot;
			return ((t->now >> 26) + 1) << 26;
		}
		unsigned word = (unsigned)__builtin_ctzll(t->top[wheel]);
		unsigned bit = (unsigned)__builtin_ctzll(t->bits[timer_wheel[wheel].word + word]);
		unsigned shift = timer_wheel[wheel].shift, above = shift + timer_wheel[wheel].bits;

		*ret_head = timer_wheel[wheel].slot + word * 64 + bit;
		return t->now >> above << above | (int64_t)(word * 64 + bit) << shift;
	}
	return INT64_MAX;
}

/* Time has reached this slot: its entries go to lower wheels. */
static void timer_cascade(struct timer *t, uint32_t head)
{
	uint32_t at = t->entries[head].next;

	t->entries[head].next = t->entries[head].prev = head;
	timer_empty(t, head);
	while (at != head) {
		uint32_t next = t->entries[at].next;

		__builtin_prefetch(&t->entries[next]);
		timer_link(t, at);
		at = next;
	}
}

uint32_t timer_expire(struct timer *t, weir_time now, uint32_t *ret, uint32_t max)
{
	int64_t to = now >> TIMER_TICK_BITS;
	uint32_t n = 0;

	while (n < max) {
		uint32_t head = 0;
		int64_t tick = timer_slot(t, &head);

		if (tick > to) {
			if (to > t->now)
				t->now = to;
			break;
		}
		if (tick > t->now)
			t->now = tick;
		if (head >= 64) {
			timer_cascade(t, head);
			continue;
		}
		while (n < max && t->entries[head].next != head) {
			uint32_t at = t->entries[head].next;

			timer_unlink(t, at);
			t->entries[at].tick = -1;
			ret[n++] = at - TIMER_SLOTS;
		}
	}
	t->set -= n;
	return n;
}

weir_time timer_next(const struct timer *t)
{
	uint32_t head = 0;
	int64_t slot = timer_slot(t, &head), first;
	unsigned looked = 0;

	if (slot == INT64_MAX)
		return WEIR_NEVER;
	if (head < 64)
		return slot << TIMER_TICK_BITS;
	/* On a higher wheel the slot's beginning would do, but saves a look for nothing if the entries
	 * are few enough to be asked. (A slot that was found holds one at least.) */
	first = t->entries[t->entries[head].next].tick;
	for (uint32_t at = t->entries[head].next; at != head; at = t->entries[at].next) {
		if (++looked > TIMER_LOOK)
			return slot << TIMER_TICK_BITS;
		if (t->entries[at].tick < first)
			first = t->entries[at].tick;
	}
	return first << TIMER_TICK_BITS;
}
