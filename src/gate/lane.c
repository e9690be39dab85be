/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane.h"
#include <errno.h>
#include <stdlib.h>

#define LANE_SLOT_BITS  2 /* a slot is a quarter of a width */
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
		.allowed = LANE_KINDS,
		.past_id = 1,
		.own.group = LANE_NONE};
	heap_init(&l->heap, place);
}

void lane_places(struct lane *l, uint32_t *place)
{
	l->heap.place = place;
}

void lane_free(struct lane *l)
{
	free(l->groups);
	free(l->rings);
	heap_free(&l->heap);
}

size_t lane_memory(const struct lane *l)
{
	return l->room * (sizeof *l->groups + sizeof *l->rings) +
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
	struct lane_ring *rings =
		pool_array(l->rings, l->room * sizeof *rings, room * sizeof *rings);

	if (!rings)
		return -ENOMEM;
	l->rings = rings;
	l->idle |= (UINT64_C(1) << room) - (UINT64_C(1) << l->room);
	l->room = (uint8_t)room;
	return 0;
}

static void lane_move(struct lane_group *q, int64_t by)
{
	q->start += (uint64_t)by;
	q->finish += (uint64_t)by;
}

/* ---- banks */

/* Return true if no kind of the bank is allowed. */
static inline bool lane_frozen(const struct lane *l, unsigned without)
{
	return without && !(LANE_KINDS & ~without & l->allowed);
}

/* Return how far V has moved on since the bank was frozen. */
static inline uint64_t lane_lag(const struct lane *l, unsigned without)
{
	return lane_frozen(l, without) ? l->now - l->bank[without].frozen : 0;
}

/* Return the entry's tag as V counts now. */
static inline uint64_t lane_true(const struct lane *l, const struct lane_entry *entry)
{
	return __builtin_expect(!entry->without, 1)
		       ? entry->tag
		       : lane_at(l, entry) + lane_lag(l, entry->without);
}

static inline void lane_true_set(const struct lane *l, struct lane_entry *entry, uint64_t tag)
{
	if (__builtin_expect(entry->without, 0))
		tag -= l->bank[entry->without].base + lane_lag(l, entry->without);
	entry->tag = tag;
}

/* A child begins, or with a negative weight ceases, to wait in a bank that lacks kinds, with a tag so far ahead of V. */
static __attribute__((noinline)) void lane_weigh_bank(
	struct lane *l, unsigned without, int64_t weight, int64_t ahead)
{
	struct lane_bank *bank = &l->bank[without];
	bool frozen = lane_frozen(l, without);

	bank->weight += weight;
	bank->n += weight > 0 ? 1 : UINT32_MAX;
	ahead += frozen ? 0 : (int64_t)(l->now - l->origin);
	bank->ahead = bank->n ? bank->ahead + (double)weight * (double)ahead : 0;
	l->weight += frozen ? 0 : weight;
}

/* The same in any bank. */
static inline void lane_weigh(struct lane *l, unsigned without, int64_t weight, int64_t ahead)
{
	if (__builtin_expect(!without, 1))
		l->weight += weight;
	else
		lane_weigh_bank(l, without, weight, ahead);
}

#define LANE_ORIGIN (UINT64_C(1) << 56) /* tags: as far as sums are told */

/* V has moved on by much: sums are told from it on. */
static void lane_originate(struct lane *l)
{
	for (unsigned b = 1; b < LANE_BANKS; b++)
		if (!lane_frozen(l, b))
			l->bank[b].ahead -=
				(double)l->bank[b].weight * (double)(l->now - l->origin);
	l->origin = l->now;
}

/* Groups are known by number from now on, since there may be several of a key. */
static void lane_split(struct lane *l)
{
	uint64_t active = 0;

	for (uint64_t left = l->active; left; left &= left - 1) {
		unsigned id = l->of[__builtin_ctzll(left)];

		active |= UINT64_C(1) << id;
	}
	for (unsigned id = 0; id < LANE_KEYS; id++)
		l->of[id] = (uint8_t)id;
	for (unsigned b = 1; b < LANE_BANKS; b++)
		l->bank[b].frozen = l->now;
	l->origin = l->now;
	l->active = active;
	l->banked = true;
}

