/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     A busy device spends a + b · pages on a request: b = 0 in a server, a = 0 in flash, a seek
 *         and a transfer on disks.
 * METHOD  Least squares over blocks of BLOCK requests that ended while the device was busy: time per
 *         request against pages per request. Mixes differ from block to block by chance, enough for
 *         b once clients send different sizes. The part of all cost that depends on pages,
 *         b · x / y with x and y the means, is a posterior mean: a normal prior of PRIOR and
 *         PRIOR_ERROR, and the slope's own error.
 * LIMITS  If the same mix ends in every block, all costs explain the times equally, and the error
 *         is the prior's.
 * EXAMPLE Blocks of 1 and 4 pages a request take 1 and 2.5 ms a request: a = b = 0.5 ms.
 */
#include "control/shadow-cost.h"
#include <math.h>

#define BLOCK       64
#define KEEP        512.0 /* blocks after which old ones count half */
#define PRIOR       0.5
#define PRIOR_ERROR 0.3
#define RECENT      (1.0 / 1024) /* weight of a request in the mean */
#define SURE        2.0          /* standard deviations */

static void estimate(struct shadow_cost *c)
{
	double xx = c->xx - c->x * c->x, xy = c->xy - c->x * c->y, yy = c->yy - c->y * c->y;
	double slope, noise, weight, prior = 1 / (PRIOR_ERROR * PRIOR_ERROR);

	if (c->n < 8 || xx < 1e-6 * c->x * c->x)
		return;
	slope = xy / xx;
	noise = fmax(yy - slope * xy, 1e-4 * c->y * c->y) / (xx * c->n);
	weight = c->y * c->y / (c->x * c->x) / noise;
	c->part = (PRIOR * prior + slope * c->x / c->y * weight) / (prior + weight);
	c->part = fmin(fmax(c->part, 0), 1);
	c->error = sqrt(1 / (prior + weight));
}

/* Convert the part of all requests into that of a request of one page. */
static void convert(struct shadow_cost *c)
{
	double pages = c->part / c->mean;

	c->page = pages / (1 - c->part + pages);
}

static void add(struct shadow_cost *c, double x, double y)
{
	double part = 1 / fmin(++c->n, KEEP);

	c->n = fmin(c->n, KEEP);
	c->x += part * (x - c->x);
	c->y += part * (y - c->y);
	c->xx += part * (x * x - c->xx);
	c->xy += part * (x * y - c->xy);
	c->yy += part * (y * y - c->yy);
}

void shadow_cost_learn(
	struct shadow_cost *c, weir_time now, const struct shadow_work *own, bool busy)
{
	if (!(c->mean > 0)) {
		c->mean = own->pages;
		c->part = PRIOR;
		c->error = PRIOR_ERROR;
	}
	c->mean += RECENT * (own->pages - c->mean);
	convert(c);
	if (!busy || !c->began) {
		c->began = busy ? now : 0;
		c->block = (struct shadow_work){0};
		return;
	}
	c->block.requests += own->requests;
	c->block.pages += own->pages;
	if (c->block.requests < BLOCK)
		return;
	add(c, c->block.pages / BLOCK, (double)(now - c->began) / BLOCK);
	c->began = now;
	c->block = (struct shadow_work){0};
	estimate(c);
}

double shadow_cost_of(const struct shadow_cost *c, const struct shadow_work *w)
{
	return w->requests + c->page * (w->pages - w->requests);
}

double shadow_cost_error(const struct shadow_cost *c, const struct shadow_work *w)
{
	double relative = w->pages / w->requests / c->mean;
	double low = fmax(c->part - SURE * c->error, 0), high = fmin(c->part + SURE * c->error, 1);
	double is = 1 + c->part * (relative - 1);

	if (!(relative > 0))
		return 1;
	low = (1 + low * (relative - 1)) / is;
	high = (1 + high * (relative - 1)) / is;
	return fmax(fmax(low, 1 / low), fmax(high, 1 / high));
}
