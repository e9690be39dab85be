/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending: leaves that have ceased to be idle, until weir_gate_next checks them.
 *
 * METHOD  A bit per leaf, and two levels of bits that say which words of the level below are not 0. Leaves are taken
 *         in the order of their numbers, whatever the order of their submits; each call continues where the last one
 *         ended.
 */
#pragma once

#include "gate/ahead.h"

POOL_HOT void pending_add(struct weir_gate *g, uint32_t n)
{
	g->pending_last = n;
	g->n_pending += !(g->pending[0][n >> 6] >> (n & 63) & 1);
	g->pending[0][n >> 6] |= UINT64_C(1) << (n & 63);
	g->pending[1][n >> 12] |= UINT64_C(1) << (n >> 6 & 63);
	g->pending[2][n >> 18] |= UINT64_C(1) << (n >> 12 & 63);
}

/* Return true if a leaf is in the set. */
POOL_HOT bool pending_has(const struct weir_gate *g, uint32_t n)
{
	return g->pending[0][n >> 6] >> (n & 63) & 1;
}
/* Remove a leaf from the set, if it is in it. */
void pending_remove(struct weir_gate *g, uint32_t n);

/* Take up to `most` leaves out of the set, which has several, and prefetch their nodes. Return how many. */
uint32_t pending_take_many(struct weir_gate *g, uint32_t *ret, uint32_t most);
/* The same for a set of any size; `most` is not 0. */
POOL_HOT uint32_t pending_take(struct weir_gate *g, uint32_t *ret, uint32_t most)
{
	uint32_t last = g->pending_last;

	/* (A single leaf is mostly the one added last: no search is needed.) */
	if (g->n_pending != 1 || !pending_has(g, last))
		return pending_take_many(g, ret, most);
	pending_remove(g, last);
	ahead_node(&g->nodes[last]);
	*ret = last;
	return 1;
}
