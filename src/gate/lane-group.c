/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane-impl.h"

/* Return the finish of a group of this key whose first slot begins at `start`. */
static inline uint64_t lane_finish(uint64_t start, unsigned key)
{
	return start + (UINT64_C(1) << key) + (UINT64_C(1) << lane_shift(key));
}

unsigned lane_open(struct lane *l, unsigned key, uint64_t tag, unsigned without)
{
	unsigned id = (unsigned)__builtin_ctzll(l->idle), bit = l->banked ? id : key;
	unsigned shift = lane_shift(key);
	uint64_t start = tag >> shift << shift;

	struct lane_group *q = &l->groups[id];

	q->start = start;
	q->finish = lane_finish(start, key);
	q->used = q->far = 0;
	q->first = 0;
	q->shift = (uint8_t)shift;
	q->key = (uint8_t)key;
	q->without = (uint8_t)without;
	l->of[bit] = (uint8_t)id;
	l->idle &= l->idle - 1;
	*(lane_frozen(l, without) ? &l->frozen : &l->active) |= UINT64_C(1) << bit;
	return id;
}

/* Return the first slot that may hold far children, counted from the first; there must be one. */
static unsigned lane_first_far(const struct lane_group *q)
{
	return (unsigned)__builtin_ctz(lane_turned(q, q->far));
}

/* Return true if the group's finish is the start of a slot that may hold far children. */
static inline bool lane_begins_far(const struct lane_group *q)
{
	return q->far && q->finish != lane_finish(q->start, q->key);
}

/* Compute a group's finish after its first slot or its far slots have changed. */
static void lane_finishes(struct lane_group *q)
{
	q->finish = lane_finish(q->start, q->key);
	if (!q->far)
		return;
	uint64_t far = q->start + ((uint64_t)lane_first_far(q) << q->shift);

	q->finish = (int64_t)(far - q->finish) < 0 ? far : q->finish;
}

/* Move the first slot of group id back to `tag`. Return false if the ring does not reach so far. */
static bool lane_back(struct lane *l, unsigned id, uint64_t tag)
{
	struct lane_group *q = &l->groups[id];
	int64_t back = -((int64_t)(tag - q->start) >> q->shift);

	if (back + lane_slots(q) > LANE_SLOTS)
		return false;
	q->first = (uint8_t)((q->first - (unsigned)back) % LANE_SLOTS);
	q->start = q->start - ((uint64_t)back << q->shift);
	lane_finishes(q);
	return true;
}

unsigned lane_group_of(struct lane *l, unsigned key, uint64_t tag, unsigned without)
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
	/* (With less than the full room there is a group for each child.) */
	if (nearest != LANE_NONE && l->room == LANE_KEYS &&
		__builtin_popcountll(l->idle) + __builtin_popcount(banks) <= LANE_BANKS)
		return nearest;
	return lane_open(l, key, tag, without);
}

/* Return the group of a key, opened if there is none, if its ring has room for a tag; else LANE_NONE. */
static unsigned lane_takes(struct lane *l, uint64_t tag, unsigned key, unsigned without)
{
	unsigned id = lane_group(l, key, tag, without);
	int64_t at = (int64_t)(tag - l->groups[id].start) >> l->groups[id].shift;

	return (at < 0 ? lane_back(l, id, tag) : at < LANE_SLOTS) ? id : LANE_NONE;
}

unsigned lane_early(struct lane *l, uint64_t tag, unsigned key, unsigned without)
{
	unsigned id = LANE_NONE;

	for (unsigned narrow = key + 1; id == LANE_NONE && narrow-- > 0;)
		id = lane_takes(l, tag, narrow, without);
	for (unsigned wide = key + 1; id == LANE_NONE && wide < LANE_KEYS; wide++)
		id = lane_takes(l, tag, wide, without);
	return id != LANE_NONE ? id : lane_group(l, key, tag, without);
}

void lane_emptied(struct lane *l, unsigned id, unsigned slot)
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

void lane_settle_back(struct lane *l)
{
	if (__builtin_expect(l->banked, 0)) {
		lane_bound(l, NULL);
		if (!l->weight) { /* all are frozen: V stands */
			l->owed = 0;
			return;
		}
	}
	int64_t least = (int64_t)(l->floor - l->now);
	double weight = (double)l->weight, back = l->owed / weight;
	int64_t move =
		back > (double)least ? (int64_t)(back - 0.5) : least; /* to the nearest tag */

	if (move >= 0)
		return;
	l->now += (uint64_t)move;
	l->owed = move > least ? l->owed - (double)move * weight : 0;
	lane_past_move(l, move);
	l->until = l->now;
	if ((int64_t)(l->before - l->now) > 0)
		l->before = l->now;
}

