/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/curve.h"
#include <stdlib.h>

static int by_rate(const void *a, const void *b)
{
	const struct meister_pair *x = a, *y = b;

	if (x->rate != y->rate)
		return x->rate > y->rate ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

/* Return the time at which b becomes less than a; a has the greater rate and the smaller size. */
static double crossing(const struct meister_pair *a, const struct meister_pair *b)
{
	return (b->size - a->size) / (a->rate - b->rate);
}

size_t meister_pairs_reduce(struct meister_pair *pairs, size_t n)
{
	size_t kept = 0;

	qsort(pairs, n, sizeof(*pairs), by_rate);
	for (size_t i = 0; i < n; i++) {
		struct meister_pair p = pairs[i];

		if (kept && p.rate == pairs[kept - 1].rate)
			continue; /* the same rate and no smaller size */
		while (kept && p.size <= pairs[kept - 1].size)
			kept--; /* a smaller rate and no greater size */
		while (kept > 1 && crossing(&pairs[kept - 1], &p) <=
					   crossing(&pairs[kept - 2], &pairs[kept - 1]))
			kept--; /* never the least one */
		pairs[kept++] = p;
	}
	return kept;
}

void meister_curve_of(const struct meister_pair *pairs, size_t n, struct meister_knee *ret_knees)
{
	for (size_t i = 0; i < n; i++) {
		double t = i ? crossing(&pairs[i - 1], &pairs[i]) : 0;

		ret_knees[i] =
			(struct meister_knee){t, pairs[i].size + pairs[i].rate * t, pairs[i].rate};
	}
}