/* A bank is frozen, or thaws. */
static void lane_freeze(struct lane *l, unsigned without, bool freeze)
{
	struct lane_bank *bank = &l->bank[without];
	uint64_t by = l->now - bank->frozen;

	for (uint64_t left = l->active | l->frozen; left; left &= left - 1) {
		unsigned id = (unsigned)__builtin_ctzll(left);

		if (l->groups[id].without != without)
			continue;
		l->active ^= UINT64_C(1) << id;
		l->frozen ^= UINT64_C(1) << id;
		if (!freeze)
			lane_move(&l->groups[id], (int64_t)by);
	}
	double moved = (double)bank->weight * (double)(l->now - l->origin);

	/* V is to be the mean of those that are not frozen. */
	if (freeze) {
		bank->ahead -= moved;
		bank->frozen = l->now;
		l->weight -= bank->weight;
		l->owed -= bank->ahead;
	} else {
		bank->base += by;
		l->weight += bank->weight;
		l->owed += bank->ahead;
		bank->ahead += moved;
		if (bank->n)
			l->floor = l->before - LANE_FAR; /* its children may be late */
	}
}

void lane_allow(struct lane *l, unsigned kinds)
{
	unsigned before = l->allowed;

	l->allowed = (uint8_t)kinds;
	if (kinds == before || !l->banked)
		return;
	for (unsigned b = 1; b < LANE_BANKS; b++) {
		bool was = !(LANE_KINDS & ~b & before), is = lane_frozen(l, b);

		if (was != is)
			lane_freeze(l, b, is);
	}
	l->until = l->now;
}

unsigned lane_kinds(const struct lane *l)
{
	unsigned kinds = 0;
	uint32_t n = 0;

	for (unsigned b = 1; b < LANE_BANKS; b++) {
		kinds |= l->bank[b].n ? LANE_KINDS & ~b : 0;
		n += l->bank[b].n;
	}
	return l->waits > n ? LANE_KINDS : kinds;
}

/* ---- groups */

/* log2 of a slot's width. */
static inline unsigned lane_shift(unsigned key)
{
	return key > LANE_SLOT_BITS ? key - LANE_SLOT_BITS : 0;
}

/* Return where a group of this key finishes whose first slot begins at `start`. */
static inline uint64_t lane_finish(uint64_t start, unsigned key)
{
	return start + (UINT64_C(1) << key) + (UINT64_C(1) << lane_shift(key));
}

/* A group of this key, of which there is none, whose first slot has this tag and is yet empty: its number. */
static __attribute__((noinline)) unsigned lane_open(
	struct lane *l, unsigned key, uint64_t tag, unsigned without)
{
	unsigned id = (unsigned)__builtin_ctzll(l->idle), bit = l->banked ? id : key;
	unsigned shift = lane_shift(key);
	uint64_t start = tag >> shift << shift;

	l->groups[id] = (struct lane_group){.start = start,
		.finish = lane_finish(start, key),
		.shift = (uint8_t)shift,
		.key = (uint8_t)key,
		.without = (uint8_t)without};
	l->of[bit] = (uint8_t)id;
	l->idle &= l->idle - 1;
	*(lane_frozen(l, without) ? &l->frozen : &l->active) |= UINT64_C(1) << bit;
	return id;
}

/* Return a set of slots as seen from the first slot on. */
static uint32_t lane_turned(const struct lane_group *q, uint16_t slots)
{
	uint32_t twice = (uint32_t)slots << LANE_SLOTS | slots;

	return twice >> q->first & ((1u << LANE_SLOTS) - 1);
}

/* Return the first slot that may hold far children, counted from the first; there is one. */
static unsigned lane_first_far(const struct lane_group *q)
{
	return (unsigned)__builtin_ctz(lane_turned(q, q->far));
}

/* Return true if a group finishes where a slot begins that may hold far children. */
static inline bool lane_begins_far(const struct lane_group *q)
{
	return q->far && q->finish != lane_finish(q->start, q->key);
}

/* The first slot of a group, or its far slots, have changed: where does it finish? */
static void lane_finishes(struct lane_group *q)
{
	q->finish = lane_finish(q->start, q->key);
	if (!q->far)
		return;
	uint64_t far = q->start + ((uint64_t)lane_first_far(q) << q->shift);

	q->finish = (int64_t)(far - q->finish) < 0 ? far : q->finish;
}

