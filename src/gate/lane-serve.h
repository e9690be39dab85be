/* SPDX-License-Identifier: BSD-3-Clause */
/* lane-serve: the service of a leaf, inline, since every request passes through here. Part of lane.h. */
#ifndef WEIR_GATE_LANE_SERVE_H
#define WEIR_GATE_LANE_SERVE_H

#include "gate/lane-impl.h"

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
	double each = weight * LANE_WEIGHT_ONE;
	int64_t ahead = (int64_t)(entry->tag - l->now);

	l->weight -= (int64_t)each;
	l->waits--;
	entry->waits = false;
	entry->width = lane_log(ahead) & 0x3f;
	entry->next = LANE_NIL;
	lane_ceases(l, entry, each, ahead);
}

#endif
