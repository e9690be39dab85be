/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LANE_SLOT_BITS 2 /* a slot is a quarter of a width */
#define LANE_FAR       (UINT64_C(1) << 62)

void lane_init(struct lane *l, uint32_t number, uint32_t node, uint8_t slot, uint32_t offset,
	bool keyed, uint32_t *place)
{
	*l = (struct lane){.number = number,
		.node = node,
		.slot = slot,
		.offset = offset,
		.keyed = keyed,
		.best = LANE_NONE,
		.own.key = LANE_NONE};
	memset(l->of, LANE_NONE, sizeof l->of);
	for (unsigned i = 0; i < LANE_KEYS; i++)
		l->ids[i] = (uint8_t)i;
	heap_init(&l->heap, place);
}

void lane_places(struct lane *l, uint32_t *place)
{
	l->heap.place = place;
}

void lane_free(struct lane *l)
{
	free(l->groups);
	heap_free(&l->heap);
}

size_t lane_memory(const struct lane *l)
{
	return l->room * sizeof *l->groups + l->heap.room * sizeof *l->heap.items;
}

int lane_fit(struct lane *l, uint32_t numbers)
{
	uint32_t room = numbers < LANE_KEYS ? numbers : LANE_KEYS;

	if (l->keyed)
		return heap_reserve(&l->heap, numbers);
	if (room <= l->room)
		return 0;
	room += room / 2; /* children come one by one */
	room = room < LANE_KEYS ? room : LANE_KEYS;
	struct lane_group *groups =
		pool_array(l->groups, l->room * sizeof *groups, room * sizeof *groups);

	if (!groups)
		return -ENOMEM;
	l->groups = groups;
	l->room = (uint8_t)room;
	return 0;
}

/* ---- groups */

/* A group of this key, of which there is none, whose first slot has this tag and is yet empty. */
void lane_open(struct lane *l, unsigned key, uint64_t tag)
{
	unsigned id = l->ids[l->active];
	struct lane_group *q = &l->groups[id];
	unsigned shift = key > LANE_SLOT_BITS ? key - LANE_SLOT_BITS : 0;

	q->key = (uint8_t)key;
	q->shift = (uint8_t)shift;
	q->first = 0;
	q->used = 0;
	q->place = l->active++;
	q->start = tag >> shift << shift;
	q->finish = q->start + (UINT64_C(1) << key);
	l->of[key] = (uint8_t)id;
}

static void lane_close(struct lane *l, unsigned id)
{
	unsigned last = l->ids[--l->active], place = l->groups[id].place;

	l->of[l->groups[id].key] = LANE_NONE;
	l->ids[place] = (uint8_t)last;
	l->groups[last].place = (uint8_t)place;
	l->ids[l->active] = (uint8_t)id;
}

/* How many slots after the first the first that holds something is, or the last. */
static uint32_t lane_turned(const struct lane_group *q)
{
	uint32_t twice = (uint32_t)q->used << LANE_SLOTS | q->used;

	return twice >> q->first & ((1u << LANE_SLOTS) - 1);
}

/* Makes `tag`, which is before the first slot, that slot's. Does the ring go so far? */
static bool lane_back(struct lane_group *q, uint64_t tag)
{
	int64_t back = -((int64_t)(tag - q->start) >> q->shift);
	unsigned last = 31 - (unsigned)__builtin_clz(lane_turned(q));

	if (back + last >= LANE_SLOTS)
		return false;
	q->first = (uint8_t)((q->first - (unsigned)back) % LANE_SLOTS);
	q->start -= (uint64_t)back << q->shift;
	q->finish -= (uint64_t)back << q->shift;
	return true;
}

/* A tag is before the first slot of the group of a key. That group, or the first wider one, whose ring goes so far. */
unsigned lane_early(struct lane *l, uint64_t tag, unsigned key)
{
	for (;; key++) {
		if (l->of[key] == LANE_NONE)
			lane_open(l, key, tag);
		struct lane_group *q = &l->groups[l->of[key]];

		if ((int64_t)(tag - q->start) >= 0 || lane_back(q, tag))
			return l->of[key];
	}
}

/* A slot of group id holds nothing any more. */
void lane_emptied(struct lane *l, unsigned id, unsigned slot)
{
	struct lane_group *q = &l->groups[id];

	q->used &= (uint16_t) ~(1u << slot);
	if (!q->used) {
		lane_close(l, id);
		l->best = LANE_NONE;
	} else if (slot == q->first) {
		unsigned on = (unsigned)__builtin_ctz(lane_turned(q));

		q->first = (uint8_t)((q->first + on) % LANE_SLOTS);
		q->start += (uint64_t)on << q->shift;
		q->finish += (uint64_t)on << q->shift;
		l->best = LANE_NONE;
	}
}

/* Of the groups that are eligible the one that finishes first. If none is V becomes the first start. */
void lane_choose(struct lane *l)
{
	int64_t until = INT64_MAX, finish = INT64_MAX;
	unsigned best = LANE_NONE, key = LANE_KEYS;

	for (unsigned i = 0; i < l->active; i++) {
		const struct lane_group *q = &l->groups[l->ids[i]];
		int64_t start = (int64_t)(q->start - l->now), f = (int64_t)(q->finish - l->now);

		if (start > 0) {
			until = start < until ? start : until;
			continue;
		}
		if (f < finish || (f == finish && q->key < key)) {
			best = l->ids[i];
			finish = f;
			key = q->key;
		}
	}
	if (best == LANE_NONE) {
		l->now += (uint64_t)until;
		l->owed = 0;
		lane_choose(l);
		return;
	}
	l->best = (uint8_t)best;
	l->until = l->now + (until < (int64_t)LANE_FAR ? (uint64_t)until : LANE_FAR);
}

static uint32_t lane_first_heap(struct lane *l, const struct lane_home *h)
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

uint32_t lane_first(struct lane *l, const struct lane_home *h)
{
	if (l->keyed)
		return lane_first_heap(l, h);
	while (l->active) {
		if (l->best == LANE_NONE || (int64_t)(l->now - l->until) >= 0)
			lane_choose(l);
		const struct lane_group *q = &l->groups[l->best];
		uint32_t e = q->slot[q->first].head;
		struct lane_entry *entry = lane_entry(h, l, e);
		int64_t on = (int64_t)(entry->tag - q->start) >> q->shift;

		if (on <= 0)
			return e;
		uint64_t width = UINT64_C(1) << q->key; /* its tag has grown, or was beyond the ring */

		lane_take(l, h, entry);
		lane_put(l, h, entry, e, width);
	}
	return LANE_NIL;
}

/* ---- keyed */

/* A place has an index: the numbers of nodes and of lanes in turns. */
static uint64_t lane_value(uint32_t e)
{
	return e << 1 | e >> 31;
}

void lane_key(struct lane *l, const struct lane_home *h, uint32_t e)
{
	struct lane_entry *entry = lane_entry(h, l, e);
	int64_t key = (int64_t)entry->tag;

	if (entry->key != LANE_NONE) {
		heap_move(&l->heap, l->heap.place[lane_value(e)], key, e);
		return;
	}
	/* Room was made by lane_fit: this cannot fail. */
	(void)heap_push(&l->heap,
		(struct heap_item){.key = key, .serial = e, .value = lane_value(e)});
	entry->key = 0;
	l->waits++;
}

void lane_key_out(struct lane *l, struct lane_entry *entry, uint32_t e)
{
	heap_remove(&l->heap, l->heap.place[lane_value(e)]);
	entry->key = LANE_NONE;
	l->waits--;
}