/* Choose the best group if one is eligible, and return 0; else return the distance from V to the first start. (No
 * branch: it would be mispredicted.) */
static uint64_t lane_pick(struct lane *l)
{
	const uint64_t never = INT64_MAX, sign = UINT64_C(1) << 63;
	uint64_t until = never, finish = UINT64_MAX;
	unsigned best = LANE_NONE;

	for (uint64_t left = l->active; left; left &= left - 1) {
		unsigned id = l->of[__builtin_ctzll(left)];
		int64_t since = (int64_t)(l->now - l->groups[id].start);
		/* One less than the time to its start, which is beyond any time if that is past; and the finish,
		 * moved so that it can be compared without a sign, or beyond any if the start is yet to come. */
		uint64_t later = ~(uint64_t)since;
		uint64_t f = ((l->groups[id].finish - l->now) ^ sign) | (uint64_t)(since >> 63);

		until = later < until ? later : until;
		best = f < finish ? id : best;
		finish = f < finish ? f : finish;
	}
	until += until < never;
	if (best == LANE_NONE)
		return until;
	l->best = (uint8_t)best;
	l->until = l->now + (until < LANE_FAR ? until : LANE_FAR);
	if (lane_begins_far(&l->groups[best])) /* lane_find is to look at the slot */
		l->until = l->now;
	return 0;
}

void lane_choose(struct lane *l)
{
	uint64_t jump = lane_pick(l);

	if (!jump)
		return;
	l->before = l->now += jump;
	l->top = (int64_t)(l->now - l->top) > 0 ? l->now : l->top;
	l->owed = 0;
	lane_past_move(l, (int64_t)jump);
	(void)lane_pick(l);
}

void lane_compare(struct lane *l, unsigned id)
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

	/* (On a tie as lane_pick, which goes by number with banks, else by key.) */
	if (less < 0 || (less == 0 && (l->banked ? id < l->best : q->key < best->key)))
		l->best = (uint8_t)id;
}

void lane_put(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	unsigned width)
{
	lane_stand(l, h, entry, e, width, false);
}

void lane_take(struct lane *l, const struct lane_home *h, struct lane_entry *entry)
{
	unsigned id = entry->group;
	struct lane_list *list = &l->rings[id].slot[entry->slot];
	uint32_t next = entry->next, prev = entry->prev;
	bool first = lane_entry(h, l, list->head) == entry;

	*(first ? &list->head : &lane_entry(h, l, prev)->next) = next;
	*(next == LANE_NIL ? &list->tail : &lane_entry(h, l, next)->prev) = prev;
	entry->group = LANE_NONE;
	entry->far = false;
	if (list->head == LANE_NIL)
		lane_emptied(l, id, entry->slot);
}

/* Place an entry with a request of this width, which is in no group, in a group of a greater key, before the others
 * of its slot. */
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

/* Place an entry of group id that is far, or was put beyond the ring, where it belongs now. */
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

/* Group id is the best because a slot that may hold far children begins: place one of these where it belongs, or
 * clear the slot's far bit if it holds none. */
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

uint32_t lane_find(struct lane *l, const struct lane_home *h)
{
	if (l->keyed)
		return lane_first_keyed(l, h);
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

/* Return the group that would be the best with these kinds; LANE_NONE if none waits. */
static unsigned lane_would(const struct lane *l, unsigned kinds)
{
	struct lane_group groups[LANE_KEYS];
	struct lane copy = *l;

	for (unsigned id = 0; id < l->room; id++)
		groups[id] = l->groups[id];
	copy.groups = groups;
	lane_allow(&copy, kinds);
	if (!copy.active)
		return LANE_NONE;
	lane_choose(&copy);
	return copy.best;
}

uint32_t lane_peek(struct lane *l, const struct lane_home *h, unsigned kinds)
{
	if (l->keyed)
		return lane_first_keyed(l, h);
	bool chosen = (int64_t)(l->now - l->until) < 0 || (l->active && !lane_pick(l));
	unsigned best =
		chosen && (l->allowed == kinds || !l->banked) ? l->best : lane_would(l, kinds);

	return best == LANE_NONE ? LANE_NIL : l->rings[best].slot[l->groups[best].first].head;
}
