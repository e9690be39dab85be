/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/limits.h"

weir_time limits_wait_all(const struct bucket *b, unsigned n, const struct weir_req *r)
{
	weir_time wait = 0;

	for (unsigned i = 0; i < n; i++) {
		if (!limits_counts(&b[i], r))
			continue;
		weir_time t = bucket_wait(&b[i], limits_cost(r, b[i].unit));

		if (t > wait)
			wait = t;
	}
	return wait;
}

static void limits_fill_profile(struct node_limits *l, weir_time to)
{
	for (unsigned i = l->n_hold; i < l->r; i++)
		bucket_fill(&l->b[i], to - l->profile_stamp);
	l->profile_stamp = to;
}

weir_time limits_fits(struct node_limits *l, const struct weir_req *r)
{
	if (r->submitted > l->profile_stamp)
		limits_fill_profile(l, r->submitted);
	weir_time wait = limits_wait_all(&l->b[l->n_hold], l->n_profile, r);

	return wait < WEIR_NEVER - l->profile_stamp ? l->profile_stamp + wait : WEIR_NEVER;
}

void limits_charge_profile(struct node_limits *l, const struct weir_req *r)
{
	if (l->fits > l->profile_stamp)
		limits_fill_profile(l, l->fits);
	limits_take(&l->b[l->n_hold], l->n_profile, r);
}
