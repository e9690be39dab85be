/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bound: the longest time that a request can wait at one queue.
 *
 * SOURCE   PriorityMeister §4.4, whose linear program has this closed form for one queue.
 * LAW      D = h(α, β), the largest horizontal distance between the arrival curve α of a class of equal priority (first in,
 *          first out inside) and the service that remains for it, β(t) = [B t − A(t) − L]⁺.
 * SYMBOLS  B  work per second of the queue
 *          A  sum of the curves of all classes of higher priority
 *          L  work: the most that requests of lower priority can have inside, since a device does not pre-empt
 *          g(t) = B t − A(t) − L
 * METHOD   D = max over s of g⁻¹(α(s)) − s. α is concave, g convex and below α(0) at 0, so the distance is concave in s: it
 *          grows while the slope of α at s exceeds that of g at g⁻¹(α(s)). Bisection over the knees of α finds the piece on
 *          which that changes, bisection over the knees of A the place on it. O(log α's knees × log A's knees).
 *          D is finite if the last slopes of α and A add up to at most B, and A's own is less than B.
 * DIFFERS  The paper leaves L out; without it the bound can be exceeded. A group of equal priority is bounded as one class,
 *          which is tighter than counting its members as of higher priority.
 * EXAMPLE  B = 1, A(t) = 0.2 t + 1, α(t) = 0.1 t + 0.5, L = 0.1: g(t) = 0.8 t − 1.1, D = g⁻¹(0.5) = 2 s.
 */
#ifndef WEIR_CONTROL_MEISTER_BOUND_H
#define WEIR_CONTROL_MEISTER_BOUND_H

#include "control/meister/curve.h"

/* The work of higher priority at a queue: the sum `all`, less the curve `except`, which is part of it (may be NULL). */
struct meister_above {
	const struct meister_curve *all, *except;
};

/* Return D in seconds, or INFINITY. `own` has at least one knee and a value above 0. rate > 0, blocking ≥ 0. */
double meister_bound(
	struct meister_above above, const struct meister_curve *own, double rate, double blocking);
/* The same, and s of the request that waits so long: it leaves at s + D, and D = (A(s + D) + L + α(s)) / B − s. */
double meister_bound_at(struct meister_above above, const struct meister_curve *own, double rate,
	double blocking, double *ret_arrival);

#endif
