/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meter: does a tenant keep to the token buckets of its plan, and if not, by how much does it exceed them?
 *
 * LAW     A request is in profile if every bucket holds its cost, or is full; it then pays all of them. So the gate judges it, but as of
 *         its arrival. A tenant is out of profile from the first request that is not in it until there was none for METER_CALM.
 *         Its real curve over a span T is the most work that came within T; the planned one is min(rate·T + size) over the
 *         pairs. The excess is the largest ratio of both since it is out, over spans of 10 ms, 100 ms, 1 s, 10 s and 60 s, whose
 *         ends are multiples of 10 ms, 100 ms and 1 s.
 * COST    O(pairs) a request.
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
	double level[METER_PAIRS];
	weir_time last;    /* as of which the levels are */
	uint64_t in, out;  /* requests */
	weir_time since;   /* it is out; 0: it is not */
	weir_time out_at;  /* of the last request that was not in profile */
	unsigned broke;    /* the pair that broke first */
	double excess;     /* since then */
	weir_time over;    /* its span; 0: none was complete yet */
	struct meter_bin { /* a span that is not complete */
		weir_time end;
		double work;
	} bins[2];
	int64_t second;
	float seconds[64]; /* work, by second modulo 64 */
	bool said;
};

/* Start with full buckets. n ≤ METER_PAIRS. */
void meister_meter_start(
	struct meister_meter *m, const struct weir_bucket_spec *pairs, unsigned n, weir_time now);
/* A request of that cost, in the pairs' unit, arrives. */
void meister_meter_add(struct meister_meter *m, weir_time now, double cost);
/* Once a second or so: return 1 if the tenant has come out of its profile and that is to be said, -1 if it is in it again after that
 * was said, else 0. */
int meister_meter_tick(struct meister_meter *m, weir_time now);
