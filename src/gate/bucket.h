/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bucket: a token bucket, exact at any time step and without drift.
 *
 * LAW     level(t) = min(size, level(s) + rate·(t − s)); a cost c is admitted when
 *         level ≥ min(c, size) and then taken whole, so that the level may go negative. Over any
 *         interval of length t, what was admitted is ≤ rate·t + size + one largest cost.
 * SYMBOLS rate in units per second, kept in 1/1024 units/s; size in whole units; the level as what
 *         is lacking of the size, in parts: 1/(1024·10⁹) of a unit, so that rate × nanoseconds
 *         is taken off exactly. 128 bits.
 * METHOD  Filled on demand, when somebody asks. O(1), a few instructions without a branch that
 *         depends on the level, and no division unless it must say when it will admit.
 * DIFFERS The usual bucket of floating-point tokens loses the small additions of a large bucket;
 *         the usual "next time" in nanoseconds rounds every cost. This one does neither.
 * EXAMPLE rate 3/s, size 2, empty at t = 0: admits a cost of 1 at t = 333,333,334 ns and, if it
 *         was taken then, the next at 666,666,667, the third at 1,000,000,000.
 */
#ifndef WEIR_GATE_BUCKET_H
#define WEIR_GATE_BUCKET_H

#include <weir/gate.h>
#include "gate/pool.h"

#define BUCKET_RATE_ONE UINT64_C(1024)                           /* a rate of 1 unit/s */
#define BUCKET_UNIT     (BUCKET_RATE_ONE * UINT64_C(1000000000)) /* parts of a unit */

__extension__ typedef __int128 bucket_parts;
__extension__ typedef unsigned __int128 bucket_uparts;

struct bucket { /* half a cache line; who holds several keeps one time for all of them */
	union {
		bucket_parts lack; /* size − level; negative: granted beyond its size */
		int64_t low[2];    /* of a narrow one its low half is all of it */
	};
	int64_t size;       /* units */
	uint64_t unit : 8;  /* enum weir_unit; a byte, for a quick look */
	uint64_t ops : 5;   /* mask of operations that count */
	uint64_t kind : 3;  /* enum weir_bucket_kind */
	uint64_t rate : 48; /* 1/1024 units/s: up to 2.7e11 units/s */
};
#define BUCKET_LOW (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 1) /* which that is */
_Static_assert(sizeof(struct bucket) == 32, "two to a cache line");

#define BUCKET_SIZE_MAX (INT64_C(1) << 52) /* units; 4 PiB of bytes */
#define BUCKET_RATE_MAX 2.7e11             /* units/s, what 48 bits hold */

/* Full; but tokens that only a controller grants (R or L, rate 0) begin at none. The spec must be
 * valid (bucket_check). */
void bucket_init(struct bucket *b, const struct weir_bucket_spec *spec);
/* NULL when the spec can be a bucket, else what is wrong with it. */
const char *bucket_check(const struct weir_bucket_spec *spec);
/* The new one takes over the old one's level, cut to its size. */
void bucket_inherit(struct bucket *b, const struct bucket *old);
void bucket_grant(struct bucket *b, int64_t units); /* may exceed the size; negative takes */

weir_time bucket_wait_slow(const struct bucket *b, bucket_uparts missing);

/* So many whole units. */
POOL_HOT bucket_parts bucket_units(int64_t units)
{
	return (bucket_parts)units * (int64_t)BUCKET_UNIT;
}

static inline bucket_parts bucket_level(const struct bucket *b)
{
	return bucket_units(b->size) - b->lack;
}

/* What it lacks `span` ≥ 0 later; negative: it would have been more than full. */
POOL_HOT bucket_parts bucket_lacks_after(const struct bucket *b, weir_time span)
{
	return b->lack - (bucket_parts)((bucket_uparts)b->rate * (uint64_t)span);
}

/* `span` ≥ 0 has passed. */
POOL_HOT void bucket_fill(struct bucket *b, weir_time span)
{
	bucket_parts lack = bucket_lacks_after(b, span);

	if (__builtin_expect(b->lack < 0, 0))
		return; /* granted beyond its size */
	b->lack = lack < 0 ? 0 : lack;
}

