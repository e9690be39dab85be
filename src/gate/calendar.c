/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/calendar.h"
#include "gate/queue.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CALENDAR_LEAST 1024 /* slots: 34 ms */

void calendar_free(struct timer *t)
{
	free(t->slots);
	free(t->count);
	free(t->marks.bits);
	queue_free(t);
}

size_t calendar_memory(const struct timer *t)
{
	size_t slots = t->slots ? (size_t)t->mask + 1 : 0;

	return slots * (sizeof *t->slots + 1) + slots / 8 +
	       (slots ? queue_count(t) * sizeof *t->queue : 0) + cells_memory(&t->store);
}

/* About a slot of the calendar a timer. */
static uint32_t calendar_slots(uint32_t room)
{
	uint32_t slots = CALENDAR_LEAST;

	while (slots < TIMER_MOST && slots * 2 <= room / 3 * 5)
		slots *= 2;
	return slots;
}

/* All that are set, those of one tick in order, go from one timer to another. */
static void calendar_transfer(struct timer *from, struct timer *to)
{
	timer_come_all(from);
	for (uint32_t s = 0; s <= from->mask; s++)
		for (unsigned k = 0; k < TIMER_CELLS; k++) {
			uint32_t i = from->slots[s].cell[k];

			if (i != TIMER_NIL)
				timer_link(to, timer_entry(to, i), i);
		}
	for (uint32_t q = 0; q < queue_count(from); q++)
		for (struct cells c = queue_take(from, q); !cells_empty(&c);) {
			uint64_t cell = cells_pop(&from->store, &c);

			if (queue_holds_in(from, q, cell, queue_base(from, q)))
				timer_link(to, queue_entry(to, cell), queue_number(cell));
		}
	timer_flush(to);
}

/* An empty calendar of so many slots. 0 or -ENOMEM. */
static int calendar_make(struct timer *t, uint32_t calendar, uint32_t room)
{
	t->slots = pool_array(NULL, 0, calendar * sizeof *t->slots);
	t->count = pool_array(NULL, 0, calendar);
	t->marks.bits = pool_array(NULL, 0, calendar / 64 * sizeof *t->marks.bits);
	if (!t->slots || !t->count || !t->marks.bits || queue_init(t, calendar, room)) {
		calendar_free(t);
		return -ENOMEM;
	}
	memset(t->slots, 0xff, calendar * sizeof *t->slots);
	t->mask = calendar - 1;
	t->half = (unsigned)__builtin_ctz(calendar) - 1;
	t->edge = (timer_turn(t, t->now) + 2) << t->half;
	t->split = t->now >> TIMER_COARSE_BITS >> TIMER_GROUP_BITS;
	t->pour = TIMER_NIL;
	return 0;
}

int calendar_fit(struct timer *t, struct timer_entry *entries, uint32_t room)
{
	struct timer fresh = {
		.entries = (char *)entries, .now = t->now, .set = t->set, .room = room};

	if (room > t->room) {
		if (calendar_make(&fresh, calendar_slots(room), room))
			return -ENOMEM;
		if (t->slots) {
			timer_flush(t);
			t->entries = (char *)entries;
			calendar_transfer(t, &fresh);
			calendar_free(t);
		}
		*t = fresh;
	}
	t->entries = (char *)entries;
	return 0;
}
