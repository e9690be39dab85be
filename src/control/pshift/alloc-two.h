/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc-two: buckets of two entries, and of up to four, for any numbers; internal to pshift. The
 * results equal those of the code for any row, bit by bit, with less work: of two entries one
 * gives, and the other takes.
 */
#pragma once

#include "control/pshift/alloc-eight.h"

static inline int64_t pshift_least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t pshift_least0(int64_t a, int64_t b) /* at least 0 */
{
	int64_t n = pshift_least(a, b);

	return n > 0 ? n : 0;
}

/* Split tokens in proportion to demand. The first entry has the larger remainder, or an equal one,
 * if that is at least half of the divisor. */
static inline void pshift_two_split(const int64_t *demand, int64_t want, int64_t *tokens)
{
	int64_t sum = demand[0] + demand[1], q, r;

	if (want >= sum) {
		tokens[0] = demand[0];
		tokens[1] = demand[1];
		return;
	}
	/* As shares() of alloc-split.c: an underestimate that is then corrected. */
	q = (int64_t)((double)demand[0] * ((double)want / (double)sum * (1 - 0x1p-50)));
	r = (int64_t)((uint64_t)want * (uint64_t)demand[0] - (uint64_t)q * (uint64_t)sum);
	for (; r >= sum; r -= sum)
		q++;
	q += 2 * r >= sum;
	tokens[0] = q;
	tokens[1] = want - q;
}

/* Move tokens between the entries e and e + 1. Return true if more could be taken. */
static inline bool pshift_two_stage(struct pshift_stage *s, uint32_t e)
{
	const struct pshift_flow *f = s->f;
	int64_t *tokens = f->tokens + e;
	int64_t *may0 = s->may + f->server[e], *may1 = s->may + f->server[e + 1];
	int64_t give0 = pshift_least0(*may0, tokens[0]), give1 = pshift_least0(*may1, tokens[1]);
	int64_t take0 = pshift_least0(-*may0, f->demand[e] - tokens[0]);
	int64_t take1 = pshift_least0(-*may1, f->demand[e + 1] - tokens[1]);
	int64_t to1 = pshift_least(give0, take1), to0 = pshift_least(give1, take0);

	tokens[0] += to0 - to1;
	tokens[1] += to1 - to0;
	*may0 += to0 - to1;
	*may1 += to1 - to0;
	s->moved += to0 + to1;
	return take0 + take1 > to0 + to1;
}

/* The same for a row of n ≤ 4 entries from e on: the first that may give do, to the first that may
 * take. */
static inline bool pshift_few_stage(struct pshift_stage *s, uint32_t e, uint32_t n)
{
	const struct pshift_flow *f = s->f;
	const uint32_t *server = f->server + e;
	int64_t *tokens = f->tokens + e, give[4], take[4], gives = 0, takes = 0, moved;

	for (uint32_t k = 0; k < n; k++) {
		int64_t may = s->may[server[k]];

		gives += give[k] = pshift_least0(may, tokens[k]);
		takes += take[k] = pshift_least0(-may, f->demand[e + k] - tokens[k]);
	}
	moved = pshift_least(gives, takes);
	s->moved += moved;
	gives = moved;
	for (uint32_t k = 0, left = moved > 0; left && k < n; k++) {
		int64_t x = pshift_least(give[k], gives), y = pshift_least(take[k], moved);

		gives -= x;
		moved -= y;
		s->may[server[k]] += y - x;
		tokens[k] += y - x;
		takes -= y;
	}
	return takes > 0;
}

/* Return the spare demand of entries e and e + 1 at the level; their servers could pass on that
 * much. */
static inline int64_t pshift_two_label(struct pshift_label *l, uint32_t e)
{
	const struct pshift_flow *f = l->f;
	const int64_t *tokens = f->tokens + e;
	uint32_t j = f->server[e], k = f->server[e + 1];
	int64_t spare = pshift_least(f->demand[e] - tokens[0], l->room[j]) +
			pshift_least(f->demand[e + 1] - tokens[1], l->room[k]);

	if (spare == 0)
		return 0;
	l->pass[j] = pshift_least(l->pass[j] + pshift_least(spare, tokens[0]), PSHIFT_SUM);
	l->pass[k] = pshift_least(l->pass[k] + pshift_least(spare, tokens[1]), PSHIFT_SUM);
	return spare;
}
