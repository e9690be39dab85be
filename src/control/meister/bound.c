/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/bound.h"
#include <math.h>

/* Rates that add up to the queue's rate but for rounding are not above it. */
#define ROUNDING 1e-12

struct queue {
	struct meister_above above;
	double rate, blocking;
};

/* The straight piece of g that begins at a knee of A; without knees, all of g. */
struct piece {
	double t, value, slope;
};

static struct piece piece_at(const struct queue *q, size_t i)
{
	struct meister_knee k = q->above.all->n ? q->above.all->knee[i] : (struct meister_knee){0};
	const struct meister_curve *except = q->above.except;

	if (except) {
		const struct meister_knee *e = &except->knee[meister_curve_at(except, k.t)];

		k.value -= meister_knee_value(e, k.t);
		k.slope -= e->slope;
	}
	return (struct piece){k.t, q->rate * k.t - k.value - q->blocking, q->rate - k.slope};
}

/* Return the last piece of g that begins below y. */
static struct piece piece_below(const struct queue *q, double y)
{
	size_t from = 0, n = q->above.all->n;

	while (n > 1) {
		size_t half = n / 2;

		from = piece_at(q, from + half).value < y ? from + half : from;
		n -= half;
	}
	return piece_at(q, from);
}

/* Return the first piece of g whose slope is at least `slope`; false: there is none. */
static bool piece_steep(const struct queue *q, double slope, struct piece *ret)
{
	size_t from = 0, n = q->above.all->n ? q->above.all->n : 1;

	while (n > 0) {
		size_t half = n / 2;

		if (piece_at(q, from + half).slope < slope) {
			from += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (from > 0 && from >= q->above.all->n)
		return false;
	*ret = piece_at(q, from);
	return ret->slope >= slope;
}

/* Return the slope of g where the service reaches y, and that time. */
static double reach(const struct queue *q, double y, double *ret_t)
{
	struct piece p = piece_below(q, y);

	*ret_t = p.slope > 0 ? p.t + (y - p.value) / p.slope : HUGE_VAL;
	return p.slope;
}

/* Return true if the distance still grows right after knee i of own. */
static bool grows_after(const struct queue *q, const struct meister_curve *own, size_t i)
{
	double t;

	return own->knee[i].slope > reach(q, own->knee[i].value, &t);
}

static double distance(const struct queue *q, const struct meister_curve *own, double s)
{
	double t;

	reach(q, meister_curve_value(own, s), &t);
	return t - s;
}

/* The distance grows after knee i, and no more after the next one, if there is one. Return where it is greatest. */
static double most_at(const struct queue *q, const struct meister_curve *own, size_t i)
{
	const struct meister_knee *k = &own->knee[i];
	double end = i + 1 < own->n ? k[1].t : HUGE_VAL, s = end;
	struct piece p;

	/* It grows until the service comes to the first piece of g that is as steep. */
	if (piece_steep(q, k->slope * (1 - ROUNDING), &p) && k->slope > 0)
		s = fmin(end, fmax(k->t, k->t + (p.value - k->value) / k->slope));
	return s;
}

double meister_bound_at(struct meister_above above, const struct meister_curve *own, double rate,
	double blocking, double *ret_arrival)
{
	const struct queue q = {above, rate, blocking};
	size_t from = 0, n = own->n;

	*ret_arrival = 0;
	if (!grows_after(&q, own, 0))
		return distance(&q, own, 0);
	while (n > 1) { /* the last knee after which the distance grows */
		size_t half = n / 2;

		from = grows_after(&q, own, from + half) ? from + half : from;
		n -= half;
	}
	*ret_arrival = most_at(&q, own, from);
	return isinf(*ret_arrival) ? HUGE_VAL : distance(&q, own, *ret_arrival);
}

double meister_bound(
	struct meister_above above, const struct meister_curve *own, double rate, double blocking)
{
	double arrival;

	return meister_bound_at(above, own, rate, blocking, &arrival);
}
