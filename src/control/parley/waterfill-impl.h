/* SPDX-License-Identifier: BSD-3-Clause */
/* waterfill-impl: the passes over the arrays of a level, in a variant for each kind of processor. */
#pragma once

#include "control/parley/waterfill.h"

struct waterfill_sums {
	double full;  /* Σ e of the nodes that are full */
	double dry;   /* Σ w of the others */
	double given; /* Σ g */
};

struct waterfill_passes {
	/* Set base and room of each node. Return Σ g, and Σ e as `full`. */
	struct waterfill_sums (*prepare)(const struct waterfill *f);
	/* Return `full` and `dry` at the level. */
	struct waterfill_sums (*sums)(
		const double *room, const double *weight, size_t n, double level);
	/* Set `ret` to Σ e of the nodes that are full at `low` and Σ w of those that are not at
	 * `high`. Copy e of those between to kept[0 …], w to kept[n …]. Return their number. */
	size_t (*between)(const double *room, const double *weight, size_t n, double low,
		double high, double *kept, struct waterfill_sums *ret);
	/* Set the rates at the level. Return all sums. */
	struct waterfill_sums (*finish)(const struct waterfill *f, double level);
};

/* Set base and room of node i. */
static inline void waterfill_set(const struct waterfill *f, size_t i)
{
	double use = f->max[i] < f->demand[i] ? f->max[i] : f->demand[i];

	f->base[i] = f->min[i] < use ? f->min[i] : use;
	f->room[i] = use - f->base[i];
}

/* Add a node to the sums at a level. */
static inline void waterfill_count(
	struct waterfill_sums *to, double room, double weight, double level)
{
	if (room <= level * weight)
		to->full += room;
	else
		to->dry += weight;
}

extern const struct waterfill_passes waterfill_passes_plain;
#if defined(__x86_64__)
extern const struct waterfill_passes waterfill_passes_avx2;
#endif
