/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane-impl.h"

void lane_places(struct lane *l, uint32_t *place)
{
	l->heap.place = place;
}

uint32_t lane_first_keyed(struct lane *l, const struct lane_home *h)
{
	for (;;) {
		const struct heap_item *item = heap_min(&l->heap);

		if (!item)
			return LANE_NIL;
		uint32_t e = (uint32_t)item->value >> 1 | (uint32_t)item->value << 31;
		int64_t key = (int64_t)lane_entry(h, l, e)->tag;

		if (key <= item->key)
			return e;
		heap_move(&l->heap, 0, key, e);
	}
}

/* Return an entry's index in the heap's places: even for nodes, odd for lanes. */
static uint64_t lane_value(uint32_t e)
{
	return e << 1 | e >> 31;
}

void lane_key(struct lane *l, const struct lane_home *h, uint32_t e)
{
	struct lane_entry *entry = lane_entry(h, l, e);
	int64_t key = (int64_t)entry->tag;

	if (entry->group != LANE_NONE) {
		heap_move(&l->heap, l->heap.place[lane_value(e)], key, e);
		return;
	}
	/* lane_fit has made room: this cannot fail. */
	(void)heap_push(
		&l->heap, (struct heap_item){.key = key, .serial = e, .value = lane_value(e)});
	entry->group = 0;
	l->waits++;
}

void lane_key_out(struct lane *l, struct lane_entry *entry, uint32_t e)
{
	heap_remove(&l->heap, l->heap.place[lane_value(e)]);
	entry->group = LANE_NONE;
	l->waits--;
}
