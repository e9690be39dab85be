/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/profile.h"
#include "gate/limits.h"

/* A division says when a bucket admits; only those are asked that do not admit by then anyway. */
void profile_look(struct profile *p, const struct weir_req *r)
{
	weir_time wait = r->submitted > p->stamp ? r->submitted - p->stamp : 0;

	for (const struct bucket *b = p->b, *end = b + p->n; b < end; b++) {
		int64_t cost = limits_cost(r, b->unit);

		if (limits_counts(b, r) && !bucket_admits_after(b, cost, wait))
			wait = bucket_wait(b, cost);
	}
	wait = limits_later(p->stamp, wait);
	p->fits = wait > r->submitted ? wait : r->submitted;
}

void profile_charge(struct profile *p, const struct weir_req *r)
{
	profile_fill(p, p->fits);
	limits_take(p->b, p->n, r);
}

void profile_fill(struct profile *p, weir_time now)
{
	if (now > p->stamp)
		limits_fill_some(p->b, p->n, &p->stamp, now);
}
