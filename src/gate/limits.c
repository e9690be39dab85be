/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/limits.h"

/* A division says when a bucket admits; only those are asked that do not admit by then anyway. */
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

weir_time limits_fits(const struct limits *l, const struct weir_req *r)
{
	weir_time fits =
		limits_when_all(&l->b[l->n_hold], l->n_profile, r, limits_profile(l)->stamp);

	return fits > r->submitted ? fits : r->submitted;
}

/* r was the head when `fits` was found. */
static void limits_charge_profile(struct limits *l, const struct weir_req *r)
{
	struct limits_profile *p = limits_profile(l);

	limits_fill_some(&l->b[l->n_hold], l->n_profile, &p->stamp, p->fits);
	limits_take(&l->b[l->n_hold], l->n_profile, r);
}

void limits_charge(
	struct limits *l, const struct weir_req *r, bool priority, bool reserved, weir_time now)
{
	limits_fill(l, now);
	limits_take(l->b, l->n_hold, r);
	if (priority && l->n_profile)
		limits_charge_profile(l, r);
	if (!reserved) {
		limits_take(&l->b[l->l], l->n_l, r);
		return;
	}
	limits_fill_r(l, now);
	for (unsigned i = l->r; i < l->l; i++)
		if (limits_counts(&l->b[i], r))
			limits_take_r(&l->b[i], limits_cost(r, l->b[i].unit));
}
