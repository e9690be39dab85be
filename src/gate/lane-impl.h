/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane-impl: internals of a lane, shared by its files and, for the service of a leaf, by turn.h: every request passes
 * through that.
 *
 *   lane.c        children that begin and cease to wait, and are served; the orders FIFO and EDF
 *   lane-group.c  the place of each child, and the choice of the next
 *   lane-bank.c   children that lack kinds of requests
 */
#pragma once

#include "gate/lane.h"

#define LANE_SLOT_BITS 2 /* a slot is a quarter of a width */
#define LANE_FAR       (UINT64_C(1) << 62)
#define LANE_ORIGIN    (INT64_C(1) << 56) /* tags: longest distance over which sums are kept */

/* Move the first slot of a group by this distance. */
static inline void lane_move(struct lane_group *q, int64_t by)
{
	q->start += (uint64_t)by;
	q->finish += (uint64_t)by;
}

/* Return a set of slots rotated so that the first slot is bit 0. */
static inline uint32_t lane_turned(const struct lane_group *q, uint16_t slots)
{
	uint32_t twice = (uint32_t)slots << LANE_SLOTS | slots;

	return twice >> q->first & ((1u << LANE_SLOTS) - 1);
}

/* Return the number of slots from the first to the last one that is used. */
static inline int lane_slots(const struct lane_group *q)
{
	return 32 - __builtin_clz(lane_turned(q, q->used));
}

/* Return log2 of a slot's width. */
static inline unsigned lane_shift(unsigned key)
{
	return key > LANE_SLOT_BITS ? key - LANE_SLOT_BITS : 0;
}

/* Return the key of the group for a request of this width and a tag so far ahead of V: a ring spans four widths. */
static inline unsigned lane_key_of(unsigned width, int64_t ahead)
{
	return ahead >> 1 <= INT64_C(1) << width ? width : lane_log(ahead >> 1);
}

/* ---- banks */

/* Return true if no kind of the bank is allowed. */
static inline bool lane_frozen(const struct lane *l, unsigned without)
{
	return without && !(LANE_KINDS & ~without & l->allowed);
}

/* Return the distance by which V has advanced since the bank was frozen. */
static inline uint64_t lane_lag(const struct lane *l, unsigned without)
{
	return lane_frozen(l, without) ? l->now - l->bank[without].frozen : 0;
}

/* Return the entry's tag relative to V as it is now. */
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

/* Add a child that begins to wait in a bank that lacks kinds; with a negative weight, remove it. Its tag is `ahead`
 * of V. */
void lane_weigh_bank(struct lane *l, unsigned without, int64_t weight, int64_t ahead);
/* The same for any bank. */
static inline void lane_weigh(struct lane *l, unsigned without, int64_t weight, int64_t ahead)
{
	if (__builtin_expect(!without, 1))
		l->weight += weight;
	else
		lane_weigh_bank(l, without, weight, ahead);
}

/* Before V moves: keep the mean, to which it moves, among the tags of the children that are not frozen and of `entry`,
 * which is in no group; NULL: there is no such entry. (V does not always stand at the mean: it jumps, and stops at the
 * floor. The difference, times a weight of 2^20 that is frozen then, would move V far for a weight of 2^-10.) */
void lane_bound(struct lane *l, const struct lane_entry *entry);
/* Other children are frozen than before: move V to the mean of those that are not. No tag moves by that, so that the
 * frozen ones stay as far ahead of or behind the others. */
void lane_recentre(struct lane *l);
/* Make V the origin of the banks' sums, since it has advanced far. */
void lane_originate(struct lane *l);
/* Index groups by number from now on, since there may be several of one key. */
void lane_split(struct lane *l);
/* Account for the service of a child in a bank. */
void lane_serve_bank(struct lane *l, const struct lane_entry *entry, double cost);

/* ---- groups */

