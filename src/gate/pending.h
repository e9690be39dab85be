/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending: leaves that were idle and are not any more, until weir_gate_next looks at them.
 *
 * METHOD  A bit each, and two levels of bits that say which words of the level below are not 0. They are taken in the
 *         order of their numbers, whatever the order of their submits, each call going on where the one before it ended.
 */
#ifndef WEIR_GATE_PENDING_H
#define WEIR_GATE_PENDING_H

#include "gate/ahead.h"

POOL_HOT void pending_add(struct weir_gate *g, uint32_t n)
{
	g->pending_last = n;
	g->n_pending += !(g->pending[0][n >> 6] >> (n & 63) & 1);
	g->pending[0][n >> 6] |= UINT64_C(1) << (n & 63);
	g->pending[1][n >> 12] |= UINT64_C(1) << (n >> 6 & 63);
	g->pending[2][n >> 18] |= UINT64_C(1) << (n >> 12 & 63);
}

/* Removes a leaf, if it is one of them. */
void pending_remove(struct weir_gate *g, uint32_t n);

/* Takes up to `most` of several and asks for their nodes: how many. */
uint32_t pending_take_many(struct weir_gate *g, uint32_t *ret, uint32_t most);
/* The same of any number; `most` is not 0. */
POOL_HOT uint32_t pending_take(struct weir_gate *g, uint32_t *ret, uint32_t most)
{
	uint32_t last = g->pending_last;

	/* (Mostly the only one is the last that came: nobody has to look for it.) */
	if (g->n_pending != 1 || !(g->pending[0][last >> 6] >> (last & 63) & 1))
		return pending_take_many(g, ret, most);
	pending_remove(g, last);
	ahead_node(&g->nodes[last]);
	*ret = last;
	return 1;
}

#endif
