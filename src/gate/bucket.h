/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bucket: a token bucket, exact at any time step and without drift.
 *
 * LAW     level(t) = min(size, level(s) + rate·(t − s)); a cost c is admitted when
 *         level ≥ min(c, size) and then taken whole, so that the level may go negative. Over any interval of length
 *         t, the admitted cost is ≤ rate·t + size + one largest cost.
 * SYMBOLS rate in units per second, kept in 1/1024 units/s; size in whole units; the level is kept as its distance
 *         from the size, `lack`, in parts: 1/(1024·10⁹) of a unit, so that rate × nanoseconds is subtracted exactly.
 *         128 bits.
 * METHOD  Filled on demand. O(1), a few instructions without a branch that
 *         depends on the level, and no division except to compute when it will admit.
 * DIFFERS The usual bucket of floating-point tokens loses the small additions of a large bucket;
 *         the usual "next time" in nanoseconds rounds every cost. This bucket does neither.
 * EXAMPLE rate 3/s, size 2, empty at t = 0: admits a cost of 1 at t = 333,333,334 ns and, if it
 *         was taken then, the next at 666,666,667, the third at 1,000,000,000.
 */
#pragma once

#include <weir/gate.h>
#include "gate/pool.h"

#define BUCKET_RATE_ONE UINT64_C(1024)                           /* a rate of 1 unit/s */
#define BUCKET_UNIT     (BUCKET_RATE_ONE * UINT64_C(1000000000)) /* parts of a unit */

__extension__ typedef __int128 bucket_parts;
__extension__ typedef unsigned __int128 bucket_uparts;

struct bucket { /* half a cache line; the owner of several buckets keeps one time stamp for them */
	union {
		bucket_parts lack; /* size − level; negative: granted beyond its size */
		int64_t low[2];    /* a narrow bucket uses only the low half */
	};
	int64_t size;       /* units */
	uint64_t unit : 8;  /* enum weir_unit; a whole byte, for fast access */
	uint64_t ops : 5;   /* mask of operations that count */
	uint64_t kind : 3;  /* enum weir_bucket_kind */
	uint64_t rate : 48; /* 1/1024 units/s: up to 2.7e11 units/s */
};
#define BUCKET_LOW (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 1) /* index of the low half */
_Static_assert(sizeof(struct bucket) == 32, "two to a cache line");

#define BUCKET_SIZE_MAX  (INT64_C(1) << 52) /* units; 4 PiB of bytes */
#define BUCKET_RATE_MAX  2.7e11             /* units/s that 48 bits hold */
#define BUCKET_RATE_BITS ((UINT64_C(1) << 48) - 1)

/* Make a full bucket; but tokens that only a controller grants (R or L, rate 0) begin at none. The spec must be
 * valid (bucket_check). */
void bucket_init(struct bucket *b, const struct weir_bucket_spec *spec);
/* Return NULL if the spec is valid, else a message. */
const char *bucket_check(const struct weir_bucket_spec *spec);
/* Take over the level of the old bucket, cut to the new size, such that `late` ≥ 0 later it has the level that it
 * would have had at the old rate. */
void bucket_inherit(struct bucket *b, const struct bucket *old, weir_time late);
void bucket_grant(struct bucket *b, int64_t units); /* may exceed the size; negative takes */

weir_time bucket_wait_slow(const struct bucket *b, bucket_uparts missing);

/* Return whole units in parts. */
POOL_HOT bucket_parts bucket_units(int64_t units)
{
	return (bucket_parts)units * (int64_t)BUCKET_UNIT;
}

static inline bucket_parts bucket_level(const struct bucket *b)
{
	return bucket_units(b->size) - b->lack;
}

/* Return the lack `span` ≥ 0 later; negative: more than full. */
POOL_HOT bucket_parts bucket_lacks_after(const struct bucket *b, weir_time span)
{
	return b->lack - (bucket_parts)((bucket_uparts)b->rate * (uint64_t)span);
}

/* Fill the bucket for `span` ≥ 0. */
POOL_HOT void bucket_fill(struct bucket *b, weir_time span)
{
	bucket_parts lack = bucket_lacks_after(b, span);

	if (__builtin_expect(b->lack < 0, 0))
		return; /* granted beyond its size */
	b->lack = lack < 0 ? 0 : lack;
}

/* Return the most that the bucket may lack to admit a cost. (A cost of 0 is always admitted.) */
POOL_HOT bucket_parts bucket_slack(const struct bucket *b, int64_t cost)
{
	int64_t slack = b->size - cost;

	return bucket_units(slack < 0 ? 0 : slack);
}