/* Open a group of a key that has none, with an empty first slot at this tag. Return its number. */
unsigned lane_open(struct lane *l, unsigned key, uint64_t tag, unsigned without);
/* Return the group for a tag before the first slot of the group of `key`: that group, or the first narrower one
 * whose ring reaches so far back. The child is late, so that a finish tag which is too early does no harm; one too
 * late would. If no group reaches so far, return any. */
unsigned lane_early(struct lane *l, uint64_t tag, unsigned key, unsigned without);
/* Update the best group after the first slot of group id has changed. */
void lane_compare(struct lane *l, unsigned id);
/* Choose the eligible group that finishes first, the narrowest on a tie. If none is eligible V jumps to the first
 * start. */
void lane_choose(struct lane *l);
/* Mark a slot of group id as empty. */
void lane_emptied(struct lane *l, unsigned id, unsigned slot);

/* With banks: return the group of a key in a bank, or the nearest one if no more may be opened. Each bank has room
 * for one group at least. */
unsigned lane_group_of(struct lane *l, unsigned key, uint64_t tag, unsigned without);
/* Return the group of a key; open it if there is none. */
static inline unsigned lane_group(struct lane *l, unsigned key, uint64_t tag, unsigned without)
{
	if (__builtin_expect(l->banked, 0))
		return lane_group_of(l, key, tag, without);
	return l->active >> key & 1 ? l->of[key] : lane_open(l, key, tag, without);
}

/* lane_put. `plain`: the lane has no banks, and only leaves wait in it. */
POOL_HOT void lane_stand(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	uint32_t e, unsigned width, bool plain)
{
	uint64_t tag = entry->tag, lag = 0;
	unsigned without = 0;

	if (!plain && __builtin_expect(l->banked, 0)) {
		tag = lane_at(l, entry);
		without = entry->without;
		lag = lane_lag(l, without);
	}
	unsigned key = lane_key_of(width, (int64_t)(tag + lag - l->now));
	unsigned id = plain && __builtin_expect(l->active >> key & 1, 1)
			      ? l->of[key]
			      : lane_group(l, key, tag, without);
	struct lane_group *q = &l->groups[id];
	int64_t at = (int64_t)(tag - q->start) >> q->shift;

	if (__builtin_expect(at < 0, 0)) {
		id = lane_early(l, tag, key, without);
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
		(plain ? lane_leaf(h, l, list->tail) : lane_entry(h, l, list->tail))->next = e;
		list->tail = e;
		return;
	}
	entry->prev = LANE_NIL;
	list->head = list->tail = e;
	q->used |= (uint16_t)(1u << slot);
	if (at == 0)
		lane_compare(l, id);
}

/* ---- children that ceased to wait ahead of V */

/* Drop them all from W. */
void lane_past_end(struct lane *l);
/* Account for an advance of V. */
static inline void lane_past_move(struct lane *l, int64_t by)
{
	if (!l->past)
		return;
	l->past_ahead -= (double)l->past * (double)by;
	if (l->past_ahead <= 0)
		lane_past_end(l);
}

/* Account for a child that has ceased to wait with its tag so far ahead of V, and whose weight has been taken from
 * W. */
static inline void lane_ceases(struct lane *l, struct lane_entry *entry, double each, int64_t ahead)
{
	double part = each * (double)ahead;

	if (ahead <= 0) { /* V stands still for it no longer, but does not leap ahead */
		if (l->owed < 0)
			l->owed = l->owed < part ? l->owed - part : 0;
	} else {
		l->weight += (int64_t)each;
		l->past += (int64_t)each;
		l->past_ahead += part;
		entry->next = l->past_id;
	}
}

/* ---- children that begin to wait */

