/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bucket: a token bucket, exact at any time step and without drift.
 *
 * LAW     level(t) = min(size, level(s) + rate·(t − s)); a cost c is admitted when
 *         level ≥ min(c, size) and then taken whole, so that the level may go negative. Over any
 *         interval of length t, what was admitted is ≤ rate·t + size + one largest cost.
 * SYMBOLS rate in units per second, kept in 1/1024 units/s; level and size in whole units; what is
 *         left over of a unit in 1/(1024·10⁹) units, so that rate × nanoseconds is added exactly.
 * METHOD  Filled on demand, when somebody asks. O(1), no division by a variable unless it must
 *         say when it will admit.
 * DIFFERS The usual bucket of floating-point tokens loses the small additions of a large bucket;
 *         the usual "next time" in nanoseconds rounds every cost. This one does neither.
 * EXAMPLE rate 3/s, size 2, empty at t = 0: admits a cost of 1 at t = 333,333,334 ns and, if it
 *         was taken then, the next at 666,666,667, the third at 1,000,000,000.
 */
#ifndef WEIR_GATE_BUCKET_H
#define WEIR_GATE_BUCKET_H

#include "gate/gate.h"
#include "gate/pool.h"

#define BUCKET_RATE_ONE UINT64_C(1024)                           /* a rate of 1 unit/s */
#define BUCKET_UNIT     (BUCKET_RATE_ONE * UINT64_C(1000000000)) /* parts of a unit */

struct bucket {        /* half a cache line; who holds several keeps one time for all of them */
	int64_t level; /* whole units; negative: in debt */
	uint64_t part; /* < BUCKET_UNIT, in 1/BUCKET_UNIT units */
	int64_t size;  /* units */
	uint64_t rate : 48; /* 1/1024 units/s: up to 2.7e11 units/s */
	uint64_t ops : 4;   /* mask of operations that count */
	uint64_t kind : 4;  /* enum weir_bucket_kind */
	uint64_t unit : 8;  /* enum weir_unit; a byte, for a quick look */
};
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

void bucket_fill_slow(struct bucket *b, weir_time span);
weir_time bucket_wait_slow(const struct bucket *b, int64_t need);

/* `span` > 0 has passed. */
POOL_HOT void bucket_fill(struct bucket *b, weir_time span)
{
	uint64_t parts;

	if (b->level >= b->size)
		return; /* full, or granted beyond its size */
	if (__builtin_mul_overflow((uint64_t)b->rate, (uint64_t)span, &parts) || parts >> 63) {
		bucket_fill_slow(b, span);
		return;
	}
	parts += b->part;
	uint64_t units = parts / BUCKET_UNIT;

	b->level += (int64_t)units;
	b->part = parts - units * BUCKET_UNIT;
	if (b->level >= b->size) {
		b->level = b->size;
		b->part = 0;
	}
}

static inline int64_t bucket_need(const struct bucket *b, int64_t cost)
{
	return cost < b->size ? cost : b->size;
}

/* Would it admit this cost, `span` ≥ 0 after its level was true? Nothing is always admitted. */
POOL_HOT bool bucket_admits_after(const struct bucket *b, int64_t cost, weir_time span)
{
	int64_t short_ = bucket_need(b, cost) - b->level;
	uint64_t parts;

	if (short_ <= 0 || cost == 0)
		return true;
	if (span == 0)
		return false;
	if (short_ >> 22 || __builtin_mul_overflow((uint64_t)b->rate, (uint64_t)span, &parts))
		return bucket_wait_slow(b, short_) <= span;
	return parts >= (uint64_t)short_ * BUCKET_UNIT - b->part;
}
static inline bool bucket_admits(const struct bucket *b, int64_t cost)
{
	return bucket_admits_after(b, cost, 0);
}

/* How long until it admits; 0: now, WEIR_NEVER: never. */
POOL_HOT weir_time bucket_wait(const struct bucket *b, int64_t cost)
{
	int64_t short_ = bucket_need(b, cost) - b->level;

	if (short_ <= 0 || cost == 0)
		return 0;
	if (short_ >> 22 || b->rate == 0) /* 2^22 · BUCKET_UNIT still fits 63 bits */
		return bucket_wait_slow(b, short_);
	return (weir_time)(((uint64_t)short_ * BUCKET_UNIT - b->part + b->rate - 1) / b->rate);
}

static inline void bucket_take(struct bucket *b, int64_t cost)
{
	b->level -= cost;
}

#endif
