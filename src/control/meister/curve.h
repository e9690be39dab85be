/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * curve: the most work that can arrive at a queue within any time t.
 *
 * SOURCE   PriorityMeister (Zhu et al., SoCC'14), §4.4; network calculus.
 * LAW      α(t) = min over i of (r_i t + b_i) for one workload with token buckets (r_i, b_i); A(t) = Σ α_k(t) for several.
 * SYMBOLS  t  s, the length of an interval
 *          r  work per second; b  work. The unit of work is the stage's: seconds of device time, or bytes on a link.
 * METHOD   Both are concave and consist of straight pieces. A curve is kept as its knees, sorted by time: the value there and
 *          the slope after it. The value at t is found by bisection, O(log knees). sum.h adds curves up.
 * EXAMPLE  Pairs (0.5, 1) and (0.1, 3): knees at t = 0 (1, slope 0.5) and t = 5 (3.5, slope 0.1).
 */
#ifndef WEIR_CONTROL_MEISTER_CURVE_H
#define WEIR_CONTROL_MEISTER_CURVE_H

#include <stdbool.h>
#include <stddef.h>

#define MEISTER_PAIRS 64 /* of one workload at one stage: as many buckets as a gate's node has */

struct meister_pair { /* a token bucket */
	double rate, size;
};

struct meister_knee {
	double t, value; /* s; work that arrived until then */
	double slope;    /* work per second, from here on */
};

struct meister_curve {
	size_t n; /* at least 1, unless nothing ever arrives */
	struct meister_knee *knee;
};

/* Reduce pairs in place to those that are the least one somewhere, sorted by falling rate, and so by growing size. Return their
 * number. Rates are at least 0, sizes above 0, all finite; n ≥ 1. */
size_t meister_pairs_reduce(struct meister_pair *pairs, size_t n);
/* Write the knees of α: as many as there are pairs, which are reduced. */
void meister_curve_of(const struct meister_pair *pairs, size_t n, struct meister_knee *ret_knees);

/* Return the index of the last knee at or before t ≥ 0. The curve has one. */
static inline size_t meister_curve_at(const struct meister_curve *c, double t)
{
	size_t from = 0, n = c->n;

	while (n > 1) {
		size_t half = n / 2;

		from = c->knee[from + half].t <= t ? from + half : from;
		n -= half;
	}
	return from;
}

static inline double meister_knee_value(const struct meister_knee *k, double t)
{
	return k->value + k->slope * (t - k->t);
}

/* Return the curve's value at t ≥ 0; right after 0 at 0. */
static inline double meister_curve_value(const struct meister_curve *c, double t)
{
	return c->n ? meister_knee_value(&c->knee[meister_curve_at(c, t)], t) : 0;
}

#endif