/* Return the tag with which a child begins to wait. */
static inline uint64_t lane_begin(
	const struct lane *l, const struct lane_entry *entry, uint64_t start, double credit)
{
	uint64_t early = l->before - (uint64_t)(int64_t)credit;
	int64_t ahead = (int64_t)(entry->tag - l->top);

	if ((int64_t)(early - start) < 0)
		start = early;
	/* (A tag further ahead than the last request could put it is stale: V has wrapped round.) */
	if ((int64_t)(entry->tag - start) < 0 || (ahead > 0 && (ahead - 1) >> entry->width))
		return start;
	return entry->tag;
}

/* ---- children that are served: V and tags */

#define LANE_STEP_SMALL 0x1p50

/* Move the tag. A step that is not small has hardly any digits after the point. */
static inline void lane_tag(struct lane_entry *entry, double step)
{
	if (__builtin_expect(step >= LANE_STEP_SMALL, 0)) {
		entry->tag += (uint64_t)(int64_t)step;
		return;
	}
	uint64_t parts = (uint64_t)(int64_t)(step * LANE_PARTS + 0.5) + entry->parts;

	entry->tag += parts / LANE_PARTS;
	entry->parts = parts % LANE_PARTS;
}

/* Advance V. `plain`: the lane has no banks, so that W includes the weight of the child that is served. (The weight
 * of a child whose bank is frozen is not in W, which may then be 0.) */
static inline void lane_move_on(struct lane *l, double cost, bool plain)
{
	double owed = l->owed + cost, weight = (double)l->weight;
	int64_t move = plain || l->weight > 0 ? (int64_t)((owed > 0 ? owed : 0) / weight) : 0;

	l->before = l->now;
	l->now += (uint64_t)move;
	l->owed = owed - (double)move * weight;
	l->top = (int64_t)(l->now - l->top) > 0 ? l->now : l->top;
	lane_past_move(l, move);
}

/* Take the first entry out of a lane without banks in which only leaves wait, and serve it. */
POOL_HOT void lane_serve_leaf(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double step)
{
	unsigned id = l->best, slot = entry->slot;
	uint32_t next = entry->next;
	uint64_t finish = l->groups[id].finish, own = entry->tag + (uint64_t)(int64_t)step;

	lane_settle(l);
	/* (As lane_raise, of the best group.) */
	finish = (int64_t)(own - finish) < 0 ? own : finish;
	finish = (int64_t)(finish - l->now) < 0 ? finish : l->now;
	l->floor = (int64_t)(finish - l->floor) > 0 ? finish : l->floor;
	if (next != LANE_NIL)
		l->rings[id].slot[slot].head = next;
	else
		lane_emptied(l, id, slot);
	lane_tag(entry, step);
	lane_move_on(l, lane_cost(h, cost, weight, step), true);
}

/* Serve the child that lane_first has just returned, in a lane without banks in which only leaves wait; `step` is the
 * lane_step of the cost, which the caller need not wait for. Then the child waits again, for a request of this
 * width, */
POOL_HOT void lane_serve_again(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	uint32_t e, double weight, double cost, double step, unsigned width)
{
	lane_serve_leaf(l, h, entry, weight, cost, step);
	lane_stand(l, h, entry, e, width, true);
}

/* or it ceases to wait. (lane_serve_first: or it waits and is in no group.) */
POOL_HOT void lane_serve_out(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double step)
{
	lane_serve_leaf(l, h, entry, weight, cost, step);
	entry->group = LANE_NONE;
	if (l->waits == 1) {
		lane_leave_last(l, entry);
		return;
	}
	/* (As lane_leave, where others wait and there are no banks.) */
	double each = lane_each(weight);
	int64_t ahead = (int64_t)(entry->tag - l->now);

	l->weight -= (int64_t)each;
	l->waits--;
	entry->waits = false;
	entry->width = lane_log(ahead) & 0x3f;
	entry->next = LANE_NIL;
	lane_ceases(l, entry, each, ahead);
}

/* ---- keyed */

/* Return the entry with the least key; LANE_NIL if none waits. */
uint32_t lane_first_keyed(struct lane *l, const struct lane_home *h);