/* Makes `tag`, which is before the first slot of group id, that slot's. Does the ring go so far? */
static bool lane_back(struct lane *l, unsigned id, uint64_t tag)
{
	struct lane_group *q = &l->groups[id];
	int64_t back = -((int64_t)(tag - q->start) >> q->shift);
	unsigned last = 31 - (unsigned)__builtin_clz(lane_turned(q, q->used));

	if (back + last >= LANE_SLOTS)
		return false;
	q->first = (uint8_t)((q->first - (unsigned)back) % LANE_SLOTS);
	q->start = q->start - ((uint64_t)back << q->shift);
	lane_finishes(q);
	return true;
}

/* The same with banks: the group of a key in a bank, or the nearest one if no more may be opened. Each bank finds room
 * for one group at least. */
static unsigned lane_group_of(struct lane *l, unsigned key, uint64_t tag, unsigned without)
{
	unsigned nearest = LANE_NONE, banks = 0;

	for (uint64_t left = l->active | l->frozen; left; left &= left - 1) {
		unsigned id = (unsigned)__builtin_ctzll(left);
		const struct lane_group *q = &l->groups[id];

		banks |= 1u << q->without;
		if (q->without != without)
			continue;
		if (q->key == key)
			return id;
		bool wider = q->key > key;

		if (nearest == LANE_NONE ||
			(wider && (l->groups[nearest].key < key ||
					  q->key < l->groups[nearest].key)) ||
			(!wider && l->groups[nearest].key < q->key))
			nearest = id;
	}
	/* (With less than the most room there is a group for each child.) */
	if (nearest != LANE_NONE && l->room == LANE_KEYS &&
		__builtin_popcountll(l->idle) + __builtin_popcount(banks) <= LANE_BANKS)
		return nearest;
	return lane_open(l, key, tag, without);
}

/* The group of a key, which is opened if need be. */
static inline unsigned lane_group(struct lane *l, unsigned key, uint64_t tag, unsigned without)
{
	if (__builtin_expect(l->banked, 0))
		return lane_group_of(l, key, tag, without);
	return l->active >> key & 1 ? l->of[key] : lane_open(l, key, tag, without);
}

/* Return the group if it, or one that is opened for it, has room for a tag; or LANE_NONE. */
static unsigned lane_takes(struct lane *l, uint64_t tag, unsigned key, unsigned without)
{
	unsigned id = lane_group(l, key, tag, without);
	int64_t at = (int64_t)(tag - l->groups[id].start) >> l->groups[id].shift;

	return (at < 0 ? lane_back(l, id, tag) : at < LANE_SLOTS) ? id : LANE_NONE;
}

/* A tag is before the first slot of the group of a key: that group, or the first narrower one, whose ring goes so far
 * back. It is late, so that a finish tag which is too early does no harm; one too late would. If there is no group
 * that does, any will have to. */
static __attribute__((noinline)) unsigned lane_early(
	struct lane *l, uint64_t tag, unsigned key, unsigned without)
{
	unsigned id = LANE_NONE;

	for (unsigned narrow = key + 1; id == LANE_NONE && narrow-- > 0;)
		id = lane_takes(l, tag, narrow, without);
	for (unsigned wide = key + 1; id == LANE_NONE && wide < LANE_KEYS; wide++)
		id = lane_takes(l, tag, wide, without);
	return id != LANE_NONE ? id : lane_group(l, key, tag, without);
}

/* A slot of group id holds nothing any more. */
static void lane_emptied(struct lane *l, unsigned id, unsigned slot)
{
	struct lane_group *q = &l->groups[id];

	q->used &= (uint16_t) ~(1u << slot);
	if (!q->used) {
		unsigned bit = l->banked ? id : q->key;

		l->active &= ~(UINT64_C(1) << bit);
		l->frozen &= ~(UINT64_C(1) << bit);
		l->idle |= UINT64_C(1) << id;
		l->until = l->now;
		return;
	}
	if (slot == q->first) {
		unsigned on = (unsigned)__builtin_ctz(lane_turned(q, q->used));

		q->first = (uint8_t)((q->first + on) % LANE_SLOTS);
		lane_move(q, (int64_t)on << q->shift);
		l->until = l->now;
	}
	if (__builtin_expect(q->far, 0)) {
		q->far &= q->used;
		lane_finishes(q);
		l->until = l->now;
	}
}

/* ---- those that ceased to wait ahead of V */

static __attribute__((noinline)) void lane_past_end(struct lane *l)
{
	l->weight -= l->past;
	l->past = 0;
	l->past_ahead = 0;
	l->past_id++;
}