/* Return true if the bucket admits this cost `span` ≥ 0 after its stamp. */
POOL_HOT bool bucket_admits_after(const struct bucket *b, int64_t cost, weir_time span)
{
	return bucket_lacks_after(b, span) <= bucket_slack(b, cost) || cost == 0;
}
POOL_HOT bool bucket_admits(const struct bucket *b, int64_t cost)
{
	return b->lack <= bucket_slack(b, cost) || cost == 0;
}

/* Return the time until the bucket admits the cost; 0: now, WEIR_NEVER: never. */
POOL_HOT weir_time bucket_wait(const struct bucket *b, int64_t cost)
{
	bucket_parts missing = b->lack - bucket_slack(b, cost);

	if (missing <= 0 || cost == 0)
		return 0;
	if (missing >> 63 || b->rate == 0)
		return bucket_wait_slow(b, (bucket_uparts)missing);
	return (weir_time)(((uint64_t)missing + b->rate - 1) / b->rate);
}

POOL_HOT void bucket_take(struct bucket *b, int64_t cost)
{
	b->lack += bucket_units(cost);
}

/* Cut the debt to the size, keeping the fraction of a unit, if it is more. */
void bucket_forgive(struct bucket *b);
POOL_HOT void bucket_owe(struct bucket *b)
{
	if (__builtin_expect(b->lack > 2 * bucket_units(b->size), 0))
		bucket_forgive(b);
}

/* ---- narrow buckets: their lack fits in 63 bits, as long as each cost is 1 … BUCKET_NARROW and nothing is granted
 * beyond their size. The same functions in half the instructions. */

#define BUCKET_NARROW (INT64_C(1) << 21) /* units; four times this is less than 2^63 parts */
#define BUCKET_NARROW_RATE                                                                         \
	(BUCKET_RATE_ONE * 100000000) /* less than BUCKET_NARROW comes in during LIMITS_LATE */

static inline bool bucket_narrow(const struct bucket *b)
{
	/* The least rate bounds a wait to a few years, so that adding it to a time cannot overflow. */
	return b->size <= BUCKET_NARROW && b->rate >= BUCKET_RATE_ONE / 16 &&
	       b->rate <= BUCKET_NARROW_RATE && b->lack >= 0 &&
	       b->lack <= bucket_units(3 * BUCKET_NARROW);
}

/* Return true if both costs are in the range for narrow buckets. */
POOL_HOT bool bucket_narrow_costs(int64_t a, int64_t b)
{
	return ((uint64_t)(a - 1) | (uint64_t)(b - 1)) < (uint64_t)BUCKET_NARROW;
}

/* Return the new lack after `span` ≥ 0 has passed, */
POOL_HOT int64_t bucket_filled_narrow(int64_t lack, uint64_t rate, weir_time span)
{
	int64_t more;

	if (__builtin_expect(__builtin_mul_overflow((int64_t)rate, span, &more), 0))
		more = INT64_MAX;
	lack -= more;
	return lack < 0 ? 0 : lack;
}
/* and a cost has been taken. */
POOL_HOT int64_t bucket_paid_narrow(int64_t lack, uint64_t rate, weir_time span, int64_t cost)
{
	return bucket_filled_narrow(lack, rate, span) + cost * (int64_t)BUCKET_UNIT;
}
POOL_HOT int64_t bucket_pay_narrow(struct bucket *b, weir_time span, int64_t cost)
{
	return b->low[BUCKET_LOW] = bucket_paid_narrow(b->low[BUCKET_LOW], b->rate, span, cost);
}

/* bucket_owe: cut the debt to the size, if it is more. */
POOL_HOT void bucket_owe_narrow(struct bucket *b)
{
	int64_t most = 2 * b->size * (int64_t)BUCKET_UNIT, *lack = &b->low[BUCKET_LOW];

	if (__builtin_expect(*lack > most, 0)) {
		int64_t part = *lack % (int64_t)BUCKET_UNIT;

		*lack = most + (part ? part - (int64_t)BUCKET_UNIT : 0);
	}
}

/* Return the number of parts missing for a cost; none if that is not positive. */
POOL_HOT int64_t bucket_missing_narrow(const struct bucket *b, int64_t cost)
{
	int64_t slack = b->size - cost;

	return b->low[BUCKET_LOW] - (slack < 0 ? 0 : slack) * (int64_t)BUCKET_UNIT;
}
