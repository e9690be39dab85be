/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remainder: whole tokens for fractional shares, by the largest-remainder rule.
 *
 * Shares are fixed point with REMAINDER_BITS binary digits, so that the same input gives the same
 * output on every machine and with every compiler. The error of each rounding is kept as a
 * remainder and counts at the next rounding.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* 2⁻²⁴ of a token; 2³⁸ whole tokens still fit, with room for a sum. */
#define REMAINDER_BITS  24
#define REMAINDER_ONE   ((int64_t)1 << REMAINDER_BITS)
#define REMAINDER_WHOLE (((int64_t)1 << 38) - 1) /* the most whole tokens */

__extension__ typedef unsigned __int128 remainder_wide;

/* x · num / den for many x: one division, then one multiplication for each x. */
struct remainder_ratio {
	uint64_t factor;
	unsigned shift;
};
/* num < 2⁶², 1 ≤ den < 2⁹⁶. */
struct remainder_ratio remainder_ratio(uint64_t num, remainder_wide den);
/* Return x · num / den, rounded to nearest; the result must fit. For x ≤ den it is at most num. */
static inline uint64_t remainder_part(struct remainder_ratio r, uint64_t x)
{
	return (uint64_t)(((remainder_wide)x * r.factor + ((remainder_wide)1 << (r.shift - 1))) >>
			  r.shift);
}

/* Select the k largest of n keys; among equal keys the first ones. Keys are below REMAINDER_KEYS;
 * key 0 is never selected; k is at least 1 and at most the number of other keys. The result selects
 * every key > `above`, and the first `ties` keys that equal it. O(n). */
#define REMAINDER_KEYS ((uint32_t)1 << 27)
struct remainder_pick {
	uint32_t above;
	size_t ties;
};
struct remainder_pick remainder_pick(const uint32_t *keys, size_t n, size_t k);
/* Return 1 if the key is selected, else 0; call it for each key in order. The result is
 * unpredictable, so the code has no branch. */
static inline int64_t remainder_taken(struct remainder_pick *p, uint32_t key)
{
	size_t tie = (size_t)(key == p->above) & (size_t)(p->ties > 0);

	p->ties -= tie;
	return (int64_t)((size_t)(key > p->above) | tie);
}

/* Return a key, not 0, that grows with the remainder. */
static inline uint32_t remainder_key(int32_t rest)
{
	int64_t key = rest + 4 * REMAINDER_ONE;

	return (uint32_t)(key < 1 ? 1 : key < REMAINDER_KEYS ? key : REMAINDER_KEYS - 1);
}

/* Round to whole numbers near share + rest, each at least `least`, that sum to `total` exactly.
 * `rest`, in and out, is the remainder: share + rest minus the whole number. If the sum is too
 * small, the largest remainders get one more; if too large, the smallest get one less; ties go by
 * position. share[i] ≥ 0; total ≥ n · least; keys has room for n. O(n). */
void remainder_round(int64_t total, int64_t least, size_t n, const int64_t *share, int32_t *rest,
	int64_t *ret_whole, uint32_t *keys);
