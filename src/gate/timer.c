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

static void timer_link(struct timer *t, uint32_t at)
{
	struct timer_entry *e = &t->entries[at];
	uint64_t differ = (uint64_t)(e->tick ^ t->now);
	unsigned wheel = differ ? (63 - (unsigned)__builtin_clzll(differ)) / 6 : 0;
	unsigned digit = (unsigned)(e->tick >> (6 * wheel)) & 63;
	uint32_t head = wheel * 64 + digit;

	e->next = head;
	e->prev = t->entries[head].prev;
	t->entries[e->prev].next = at;
	t->entries[head].prev = at;
	t->bits[wheel] |= UINT64_C(1) << digit;
}

static void timer_unlink(struct timer *t, uint32_t at)
{
	struct timer_entry *e = &t->entries[at];

	t->entries[e->prev].next = e->next;
	t->entries[e->next].prev = e->prev;
	if (e->next == e->prev && e->next < TIMER_SLOTS) /* was the slot's last */
		t->bits[e->next / 64] &= ~(UINT64_C(1) << (e->next % 64));
}

void timer_set(struct timer *t, uint32_t i, weir_time when)
{
	struct timer_entry *e = timer_at(t, i);
	int64_t last =
		t->now | ((INT64_C(1) << (6 * TIMER_WHEELS)) - 1); /* as far as the wheels go */
	int64_t tick;

	if (when > WEIR_NEVER - TIMER_TICK)
		return; /* never */
	tick = (when + TIMER_TICK - 1) >> TIMER_TICK_BITS;
	if (tick < t->now)
		tick = t->now;
	if (tick > last)
		tick = last; /* expires early, and is set again */
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
		if (!t->bits[wheel])
			continue;
		unsigned digit = (unsigned)__builtin_ctzll(t->bits[wheel]);
		int64_t above = t->now >> (6 * (wheel + 1)) << (6 * (wheel + 1));

		*ret_head = wheel * 64 + digit;
		return above | (int64_t)digit << (6 * wheel);
	}
	return INT64_MAX;
}

/* Time has reached this slot: its entries go to lower wheels. */
static void timer_cascade(struct timer *t, uint32_t head)
{
	uint32_t at = t->entries[head].next;

	t->entries[head].next = t->entries[head].prev = head;
	t->bits[head / 64] &= ~(UINT64_C(1) << (head % 64));
	while (at != head) {
		uint32_t next = t->entries[at].next;

		timer_link(t, at);
		at = next;
	}
}

uint32_t timer_expire(struct timer *t, weir_time now)
{
	int64_t to = now >> TIMER_TICK_BITS;

	for (;;) {
		uint32_t head = 0;
		int64_t tick = timer_slot(t, &head);

		if (tick > to)
			break;
		if (tick > t->now)
			t->now = tick;
		if (head >= 64) {
			timer_cascade(t, head);
			continue;
		}
		uint32_t at = t->entries[head].next;

		timer_unlink(t, at);
		t->entries[at].tick = -1;
		t->set--;
		return at - TIMER_SLOTS;
	}
	if (to > t->now)
		t->now = to;
	return TIMER_NIL;
}

weir_time timer_next(const struct timer *t)
{
	uint32_t head = 0;
	int64_t slot = timer_slot(t, &head), first = INT64_MAX;
	unsigned looked = 0;

	if (slot == INT64_MAX)
		return WEIR_NEVER;
	if (head < 64)
		return slot << TIMER_TICK_BITS;
	/* On a higher wheel the slot's beginning would do, but saves a look for nothing if the entries
	 * are few enough to be asked. */
	for (uint32_t at = t->entries[head].next; at != head; at = t->entries[at].next) {
		if (++looked > TIMER_LOOK)
			return slot << TIMER_TICK_BITS;
		if (t->entries[at].tick < first)
			first = t->entries[at].tick;
	}
	return first << TIMER_TICK_BITS;
}
