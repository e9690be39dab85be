/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Hamilton's method of apportionment; AdapTBF §III-C4 (eq. 21 to 25) uses it with
 *         remainders that are carried from one rounding to the next.
 * LAW     whole = max(least, ⌊share + rest⌋); the difference between `total` and Σ whole is made up
 *         by one each, largest remainder first, or, if Σ whole is too large, smallest first; then
 *         rest' = share + rest − whole.
 * SYMBOLS share, rest in tokens × 2²⁴; whole, least, total in tokens.
 * METHOD  The k-th largest remainder is found by radix selection, 9 bits at a time, from the top:
 *         three passes over 4 bytes each for any values; small inputs are sorted instead. 2 to 3 ns
 *         an element.
 * DIFFERS Σ rest' = Σ rest − (total − Σ share), so no remainder is lost. A remainder above eight
 *         tokens is cut; it needs jobs that come and go in an improbable order.
 * EXAMPLE total 10, shares 3.33 3.33 3.33, rest 0: wholes 4 3 3, rest −0.67 0.33 0.33; then 3 4 3
 *         and 3 3 4.
 */
#include "control/remainder.h"

#define DIGIT     9 /* 512 counters of 4 bytes stay in the nearest cache */
#define FEW       32
#define REST_MOST (8 * REMAINDER_ONE)

static unsigned bits(remainder_wide x)
{
	uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;

	if (high)
		return 128 - (unsigned)__builtin_clzll(high);
	return low ? 64 - (unsigned)__builtin_clzll(low) : 0;
}

struct remainder_ratio remainder_ratio(uint64_t num, remainder_wide den)
{
	/* Use as many digits as fit: the numerator in 126 bits, the quotient in 62. */
	unsigned room = 126 - bits(num), wanted = 62 + bits(den) - bits(num);
	unsigned shift = wanted < room ? wanted : room;

	return (struct remainder_ratio){(uint64_t)(((remainder_wide)num << shift) / den), shift};
}

/* ---- the k largest */

static struct remainder_pick pick_few(const uint32_t *keys, size_t n, size_t k)
{
	uint32_t sorted[FEW];
	size_t before = 0;

	for (size_t i = 0; i < n; i++) {
		size_t j = i;

		for (; j > 0 && sorted[j - 1] < keys[i]; j--)
			sorted[j] = sorted[j - 1];
		sorted[j] = keys[i];
	}
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): 1 ≤ k ≤ n */
	while (sorted[before] > sorted[k - 1])
		before++;
	return (struct remainder_pick){sorted[k - 1], k - before};
}

struct remainder_pick remainder_pick(const uint32_t *keys, size_t n, size_t k)
{
	uint32_t prefix = 0;

	if (n <= FEW)
		return pick_few(keys, n, k);
	for (int shift = 2 * DIGIT; shift >= 0; shift -= DIGIT) {
		uint32_t count[1 << DIGIT] = {0};
		uint32_t digit = (1 << DIGIT) - 1;

		for (size_t i = 0; i < n; i++) {
			if (keys[i] >> (shift + DIGIT) == prefix)
				count[(keys[i] >> shift) & ((1 << DIGIT) - 1)]++;
		}
		for (; count[digit] < k; digit--)
			k -= count[digit];
		prefix = prefix << DIGIT | digit;
	}
	return (struct remainder_pick){prefix, k};
}

/* ---- rounding */

static int32_t cut(int64_t rest)
{
	if (rest > REST_MOST)
		return (int32_t)REST_MOST;
	return (int32_t)(rest < -REST_MOST ? -REST_MOST : rest);
}

static void move(int64_t *whole, int32_t *rest, int64_t by)
{
	*whole += by;
	*rest = cut(*rest - by * REMAINDER_ONE);
}

static void give(int64_t left, size_t n, int32_t *rest, int64_t *whole, uint32_t *keys)
{
	int64_t each = n ? left / (int64_t)n : 0;
	struct remainder_pick p;

	for (size_t i = 0; each && i < n; i++)
		move(&whole[i], &rest[i], each);
	left -= each * (int64_t)n;
	if (left == 0 || n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		keys[i] = remainder_key(rest[i]);
	p = remainder_pick(keys, n, (size_t)left);
	for (size_t i = 0; i < n; i++)
		move(&whole[i], &rest[i], remainder_taken(&p, keys[i]));
}

static void take_away(
	int64_t over, int64_t least, size_t n, int32_t *rest, int64_t *whole, uint32_t *keys)
{
	struct remainder_pick p;
	int64_t able = 0;

	for (size_t i = 0; i < n; i++)
		able += whole[i] > least;
	/* Take more than one token from each, in equal parts, as far as they have any. */
	while (able && over > able) {
		int64_t each = over / able;

		able = 0;
		for (size_t i = 0; i < n; i++) {
			int64_t has = whole[i] - least, by = has < each ? has : each;

			move(&whole[i], &rest[i], -by);
			over -= by;
			able += has > by;
		}
	}
	if (over == 0 || !able)
		return;
	for (size_t i = 0; i < n; i++)
		keys[i] = whole[i] > least ? REMAINDER_KEYS - remainder_key(rest[i]) : 0;
	p = remainder_pick(keys, n, (size_t)over);
	for (size_t i = 0; i < n; i++)
		move(&whole[i], &rest[i], -remainder_taken(&p, keys[i]));
}

void remainder_round(int64_t total, int64_t least, size_t n, const int64_t *share, int32_t *rest,
	int64_t *ret_whole, uint32_t *keys)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		int64_t exact = share[i] + rest[i];
		int64_t whole = exact >> REMAINDER_BITS;

		whole = whole < least ? least : whole;
		ret_whole[i] = whole;
		rest[i] = cut(exact - whole * REMAINDER_ONE);
		sum += whole;
	}
	if (sum < total)
		give(total - sum, n, rest, ret_whole, keys);
	else if (sum > total)
		take_away(sum - total, least, n, rest, ret_whole, keys);
}