/* V has moved on by so much. */
static inline void lane_past_move(struct lane *l, int64_t by)
{
	if (!l->past)
		return;
	l->past_ahead -= (double)l->past * (double)by;
	if (l->past_ahead <= 0)
		lane_past_end(l);
}

/* A child whose tag is so far ahead of V has ceased to wait, and its weight is not in W any more. */
static inline void lane_ceases(struct lane *l, struct lane_entry *entry, double each, int64_t ahead)
{
	double part = each * (double)ahead;

	if (ahead <= 0) { /* V stands still for it no more, but does not leap ahead */
		if (l->owed < 0)
			l->owed = l->owed < part ? l->owed - part : 0;
	} else {
		l->weight += (int64_t)each;
		l->past += (int64_t)each;
		l->past_ahead += part;
		entry->next = l->past_id;
	}
}

/* A child that does not wait is not among them any more, if it was. */
static inline void lane_past_out(struct lane *l, struct lane_entry *entry, double each)
{
	if (!l->past || entry->next != l->past_id)
		return;
	double ahead = each * (double)(int64_t)(entry->tag - l->now);

	entry->next = LANE_NIL;
	l->weight -= (int64_t)each;
	l->past -= (int64_t)each;
	l->past_ahead -= ahead;
	l->owed -= ahead;
	if (l->past_ahead <= 0 || l->past <= 0)
		lane_past_end(l);
}

/* Of the groups that are eligible the one that finishes first, of those the narrowest. If none is V becomes the first
 * start. (No branch: nobody can predict it.) */
static void lane_choose(struct lane *l)
{
	int64_t until = INT64_MAX, finish = INT64_MAX;
	unsigned best = LANE_NONE;

	for (uint64_t left = l->active; left; left &= left - 1) {
		unsigned id = l->of[__builtin_ctzll(left)];
		int64_t start = (int64_t)(l->groups[id].start - l->now);
		int64_t f = (int64_t)(l->groups[id].finish - l->now);
		int64_t later = start > 0 ? start : INT64_MAX;

		f = start > 0 ? INT64_MAX : f;
		until = later < until ? later : until;
		best = f < finish ? id : best;
		finish = f < finish ? f : finish;
	}
	if (best == LANE_NONE) {
		l->before = l->now += (uint64_t)until;
		l->owed = 0;
		lane_past_move(l, until);
		lane_choose(l);
		return;
	}
	l->best = (uint8_t)best;
	l->until = l->now + (until < (int64_t)LANE_FAR ? (uint64_t)until : LANE_FAR);
	if (lane_begins_far(&l->groups[best])) /* lane_find is to look at it */
		l->until = l->now;
}

/* log2 of the least power of two that a span fits in; 0 if it is none. */
static inline unsigned lane_log(int64_t span)
{
	return 63 - (unsigned)__builtin_clzll(2 * (uint64_t)(span > 1 ? span : 1) - 1);
}

/* The first slot of group id is another: is the group the best now? */
static inline void lane_compare(struct lane *l, unsigned id)
{
	const struct lane_group *q = &l->groups[id], *best = &l->groups[l->best];

	if ((int64_t)(l->now - l->until) >= 0 || lane_frozen(l, q->without))
		return;
	if (__builtin_expect(q->far, 0)) {
		l->until = l->now;
		return;
	}
	if ((int64_t)(q->start - l->now) > 0) {
		if ((int64_t)(q->start - l->until) < 0)
			l->until = q->start;
		return;
	}
	int64_t less = (int64_t)(q->finish - best->finish);

	if (less < 0 || (less == 0 && q->key < best->key))
		l->best = (uint8_t)id;
}

/* The key of the group for a request of this width, of an entry whose tag is ahead of V by so much: a ring goes four
 * widths. */
static inline unsigned lane_key_of(unsigned width, int64_t ahead)
{
	return ahead >> 1 <= INT64_C(1) << width ? width : lane_log(ahead >> 1);
}