/* What it may lack and yet admit a cost. (Nothing is always admitted.) */
POOL_HOT bucket_parts bucket_slack(const struct bucket *b, int64_t cost)
{
	int64_t slack = b->size - cost;

	return bucket_units(slack < 0 ? 0 : slack);
}

/* Would it admit this cost, `span` ≥ 0 after its level was true? */
POOL_HOT bool bucket_admits_after(const struct bucket *b, int64_t cost, weir_time span)
{
	return bucket_lacks_after(b, span) <= bucket_slack(b, cost) || cost == 0;
}
POOL_HOT bool bucket_admits(const struct bucket *b, int64_t cost)
{
	return b->lack <= bucket_slack(b, cost) || cost == 0;
}

/* How long until it admits; 0: now, WEIR_NEVER: never. */
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

/* Its debt becomes its size, and what is over of a unit, if it is more. */
void bucket_forgive(struct bucket *b);
POOL_HOT void bucket_owe(struct bucket *b)
{
	if (__builtin_expect(b->lack > 2 * bucket_units(b->size), 0))
		bucket_forgive(b);
}

/* ---- narrow ones: their lack fits 63 bits, as long as each cost is 1 … BUCKET_NARROW and nothing is
 * granted beyond their size. The same in half the instructions. */

#define BUCKET_NARROW (INT64_C(1) << 21) /* 4 of them are less than 2^63 parts */
#define BUCKET_NARROW_RATE                                                                         \
	(BUCKET_RATE_ONE * 100000000) /* in LIMITS_LATE less than BUCKET_NARROW comes in */

static inline bool bucket_narrow(const struct bucket *b)
{
	/* A rate that fills it in some two years: what is added to a time is no more than that. */
	return b->size <= BUCKET_NARROW && b->rate >= BUCKET_RATE_ONE / 16 &&
	       b->rate <= BUCKET_NARROW_RATE && b->lack >= 0 &&
	       b->lack <= bucket_units(3 * BUCKET_NARROW);
}

/* Are both costs such that narrow ones will do? */
POOL_HOT bool bucket_narrow_costs(int64_t a, int64_t b)
{
	return ((uint64_t)(a - 1) | (uint64_t)(b - 1)) < (uint64_t)BUCKET_NARROW;
}

/* What one lacks that lacked so much, when `span` ≥ 0 has passed and then a cost is taken. */
POOL_HOT int64_t bucket_paid_narrow(int64_t lack, uint64_t rate, weir_time span, int64_t cost)
{
	int64_t more;

	if (__builtin_expect(__builtin_mul_overflow((int64_t)rate, span, &more), 0))
		more = INT64_MAX;
	lack -= more;
	return (lack < 0 ? 0 : lack) + cost * (int64_t)BUCKET_UNIT;
}
POOL_HOT int64_t bucket_pay_narrow(struct bucket *b, weir_time span, int64_t cost)
{
	return b->low[BUCKET_LOW] = bucket_paid_narrow(b->low[BUCKET_LOW], b->rate, span, cost);
}

/* Its debt becomes its size (bucket_owe), if it is more. */
POOL_HOT void bucket_owe_narrow(struct bucket *b)
{
	int64_t most = 2 * b->size * (int64_t)BUCKET_UNIT, *lack = &b->low[BUCKET_LOW];
	int64_t part = *lack % (int64_t)BUCKET_UNIT;

	if (*lack > most)
		*lack = most + (part ? part - (int64_t)BUCKET_UNIT : 0);
}

/* How many parts too few it has for a cost; none if that is not positive. */
POOL_HOT int64_t bucket_missing_narrow(const struct bucket *b, int64_t cost)
{
	int64_t slack = b->size - cost;

	return b->low[BUCKET_LOW] - (slack < 0 ? 0 : slack) * (int64_t)BUCKET_UNIT;
}

#endif
