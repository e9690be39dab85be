/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * divide: one tenant's max (or min) over several gates of one process, by what is wanted where.
 *
 * Every few milliseconds the caller says what each gate wants and what is in force there, and is told
 * what each is to have. Telling a gate takes time; until it says that it has done so, what it had and
 * what it was told both count. So at no moment do all gates together allow more than the total.
 *
 * Pure: no clock, no memory of its own.
 */
#ifndef WEIR_CTL_DIVIDE_H
#define WEIR_CTL_DIVIDE_H

#include <stdbool.h>
#include <stddef.h>

struct divide_gate { /* rates in the unit of the total; parts, when the total is 1 */
	double demand; /* in: what it would use if nothing held it; more than the total is as the total */
	bool present; /* in: somebody is connected who may want something any moment */
	bool busy; /* in: was told something that it has not done yet: is not told anything now */
	double applied; /* in: in force there, as far as is known */
	double told;    /* in and out: what it was told last; equal to applied unless busy */
	double target;  /* out: what it is to have in the end */
};

/* One step: sets target and told. true: something was told. Before the first, every applied and told
 * is set so that they add up to no more than the total; divide_start does that. O(n²) at worst. */
bool divide_step(double total, struct divide_gate *gates, size_t n);

void divide_start(double total, struct divide_gate *gates, size_t n); /* equal parts */

/* How far Σ applied may stay below what is wanted and would fit, as a part of the total, in the steady
 * state: what idle gates keep, and changes too small to be worth telling. */
double divide_slack(size_t n);

#endif
