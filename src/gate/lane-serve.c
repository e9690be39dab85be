/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane-serve.h"

void lane_serve(struct lane *l, struct lane_entry *entry, double cost, double step)
{
	if (__builtin_expect(l->banked, 0))
		lane_serve_bank(l, entry, cost);
	lane_tag(entry, step);
	lane_move_on(l, cost, false);
	if (__builtin_expect(l->banked, 0) && l->now - l->origin >= LANE_ORIGIN)
		lane_originate(l);
}

/* Let a child begin to wait in an empty lane and serve it. */
POOL_HOT void lane_alone(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double credit)
{
	uint64_t tag = lane_begin(l, entry, l->before, credit);
	int64_t ahead = (int64_t)(tag - l->now);
	double each = weight * LANE_WEIGHT_ONE, step = lane_step(h, cost, weight);
	uint64_t finish = tag + (uint64_t)(int64_t)step, floor = l->before;

	/* (In the order of lane_join, lane_first, lane_raise and lane_serve.) */
	l->weight = (int64_t)each;
	l->owed = each * (double)ahead;
	entry->tag = tag;
	if (ahead > 0) {
		unsigned shift = lane_shift(lane_key_of(lane_width(h, cost, weight), ahead));
		uint64_t start = tag >> shift << shift;

		if ((int64_t)(start - l->now) > 0) {
			l->now = start;
			l->owed = 0;
		}
	}
	finish = (int64_t)(finish - l->now) < 0 ? finish : l->now;
	l->floor = (int64_t)(finish - floor) > 0 ? finish : floor;
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
