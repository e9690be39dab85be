/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane.h"
#include <errno.h>
#include <stdlib.h>

#define LANE_SLOT_BITS  2                /* a slot is a quarter of a width */
#define LANE_SLOT       (LANE_SLOTS - 1) /* which bits of an entry's rest */
#define LANE_FAR        (UINT64_C(1) << 62)
#define LANE_STEP_SMALL 0x1p50

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
	heap_init(&l->heap, place);
}

void lane_places(struct lane *l, uint32_t *place)
{
	l->heap.place = place;
}

void lane_free(struct lane *l)
{
	free(l->groups);
	free(l->tags);
	heap_free(&l->heap);
}

size_t lane_memory(const struct lane *l)
{
	return l->room * (sizeof *l->groups + sizeof *l->tags) +
	       l->heap.room * sizeof *l->heap.items;
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
	struct lane_tags *tags = pool_array(l->tags, l->room * sizeof *tags, room * sizeof *tags);

	if (!tags)
		return -ENOMEM;
	l->tags = tags;
	l->idle |= (UINT64_C(1) << room) - (UINT64_C(1) << l->room);
	l->room = (uint8_t)room;
	return 0;
}

/* ---- groups */

static void lane_move(struct lane_tags *tags, int64_t by)
{
	tags->start += (uint64_t)by;
	tags->finish += (uint64_t)by;
}

/* A group of this key, of which there is none, whose first slot has this tag and is yet empty. */
static void lane_open(struct lane *l, unsigned key, uint64_t tag)
{
	unsigned id = (unsigned)__builtin_ctzll(l->idle);
	unsigned shift = key > LANE_SLOT_BITS ? key - LANE_SLOT_BITS : 0;
	uint64_t start = tag >> shift << shift;
	struct lane_group *q = &l->groups[id];

	q->key = (uint8_t)key;
	q->shift = (uint8_t)shift;
	q->first = 0;
	q->used = 0;
	l->tags[id] =
		(struct lane_tags){start, start + (UINT64_C(1) << key) + (UINT64_C(1) << shift)};
	l->of[key] = (uint8_t)id;
	l->idle &= l->idle - 1;
	l->active |= UINT64_C(1) << key;
}

/* Which slots hold something, from the first slot on. */
static uint32_t lane_turned(const struct lane_group *q)
{
	uint32_t twice = (uint32_t)q->used << LANE_SLOTS | q->used;

	return twice >> q->first & ((1u << LANE_SLOTS) - 1);
}

/* Makes `tag`, which is before the first slot of group id, that slot's. Does the ring go so far? */
static bool lane_back(struct lane *l, unsigned id, uint64_t tag)
{
	struct lane_group *q = &l->groups[id];
	int64_t back = -((int64_t)(tag - l->tags[id].start) >> q->shift);
	unsigned last = 31 - (unsigned)__builtin_clz(lane_turned(q));

	if (back + last >= LANE_SLOTS)
		return false;
	q->first = (uint8_t)((q->first - (unsigned)back) % LANE_SLOTS);
	lane_move(&l->tags[id], -(back << q->shift));
	return true;
}

/* The group of a key, which is opened if need be. */
static inline unsigned lane_group(struct lane *l, unsigned key, uint64_t tag)
{
	if (!(l->active >> key & 1))
		lane_open(l, key, tag);
	return l->of[key];
}

/* Is there room for a tag in the group of a key? */
static bool lane_takes(struct lane *l, uint64_t tag, unsigned key)
{
	unsigned id = lane_group(l, key, tag);
	int64_t at = (int64_t)(tag - l->tags[id].start) >> l->groups[id].shift;

	return at < 0 ? lane_back(l, id, tag) : at < LANE_SLOTS;
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
		l->active &= ~(UINT64_C(1) << q->key);
		l->idle |= UINT64_C(1) << id;
		l->best = LANE_NONE;
	} else if (slot == q->first) {
		unsigned on = (unsigned)__builtin_ctz(lane_turned(q));

		q->first = (uint8_t)((q->first + on) % LANE_SLOTS);
		lane_move(&l->tags[id], (int64_t)on << q->shift);
		l->best = LANE_NONE;
	}
}

/* Of the groups that are eligible the one that finishes first, of those the narrowest. If none is V becomes the first
 * start. (No branch: nobody can predict it.) */
