/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits: check a request against the buckets of one node that may hold it or give it R-tokens; buckets that give
 * priority are in profile.h. Inline, since every request passes through here.
 *
 * METHOD  Buckets that are filled together share a stamp, the time for which their levels are valid: one for the
 *         hold and L-buckets, one for the R-buckets. A check needs no write: whether a bucket admits at `now`
 *         follows from its level and the span since its stamp. Buckets are filled when a request pays; so a request
 *         that passes without an R-token leaves the R-buckets alone, and the time computed for the next R-token
 *         stays valid.
 */
#pragma once

#include "gate/bucket.h"
#include <string.h>

#define LIMITS_OWN 2 /* buckets that fit in the node itself */

struct limits {
	struct bucket *b;  /* hold, R, L, in that order: the node's own, or from the pool */
	weir_time stamp;   /* time for which the levels of hold and L are valid: the last charge, or
	                      a knob */
	weir_time r_stamp; /* the same for R */
	uint8_t n_hold, n_r, n_l;
	uint8_t r, l, n; /* indices of the first R-bucket and the first L-bucket, and the number
	                    of all */
	bool two;  /* exactly one hold bucket, and at most one R-bucket, that count everything:
	              the result of `max` and `min`, which has a fast path without loops */
	bool pair; /* `two`, and both buckets are narrow */
};

/* Return true if the buckets are stored in the node itself. */
static inline bool limits_own(const struct limits *l)
{
	return l->n <= LIMITS_OWN;
}

/* Return the cost of r in a unit: the three costs are adjacent, and submit has replaced a 0 that counts as 1. */
static inline int64_t limits_cost(const struct weir_req *r, unsigned unit)
{
	uint32_t cost;

	memcpy(&cost, (const char *)r + offsetof(struct weir_req, requests) + unit * sizeof cost,
		sizeof cost);
	return cost;
}
_Static_assert(offsetof(struct weir_req, bytes) == offsetof(struct weir_req, requests) +
							   WEIR_UNIT_BYTES * sizeof(uint32_t) &&
		       offsetof(struct weir_req, time) == offsetof(struct weir_req, requests) +
								  WEIR_UNIT_TIME * sizeof(uint32_t),
	"costs side by side, in the order of their units");

static inline bool limits_counts(const struct bucket *b, const struct weir_req *r)
{
	return b->ops == WEIR_OPS_ALL || (b->ops >> r->op & 1);
}

/* Bring n levels from one stamp to another, which is not earlier. */
POOL_HOT void limits_fill_some(struct bucket *b, unsigned n, weir_time *stamp, weir_time to)
{
	weir_time span = to - *stamp;

	*stamp = to;
	for (unsigned i = 0; i < n; i++)
		bucket_fill(&b[i], span);
}

/* Bring the levels of hold and L, or of R, up to now. */
static inline void limits_fill(struct limits *l, weir_time now)
{
	weir_time stamp = l->stamp;

	limits_fill_some(&l->b[l->l], l->n_l, &stamp, now);
	limits_fill_some(l->b, l->n_hold, &l->stamp, now);
}
static inline void limits_fill_r(struct limits *l, weir_time now)
{
	limits_fill_some(&l->b[l->r], l->n_r, &l->r_stamp, now);
}

/* Return true if all of n buckets that count r admit it `span` after their stamp; true if there are none. */
static inline bool limits_all(
	const struct bucket *b, unsigned n, const struct weir_req *r, weir_time span)
{
	for (unsigned i = 0; i < n; i++)
		if (limits_counts(&b[i], r) &&
			!bucket_admits_after(&b[i], limits_cost(r, b[i].unit), span))
			return false;
	return true;
}

/* Return when all do, or when any does of those that count r at a cost above 0, if their levels are valid at
 * `stamp`. If there are none: at once; never. */
weir_time limits_when_all(
	const struct bucket *b, unsigned n, const struct weir_req *r, weir_time stamp);
weir_time limits_when_any(
	const struct bucket *b, unsigned n, const struct weir_req *r, weir_time stamp);

static inline weir_time limits_later(weir_time stamp, weir_time wait)
{
	return wait < WEIR_NEVER - stamp ? stamp + wait : WEIR_NEVER;
}

/* Return when some R-bucket admits r. */
static inline weir_time limits_reserved(const struct limits *l, const struct weir_req *r)
{
	return limits_when_any(&l->b[l->r], l->n_r, r, l->r_stamp);
}

static inline void limits_take(struct bucket *b, unsigned n, const struct weir_req *r)
{
	for (unsigned i = 0; i < n; i++)
		if (limits_counts(&b[i], r))
			bucket_take(&b[i], limits_cost(r, b[i].unit));
}