void lane_put(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	unsigned width)
{
	uint64_t tag = entry->tag, lag = 0;

	if (__builtin_expect(l->banked, 0)) {
		tag = lane_at(l, entry);
		lag = lane_lag(l, entry->without);
	}
	unsigned key = lane_key_of(width, (int64_t)(tag + lag - l->now));
	unsigned id = lane_group(l, key, tag, entry->without);
	struct lane_group *q = &l->groups[id];
	int64_t at = (int64_t)(tag - q->start) >> q->shift;

	if (__builtin_expect(at < 0, 0)) {
		id = lane_early(l, tag, key, entry->without);
		q = &l->groups[id];
		at = (int64_t)(tag - q->start) >> q->shift;
		at = at < 0 ? 0 : at;
	}
	unsigned slot = (q->first + (unsigned)(at < LANE_SLOTS ? at : LANE_SLOTS - 1)) % LANE_SLOTS;
	struct lane_list *list = &l->rings[id].slot[slot];

	entry->group = (uint8_t)id;
	entry->slot = slot & (LANE_SLOTS - 1);
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
	unsigned id = entry->group;
	struct lane_list *list = &l->rings[id].slot[entry->slot];
	uint32_t next = entry->next, prev = entry->prev;

	*(prev == LANE_NIL ? &list->head : &lane_entry(h, l, prev)->next) = next;
	*(next == LANE_NIL ? &list->tail : &lane_entry(h, l, next)->prev) = prev;
	entry->group = LANE_NONE;
	entry->far = false;
	if (list->head == LANE_NIL)
		lane_emptied(l, id, entry->slot);
}

/* An entry with a request of this width, which stands nowhere, goes into a group of a greater key: before the others of
 * its slot. */
static void lane_put_far(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	uint32_t e, unsigned width, unsigned key)
{
	lane_put(l, h, entry, e, key);
	struct lane_group *q = &l->groups[entry->group];
	struct lane_list *list = &l->rings[entry->group].slot[entry->slot];

	if (q->key <= width || q->key > key)
		return; /* (another group had to do) */
	entry->far = true;
	entry->width = width & 0x3f;
	q->far |= (uint16_t)(1u << entry->slot);
	lane_finishes(q);
	l->until = l->now;
	if (entry->prev == LANE_NIL)
		return;
	list->tail = entry->prev;
	lane_entry(h, l, entry->prev)->next = LANE_NIL;
	lane_entry(h, l, list->head)->prev = e;
	entry->next = list->head;
	entry->prev = LANE_NIL;
	list->head = e;
}

/* An entry of group id is far, or was put beyond the ring: it goes where it belongs now. */
static void lane_again(struct lane *l, const struct lane_home *h, uint32_t e, unsigned id)
{
	struct lane_entry *entry = lane_entry(h, l, e);
	unsigned width = entry->far ? entry->width : l->groups[id].key;
	uint64_t tag = lane_at(l, entry);
	int64_t ahead = (int64_t)(tag + lane_lag(l, entry->without) - l->now);

	lane_take(l, h, entry);
	id = lane_group(l, lane_key_of(width, ahead), tag, entry->without);
	int64_t on = (int64_t)(tag - l->groups[id].start);

	if (on >> l->groups[id].shift < LANE_SLOTS)
		lane_put(l, h, entry, e, width);
	else
		lane_put_far(l, h, entry, e, width, lane_log(on / 2));
}

/* Group id is the best, since a slot that may hold far children begins now: one of these goes where it belongs, or the
 * slot holds none. */
static void lane_near(struct lane *l, const struct lane_home *h, unsigned id)
{
	struct lane_group *q = &l->groups[id];
	unsigned slot = (q->first + lane_first_far(q)) % LANE_SLOTS;
	uint32_t e = l->rings[id].slot[slot].head;

	if (lane_entry(h, l, e)->far) {
		lane_again(l, h, e, id);
		return;
	}
	q->far &= (uint16_t) ~(1u << slot);
	lane_finishes(q);
	l->until = l->now;
}

/* Return the tag at which a child starts that begins to wait. A child with mixed requests is late after a large one, so
 * that its next small request finishes early; newcomers must not start there, before children that wait already. */
static inline uint64_t lane_start(struct lane *l)
{
	uint64_t start = l->before;

	if (l->active) {
		if ((int64_t)(l->now - l->until) >= 0)
			lane_choose(l);
		uint64_t finish = l->groups[l->best].finish;

		start = (int64_t)(finish - start) < 0 ? finish : start;
		start = (int64_t)(l->floor - start) > 0 ? l->floor : start;
	}
	return l->floor = start;
}

