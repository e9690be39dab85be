/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/frontier.h"
#include "base/array.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct point {
	double x, y; /* s, work */
};

struct halving {
	/* of each part of the trace, in place: its hull of last points from above, of first points from below */
	struct point *last, *first;
	/* hulls of differences, the parts' one after the other, as on a stack */
	struct point *diff, *merged;
	size_t n, room, merged_room;
};

/* Return a positive number if a, b, c turn to the left, negative to the right. */
static double turn(const struct point *a, const struct point *b, const struct point *c)
{
	return (b->x - a->x) * (c->y - a->y) - (b->y - a->y) * (c->x - a->x);
}

/* Append a point to a hull whose points have at most its x. side: 1 from above, -1 from below. */
static size_t append(struct point *hull, size_t n, struct point p, double side)
{
	if (n && hull[n - 1].x == p.x) {
		if (side * (p.y - hull[n - 1].y) <= 0)
			return n;
		n--;
	}
	while (n > 1 && side * turn(&hull[n - 2], &hull[n - 1], &p) >= 0)
		n--;
	hull[n++] = p;
	return n;
}

/* ---- differences of the halves */

/* Append last[j] − first[i] for the corners of both hulls that are met when they are merged by slope. */
static int cross(struct halving *h, const struct point *first, size_t n_first,
	const struct point *last, size_t n_last)
{
	size_t i = n_first - 1, j = 0, base = h->n;

	if (array_grow(&h->diff, &h->room, h->n + n_first + n_last) < 0)
		return -ENOMEM;
	for (;;) {
		struct point d = {last[j].x - first[i].x, last[j].y - first[i].y};
		struct point up = {HUGE_VAL, 0}, down = {HUGE_VAL, 0};

		h->n = base + append(h->diff + base, h->n - base, d, 1);
		if (j + 1 < n_last)
			up = (struct point){last[j + 1].x - last[j].x, last[j + 1].y - last[j].y};
		if (i > 0)
			down = (struct point){
				first[i].x - first[i - 1].x, first[i].y - first[i - 1].y};
		if (isinf(up.x) && isinf(down.x))
			return 0;
		/* the steeper edge comes first */
		if (isinf(down.x) || (!isinf(up.x) && up.y * down.x >= down.y * up.x))
			j++;
		else
			i--;
	}
}

/* Make one hull of the three that begin at a, b and c on the stack. */
static int merge(struct halving *h, size_t a, size_t b, size_t c)
{
	size_t at[3] = {a, b, c}, end[3] = {b, c, h->n}, n = 0;

	if (array_grow(&h->merged, &h->merged_room, h->n - a) < 0)
		return -ENOMEM;
	for (;;) {
		int least = -1;

		for (int k = 0; k < 3; k++)
			if (at[k] < end[k] &&
				(least < 0 || h->diff[at[k]].x < h->diff[at[least]].x))
				least = k;
		if (least < 0)
			break;
		n = append(h->merged, n, h->diff[at[least]++], 1);
	}
	memcpy(h->diff + a, h->merged, n * sizeof(*h->diff));
	h->n = a + n;
	return 0;
}

static size_t join(
	struct point *hull, size_t n, const struct point *more, size_t n_more, double side)
{
	for (size_t i = 0; i < n_more; i++)
		n = append(hull, n, more[i], side);
	return n;
}

/* Put the hull of the differences within from … to − 1 on the stack, and shrink the parts of `first` and `last` to their
 * hulls. */
static int halve(struct halving *h, size_t from, size_t to, size_t *ret_first, size_t *ret_last)
{
	size_t middle = from + (to - from) / 2, a = h->n, b, c;
	size_t f[2], l[2];
	int rc;

	if (to - from == 1) {
		*ret_first = *ret_last = 1;
		if (array_grow(&h->diff, &h->room, h->n + 1) < 0)
			return -ENOMEM;
		h->diff[h->n++] = (struct point){0, h->last[from].y - h->first[from].y};
		return 0;
	}
	if ((rc = halve(h, from, middle, &f[0], &l[0])) < 0)
		return rc;
	b = h->n;
	if ((rc = halve(h, middle, to, &f[1], &l[1])) < 0)
		return rc;
	c = h->n;
	if ((rc = cross(h, h->first + from, f[0], h->last + middle, l[1])) < 0 ||
		(rc = merge(h, a, b, c)) < 0)
		return rc;
	*ret_first = join(h->first + from, f[0], h->first + middle, f[1], -1);
	*ret_last = join(h->last + from, l[0], h->last + middle, l[1], 1);
	return 0;
}

/* ---- the border */

/* Write the lines through the hull's edges that are at least as steep as the mean, and the one with the mean as its slope. */
static int write_pairs(const struct halving *h, double mean, struct meister_frontier *ret)
{
	struct meister_frontier f = {calloc(h->n + 1, sizeof(*f.pairs)), 0, mean};
	size_t i = 0;

	if (!f.pairs)
		return -ENOMEM;
	for (; i + 1 < h->n; i++) {
		const struct point *p = &h->diff[i];
		double rate = (p[1].y - p[0].y) / (p[1].x - p[0].x);

		if (rate <= mean)
			break;
		f.pairs[f.n++] = (struct meister_pair){rate, p[0].y - rate * p[0].x};
	}
	f.pairs[f.n++] = (struct meister_pair){mean, h->diff[i].y - mean * h->diff[i].x};
	*ret = f;
	return 0;
}

int meister_frontier(
	const struct meister_arrival *arrivals, size_t n, struct meister_frontier *ret_frontier)
{
	struct halving h = {
		.last = calloc(n, sizeof(*h.last)), .first = calloc(n, sizeof(*h.first))};
	double begin = arrivals[0].t, span = arrivals[n - 1].t - begin, sum = 0;
	int rc = h.last && h.first ? 0 : -ENOMEM;
	size_t f, l;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		h.first[i] = (struct point){arrivals[i].t - begin, sum};
		sum += arrivals[i].work;
		h.last[i] = (struct point){arrivals[i].t - begin, sum};
	}
	if (rc == 0)
		rc = halve(&h, 0, n, &f, &l);
	if (rc == 0)
		rc = write_pairs(&h, span > 0 ? sum / span : 0, ret_frontier);
	free(h.last);
	free(h.first);
	free(h.diff);
	free(h.merged);
	return rc;
}

void meister_frontier_free(struct meister_frontier *f)
{
	free(f->pairs);
	*f = (struct meister_frontier){0};
}

double meister_frontier_size(const struct meister_frontier *f, double rate)
{
	size_t from = 0, n = f->n;
	const struct meister_pair *p;
	double t;

	while (n > 1) { /* the last pair with at least this rate */
		size_t half = n / 2;

		from = f->pairs[from + half].rate >= rate ? from + half : from;
		n -= half;
	}
	p = &f->pairs[from];
	if (p->rate < rate) /* above every edge: the hull's point at 0 */
		return p->size;
	if (from + 1 == f->n)
		return p->size;
	/* the line of this rate touches the hull where this edge and the next one meet */
	t = (p[1].size - p->size) / (p->rate - p[1].rate);
	return p->size + (p->rate - rate) * t;
}

double meister_peak(const struct meister_arrival *arrivals, size_t n, double window)
{
	double sum = 0, most = 0;

	for (size_t first = 0, last = 0; last < n; last++) {
		sum += arrivals[last].work;
		while (arrivals[last].t - arrivals[first].t >= window)
			sum -= arrivals[first++].work;
		most = fmax(most, sum);
	}
	return most / window;
}
