/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sum: the sum of the curves of some of the workloads at one stage.
 *
 * METHOD   Every knee of every workload is a turn: at t the slope of the sum changes, at t = 0 the value as well. Turns are
 *          sorted once. The sum of some workloads is written by one pass over all turns, O(turns); nothing is ever
 *          subtracted, so that no error of rounding stays behind.
 */
#ifndef WEIR_CONTROL_MEISTER_SUM_H
#define WEIR_CONTROL_MEISTER_SUM_H

#include "control/meister/curve.h"
#include <stdint.h>

struct meister_turn {
	double t, value, slope; /* what is added to the value and the slope at t */
	uint32_t owner;
};

struct meister_sum {
	size_t n;
	struct meister_turn *turn; /* sorted by t */
};

/* Append the turns of a workload; there is room. After the last one call meister_sum_sort. */
void meister_sum_add(struct meister_sum *s, const struct meister_curve *c, uint32_t owner);
void meister_sum_sort(struct meister_sum *s);
/* Write the curve of the owners with from ≤ place[owner] < to into ret, whose knees have room for all turns. */
void meister_sum_of(const struct meister_sum *s, const uint32_t *place, uint32_t from, uint32_t to,
	struct meister_curve *ret);

#endif