static void lane_choose(struct lane *l)
{
	int64_t until = INT64_MAX, finish = INT64_MAX;
	unsigned best = LANE_NONE;

	for (uint64_t left = l->active; left; left &= left - 1) {
		unsigned id = l->of[__builtin_ctzll(left)];
		int64_t start = (int64_t)(l->tags[id].start - l->now);
		int64_t f = (int64_t)(l->tags[id].finish - l->now);
		int64_t later = start > 0 ? start : INT64_MAX;

		f = start > 0 ? INT64_MAX : f;
		until = later < until ? later : until;
		best = f < finish ? id : best;
		finish = f < finish ? f : finish;
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
static inline unsigned lane_log(uint64_t span)
{
	return span > 1 ? 64 - (unsigned)__builtin_clzll(span - 1) : 0;
}

/* The first slot of group id is another: is the group the best now? */
static inline void lane_compare(struct lane *l, unsigned id)
{
	const struct lane_tags *tags = &l->tags[id];

	if (l->best == LANE_NONE)
		return;
	if ((int64_t)(tags->start - l->now) > 0) {
		if ((int64_t)(tags->start - l->until) < 0)
			l->until = tags->start;
		return;
	}
	int64_t less = (int64_t)(tags->finish - l->tags[l->best].finish);

	if (less < 0 || (less == 0 && l->groups[id].key < l->groups[l->best].key))
		l->best = (uint8_t)id;
}

void lane_put(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	unsigned width)
{
	int64_t half = (int64_t)(entry->tag - l->now) / 2; /* a ring goes four widths */
	unsigned far = lane_log((uint64_t)(half > 0 ? half : 0)), key = width > far ? width : far;
	unsigned id = lane_group(l, key, entry->tag);
	struct lane_group *q = &l->groups[id];
	int64_t at = (int64_t)(entry->tag - l->tags[id].start) >> q->shift;

	if (__builtin_expect(at < 0, 0)) {
		id = lane_early(l, entry->tag, key);
		q = &l->groups[id];
		at = (int64_t)(entry->tag - l->tags[id].start) >> q->shift;
	}
	unsigned slot = (q->first + (at < LANE_SLOTS ? (unsigned)at : LANE_SLOTS - 1)) % LANE_SLOTS;
	struct lane_list *list = &q->slot[slot];
	bool used = q->used >> slot & 1;

	entry->key = q->key;
	entry->rest = (uint16_t)((entry->rest & ~LANE_SLOT) | slot);
	entry->next = LANE_NIL;
	entry->prev = used ? list->tail : LANE_NIL;
	*(used ? &lane_entry(h, l, list->tail)->next : &list->head) = e;
	list->tail = e;
	q->used |= (uint16_t)(1u << slot);
	if (at == 0 && !used)
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
	uint64_t finish = l->tags[l->best].finish;

	return (int64_t)(finish - l->before) < 0 ? finish : l->before;
}

bool lane_join(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, double credit)
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
	lane_put(l, h, entry, e, width);
	return l->waits++ == 0;
}

void lane_leave(struct lane *l, struct lane_entry *entry, double weight)
{
	int64_t ahead = (int64_t)(entry->tag - l->now);
	double each = weight * LANE_WEIGHT_ONE;

	ahead = ahead > 0 ? ahead : 0;
	entry->width = lane_log((uint64_t)ahead) & 0x7f;
	l->owed -= each * (double)ahead;
	l->weight -= (int64_t)each;
	l->waits--;
	entry->waits = false;
	l->owed = l->waits ? l->owed : 0;
}

/* Moves the tag. A step that is not small has hardly any digits after the point. */
static inline void lane_tag(struct lane_entry *entry, double step)
{
	if (__builtin_expect(step >= LANE_STEP_SMALL, 0)) {
		entry->tag += (uint64_t)step;
		return;
	}
	uint64_t parts = (uint64_t)(int64_t)(step * LANE_PARTS + 0.5) + entry->rest / LANE_SLOTS;

	entry->tag += parts / LANE_PARTS;
	entry->rest = (uint16_t)((parts % LANE_PARTS * LANE_SLOTS) | (entry->rest & LANE_SLOT));
}

void lane_serve(struct lane *l, struct lane_entry *entry, double cost, double step)
{
	lane_tag(entry, step);
	l->before = l->now;
	l->owed += cost;
	if (l->owed <= 0)
		return;
	double weight = (double)l->weight;
	int64_t move = (int64_t)(l->owed / weight);

	l->now += (uint64_t)move;
	l->owed -= (double)move * weight;
}

void lane_serve_first(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double cost, double step)
{
	unsigned slot = entry->rest & LANE_SLOT;
	uint32_t next = entry->next;

	entry->key = LANE_NONE;
	if (next != LANE_NIL) {
		l->groups[l->best].slot[slot].head = next;
		lane_entry(h, l, next)->prev = LANE_NIL;
	} else {
		lane_emptied(l, l->best, slot);
	}
	lane_serve(l, entry, cost, step);
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
		uint64_t start = l->tags[l->best].start;
		int64_t on = (int64_t)(entry->tag - start) >> q->shift;

		if (on <= 0)
			return e;
		/* Its tag has grown, or was beyond the ring: now it is to be in one. */
		unsigned key = q->key, far = lane_log((entry->tag - start) / 2);

		lane_take(l, h, entry);
		lane_put(l, h, entry, e, key > far ? key : far);
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
