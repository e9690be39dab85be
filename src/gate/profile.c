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

/* Will the short way do for r? */
POOL_HOT bool profile_narrow(const struct profile *p, const struct weir_req *r)
{
	uint64_t costs = 0;

	for (unsigned i = 0; i < p->n; i++)
		costs |= (uint64_t)(limits_cost(r, p->unit[i]) - 1);
	return costs < (uint64_t)BUCKET_NARROW;
}

/* How many parts too few bucket i has for r; none if that is not positive. */
POOL_HOT int64_t profile_missing(const struct profile *p, unsigned i, const struct weir_req *r)
{
	int64_t slack = p->size[i] - limits_cost(r, p->unit[i]);

	return p->lack[i] - (slack < 0 ? 0 : slack) * (int64_t)BUCKET_UNIT;
}

/* How long after the stamp all admit r. Who is last is guessed without a division or a branch, since nobody
 * can predict it; then his time is found, and all are asked whether they admit by then. */
POOL_HOT weir_time profile_wait_narrow(const struct profile *p, const struct weir_req *r)
{
	int64_t missing[PROFILE_FEW], least = 0;
	float longest = 0;
	unsigned last = 0;

	for (unsigned i = 0; i < p->n; i++) {
		missing[i] = profile_missing(p, i, r);
		float t = (float)missing[i] * p->per_rate[i];

		last = t > longest ? i : last;
		longest = t > longest ? t : longest;
		least = missing[i] > least ? missing[i] : least;
	}
	if (least == 0)
		return 0;
	for (;;) {
		uint64_t wait = ((uint64_t)missing[last] + p->rate[last] - 1) / p->rate[last];
		unsigned wrong = last;

		for (unsigned i = 0; i < p->n; i++)
			wrong = missing[i] > 0 && (bucket_uparts)p->rate[i] * wait <
							  (uint64_t)missing[i]
					? i
					: wrong;
		if (wrong == last)
			return (weir_time)wait;
		last = wrong;
	}
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
	weir_time wait;

	p->head = p->narrow && profile_narrow(p, r);
	if (p->head) {
		wait = profile_wait_narrow(p, r);
	} else {
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
