/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spread: the outcomes of one experiment over several seeds.
 *
 * LAW     mean m and standard deviation s of n values; the mean of all seeds lies within m ± t s/√n with a probability of 95 %, where
 *         t is Student's quantile for n − 1 degrees of freedom (1.96 from 31 values on, where the difference is below 5 %)
 * METHOD  Welford's update, so that a small spread of large values is not lost
 * EXAMPLE 10, 12 and 14: m = 12, s = 2, t = 4.30, so 12 ± 4.97
 */
#pragma once

#include "sim/experiment/experiment.h"

struct spread_claim {
	unsigned n;      /* values that are known */
	unsigned judged; /* runs that judged the claim */
	unsigned held;   /* of them, runs in whose band the value was */
	double mean;
	double squares; /* sum of squared differences from the mean */
	double least, most;
};

struct experiment_spread {
	unsigned seeds; /* results that were added */
	size_t n_claims;
	struct spread_claim claims[];
};

/* Return a spread without results, for free(3). NULL: no memory. */
struct experiment_spread *spread_new(const struct experiment *e);
void spread_add(struct experiment_spread *s, const struct experiment_result *r);
/* Return half the width of the 95 % interval of the mean; NAN of fewer than two values. */
double spread_interval(const struct spread_claim *c);
