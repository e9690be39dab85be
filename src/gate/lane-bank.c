/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane-impl.h"

#define LANE_APART                                                                                 \
	(INT64_C(1) << 61) /* tags: farthest that a frozen bank is from V, twice the longest step */

/* A tag may be 2^62 ahead of V, V that far from the origin of sums, and a slot 2^60 wide. */
__extension__ typedef __int128 lane_distance;

void lane_weigh_bank(struct lane *l, unsigned without, int64_t weight, int64_t ahead)
{
	struct lane_bank *bank = &l->bank[without];
	bool frozen = lane_frozen(l, without);
	lane_distance from_origin = ahead;

	bank->weight += weight;
	bank->n += weight > 0 ? 1 : UINT32_MAX;
	from_origin += frozen ? 0 : (int64_t)(l->now - l->origin);
	bank->ahead = bank->n ? bank->ahead + (double)weight * (double)from_origin : 0;
	l->weight += frozen ? 0 : weight;
}

/* Widen a range of distances from V so that it holds the slots of these groups, whose bank lags behind by `lag`. */
static void lane_range(const struct lane *l, uint64_t groups, uint64_t lag, lane_distance *least,
	lane_distance *most)
{
	for (; groups; groups &= groups - 1) {
		const struct lane_group *q = &l->groups[__builtin_ctzll(groups)];
		lane_distance start = (int64_t)(q->start + lag - l->now);
		lane_distance end = start + ((lane_distance)lane_slots(q) << q->shift);

		*least = start < *least ? start : *least;
		*most = end > *most ? end : *most;
	}
}

void lane_bound(struct lane *l, const struct lane_entry *entry)
{
	lane_distance least = 0, most = 0;
	double weight = (double)(l->weight - l->past);

	if (entry) {
		int64_t ahead = (int64_t)(lane_true(l, entry) - l->now);

		least = ahead < 0 ? ahead : 0;
		most = ahead > 0 ? ahead : 0;
	}
	lane_range(l, l->active, 0, &least, &most);
	double from = weight * (double)least, to = weight * (double)most + l->past_ahead;

	l->owed = l->owed < from ? from : l->owed > to ? to : l->owed;
}

/* Return the groups of a bank. */
static uint64_t lane_groups_of(const struct lane *l, unsigned without)
{
	uint64_t groups = 0;

	for (uint64_t left = l->active | l->frozen; left; left &= left - 1)
		if (l->groups[__builtin_ctzll(left)].without == without)
			groups |= left & -left;
	return groups;
}

/* Move the tags of a frozen bank with V. */
static void lane_bank_move(struct lane *l, unsigned without, int64_t by)
{
	l->bank[without].frozen -= (uint64_t)by;
	l->bank[without].ahead += (double)l->bank[without].weight * (double)by;
}

/* Keep the tags of a frozen bank near V: its leads over several freezes would add up, until a tag wraps round. */
static void lane_bank_near(struct lane *l, unsigned without)
{
	lane_distance least = 0, most = 0, by = 0;

	lane_range(l, lane_groups_of(l, without), lane_lag(l, without), &least, &most);
	if (most > LANE_APART)
		by = LANE_APART - most;
	else if (least < -LANE_APART)
		by = -LANE_APART - least;
	if (by)
		lane_bank_move(l, without, (int64_t)by);
}

/* Keep the tags of the frozen banks where they are, though V has moved, or near it. */
static void lane_banks_stay(struct lane *l, int64_t move)
{
	for (unsigned b = 1; b < LANE_BANKS; b++)
		if (lane_frozen(l, b)) {
			lane_bank_move(l, b, -move);
			lane_bank_near(l, b);
		}
}

/* Move V ahead to the mean. */
static void lane_settle_ahead(struct lane *l)
{
	lane_bound(l, NULL);
	double weight = (double)l->weight;
	int64_t move = l->weight > 0 ? (int64_t)(l->owed / weight) : 0;

	if (move <= 0)
		return;
	l->now += (uint64_t)move;
	l->top = (int64_t)(l->now - l->top) > 0 ? l->now : l->top;
	l->owed -= (double)move * weight;
	lane_past_move(l, move);
}

void lane_recentre(struct lane *l)
{
	uint64_t was = l->now;

	if (l->owed > 0)
		lane_settle_ahead(l);
	else
		lane_settle(l);
	lane_banks_stay(l, (int64_t)(l->now - was));
	l->until = l->now;
}

/* Return the distance of V from the origin of the banks' sums. */
static double lane_moved(const struct lane *l)
{
	return (double)(int64_t)(l->now - l->origin);
}

void lane_originate(struct lane *l)
{
	for (unsigned b = 1; b < LANE_BANKS; b++)
		if (!lane_frozen(l, b))
			l->bank[b].ahead -= (double)l->bank[b].weight * lane_moved(l);
	l->origin = l->now;
}

void lane_split(struct lane *l)
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

/* Freeze or thaw a bank. */
static void lane_freeze(struct lane *l, unsigned without, bool freeze)
{
	struct lane_bank *bank = &l->bank[without];
	uint64_t by = l->now - bank->frozen;

	uint64_t groups = lane_groups_of(l, without);

	l->active ^= groups;
	l->frozen ^= groups;
	for (uint64_t left = freeze ? 0 : groups; left; left &= left - 1)
		lane_move(&l->groups[__builtin_ctzll(left)], (int64_t)by);
	double moved = (double)bank->weight * lane_moved(l);

	/* V follows the mean of the children that are not frozen. */
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

	if (kinds == before || !l->banked) {
		l->allowed = (uint8_t)kinds;
		return;
	}
	lane_settle(l);
	l->allowed = (uint8_t)kinds;
	for (unsigned b = 1; b < LANE_BANKS; b++) {
		bool was = !(LANE_KINDS & ~b & before), is = lane_frozen(l, b);

		if (was != is)
			lane_freeze(l, b, is);
	}
	lane_recentre(l);
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

void lane_serve_bank(struct lane *l, const struct lane_entry *entry, double cost)
{
	/* (A run continues whatever kinds were allowed last.) */
	if (lane_frozen(l, entry->without))
		lane_allow(l, l->allowed | (LANE_KINDS & ~(unsigned)entry->without));
	lane_bound(l, entry);
	if (entry->without)
		l->bank[entry->without].ahead += cost;
}

void lane_change(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, unsigned without)
{
	if (!l->banked)
		lane_split(l);
	uint64_t tag = lane_true(l, entry);
	bool stands = entry->group != LANE_NONE;
	/* (A late child that is not frozen any more is as one that begins to wait: lane_settle.) */
	bool shifts = lane_frozen(l, without)
			      ? !lane_frozen(l, entry->without)
			      : lane_frozen(l, entry->without) && (int64_t)(tag - l->now) > 0;

	if (shifts) {
		lane_settle(l);
		tag = lane_true(l, entry);
	}
	int64_t each = (int64_t)lane_each(weight), ahead = (int64_t)(tag - l->now);

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
	if (shifts)
		lane_recentre(l);
}
