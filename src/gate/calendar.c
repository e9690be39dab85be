/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a timer, and how it grows. Nothing here is on the hot path.
 *
 * METHOD  The calendar has about one slot per timer. When the number of timers grows a longer calendar is made, and
 *         the entries that are set are transferred in order: O(timers + slots).
 */
#include "gate/timer.h"
#include <errno.h>
#include <string.h>

#define CALENDAR_SMALL 64   /* slots: 2 ms */
#define CALENDAR_LEAST 1024 /* 34 ms */

/* Return the length of the calendar: about a slot per entry. A short one suits a small gate, where moving entries
 * costs little. */
static uint32_t calendar_slots(uint32_t room)
{
	uint32_t slots = room <= 64 ? CALENDAR_SMALL : CALENDAR_LEAST;

	while (slots < MARKS_MOST && slots * 2 <= room / 3 * 4)
		slots *= 2;
	return slots;
}

static size_t calendar_bytes(uint32_t slots)
{
	return slots * (sizeof(struct timer_slot) + 1) + TIMER_LISTS * sizeof(struct timer_list) +
	       (marks_bits(slots) + marks_words(slots)) * sizeof(uint64_t);
}

/* Make an empty timer with this many slots. Return 0 or -ENOMEM. */
static int calendar_make(struct timer *t, uint32_t slots)
{
	t->slots = pool_array(NULL, 0, calendar_bytes(slots));
	if (!t->slots)
		return -ENOMEM;
	t->lists = (void *)(t->slots + slots);
	t->marks.bits = (void *)(t->lists + TIMER_LISTS);
	t->marks.words = t->marks.bits + marks_bits(slots);
	t->count = (void *)(t->marks.words + marks_words(slots));
	t->mask = slots - 1;
	memset(t->slots, 0xff, slots * sizeof *t->slots); /* TIMER_NIL */
	for (uint32_t k = 0; k < slots + TIMER_LISTS; k++)
		timer_ends(t, k)->first = timer_ends(t, k)->last = TIMER_LIST | k;
	t->bits = (unsigned)__builtin_ctz(slots) - TIMER_PARTS_BITS + TIMER_COARSE_BITS;
	t->edge[0] = (t->now | (TIMER_COARSE - 1)) + 1;
	for (unsigned l = 1; l < TIMER_LEVELS - 1; l++) {
		int64_t width = INT64_C(1) << timer_bits(t, l + 1);

		t->edge[l] = (t->now & -width) + (l == 1 ? TIMER_PARTS : 2) * width;
	}
	t->edge[TIMER_LEVELS - 1] = TIMER_NONE;
	t->bring = t->edge[1] - timer_reach(t);
	return 0;
}

/* Transfer the entries of a slot from one timer to another. */
static void calendar_transfer(const struct timer *from, uint32_t list, struct timer *to)
{
	for (unsigned k = 0; list <= from->mask && k < TIMER_CELLS; k++) {
		uint32_t i = from->slots[list].cell[k];

		if (i != TIMER_NIL)
			timer_link(to, timer_entry(to, i), i);
	}
	for (uint32_t i = timer_ends(from, list)->first, next; !(i & TIMER_LIST); i = next) {
		next = timer_entry(to, i)->next;
		timer_link(to, timer_entry(to, i), i);
	}
}

/* Transfer all entries that are set: those of one tick keep their order, which is that of the levels. */
static void calendar_transfer_all(const struct timer *from, struct timer *to)
{
	for (uint32_t k = 0; k < TIMER_FAR; k++)
		calendar_transfer(from, from->mask + 1 + k, to);
	for (uint32_t s = 0; s <= from->mask; s++)
		calendar_transfer(from, s, to);
	for (uint32_t k = TIMER_FAR; k < TIMER_LISTS; k++)
		calendar_transfer(from, from->mask + 1 + k, to);
}

int calendar_fit(struct timer *t, struct timer_entry *entries, uint32_t room)
{
	uint32_t slots = calendar_slots(room);

	t->entries = (char *)entries;
	if (t->slots)
		timer_set_all(t);
	struct timer fresh = {.entries = (char *)entries, .now = t->now, .set = t->set};

	if (!t->slots || slots > t->mask + 1) {
		if (calendar_make(&fresh, slots))
			return -ENOMEM;
		if (t->slots)
			calendar_transfer_all(t, &fresh);
		calendar_free(t);
		*t = fresh;
	}
	return 0;
}

void calendar_free(struct timer *t)
{
	pool_array_free(t->slots);
}

size_t calendar_memory(const struct timer *t)
{
	return t->slots ? calendar_bytes(t->mask + 1) : 0;
}
