/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * limits: a request against the buckets of one node. Inline, since every request comes by.
 *
 * METHOD  The levels of a node's buckets are true as of one stamp, so that a look at them needs no
 *         write: whether a bucket admits at `now` follows from its level and the span since. They
 *         are filled when somebody pays. The profile buckets have a stamp of their own (limits_fits).
 */
#ifndef WEIR_GATE_LIMITS_H
#define WEIR_GATE_LIMITS_H

#include "gate/bucket.h"
#include <string.h>

struct node_limits { /* aligned to a cache line: a tenant with min and max needs the first two */
	weir_time stamp;         /* when the levels were true, the profiles' apart */
	weir_time profile_stamp; /* when the profiles' were: see limits_fits */
	uint8_t n_hold, n_profile, n_r, n_l;
	uint8_t r, l, n; /* the first R-bucket, the first L-bucket, and how many in all */
	bool pair; /* just one hold and one R-bucket that count everything: what `min` and `max` make
	              of a tenant, and worth a way without loops */
	weir_time fits;     /* when the head fits its profiles, as of the last look */
	weir_time reserved; /* when it has an R-token, as of the last look */
	struct bucket b[];  /* hold, profile, R, L, in that order; then struct node_clocks */
};

static inline struct node_clocks *limits_clocks(struct node_limits *l)
{
	return (struct node_clocks *)&l->b[l->n];
}

/* What r costs in a unit: its three costs lie side by side, and submit saw to it that none is 0 that
 * counts as 1. */
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

/* Brings the levels up to now, the profiles' apart. */
static inline void limits_fill(struct node_limits *l, weir_time now)
{
	weir_time span = now - l->stamp;

	if (span <= 0)
		return;
	l->stamp = now;
	for (unsigned i = 0; i < l->n_hold; i++)
		bucket_fill(&l->b[i], span);
	for (unsigned i = l->r; i < l->n; i++)
		bucket_fill(&l->b[i], span);
}

/* `span` after their levels were true, do all of n buckets admit r, those apart that do not count it?
 * Of none: all do. */
static inline bool limits_all(
	const struct bucket *b, unsigned n, const struct weir_req *r, weir_time span)
{
	for (unsigned i = 0; i < n; i++)
		if (limits_counts(&b[i], r) &&
			!bucket_admits_after(&b[i], limits_cost(r, b[i].unit), span))
			return false;
	return true;
}

/* Does any of those that count it, and to which it costs something? Of none: none does. */
static inline bool limits_any(
	const struct bucket *b, unsigned n, const struct weir_req *r, weir_time span)
{
	for (unsigned i = 0; i < n; i++) {
		int64_t cost = limits_cost(r, b[i].unit);

		if (cost && limits_counts(&b[i], r) && bucket_admits_after(&b[i], cost, span))
			return true;
	}
	return false;
}

/* How long after their levels were true all do, or any does. */
weir_time limits_wait_all(const struct bucket *b, unsigned n, const struct weir_req *r);
static inline weir_time limits_wait_any(
	const struct bucket *b, unsigned n, const struct weir_req *r)
{
	weir_time wait = WEIR_NEVER;

	for (unsigned i = 0; i < n; i++) {
		int64_t cost = limits_cost(r, b[i].unit);

		if (cost == 0 || !limits_counts(&b[i], r))
			continue;
		weir_time t = bucket_wait(&b[i], cost);

		if (t < wait)
			wait = t;
	}
	return wait;
}

/* Do all hold buckets admit r, `span` after their levels were true? */
static inline bool limits_admit(
	const struct node_limits *l, const struct weir_req *r, weir_time span)
{
	if (l->pair)
		return bucket_admits_after(&l->b[0], limits_cost(r, l->b[0].unit), span);
	return limits_all(l->b, l->n_hold, r, span);
}

/* When some R-bucket admits r. */
static inline weir_time limits_reserved(const struct node_limits *l, const struct weir_req *r)
{
	int64_t cost = limits_cost(r, l->b[l->r].unit);
	weir_time wait = l->pair && cost ? bucket_wait(&l->b[1], cost)
					 : limits_wait_any(&l->b[l->r], l->n_r, r);

	return wait < WEIR_NEVER - l->stamp ? l->stamp + wait : WEIR_NEVER;
}

static inline void limits_take(struct bucket *b, unsigned n, const struct weir_req *r)
{
	for (unsigned i = 0; i < n; i++)
		if (limits_counts(&b[i], r))
			bucket_take(&b[i], limits_cost(r, b[i].unit));
}

/*
 * When r fits its profile: the first time from its submit on at which all profile buckets admit it.
 * They are filled up to that time and no further, and charged as of it, so that what a conforming
 * request loses by waiting for others it does not lose of its profile as well, and a bucket does not
 * overflow while somebody waits. Of none: at its submit.
 */
weir_time limits_fits(struct node_limits *l, const struct weir_req *r);
/* r was the head when l->fits was found. */
void limits_charge_profile(struct node_limits *l, const struct weir_req *r);

/* Law 3: if any R-bucket holds enough, all that count the request pay for it, so that several
 * guarantees together are worth the largest and not their sum. One that cannot pay goes into debt,
 * but by no more than its size: a tenant that changes from small requests to large has its bytes
 * guaranteed again that soon. If none does, the L-buckets pay. Levels are true. */
static inline void limits_charge_tokens(struct node_limits *l, const struct weir_req *r)
{
	if (!limits_any(&l->b[l->r], l->n_r, r, 0)) {
		limits_take(&l->b[l->l], l->n_l, r);
		return;
	}
	for (unsigned i = l->r; i < l->l; i++) {
		struct bucket *b = &l->b[i];

		if (!limits_counts(b, r))
			continue;
		bucket_take(b, limits_cost(r, b->unit));
		if (b->level < -b->size)
			b->level = -b->size;
	}
}

static inline void limits_charge_pair(
	struct node_limits *l, const struct weir_req *r, weir_time now)
{
	struct bucket *hold = &l->b[0], *reserved = &l->b[1];
	int64_t cost = limits_cost(r, reserved->unit);
	weir_time span = now - l->stamp;

	if (span > 0) {
		l->stamp = now;
		bucket_fill(hold, span);
		bucket_fill(reserved, span);
	}
	bucket_take(hold, limits_cost(r, hold->unit));
	if (!bucket_admits(reserved, cost))
		return;
	bucket_take(reserved, cost);
	if (reserved->level < -reserved->size)
		reserved->level = -reserved->size;
}

/* What r pays to its tenant's buckets; `priority`: it passed because it fit its profile. */
static inline void limits_charge(
	struct node_limits *l, const struct weir_req *r, bool priority, weir_time now)
{
	if (l->pair) {
		limits_charge_pair(l, r, now);
		return;
	}
	limits_fill(l, now);
	limits_take(l->b, l->n_hold, r);
	if (priority && l->n_profile)
		limits_charge_profile(l, r);
	if (l->r < l->n)
		limits_charge_tokens(l, r);
}

#endif
