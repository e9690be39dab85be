/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/profile.h"
#include "gate/limits.h"

void profile_changed(struct profile *p)
{
	p->narrow = p->n <= PROFILE_FEW;
	for (unsigned i = 0; i < p->n && p->narrow; i++) {
		const struct bucket *b = &p->b[i];

		p->narrow = bucket_narrow(b) && b->ops == WEIR_OPS_ALL;
		p->lack[i] = b->low[BUCKET_LOW];
		p->unit[i] = b->unit;
		p->rate[i] = b->rate;
		p->size[i] = (uint32_t)b->size;
		p->per_rate[i] = 1 / (float)b->rate;
	}
}

/* The buckets become what they are. */
static void profile_settle(struct profile *p)
{
	for (unsigned i = 0; i < p->n && p->narrow; i++)
		p->b[i].lack = p->lack[i];
}

/* How many parts too few bucket i has for a cost; none if that is not positive. */
POOL_HOT int64_t profile_missing(const struct profile *p, unsigned i, int64_t cost)
{
	int64_t slack = p->size[i] - cost;

	return p->lack[i] - (slack < 0 ? 0 : slack) * (int64_t)BUCKET_UNIT;
}

POOL_HOT uint64_t profile_wait_of(const struct profile *p, unsigned i, int64_t missing)
{
	return ((uint64_t)(missing < 0 ? 0 : missing) + p->rate[i] - 1) / p->rate[i];
}

/* All are asked, since it is not clear who is last. */
static weir_time profile_wait_each(const struct profile *p, const struct weir_req *r)
{
	uint64_t wait = 0;

	for (unsigned i = 0; i < p->n; i++) {
		uint64_t t =
			profile_wait_of(p, i, profile_missing(p, i, limits_cost(r, p->unit[i])));

		wait = t > wait ? t : wait;
	}
	return (weir_time)wait;
}

#define PROFILE_NEAR 1e-6F /* relative: four roundings of a float are a quarter of that */

/* How long after the stamp all admit r, if the short way will do for it; -1: it will not. Who is the last to
 * admit is found without a division or a branch, since nobody can predict it. */
POOL_HOT weir_time profile_wait_narrow(const struct profile *p, const struct weir_req *r)
{
	float last = 0, second = 0;
	int64_t missing = 0;
	uint64_t costs = 0;
	unsigned which = 0;

	for (unsigned i = 0; i < p->n; i++) {
		int64_t cost = limits_cost(r, p->unit[i]), m = profile_missing(p, i, cost);
		float t = (float)m * p->per_rate[i], less = t < last ? t : last;

		costs |= (uint64_t)(cost - 1);
		second = less > second ? less : second;
		which = t > last ? i : which;
		missing = t > last ? m : missing;
		last = t > last ? t : last;
	}
	if (costs >= (uint64_t)BUCKET_NARROW)
		return -1;
	if (second > last * (1 - PROFILE_NEAR))
		return profile_wait_each(p, r);
	return (weir_time)profile_wait_of(p, which, missing);
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
	weir_time wait = p->narrow ? profile_wait_narrow(p, r) : -1;

	p->head = wait >= 0;
	if (!p->head) {
		profile_settle(p);
		wait = profile_wait(p, r);
	}
	wait = limits_later(p->stamp, wait);
	p->fits = wait > r->submitted ? wait : r->submitted;
}

void profile_charge(struct profile *p, const struct weir_req *r)
{
	weir_time span = p->fits - p->stamp;

	if (p->head) {
		p->stamp = p->fits;
		for (unsigned i = 0; i < p->n; i++)
			p->lack[i] = bucket_paid_narrow(
				p->lack[i], p->rate[i], span, limits_cost(r, p->unit[i]));
		return;
	}
	profile_fill(p, p->fits);
	limits_take(p->b, p->n, r);
	profile_changed(p);
}

void profile_fill(struct profile *p, weir_time now)
{
	profile_settle(p);
	if (now > p->stamp)
		limits_fill_some(p->b, p->n, &p->stamp, now);
	profile_changed(p);
}
