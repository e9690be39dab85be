/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lanes: the invariant of a gate's lanes, read from its memory.
 *
 *   groups    each group of a lane is idle, active or frozen, and frozen exactly if no kind of its bank is allowed
 *   slots     a group has used slots; its first one is used; its finish follows from its first and its far slots
 *   lists     each list links entries that wait, of this group, slot and bank; a slot with a far child is marked
 *   weights   W, the weights of the banks, and the counts are the sums over the children
 *   V         before and V are no later than the latest V; the group that is next is the one that would be chosen
 *
 * The sums of weight times lead are not compared: they are rounded, in a bank of a heavy child by more than all that
 * a light one adds. (lane_bound keeps V from following them too far.)
 */
#ifndef WEIR_TESTS_GATE_LANES_H
#define WEIR_TESTS_GATE_LANES_H

#include "gate/lane-impl.h"
#include "gate/node.h"
#include "test.h"

/* No tag is so far from V that it might wrap round: the longest step is 2^60. */
#define LANES_FAR (INT64_C(7) << 60)

/* The sums over the children of a lane. */
struct lanes_sum {
	uint32_t n, in_groups, n_bank[LANE_BANKS];
	int64_t weight, past, bank[LANE_BANKS];
};

static inline void lanes_child(
	const struct lane *l, const struct lane_entry *e, double weight, struct lanes_sum *sum)
{
	int64_t each = (int64_t)(weight * LANE_WEIGHT_ONE);
	unsigned b = e->without;

	if (!e->waits) {
		CHECK(e->group == LANE_NONE);
		if (l->past && e->next == l->past_id)
			sum->past += each;
		return;
	}
	CHECK(b < LANE_BANKS && (!b || l->banked));
	CHECK(e->group != LANE_NONE);
	sum->n++;
	sum->weight += lane_frozen(l, b) ? 0 : each;
	if (b) {
		sum->n_bank[b]++;
		sum->bank[b] += each;
	}
}

static inline void lanes_list(const struct weir_gate *g, const struct lane *l, unsigned id,
	unsigned slot, struct lanes_sum *sum)
{
	const struct lane_group *q = &l->groups[id];
	const struct lane_list *list = &l->rings[id].slot[slot];
	uint32_t prev = LANE_NIL;

	for (uint32_t e = list->head; e != LANE_NIL; e = lane_entry(&g->home, l, e)->next) {
		const struct lane_entry *entry = lane_entry(&g->home, l, e);

		CHECK(sum->in_groups++ < l->waits);
		CHECK(entry->waits);
		CHECK_INT(entry->group, id);
		CHECK_INT(entry->slot, slot);
		CHECK_INT(entry->without, q->without);
		CHECK(prev == LANE_NIL || entry->prev == prev);
		CHECK(!entry->far || (q->far >> slot & 1));
		CHECK(llabs((int64_t)(lane_true(l, entry) - l->now)) < LANES_FAR);
		prev = e;
	}
	CHECK(prev != LANE_NIL && list->tail == prev);
}

static inline void lanes_group(
	const struct weir_gate *g, const struct lane *l, unsigned id, struct lanes_sum *sum)
{
	const struct lane_group *q = &l->groups[id];

	CHECK(q->used >> q->first & 1);
	CHECK(!(q->far & ~q->used));
	CHECK_INT(q->shift, lane_shift(q->key));
	uint64_t finish = q->start + (UINT64_C(1) << q->key) + (UINT64_C(1) << q->shift);

	if (q->far) {
		uint64_t far =
			q->start + ((uint64_t)__builtin_ctz(lane_turned(q, q->far)) << q->shift);

		finish = (int64_t)(far - finish) < 0 ? far : finish;
	}
	CHECK(q->finish == finish);
	for (unsigned slot = 0; slot < LANE_SLOTS; slot++)
		if (q->used >> slot & 1)
			lanes_list(g, l, id, slot, sum);
}

static inline void lanes_groups(
	const struct weir_gate *g, const struct lane *l, struct lanes_sum *sum)
{
	uint64_t seen = 0, room = l->room == 64 ? UINT64_MAX : (UINT64_C(1) << l->room) - 1;

	CHECK(!(l->active & l->frozen));
	CHECK(l->banked || !l->frozen);
	for (uint64_t left = l->active | l->frozen; left; left &= left - 1) {
		unsigned bit = (unsigned)__builtin_ctzll(left), id = l->of[bit];
		const struct lane_group *q = &l->groups[id];

		CHECK(id < l->room && !(seen >> id & 1));
		CHECK_INT(bit, l->banked ? id : q->key);
		CHECK(lane_frozen(l, q->without) == (l->frozen >> bit & 1));
		seen |= UINT64_C(1) << id;
		lanes_group(g, l, id, sum);
	}
	CHECK(l->idle == (room & ~seen));
}

/* The next group is that which would be chosen now. */
static inline void lanes_best(const struct lane *l)
{
	if ((int64_t)(l->now - l->until) >= 0 || !l->active)
		return;
	struct lane copy = *l;

	lane_choose(&copy);
	CHECK(copy.now == l->now);
	CHECK_INT(copy.best, l->best);
	CHECK((int64_t)(copy.until - l->until) >= 0 || (int64_t)(copy.until - copy.now) <= 0);
}

static inline void lanes_lane(const struct weir_gate *g, const struct lane *l)
{
	struct lanes_sum sum = {0};

	for (uint32_t n = 1; n < g->n_nodes; n++) {
		struct node *node = &g->nodes[n];

		if (!node->flags || node->parent != l->node)
			continue;
		if (node->flags & NODE_INNER) {
			const struct lane *own = l->slot < NODE_PRIORITIES && !node->inner->priority
							 ? NULL
							 : node_lane(g, n, l->slot);
			if (own)
				lanes_child(l, &own->own, node->weight, &sum);
		} else if (l->slot >= NODE_PRIORITIES || node->priority == l->slot) {
			lanes_child(l, node_entry(node, node_class(l->slot)), node->weight, &sum);
		}
	}
	CHECK_INT(l->waits, sum.n);
	lanes_groups(g, l, &sum);
	CHECK_INT(sum.in_groups, sum.n);
	CHECK(sum.past <= l->past);
	CHECK_INT(l->weight, sum.weight + l->past);
	for (unsigned b = 1; b < LANE_BANKS; b++) {
		CHECK_INT(l->bank[b].n, sum.n_bank[b]);
		CHECK_INT(l->bank[b].weight, sum.bank[b]);
	}
	CHECK((int64_t)(l->top - l->now) >= 0 || !l->waits);
	CHECK((int64_t)(l->now - l->before) >= 0);
	CHECK(l->owed == l->owed && l->past_ahead == l->past_ahead);
	lanes_best(l);
}

/* Check all lanes of a gate whose order is WEIR_FAIR, between two calls. */
static inline void lanes_check(const struct weir_gate *g)
{
	for (uint32_t n = 0; g->order == WEIR_FAIR && n < g->n_nodes; n++) {
		const struct node_inner *in = g->nodes[n].inner;

		if (!(g->nodes[n].flags & NODE_INNER))
			continue;
		for (unsigned s = in->priority ? 0 : NODE_RESERVED; s <= NODE_REST; s++)
			if (node_lane(g, n, s))
				lanes_lane(g, node_lane(g, n, s));
	}
}

#endif
