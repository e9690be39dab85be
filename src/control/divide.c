/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Ghodsi et al., "Dominant Resource Fairness" (NSDI 2011), with limits in place of
 *         resources and flows in place of users; progressive filling as in its section 4.
 * LAW     Σ over gates of max(applied, told) ≤ 1 for every limit, always.
 *         A flow's dominant limit is the one of which it wants the largest part. All flows are
 *         raised together, equal in the part of their dominant limits, each until its demand is met
 *         or a limit that it uses is exhausted. So no flow can get more unless another flow with no
 *         more of its dominant limit gets less; with one limit this is max-min fairness.
 *         The unused rest of a limit is spread equally over the gates that are present, so that
 *         rising demand need not wait for a step. A gate without demand for a limit keeps a floor
 *         to start with: 1/64 of the limit, shared by the gates that are present, and 1/1024 shared
 *         by the gates without clients.
 * SYMBOLS w demand, s = max w the dominant one, level = the part of it that a flow has; cap the
 *         part of a limit beyond the floors; a applied, o told, h = max(a, o) the most that may be
 *         in force.
 * METHOD  Targets: rounds. In each, every flow that is not stopped uses w/s of a limit per unit of
 *         level; the level rises until the first flow has all of s or the first limit is exhausted,
 *         and these flows stop. A round stops at least one flow.
 *         Telling: if all targets of a limit are within 1/1024 of the parts in force, nothing is
 *         told. A gate that has more than its target is told so at once; that frees nothing yet. A
 *         gate that has less is raised out of 1 − Σ h, in proportion to what each lacks. When the
 *         lowered gates have confirmed, the next step raises the rest: two steps to the target.
 * EXAMPLE 4k iops and 40 MiB/s; 4 KiB at one gate and 64 KiB at the other, both with unlimited
 *         demand. Requests dominate the first, bytes the second. Bytes are exhausted at a level of
 *         0.72: 2,876 and 460 requests/s, 11.2 and 28.8 MiB/s; the 664 iops left over are spread.
 */
#include "control/divide.h"
#include <math.h>

#define FLOOR_PRESENT (1.0 / 64)
#define FLOOR_ABSENT  (1.0 / 1024)
#define WORTH         (1.0 / 1024) /* smaller changes are noise, and each costs a call to a gate */
#define EXACT         (1 - 1e-12)  /* sums of rounded parts must not exceed the whole */
#define TINY          1e-12        /* of a limit: nothing */

void divide_start(struct divide_part *part, size_t gates)
{
	for (size_t i = 0; i < gates; i++)
		part[i].applied = part[i].told = part[i].target = EXACT / (double)gates;
}

double divide_slack(size_t gates)
{
	return FLOOR_PRESENT + FLOOR_ABSENT + WORTH * (double)gates;
}

static struct divide_part *parts_of(const struct divide *d, size_t limit)
{
	return &d->part[limit * d->gates];
}

/* Return the demand of a gate's flows for a limit. */
static double wanted(const struct divide *d, size_t gate, size_t limit)
{
	double sum = 0;

	for (size_t f = 0; f < d->flows; f++)
		if (d->flow[f].gate == gate)
			sum += d->flow[f].want[limit];
	return sum;
}

static bool is_present(const struct divide *d, size_t gate)
{
	bool wants = false;

	for (size_t l = 0; l < d->limits; l++)
		wants |= wanted(d, gate, l) > 0;
	return wants || d->gate[gate].present;
}

/* Set every target to the gate's floor. Return the number of gates that are present. */
static size_t set_floors(const struct divide *d)
{
	size_t present = 0, absent;

	for (size_t g = 0; g < d->gates; g++)
		present += is_present(d, g);
	absent = d->gates - present;
	for (size_t g = 0; g < d->gates; g++) {
		double share = !present           ? 1 / (double)d->gates
			       : is_present(d, g) ? FLOOR_PRESENT / (double)present
						  : FLOOR_ABSENT / (double)absent;

		for (size_t l = 0; l < d->limits; l++)
			parts_of(d, l)[g].target = share;
	}
	return present;
}

/* Return true if the floor covers the gate's whole demand for the limit; else its flows are charged
 * for their use. */
static bool in_floor(const struct divide *d, size_t gate, size_t limit)
{
	return wanted(d, gate, limit) <= parts_of(d, limit)[gate].target;
}

static void start_flow(const struct divide *d, struct divide_flow *f)
{
	f->level = f->most = 0;
	for (size_t l = 0; l < d->limits; l++)
		f->most = fmax(f->most, f->want[l]);
	f->stopped = f->most <= 0;
	for (size_t l = 0; l < d->limits; l++)
		f->use[l] = f->stopped || in_floor(d, f->gate, l) ? 0 : f->want[l] / f->most;
}

/* Return how far the level of all flows can rise before a limit is exhausted or a flow's demand is
 * met. */
