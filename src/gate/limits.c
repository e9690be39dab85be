/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/limits.h"

/* Computing when a bucket admits takes a division: skip buckets that admit by then anyway. */
weir_time limits_when_all(
	const struct bucket *b, unsigned n, const struct weir_req *r, weir_time stamp)
{
	weir_time wait = 0;

	for (unsigned i = 0; i < n; i++) {
		int64_t cost = limits_cost(r, b[i].unit);

		if (limits_counts(&b[i], r) && !bucket_admits_after(&b[i], cost, wait))
			wait = bucket_wait(&b[i], cost);
	}
	return limits_later(stamp, wait);
}

weir_time limits_when_any(
	const struct bucket *b, unsigned n, const struct weir_req *r, weir_time stamp)
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
	return limits_later(stamp, wait);
}

/* Charge r to those of n buckets that count it, `span` after their stamp. */
static void limits_pay(struct bucket *b, unsigned n, const struct weir_req *r, weir_time span)
{
	for (unsigned i = 0; i < n; i++) {
		bucket_fill(&b[i], span);
		if (limits_counts(&b[i], r))
			bucket_take(&b[i], limits_cost(r, b[i].unit));
	}
}

/* Return the time from `stamp` to `to`, and make that the new stamp. */
static weir_time limits_span(weir_time *stamp, weir_time to)
{
	weir_time span = to - *stamp;

	*stamp = to;
	return span;
}

static void limits_pay_r(struct limits *l, const struct weir_req *r, weir_time now)
{
	limits_pay(&l->b[l->r], l->n_r, r, limits_span(&l->r_stamp, now));
	/* Only a bucket that paid: a debt from a negative grant stays. */
	for (unsigned i = l->r; i < l->l; i++)
		if (limits_counts(&l->b[i], r) && limits_cost(r, l->b[i].unit))
			bucket_owe(&l->b[i]);
}

void limits_charge(struct limits *l, const struct weir_req *r, bool reserved, weir_time now)
{
	weir_time as_of = limits_as_of(l, r, now), span = limits_span(&l->stamp, as_of);

	limits_pay(l->b, l->n_hold, r, span);
	if (reserved)
		limits_pay_r(l, r, now);
	if (reserved)
		limits_fill_some(&l->b[l->l], l->n_l, &(weir_time){as_of - span}, as_of);
	else
		limits_pay(&l->b[l->l], l->n_l, r, span);
	limits_pair(l);
}
