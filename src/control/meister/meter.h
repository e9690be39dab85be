/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meter: does a tenant keep to the token buckets of its plan, and if not, by how much does it exceed them?
 *
 * LAW     A request is in profile if every bucket holds its cost, or will within `slack`; it then pays all of them. So the
 *         gate judges it, but as of its arrival, and the gate holds it to best effort for at most the slack. A request larger than a
 *         bucket, and so than any of the trace from which that was made, is never in profile. A tenant is out of
 *         profile from the first request that is not in it until there was none for METER_CALM.
 *         Its real curve over a span T is the most work that came within T; the planned one is min(rate·(T + slack) + size) over the
 *         pairs. The excess is the largest ratio of both since it is out: over the time since the broken bucket was full, if
 *         that is below 1 s, and over spans of 10 ms, 100 ms, 1 s, 10 s and 60 s, whose ends are multiples of 10 ms, 100 ms and 1 s.
 *         It is above 1 from the first request on.
 * METHOD  Requests that arrive at one time are added up while all buckets hold their sum, which puts each of them in profile; the
 *         buckets pay before time goes on, or a request is not covered.
 * COST    O(pairs) for the first request of a time and those beyond a bucket; O(1) for the others.
 * EXAMPLE One pair, 0.1 and 10 ms. 0.31 s of work in each second: after 60 s the real curve has 18.6 s, the planned one 6.01 s:
 *         3.1 times its profile over 60 s.
 */
#pragma once

#include <weir/gate.h>

#define METER_PAIRS 16
#define METER_CALM  (10 * WEIR_SEC)

struct meister_meter {
	const struct weir_bucket_spec *pairs; /* borrowed */
	unsigned n;
	double slack; /* s */
	double level[METER_PAIRS];
	double work[METER_PAIRS];       /* that came since the bucket was full … */
	weir_time full_at[METER_PAIRS]; /* … at this time */
	weir_time last;                 /* as of which the levels are */
	double pending;       /* work of this time that was not taken from the levels … */
	double room;          /* … and how much more all buckets hold */
	uint64_t in, out;     /* requests */
	weir_time since;      /* it is out; 0: it is not */
	weir_time out_at;     /* of the last request that was not in profile */
	unsigned broke;       /* the pair that broke first */
	double excess;        /* since then */
	weir_time over;       /* its span; 0: at once */
	struct meter_bin {    /* a span that is not complete */
		weir_time at; /* its begin */
		double work;
	} bins[2];
	int64_t second;
	float seconds[64]; /* work, by second modulo 64 */
	bool said;
};

/* Start with full buckets. n ≤ METER_PAIRS. slack: what does not matter to the tenant, such as jitter: a part of its slo. */
void meister_meter_start(struct meister_meter *m, const struct weir_bucket_spec *pairs, unsigned n,
	weir_time slack, weir_time now);
/* For meister_meter_add: the request is the first of its time, or not covered. */
void meister_meter_add_slow(struct meister_meter *m, weir_time now, double cost);
/* A request of that cost, in the pairs' unit, arrives. */
static inline void meister_meter_add(struct meister_meter *m, weir_time now, double cost)
{
	if (now > m->last || cost > m->room) {
		meister_meter_add_slow(m, now, cost);
		return;
	}
	m->room -= cost;
	m->pending += cost;
	m->in++;
}
/* Once a second or so: return 1 if the tenant has come out of its profile and that is to be said, -1 if it is in it again after that
 * was said, else 0. */
int meister_meter_tick(struct meister_meter *m, weir_time now);