static double next_rise(const struct divide *d, const double *left, double level)
{
	double rise = INFINITY;

	for (size_t l = 0; l < d->limits; l++) {
		double rate = 0;

		for (size_t f = 0; f < d->flows; f++)
			if (!d->flow[f].stopped)
				rate += d->flow[f].use[l];
		if (rate > 0)
			rise = fmin(rise, fmax(left[l], 0) / rate);
	}
	for (size_t f = 0; f < d->flows; f++)
		if (!d->flow[f].stopped)
			rise = fmin(rise, d->flow[f].most - level);
	return rise;
}

/* Raise all flows by `rise` and stop those that are satisfied or use an exhausted limit. */
static bool raise_flows(const struct divide *d, double *left, double level, double rise)
{
	bool going = false;

	for (size_t f = 0; f < d->flows; f++) {
		struct divide_flow *flow = &d->flow[f];

		if (flow->stopped)
			continue;
		flow->level = level + rise;
		for (size_t l = 0; l < d->limits; l++)
			left[l] -= rise * flow->use[l];
	}
	for (size_t f = 0; f < d->flows; f++) {
		struct divide_flow *flow = &d->flow[f];

		flow->stopped |= flow->level >= flow->most - TINY;
		for (size_t l = 0; l < d->limits; l++)
			flow->stopped |= left[l] <= TINY && flow->use[l] > 0;
		going |= !flow->stopped;
	}
	return going;
}

static void fill(const struct divide *d)
{
	double left[DIVIDE_LIMITS], level = 0;
	bool going = d->flows > 0;

	for (size_t l = 0; l < d->limits; l++) {
		left[l] = 1;
		for (size_t g = 0; g < d->gates; g++)
			if (in_floor(d, g, l))
				left[l] -= parts_of(d, l)[g].target;
	}
	for (size_t f = 0; f < d->flows; f++)
		start_flow(d, &d->flow[f]);
	for (size_t rounds = 0; going && rounds <= d->flows; rounds++) {
		double rise = next_rise(d, left, level);

		if (!isfinite(rise))
			break; /* all have stopped */
		going = raise_flows(d, left, level, rise);
		level += rise;
	}
}

/* Set the targets from the flows' uses, and spread the rest of each limit over the gates that are
 * present. */
static void set_targets(const struct divide *d, size_t present)
{
	for (size_t l = 0; l < d->limits; l++) {
		struct divide_part *part = parts_of(d, l);
		double sum = 0, spread = 0, scale = EXACT;

		for (size_t g = 0; g < d->gates; g++) {
			double used = 0;

			for (size_t f = 0; f < d->flows; f++)
				if (d->flow[f].gate == g)
					used += d->flow[f].level * d->flow[f].use[l];
			part[g].target = fmax(part[g].target, used);
			sum += part[g].target;
		}
		/* A gate bound by another limit may use less than the floor that it was not
		 * granted. */
		if (sum > 1)
			scale /= sum;
		else if (present)
			spread = (1 - sum) / (double)present;
		for (size_t g = 0; g < d->gates; g++)
			part[g].target = (part[g].target + (is_present(d, g) ? spread : 0)) * scale;
	}
}

void divide_targets(const struct divide *d)
{
	size_t present = set_floors(d);

	fill(d);
	set_targets(d, present);
}

/* ---- telling */

static double in_force(const struct divide_part *p)
{
	return fmax(p->applied, p->told);
}

/* Return which part of the shortfall of the gates that are not busy is free now. */
static double scale_of_raises(const struct divide *d, const struct divide_part *part)
{
	double free_now = EXACT, lacking = 0;

	for (size_t g = 0; g < d->gates; g++) {
		free_now -= in_force(&part[g]);
		if (!d->gate[g].busy)
			lacking += fmax(part[g].target - in_force(&part[g]), 0);
	}
	if (lacking <= 0 || free_now <= 0)
		return 0;
	return fmin(free_now / lacking, 1) * EXACT;
}

static bool worth_telling(const struct divide *d, const struct divide_part *part)
{
	for (size_t g = 0; g < d->gates; g++)
		if (!d->gate[g].busy && fabs(part[g].target - part[g].applied) > WORTH)
			return true;
	return false;
}

bool divide_tell(const struct divide *d)
{
	bool told = false;

	for (size_t l = 0; l < d->limits; l++) {
		struct divide_part *part = parts_of(d, l);
		double scale = scale_of_raises(d, part);

		if (!worth_telling(d, part))
			continue;
		for (size_t g = 0; g < d->gates; g++) {
			double has = in_force(&part[g]), lacks = part[g].target - has;
			double to = lacks > 0 ? has + lacks * scale : part[g].target;

			if (d->gate[g].busy || to == part[g].told)
				continue;
			part[g].told = to;
			told = true;
		}
	}
	return told;
}
