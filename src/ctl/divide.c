/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     Σ max(applied, told) ≤ total, always. Wanted is shared max-min fairly: a gate that wants
 *         less than its fair part has what it wants, the others share the rest equally; what nobody
 *         wants is spread equally over those that are present, so that a rise of demand need not wait
 *         for a step. A gate that is idle keeps a floor to start with: 1/64 of the total, shared by
 *         those that are present, and 1/1024 shared by those where nobody is connected.
 * SYMBOLS d demand, t target, a applied, o told, h = max(a, o) what may be in force.
 * METHOD  1. Targets: floors first, then the level L with Σ min(d, L) = what is left, by rounds: who
 *            wants less than an equal part is served, the others divide again.
 *         2. If all targets are within 1/1024 of the total of what is in force, nothing is told.
 *         3. Who has more than its target is told so at once; that frees nothing yet. Who has less is
 *            raised out of total − Σ h, in proportion to what each lacks. When the lowered ones have
 *            done it, the next step raises the rest: two steps to the target.
 *         Rounds: O(n) each, at most n.
 * EXAMPLE total 1, two gates with 1/2 each, both idle. The first wants all: it is told 63/64 … but has
 *         1/2 until the second has gone down to 1/64; then 63/64.
 */
#include "ctl/divide.h"
#include <math.h>

#define FLOOR_PRESENT (1.0 / 64)
#define FLOOR_ABSENT  (1.0 / 1024)
#define WORTH         (1.0 / 1024) /* smaller changes are noise, and each costs a call to a gate */
#define EXACT         (1 - 1e-12)  /* sums of rounded parts must not exceed the whole */

void divide_start(double total, struct divide_gate *gates, size_t n)
{
	for (size_t i = 0; i < n; i++)
		gates[i].applied = gates[i].told = gates[i].target = total * EXACT / (double)n;
}

double divide_slack(size_t n)
{
	return FLOOR_PRESENT + FLOOR_ABSENT + WORTH * (double)n;
}

static double want(const struct divide_gate *g, double total)
{
	return fmin(fmax(g->demand, 0), total);
}

/* Idle gates have their floor; those that want something at least as much. What is left. */
static double floors(double total, struct divide_gate *gates, size_t n)
{
	size_t present = 0, absent = 0;
	double left = total;

	for (size_t i = 0; i < n; i++) {
		present += gates[i].present || gates[i].demand > 0;
		absent += !gates[i].present && !(gates[i].demand > 0);
	}
	for (size_t i = 0; i < n; i++) {
		struct divide_gate *g = &gates[i];

		if (g->present || g->demand > 0)
			g->target = total * FLOOR_PRESENT / (double)present;
		else
			g->target =
				present ? total * FLOOR_ABSENT / (double)absent : total / (double)n;
		left -= g->target;
	}
	return fmax(left, 0);
}

/* Raises targets to what is wanted, as far as `left` goes, max-min fairly. What is left then. */
static double fill(double total, struct divide_gate *gates, size_t n, double left)
{
	for (;;) {
		size_t wanting = 0;
		double part, given = 0;

		for (size_t i = 0; i < n; i++)
			wanting += want(&gates[i], total) > gates[i].target;
		if (!wanting || left <= total * 1e-12)
			return left;
		part = left / (double)wanting;
		for (size_t i = 0; i < n; i++) {
			double lacks = want(&gates[i], total) - gates[i].target;

			if (lacks > 0 && lacks <= part) {
				gates[i].target += lacks;
				given += lacks;
			}
		}
		left -= given;
		if (given > 0)
			continue;
		for (size_t i = 0; i < n; i++)
			if (want(&gates[i], total) > gates[i].target)
				gates[i].target += part;
		return 0;
	}
}

static void spread(struct divide_gate *gates, size_t n, double left)
{
	size_t present = 0;

	for (size_t i = 0; i < n; i++)
		present += gates[i].present || gates[i].demand > 0;
	for (size_t i = 0; i < n && present; i++)
		if (gates[i].present || gates[i].demand > 0)
			gates[i].target += left / (double)present;
}

static double in_force(const struct divide_gate *g)
{
	return fmax(g->applied, g->told);
}

/* What is free now, and what those that may be told lack together. */
static double scale_of_raises(double total, const struct divide_gate *gates, size_t n)
{
	double free_now = total * EXACT, lacking = 0;

	for (size_t i = 0; i < n; i++) {
		free_now -= in_force(&gates[i]);
		if (!gates[i].busy)
			lacking += fmax(gates[i].target - in_force(&gates[i]), 0);
	}
	if (lacking <= 0 || free_now <= 0)
		return 0;
	return fmin(free_now / lacking, 1) * EXACT;
}

static bool worth_it(double total, const struct divide_gate *gates, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!gates[i].busy && fabs(gates[i].target - gates[i].applied) > total * WORTH)
			return true;
	return false;
}

bool divide_step(double total, struct divide_gate *gates, size_t n)
{
	double scale;
	bool told = false;

	spread(gates, n, fill(total, gates, n, floors(total, gates, n)));
	for (size_t i = 0; i < n; i++)
		gates[i].target *= EXACT;
	if (!worth_it(total, gates, n))
		return false;
	scale = scale_of_raises(total, gates, n);
	for (size_t i = 0; i < n; i++) {
		struct divide_gate *g = &gates[i];
		double lacks = g->target - in_force(g);
		double to = lacks > 0 ? in_force(g) + lacks * scale : g->target;

		if (g->busy || to == g->told)
			continue;
		g->told = to;
		told = true;
	}
	return told;
}
