/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANE_SLOT_BITS 2                /* a slot is a quarter of a width */
#define LANE_SLOT      (LANE_SLOTS - 1) /* which bits of an entry's rest */
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
static void lane_open(struct lane *l, unsigned key, uint64_t tag)
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
	q->finish = q->start + (UINT64_C(1) << key) + (UINT64_C(1) << shift);
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

/* Is there room for a tag in the group of a key, which is opened if need be? */
static bool lane_takes(struct lane *l, uint64_t tag, unsigned key)
{
	if (l->of[key] == LANE_NONE)
		lane_open(l, key, tag);
	struct lane_group *q = &l->groups[l->of[key]];

	int64_t at = (int64_t)(tag - q->start) >> q->shift;

	return at < 0 ? lane_back(q, tag) : at < LANE_SLOTS;
}

/* A tag is before the first slot of the group of a key: that group, or the first narrower one, whose ring goes so far
 * back. It is late, so that a finish tag which is too early does no harm; one too late would. */
static unsigned lane_early(struct lane *l, uint64_t tag, unsigned key)
{
	unsigned narrow = key;

	while (narrow > 0 && !lane_takes(l, tag, narrow))
		narrow--;
	while (!lane_takes(l, tag, narrow))
		narrow = narrow < key ? key + 1 : narrow + 1;
	return l->of[narrow];
}

/* A slot of group id holds nothing any more. */
static void lane_emptied(struct lane *l, unsigned id, unsigned slot)
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
static void lane_choose(struct lane *l)
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
		l->before = l->now += (uint64_t)until;
		l->owed = 0;
		lane_choose(l);
		return;
	}
	l->best = (uint8_t)best;
	l->until = l->now + (until < (int64_t)LANE_FAR ? (uint64_t)until : LANE_FAR);
}

/* log2 of the least power of two that a span fits in. */
static inline unsigned lane_width(uint64_t span)
{
	return span > 1 ? 64 - (unsigned)__builtin_clzll(span - 1) : 0;
}

/* The first slot of group id is another: is the group the best now? */
static inline void lane_compare(struct lane *l, unsigned id)
{
	const struct lane_group *q = &l->groups[id];

	if (l->best == LANE_NONE)
		return;
	if ((int64_t)(q->start - l->now) > 0) {
		if ((int64_t)(q->start - l->until) < 0)
			l->until = q->start;
		return;
	}
	int64_t less = (int64_t)(q->finish - l->groups[l->best].finish);

	if (less < 0 || (less == 0 && q->key < l->groups[l->best].key))
		l->best = (uint8_t)id;
}

void lane_put(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double step)
{
	int64_t half = (int64_t)(entry->tag - l->now) / 2; /* a ring goes four widths */
	int64_t span = (int64_t)step;
	unsigned key = lane_width((uint64_t)(half > span ? half : span));

	if (l->of[key] == LANE_NONE)
		lane_open(l, key, entry->tag);
	unsigned id = l->of[key];
	struct lane_group *q = &l->groups[id];
	int64_t at = (int64_t)(entry->tag - q->start) >> q->shift;

	if (__builtin_expect(at < 0, 0)) {
		id = lane_early(l, entry->tag, key);
		q = &l->groups[id];
		at = (int64_t)(entry->tag - q->start) >> q->shift;
	}
	unsigned slot = (q->first + (at < LANE_SLOTS ? (unsigned)at : LANE_SLOTS - 1)) % LANE_SLOTS;
	struct lane_list *list = &q->slot[slot];

	entry->key = q->key;
	entry->rest = (uint16_t)((entry->rest & ~LANE_SLOT) | slot);
	entry->next = LANE_NIL;
	if (q->used >> slot & 1) {
		entry->prev = list->tail;
		lane_entry(h, l, list->tail)->next = e;
		list->tail = e;
		return;
	}
	entry->prev = LANE_NIL;
	list->head = list->tail = e;
	q->used |= (uint16_t)(1u << slot);
	if (at == 0)
		lane_compare(l, id);
}