/* Return the tag with which a child begins to wait. */
static inline uint64_t lane_begin(
	const struct lane *l, const struct lane_entry *entry, uint64_t start, double credit)
{
	uint64_t early = l->before - (uint64_t)(int64_t)credit;
	int64_t ahead = (int64_t)(entry->tag - l->now);

	if ((int64_t)(early - start) < 0)
		start = early;
	/* (A tag that is ahead by more than its last request could put it was left behind long ago.) */
	if ((int64_t)(entry->tag - start) < 0 || (ahead > 0 && (ahead - 1) >> entry->width))
		return start;
	return entry->tag;
}

bool lane_join(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, double credit)
{
	double each = weight * LANE_WEIGHT_ONE;

	lane_past_out(l, entry, each);
	uint64_t tag = lane_begin(l, entry, lane_start(l), credit);

	if (__builtin_expect(entry->without && !l->banked, 0))
		lane_split(l);
	lane_true_set(l, entry, tag);
	l->owed += lane_frozen(l, entry->without) ? 0 : each * (double)(int64_t)(tag - l->now);
	lane_weigh(l, entry->without, (int64_t)each, (int64_t)(tag - l->now));
	entry->waits = true;
	lane_put(l, h, entry, e, width);
	return l->waits++ == 0;
}

void lane_leave(struct lane *l, struct lane_entry *entry, double weight)
{
	double each = weight * LANE_WEIGHT_ONE;
	bool frozen = false;
	uint64_t tag = entry->tag;

	if (__builtin_expect(entry->without, 0)) {
		tag = lane_true(l, entry);
		frozen = lane_frozen(l, entry->without);
	}
	int64_t ahead = (int64_t)(tag - l->now);

	lane_weigh(l, entry->without, -(int64_t)each, ahead);
	entry->width = lane_log(ahead) & 0x3f;
	entry->next = LANE_NIL;
	if (!frozen)
		lane_ceases(l, entry, each, ahead);
	entry->without = 0; /* a tag that waits in no bank is told as V is */
	entry->tag = tag;
	l->waits--;
	entry->waits = false;
	if (l->waits)
		return;
	l->owed = 0;
	if (l->past)
		lane_past_end(l);
}

/* The same for one that waits. */
static void lane_reweigh_waiting(struct lane *l, const struct lane_home *h,
	struct lane_entry *entry, double before, double weight)
{
	uint64_t start = lane_start(l), tag = lane_true(l, entry);
	double was = before * LANE_WEIGHT_ONE, is = weight * LANE_WEIGHT_ONE;
	double more = (double)(int64_t)(tag - start) * before / weight;

	more = more < LANE_STEP_MAX ? more : LANE_STEP_MAX;
	more = more > -LANE_STEP_MAX ? more : -LANE_STEP_MAX;
	int64_t ahead = (int64_t)(tag - l->now), then = (int64_t)(start - l->now) + (int64_t)more;

	if (entry->group != LANE_NONE)
		lane_take(l, h, entry);
	if (!lane_frozen(l, entry->without))
		l->owed += (double)then * is - (double)ahead * was;
	lane_weigh(l, entry->without, -(int64_t)was, ahead);
	lane_weigh(l, entry->without, (int64_t)is, then);
	lane_true_set(l, entry, l->now + (uint64_t)then);
}

void lane_reweigh(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double before, double weight)
{
	if (entry->waits) {
		lane_reweigh_waiting(l, h, entry, before, weight);
		return;
	}
	lane_past_out(l, entry, before * LANE_WEIGHT_ONE);
	uint64_t start = lane_start(l);
	int64_t ahead = (int64_t)(entry->tag - l->now), more = (int64_t)(entry->tag - start);

	if (more <= 0 || (ahead > 0 && (ahead - 1) >> entry->width))
		return; /* as in lane_join */
	double step = (double)more * before / weight;

	entry->tag = start + (uint64_t)(step < LANE_STEP_MAX ? step : LANE_STEP_MAX);
	entry->width = lane_log((int64_t)(entry->tag - l->now)) & 0x3f;
}

void lane_change(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, unsigned without)
{
	uint64_t tag = lane_true(l, entry);
	int64_t each = (int64_t)(weight * LANE_WEIGHT_ONE), ahead = (int64_t)(tag - l->now);
	bool stands = entry->group != LANE_NONE;

	if (!l->banked)
		lane_split(l);
	if (stands)
		lane_take(l, h, entry);
	l->owed -= lane_frozen(l, entry->without) ? 0 : (double)each * (double)ahead;
	lane_weigh(l, entry->without, -each, ahead);
	entry->without = without & LANE_KINDS;
	l->owed += lane_frozen(l, without) ? 0 : (double)each * (double)ahead;
	lane_weigh(l, without, each, ahead);
	lane_true_set(l, entry, tag);
	if (stands)
		lane_put(l, h, entry, e, width);
}

