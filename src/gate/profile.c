/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/profile.h"
#include "gate/limits.h"

void profile_changed(struct profile *p)
{
	p->narrow = true;
	for (uint32_t i = 0; i < p->n; i++)
		p->narrow &= bucket_narrow(&p->b[i]) && p->b[i].ops == WEIR_OPS_ALL;
}

/* Will the short way do for r? */
static bool profile_narrow(const struct profile *p, const struct weir_req *r)
{
	uint64_t costs = 0;

	for (uint32_t i = 0; i < p->n; i++)
		costs |= (uint64_t)(limits_cost(r, p->b[i].unit) - 1);
	return p->narrow && costs < (uint64_t)BUCKET_NARROW;
}

/* How long after the stamp all admit r. All are asked, since nobody can predict which has to be. */
static weir_time profile_wait_narrow(const struct profile *p, const struct weir_req *r)
{
	uint64_t wait = 0;

	for (const struct bucket *b = p->b, *end = b + p->n; b < end; b++) {
		int64_t missing = bucket_missing_narrow(b, limits_cost(r, b->unit));
		uint64_t t = ((uint64_t)(missing < 0 ? 0 : missing) + b->rate - 1) / b->rate;

		wait = t > wait ? t : wait;
	}
	return (weir_time)wait;
}

/* A division says when a bucket admits; only those are asked that do not admit by then anyway. */
static weir_time profile_wait(const struct profile *p, const struct weir_req *r)
{
	weir_time wait = r->submitted > p->stamp ? r->submitted - p->stamp : 0;

	for (const struct bucket *b = p->b, *end = b + p->n; b < end; b++) {
		int64_t cost = limits_cost(r, b->unit);

		if (limits_counts(b, r) && !bucket_admits_after(b, cost, wait))
			wait = bucket_wait(b, cost);
	}
	return wait;
}

void profile_look(struct profile *p, const struct weir_req *r)
{
	p->head = profile_narrow(p, r);
	weir_time wait = p->head ? profile_wait_narrow(p, r) : profile_wait(p, r);

	wait = limits_later(p->stamp, wait);
	p->fits = wait > r->submitted ? wait : r->submitted;
}

void profile_charge(struct profile *p, const struct weir_req *r)
{
	weir_time span = p->fits - p->stamp;

	if (p->head) {
		p->stamp = p->fits;
		for (struct bucket *b = p->b, *end = b + p->n; b < end; b++)
			bucket_pay_narrow(b, span, limits_cost(r, b->unit));
		return;
	}
	profile_fill(p, p->fits);
	limits_take(p->b, p->n, r);
	profile_changed(p);
}

void profile_fill(struct profile *p, weir_time now)
{
	if (now > p->stamp)
		limits_fill_some(p->b, p->n, &p->stamp, now);
}
