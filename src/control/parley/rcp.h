/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rcp: the one rate that a receiver tells its senders, so that together they fill its capacity.
 *
 * SOURCE  Parley §3.2.1, after EyeQ and the Rate Control Protocol.
 * LAW     R(t + T) = R(t)·(1 − α·(y − C)/C − β/2)
 * SYMBOLS R rate of each sender of weight 1, C capacity of the service at this receiver, y measured
 *         rate in the last period: one unit for all. T period. α = 0.5. β fraction of packets with
 *         a mark of congestion (CE), 0 … 1.
 * METHOD  The receiver need not know the number of senders: while they send less than C, R rises by
 *         half of what is missing, at most by α a period. A sender of weight w takes w·R.
 * DIFFERS R stays between a least rate, so that no sender is stopped for good and y stays
 *         measurable, and the line's rate, beyond which R has no effect and would take long to come
 *         back. A burst can bring y to many times C; R is at most halved in one period by it.
 * EXAMPLE C = 90, four senders at R = 90: y = 90 (the line), R stays; at a line of 360: y = 360,
 *         R = 90·(1 − 0.5·3) → halved: 45, then y = 180, R = 22.5.
 *
 * Pure: no clock, no allocation.
 */
#pragma once

#define RCP_ALPHA 0.5

struct rcp {
	double least, line; /* bounds of R; 0 < least ≤ line */
	double rate;        /* R; begin with the line's rate: an idle service is not limited */
};

/* Take one period's measurement. capacity > 0, marked 0 … 1. Return R, which `r->rate` has, too. */
static inline double rcp_step(struct rcp *r, double measured, double capacity, double marked)
{
	double by = 1 - RCP_ALPHA * (measured - capacity) / capacity - marked / 2;

	r->rate *= by > 0.5 ? by : 0.5;
	if (r->rate > r->line)
		r->rate = r->line;
	if (r->rate < r->least)
		r->rate = r->least;
	return r->rate;
}
