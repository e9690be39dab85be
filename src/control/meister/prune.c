/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prune: choose few of a border's pairs.
 *
 * METHOD   The lines of the chosen pairs lie on or above the hull, and between two neighbours the ratio to the hull is greatest
 *          where they cross; before the first line at t = 0. The last pair, of the mean rate, is always chosen, since all others
 *          exceed the load in the long run. Dynamic programming finds the choice with the least greatest ratio, O(k n² log n),
 *          exactly for up to CANDIDATES pairs. Of more pairs those are candidates that a hull within 0.01 % needs, or within
 *          twice that until there are few enough.
 */
#include "control/meister/frontier.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define CANDIDATES 512

struct prune {
	const struct meister_frontier *f;
	size_t n, at[CANDIDATES]; /* indices of pairs */
	double *ratio;            /* between candidates i < j at i * CANDIDATES + j */
};

/* Return the least of all lines at t. */
static double hull(const struct meister_frontier *f, double t)
{
	size_t from = 0, n = f->n;

	while (n > 1) {
		const struct meister_pair *p = &f->pairs[from + n / 2];
		bool later = p[0].size + p[0].rate * t <= p[-1].size + p[-1].rate * t;

		from = later ? from + n / 2 : from;
		n -= n / 2;
	}
	return f->pairs[from].size + f->pairs[from].rate * t;
}

/* Return the greatest ratio to the hull between two neighbours among the chosen. */
static double ratio_between(const struct meister_frontier *f, size_t i, size_t j)
{
	const struct meister_pair *a = &f->pairs[i], *b = &f->pairs[j];
	double t = (b->size - a->size) / (a->rate - b->rate);

	return (a->size + a->rate * t) / hull(f, t);
}

static double ratio_before(const struct meister_frontier *f, size_t i)
{
	return f->pairs[i].size / f->pairs[0].size;
}

/* Keep the pairs that are needed for a ratio below 1 + step, and the last one; false: these are too many. */
static bool thin(struct prune *p, double step)
{
	size_t last = p->f->n - 1;

	p->n = 0;
	for (size_t i = 0; i < last; i++) {
		bool needed = p->n == 0 || ratio_between(p->f, p->at[p->n - 1], i + 1) > 1 + step;

		if (needed && p->n == CANDIDATES - 1)
			return false;
		if (needed)
			p->at[p->n++] = i;
	}
	p->at[p->n++] = last;
	return true;
}

/* best[l][j]: the least greatest ratio with candidate j as the l-th and last. Return the ratio of the best choice. */
static double choose(
	const struct prune *p, size_t k, double *best, size_t *from, size_t *ret_levels)
{
	size_t last = p->n - 1;
	double least = HUGE_VAL;

	for (size_t l = 0; l < k; l++) {
		for (size_t j = 0; j < p->n; j++) {
			double *b = &best[l * CANDIDATES + j];

			*b = l ? HUGE_VAL : ratio_before(p->f, p->at[j]);
			for (size_t i = 0; l && i < j; i++) {
				double r = fmax(best[(l - 1) * CANDIDATES + i],
					p->ratio[i * CANDIDATES + j]);

				if (r < *b) {
					*b = r;
					from[l * CANDIDATES + j] = i;
				}
			}
		}
		if (best[l * CANDIDATES + last] < least) {
			least = best[l * CANDIDATES + last];
			*ret_levels = l;
		}
	}
	return least;
}

int meister_frontier_prune(const struct meister_frontier *f, size_t k,
	struct meister_pair *ret_pairs, double *ret_loss)
{
	struct prune p = {.f = f, .ratio = calloc(CANDIDATES * CANDIDATES, sizeof(*p.ratio))};
	double *best = calloc(k * CANDIDATES, sizeof(*best)), ratio;
	size_t *from = calloc(k * CANDIDATES, sizeof(*from)), levels = 0;
	bool room = p.ratio && best && from;

	for (double step = 0; room && !thin(&p, step); step = step > 0 ? 2 * step : 1e-4)
		;
	for (size_t i = 0; room && i < p.n; i++)
		for (size_t j = i + 1; j < p.n; j++)
			p.ratio[i * CANDIDATES + j] = ratio_between(f, p.at[i], p.at[j]);
	if (room) {
		ratio = choose(&p, k, best, from, &levels);
		*ret_loss = ratio - 1;
		for (size_t l = levels + 1, j = p.n - 1; l-- > 0; j = from[l * CANDIDATES + j])
			ret_pairs[l] = f->pairs[p.at[j]];
	}
	free(p.ratio);
	free(best);
	free(from);
	return room ? (int)levels + 1 : -ENOMEM;
}
