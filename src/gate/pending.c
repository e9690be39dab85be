/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/pending.h"

/* Return the first leaf of the set from `from` on; NODE_NIL if there is none. */
static uint32_t pending_first(const struct weir_gate *g, uint32_t from)
{
	uint32_t w0 = from >> 6, w1 = from >> 12, w2 = from >> 18, last = (g->room - 1) >> 18;
	uint64_t bits = g->pending[0][w0] & (~UINT64_C(0) << (from & 63));

	if (bits)
		return w0 << 6 | (uint32_t)__builtin_ctzll(bits);
	/* (Shifted twice: a shift by 64 would be undefined.) */
	bits = g->pending[1][w1] & (~UINT64_C(0) << (w0 & 63) << 1);
	if (!bits) {
		bits = g->pending[2][w2] & (~UINT64_C(0) << (w1 & 63) << 1);
		while (!bits && ++w2 <= last)
			bits = g->pending[2][w2];
		if (!bits)
			return NODE_NIL;
		w1 = w2 << 6 | (uint32_t)__builtin_ctzll(bits);
		bits = g->pending[1][w1];
	}
	w0 = w1 << 6 | (uint32_t)__builtin_ctzll(bits);
	return w0 << 6 | (uint32_t)__builtin_ctzll(g->pending[0][w0]);
}

void pending_remove(struct weir_gate *g, uint32_t n)
{
	g->n_pending -= g->pending[0][n >> 6] >> (n & 63) & 1;
	if (g->pending[0][n >> 6] &= ~(UINT64_C(1) << (n & 63)))
		return;
	if (!(g->pending[1][n >> 12] &= ~(UINT64_C(1) << (n >> 6 & 63))))
		g->pending[2][n >> 18] &= ~(UINT64_C(1) << (n >> 12 & 63));
}

/* Take up to `most` leaves from `leaf` on, which is in the set, out of the words that share a word of the next
 * level. */
static uint32_t pending_take_some(struct weir_gate *g, uint32_t leaf, uint32_t *ret, uint32_t most)
{
	uint32_t n = 0, w1 = leaf >> 12;
	uint64_t from = ~UINT64_C(0) << (leaf & 63);
	uint64_t words = g->pending[1][w1] & (~UINT64_C(0) << (leaf >> 6 & 63));

	for (; words && n < most; words &= words - 1, from = ~UINT64_C(0)) {
		uint32_t w0 = w1 << 6 | (uint32_t)__builtin_ctzll(words);
		uint64_t bits = g->pending[0][w0] & from, before = g->pending[0][w0] & ~from;

		for (; bits && n < most; bits &= bits - 1) {
			ret[n] = w0 << 6 | (uint32_t)__builtin_ctzll(bits);
			ahead_node(&g->nodes[ret[n++]]);
		}
		if (!(g->pending[0][w0] = before | bits))
			g->pending[1][w1] &= ~(words & -words);
	}
	if (!g->pending[1][w1])
		g->pending[2][w1 >> 6] &= ~(UINT64_C(1) << (w1 & 63));
	g->n_pending -= n;
	return n;
}

uint32_t pending_take_many(struct weir_gate *g, uint32_t *ret, uint32_t most)
{
	uint32_t n = 0;

	while (n < most && g->n_pending) {
		uint32_t leaf = pending_first(g, g->pending_from);

		g->pending_from = 0;
		if (leaf == NODE_NIL)
			continue;
		n += pending_take_some(g, leaf, ret + n, most - n);
		if (ret[n - 1] + 1 < g->room)
			g->pending_from = ret[n - 1] + 1;
	}
	return n;
}
