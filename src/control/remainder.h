/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remainder: whole tokens for fractional shares, by the largest-remainder rule.
 *
 * Shares are fixed point with REMAINDER_BITS binary digits, so that the same input gives the same
 * output on every machine and with every compiler. What rounding takes from somebody, or gives, is
 * kept as a remainder and counts at the next rounding.
 */
#ifndef WEIR_CONTROL_REMAINDER_H
#define WEIR_CONTROL_REMAINDER_H

#include <stddef.h>
#include <stdint.h>

/* 2⁻²⁴ of a token; and 2³⁸ whole ones still fit, with room for a sum. */
#define REMAINDER_BITS  24
#define REMAINDER_ONE   ((int64_t)1 << REMAINDER_BITS)
#define REMAINDER_WHOLE (((int64_t)1 << 38) - 1) /* the most whole tokens there may be */

__extension__ typedef unsigned __int128 remainder_wide;

/* x · num / den for many x: one division, then a multiplication each. */
struct remainder_ratio {
	uint64_t factor;
	unsigned shift;
};
/* num < 2⁶², 1 ≤ den < 2⁹⁶. */
struct remainder_ratio remainder_ratio(uint64_t num, remainder_wide den);
/* To the nearest; the result must fit. For x ≤ den it is at most num. */
static inline uint64_t remainder_part(struct remainder_ratio r, uint64_t x)
{
	return (uint64_t)(((remainder_wide)x * r.factor + ((remainder_wide)1 << (r.shift - 1))) >>
			  r.shift);
}

/* The k largest of n keys; among equal ones, those that come first. Keys are below
 * REMAINDER_KEYS; key 0 is never taken, and k is at most the number of the others, and at least 1.
 * What to take: every key > `above`, and the first `ties` that equal it. O(n). */
#define REMAINDER_KEYS ((uint32_t)1 << 27)
struct remainder_pick {
	uint32_t above;
	size_t ties;
};
struct remainder_pick remainder_pick(const uint32_t *keys, size_t n, size_t k);
/* Asked for each key in order: 1 if it is taken, else 0. As good as random, so without a branch. */
static inline int64_t remainder_taken(struct remainder_pick *p, uint32_t key)
{
	size_t tie = (size_t)(key == p->above) & (size_t)(p->ties > 0);

	p->ties -= tie;
	return (int64_t)((size_t)(key > p->above) | tie);
}

/* A remainder as a key, not 0, that grows with it. */
static inline uint32_t remainder_key(int32_t rest)
{
	int64_t key = rest + 4 * REMAINDER_ONE;

	return (uint32_t)(key < 1 ? 1 : key < REMAINDER_KEYS ? key : REMAINDER_KEYS - 1);
}

/* Whole numbers, each at least `least`, that sum to `total` exactly, near share + rest. `rest` is
 * the remainder, in and out: what share + rest exceed the whole by. What is left over goes to the
 * largest remainders, what is too much is taken from the smallest; ties go by position.
 * share[i] ≥ 0; total ≥ n · least; keys: room for n. O(n). */
void remainder_round(int64_t total, int64_t least, size_t n, const int64_t *share, int32_t *rest,
	int64_t *ret_whole, uint32_t *keys);

#endif
