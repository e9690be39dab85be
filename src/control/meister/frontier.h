/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frontier: the token buckets that a trace just fits.
 *
 * SOURCE   PriorityMeister §4.1: for a rate r the least bucket size b(r) with which no request of the trace is held.
 * LAW      b(r) = max over i ≤ j of S(i, j) − r (t_j − t_i), S(i, j) the work of the requests i … j. It is the convex function
 *          that belongs to the concave hull of the points (t_j − t_i, S(i, j)): an edge of that hull with slope r and height b
 *          at 0 is a corner (r, b) of the border, and the hull is the least of all these lines.
 * SYMBOLS  t  s, arrival; c  work of a request; S  work
 * METHOD   The paper replays the trace for each of many rates. Here the hull is computed once, exactly, for all rates: the
 *          trace is halved; a pair of requests lies in one half, or its first in the left half and its last in the right one. Of
 *          the latter only corners of two hulls matter, of the last points (t_j, S_j) from above and of the first ones from
 *          below, and the differences of two convex chains are merged by slope. O(n log n), in practice O(n).
 * DIFFERS  Rates below the trace's mean are left out: with such a rate the bucket would grow with the trace's length.
 * EXAMPLE  Work 1 at 0, 0.1 and 10 s: pairs (10, 1) and (0.3, 1.97); the last one has the mean rate.
 */
#ifndef WEIR_CONTROL_MEISTER_FRONTIER_H
#define WEIR_CONTROL_MEISTER_FRONTIER_H

#include "control/meister/curve.h"

struct meister_arrival {
	double t, work; /* t: s, not falling; work > 0 */
};

struct meister_frontier {
	struct meister_pair *
		pairs; /* by falling rate and growing size; every size is at least the largest request's work */
	size_t n;
	double mean; /* work per second over the trace; the last pair's rate */
};

/* Compute the border of a trace; n ≥ 1. If all requests arrive at once there is one pair, of rate 0. 0 or -ENOMEM. */
int meister_frontier(
	const struct meister_arrival *arrivals, size_t n, struct meister_frontier *ret_frontier);
void meister_frontier_free(struct meister_frontier *f);
/* Return b(r) for a rate of at least the mean. */
double meister_frontier_size(const struct meister_frontier *f, double rate);

/* Return the most work that arrives within any `window` of time, in s, divided by it: the peak load. */
double meister_peak(const struct meister_arrival *arrivals, size_t n, double window);

/* Choose at most k of the pairs, so that the greatest ratio between the least of the chosen lines and the least of all, over all
 * t ≥ 0, is smallest. ret_pairs has room for k; ret_loss is that ratio − 1, against all pairs. Return the number chosen, or
 * -ENOMEM. k ≥ 1. */
int meister_frontier_prune(const struct meister_frontier *f, size_t k,
	struct meister_pair *ret_pairs, double *ret_loss);

#endif
