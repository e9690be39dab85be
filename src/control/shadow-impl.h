/* SPDX-License-Identifier: BSD-3-Clause */
/* shadow-impl: shared by shadow-device.c and shadow-fit.c. */
#pragma once

#include "control/shadow-device.h"
#include <math.h>

#define SHADOW_FINE       16u   /* work up to which each unit has a level; from there 4 an octave */
#define SHADOW_LEVEL_MOST 256.0 /* requests for which a level counts at most */

/* Return the level of so much work, with a fraction. */
static inline double shadow_place(double work)
{
	double place =
		work < SHADOW_FINE ? fmax(work, 0) : SHADOW_FINE + 4 * log2(work / SHADOW_FINE);

	return fmin(place, SHADOW_LEVELS - 1.001);
}

static inline double shadow_work_at(unsigned level)
{
	return level < SHADOW_FINE ? level : SHADOW_FINE * exp2((level - SHADOW_FINE) / 4.0);
}

static inline double shadow_work_of(const struct shadow_device *d, const struct shadow_work *w)
{
	return shadow_cost_of(&d->cost, w);
}

/* Return the most requests that one request overtook. */
static inline double shadow_overtook(const struct shadow_order *o)
{
	return fmax(o->passed[0], o->passed[1]);
}

static inline struct shadow_point shadow_point_at(const struct shadow_point *curve, double work)
{
	double place = shadow_place(work);
	const struct shadow_point *p = &curve[(unsigned)place];

	place -= floor(place);
	return (struct shadow_point){p[0].time + place * (p[1].time - p[0].time),
		p[0].error + place * (p[1].error - p[0].error)};
}

/* Fit the law to what was observed: shadow-fit.c. */
void shadow_fit(struct shadow_device *d, const struct shadow_order *o);