void lane_take(struct lane *l, const struct lane_home *h, struct lane_entry *entry)
{
	unsigned id = l->of[entry->key];
	struct lane_list *list = &l->groups[id].slot[entry->rest & LANE_SLOT];
	uint32_t next = entry->next, prev = entry->prev;

	*(prev == LANE_NIL ? &list->head : &lane_entry(h, l, prev)->next) = next;
	*(next == LANE_NIL ? &list->tail : &lane_entry(h, l, next)->prev) = prev;
	entry->key = LANE_NONE;
	if (list->head == LANE_NIL)
		lane_emptied(l, id, entry->rest & LANE_SLOT);
}

/* Where a child starts that begins to wait. */
static inline uint64_t lane_start(struct lane *l)
{
	if (!l->active)
		return l->before;
	if (l->best == LANE_NONE || (int64_t)(l->now - l->until) >= 0)
		lane_choose(l);
	uint64_t finish = l->groups[l->best].finish;

	return (int64_t)(finish - l->before) < 0 ? finish : l->before;
}

bool lane_join(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, double step, double credit)
{
	uint64_t start = lane_start(l), early = l->before - (uint64_t)(int64_t)credit;
	int64_t ahead = (int64_t)(entry->tag - l->now);
	double each = weight * LANE_WEIGHT_ONE;

	if ((int64_t)(early - start) < 0)
		start = early;
	/* (A tag that is ahead by more than its last request could put it was left behind long ago.) */
	if ((int64_t)(entry->tag - start) < 0 || (ahead > 0 && (ahead - 1) >> entry->width))
		entry->tag = start;
	l->owed += each * (double)(int64_t)(entry->tag - l->now);
	l->weight += (int64_t)each;
	entry->waits = true;
	lane_put(l, h, entry, e, step);
	return l->waits++ == 0;
}

void lane_leave(struct lane *l, struct lane_entry *entry, double weight)
{
	int64_t ahead = (int64_t)(entry->tag - l->now);
	double each = weight * LANE_WEIGHT_ONE;

	l->owed -= ahead > 0 ? each * (double)ahead : 0;
	l->weight -= (int64_t)each;
	l->waits--;
	entry->waits = false;
	l->owed = l->waits ? l->owed : 0;
}

void lane_serve(struct lane *l, struct lane_entry *entry, double cost, double step)
{
	double exact = step + (double)(entry->rest / LANE_SLOTS) / LANE_PARTS;
	int64_t whole = (int64_t)exact, ahead;
	unsigned rest = (unsigned)((exact - (double)whole) * LANE_PARTS + 0.5);

	entry->tag += (uint64_t)whole + rest / LANE_PARTS;
	entry->rest = (uint16_t)((rest % LANE_PARTS * LANE_SLOTS) | (entry->rest & LANE_SLOT));
	ahead = (int64_t)(entry->tag - l->now);
	entry->width = ahead > 0 ? lane_width((uint64_t)ahead) & 0x7f : 0;
	l->before = l->now;
	l->owed += cost;
	if (l->owed <= 0)
		return;
	double weight = (double)l->weight;
	int64_t move = (int64_t)(l->owed / weight);

	l->now += (uint64_t)move;
	l->owed -= (double)move * weight;
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
		/* Its tag has grown, or was beyond the ring: now it is to be in one. */
		double width = (double)(UINT64_C(1) << q->key),
		       beyond = (double)(entry->tag - q->start);

		width = fmax(width, beyond / 2);

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
	(void)heap_push(
		&l->heap, (struct heap_item){.key = key, .serial = e, .value = lane_value(e)});
	entry->key = 0;
	l->waits++;
}

void lane_key_out(struct lane *l, struct lane_entry *entry, uint32_t e)
{
	heap_remove(&l->heap, l->heap.place[lane_value(e)]);
	entry->key = LANE_NONE;
	l->waits--;
}