/* Law 4: hold and L-buckets are charged as of when a request began to wait only for them, but no longer ago than
 * this. So a late call of weir_gate_next takes nothing from a tenant. */
#define LIMITS_LATE (20 * WEIR_MS)

POOL_HOT weir_time limits_late(weir_time stamp, weir_time now)
{
	return stamp > now - LIMITS_LATE ? stamp : now - LIMITS_LATE;
}
POOL_HOT weir_time limits_as_of(const struct limits *l, const struct weir_req *r, weir_time now)
{
	return limits_late(r->submitted > l->stamp ? r->submitted : l->stamp, now);
}

/* An R-bucket that cannot pay goes into debt, but by no more than its size (bucket_owe): a tenant that
 * changes from small requests to large has its bytes guaranteed again that soon. */

/* Charge r to its tenant's buckets. `reserved`: some R-bucket holds enough. Law 3: then all that count the
 * request pay for it, so that several guarantees together are worth the largest and not their sum; else the
 * L-buckets pay. */
void limits_charge(struct limits *l, const struct weir_req *r, bool reserved, weir_time now);

/* ---- the same for a pair of buckets in the node */

/* Update `pair` after levels or buckets have been changed by other functions. */
static inline void limits_pair(struct limits *l)
{
	l->pair = l->two && bucket_narrow(&l->b[0]) && (!l->n_r || bucket_narrow(&l->b[1]));
}

/* Return true if the pair's functions suit this request; otherwise use those above. */
POOL_HOT bool limits_narrow(const struct bucket *own, const struct weir_req *r)
{
	return bucket_narrow_costs(limits_cost(r, own[0].unit), limits_cost(r, own[1].unit));
}

POOL_HOT void limits_charge_pair(struct limits *l, struct bucket *own, const struct weir_req *r,
	bool reserved, weir_time now)
{
	weir_time as_of = limits_as_of(l, r, now), span = as_of - l->stamp;

	l->stamp = as_of;
	bucket_pay_narrow(&own[0], span, limits_cost(r, own[0].unit));
	if (!reserved)
		return;
	span = now - l->r_stamp;
	l->r_stamp = now;
	bucket_pay_narrow(&own[1], span, limits_cost(r, own[1].unit));
	bucket_owe_narrow(&own[1]);
}

/* The same without a branch, where `reserved` would be mispredicted. */
POOL_HOT void limits_charge_either(struct limits *l, struct bucket *own, const struct weir_req *r,
	bool reserved, weir_time now)
{
	int64_t mask = -(int64_t)reserved, *lack = &own[1].low[BUCKET_LOW];
	weir_time span = now - l->r_stamp;
	int64_t paid = bucket_paid_narrow(*lack, own[1].rate, span, limits_cost(r, own[1].unit));

	limits_charge_pair(l, own, r, false, now);
	l->r_stamp += span & mask;
	*lack += (paid - *lack) & mask;
	if (reserved)
		bucket_owe_narrow(&own[1]);
}

/* Return true if the hold bucket does not admit r `span` after its stamp. */
POOL_HOT bool limits_held_pair(const struct bucket *own, const struct weir_req *r, weir_time span)
{
	int64_t more, missing = bucket_missing_narrow(own, limits_cost(r, own->unit));

	return missing > 0 && !__builtin_mul_overflow((int64_t)own->rate, span, &more) &&
	       missing > more;
}

/* Return when a narrow bucket admits r, if its level is valid at `stamp`. */
POOL_HOT weir_time limits_when_narrow(
	const struct bucket *b, const struct weir_req *r, weir_time stamp)
{
	int64_t missing = bucket_missing_narrow(b, limits_cost(r, b->unit));

	/* (No branch: it would be mispredicted.) */
	missing = missing < 0 ? 0 : missing;
	return stamp + (weir_time)(((uint64_t)missing + b->rate - 1) / b->rate);
}

/* Return when the hold bucket admits r. */
POOL_HOT weir_time limits_until_pair(
	const struct limits *l, const struct bucket *own, const struct weir_req *r)
{
	return limits_when_narrow(&own[0], r, l->stamp);
}

/* Return when there is an R-token; WEIR_NEVER without an R-bucket. */
POOL_HOT weir_time limits_reserved_pair(
	const struct limits *l, const struct bucket *own, const struct weir_req *r)
{
	return l->n_r ? limits_when_narrow(&own[1], r, l->r_stamp) : WEIR_NEVER;
}
