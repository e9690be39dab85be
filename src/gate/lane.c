/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane-impl.h"
#include <errno.h>

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

void lane_free(struct lane *l)
{
	pool_array_free(l->groups);
	pool_array_free(l->rings);
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
	room += room / 2; /* children are added one by one */
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

/* ---- children that ceased to wait ahead of V */

void lane_past_end(struct lane *l)
{
	l->weight -= l->past;
	l->past = 0;
	l->past_ahead = 0;
	l->past_id++;
}

/* Drop a child that does not wait from them, if it is one. */
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

/* ---- children that wait */

/* Return the start tag of a child that begins to wait. A child with mixed requests is late after a large one, so
 * that its next small request finishes early; newcomers must not start there, before children that wait already. */
static inline uint64_t lane_start(struct lane *l)
{
	if (l->active && (int64_t)(l->now - l->until) >= 0)
		lane_choose(l); /* (V may jump) */
	uint64_t start = l->before;

	if (l->active) {
		uint64_t finish = l->groups[l->best].finish;

		start = (int64_t)(finish - start) < 0 ? finish : start;
		start = (int64_t)(l->floor - start) > 0 ? l->floor : start;
	}
	return l->floor = start;
}

/* A child begins to wait that is frozen: if it counts in W, as ahead of V, it does not any more. */
static __attribute__((noinline)) void lane_enter_frozen(
	struct lane *l, struct lane_entry *entry, double each)
{
	lane_settle(l);
	double owed = l->owed;

	lane_past_out(l, entry, each);
	if (l->owed < owed)
		lane_recentre(l);
}

/* lane_join. `plain`: as in lane_stand. */
POOL_HOT bool lane_enter(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	uint32_t e, double weight, unsigned width, double credit, bool plain)
{
	double each = lane_each(weight);

	/* (First of all: lane_enter_frozen takes groups by number.) */
	if (!plain && __builtin_expect(entry->without && !l->banked, 0))
		lane_split(l);
	if (!plain && __builtin_expect(lane_frozen(l, entry->without), 0))
		lane_enter_frozen(l, entry, each);
	else
		lane_past_out(l, entry, each);
	uint64_t tag = lane_begin(l, entry, lane_start(l), credit);
	int64_t ahead = (int64_t)(tag - l->now);

	if (plain) {
		entry->tag = tag;
		l->owed += each * (double)ahead;
		l->weight += (int64_t)each;
	} else {
		lane_true_set(l, entry, tag);
		l->owed += lane_frozen(l, entry->without) ? 0 : each * (double)ahead;
		lane_weigh(l, entry->without, (int64_t)each, ahead);
	}
	entry->waits = true;
	lane_stand(l, h, entry, e, width, plain);
	return l->waits++ == 0;
}

bool lane_join(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, double credit)
{
	return lane_enter(l, h, entry, e, weight, width, credit, false);
}

bool lane_join_leaf(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, double credit)
{
	return lane_enter(l, h, entry, e, weight, width, credit, true);
}

void lane_leave(struct lane *l, struct lane_entry *entry, double weight)
{
	double each = lane_each(weight);
	bool frozen = false;
	uint64_t tag = entry->tag;

	lane_settle(l);
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
	entry->without = 0; /* outside the banks a tag is relative to V */
	entry->tag = tag;
	l->waits--;
	entry->waits = false;
	if (l->waits)
		return;
	l->owed = 0;
	if (l->past)
		lane_past_end(l);
}

/* lane_reweigh for a child that waits. */
static void lane_reweigh_waiting(struct lane *l, const struct lane_home *h,
	struct lane_entry *entry, double before, double weight)
{
	uint64_t start = lane_start(l), tag = lane_true(l, entry);
	double was = lane_each(before), is = lane_each(weight);
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
	lane_past_out(l, entry, lane_each(before));
	uint64_t start = lane_start(l);
	int64_t ahead = (int64_t)(entry->tag - l->top), more = (int64_t)(entry->tag - start);

	if (more <= 0 || (ahead > 0 && (ahead - 1) >> entry->width))
		return; /* as in lane_join */
	double step = (double)more * before / weight;

	entry->tag = start + (uint64_t)(step < LANE_STEP_MAX ? step : LANE_STEP_MAX);
	entry->width = lane_log((int64_t)(entry->tag - l->now)) & 0x3f;
}

/* ---- children that are served */

void lane_serve(struct lane *l, struct lane_entry *entry, double cost, double step)
{
	if (__builtin_expect(l->banked, 0))
		lane_serve_bank(l, entry, cost);
	lane_settle(l);
	lane_tag(entry, step);
	lane_move_on(l, cost, false);
	if (__builtin_expect(l->banked, 0) && (int64_t)(l->now - l->origin) >= LANE_ORIGIN)
		lane_originate(l);
}

/* Let a child begin to wait in an empty lane and serve it. (As lane_join, lane_first, lane_raise and lane_serve. The
 * child is mostly late: then V goes back to where it was before the last service.) */
POOL_HOT void lane_alone(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double credit)
{
	uint64_t tag = lane_begin(l, entry, l->before, credit);
	int64_t ahead = (int64_t)(tag - l->now), back = (int64_t)(l->before - l->now);
	double each = lane_each(weight), step = lane_step(h, cost, weight);

	l->weight = (int64_t)each;
	l->owed = 0;
	l->floor = l->before;
	if (__builtin_expect(ahead <= back && back < 0, 1)) {
		l->now = l->before;
	} else if (ahead <= 0) {
		l->owed = each * (double)ahead;
		lane_settle(l);
	} else {
		unsigned shift = lane_shift(lane_key_of(lane_width(h, cost, weight), ahead));
		uint64_t start = tag >> shift << shift;

		if ((int64_t)(start - l->now) > 0)
			l->now = start;
		else
			l->owed = each * (double)ahead;
	}
	/* (No child finishes before V.) */
	l->floor = (int64_t)(l->now - l->floor) > 0 ? l->now : l->floor;
	entry->tag = tag;
	lane_tag(entry, step);
	lane_move_on(l, lane_cost(h, cost, weight, step), true);
	l->until = l->now; /* no group is the best */
}

void lane_serve_alone(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double credit)
{
	lane_alone(l, h, entry, weight, cost, credit);
	l->waits = 1;
	entry->waits = true;
}

void lane_serve_by(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double credit)
{
	lane_alone(l, h, entry, weight, cost, credit);
	l->weight = 0;
	l->owed = 0;
	entry->width = lane_log((int64_t)(entry->tag - l->now)) & 0x3f;
	entry->next = LANE_NIL;
}

void lane_serve_first(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double step)
{
	lane_serve_leaf(l, h, entry, weight, cost, step);
	entry->group = LANE_NONE;
}

/* ---- keyed */

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