/* Moves the tag. A step that is not small has hardly any digits after the point. */
static inline void lane_tag(struct lane_entry *entry, double step)
{
	if (__builtin_expect(step >= LANE_STEP_SMALL, 0)) {
		entry->tag += (uint64_t)step;
		return;
	}
	uint64_t parts = (uint64_t)(int64_t)(step * LANE_PARTS + 0.5) + entry->parts;

	entry->tag += parts / LANE_PARTS;
	entry->parts = parts % LANE_PARTS;
}

/* A child of a bank is served. */
static __attribute__((noinline)) void lane_serve_bank(
	struct lane *l, const struct lane_entry *entry, double cost)
{
	/* (A run goes on whatever was asked for last.) */
	if (lane_frozen(l, entry->without))
		lane_allow(l, l->allowed | (LANE_KINDS & ~(unsigned)entry->without));
	if (entry->without)
		l->bank[entry->without].ahead += cost;
}

static inline void lane_move_on(struct lane *l, double cost)
{
	double owed = l->owed + cost, weight = (double)l->weight;
	/* (Of a child whose bank is frozen meanwhile the weight is not counted; there may be no other.) */
	int64_t move = l->weight > 0 ? (int64_t)((owed > 0 ? owed : 0) / weight) : 0;

	l->before = l->now;
	l->now += (uint64_t)move;
	l->owed = owed - (double)move * weight;
	lane_past_move(l, move);
}

void lane_serve(struct lane *l, struct lane_entry *entry, double cost, double step)
{
	if (__builtin_expect(l->banked, 0))
		lane_serve_bank(l, entry, cost);
	lane_tag(entry, step);
	lane_move_on(l, cost);
	if (__builtin_expect(l->banked, 0) && l->now - l->origin >= LANE_ORIGIN)
		lane_originate(l);
}

void lane_serve_alone(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double credit)
{
	uint64_t tag = lane_begin(l, entry, l->before, credit);
	unsigned key = lane_key_of(lane_width(h, cost, weight), (int64_t)(tag - l->now));
	unsigned shift = lane_shift(key);
	double each = weight * LANE_WEIGHT_ONE, step = lane_step(h, cost, weight);
	uint64_t start = tag >> shift << shift, finish = tag + (uint64_t)step;

	/* (In the order of lane_join, lane_first, lane_raise and lane_serve.) */
	l->floor = l->before;
	l->weight = (int64_t)each;
	l->owed = each * (double)(int64_t)(tag - l->now);
	l->waits = 1;
	entry->waits = true;
	entry->tag = tag;
	if ((int64_t)(start - l->now) > 0) {
		l->now = start;
		l->owed = 0;
	}
	finish = (int64_t)(finish - l->now) < 0 ? finish : l->now;
	l->floor = (int64_t)(finish - l->floor) > 0 ? finish : l->floor;
	lane_tag(entry, step);
	lane_move_on(l, cost * h->unit * LANE_WEIGHT_ONE);
}

void lane_serve_first(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double cost, double step)
{
	unsigned slot = entry->slot;
	uint32_t next = entry->next;

	lane_raise(l, entry, step);
	entry->group = LANE_NONE;
	if (next != LANE_NIL) {
		l->rings[l->best].slot[slot].head = next;
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

uint32_t lane_find(struct lane *l, const struct lane_home *h)
{
	if (l->keyed)
		return lane_first_heap(l, h);
	while (l->active) {
		if ((int64_t)(l->now - l->until) >= 0)
			lane_choose(l);
		const struct lane_group *q = &l->groups[l->best];

		if (lane_begins_far(q)) {
			lane_near(l, h, l->best);
			continue;
		}
		uint32_t e = l->rings[l->best].slot[q->first].head;
		int64_t on = (int64_t)(lane_at(l, lane_entry(h, l, e)) - q->start);

		if (on >> q->shift <= 0)
			return e;
		lane_again(l, h, e, l->best);
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

	if (entry->group != LANE_NONE) {
		heap_move(&l->heap, l->heap.place[lane_value(e)], key, e);
		return;
	}
	/* Room was made by lane_fit: this cannot fail. */
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
