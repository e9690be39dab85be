/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/experiment/spread.h"
#include <math.h>
#include <stdlib.h>

struct experiment_spread *spread_new(const struct experiment *e)
{
	struct experiment_spread *s =
		calloc(1, sizeof(*s) + e->n_claims * sizeof(struct spread_claim));

	if (s)
		s->n_claims = e->n_claims;
	return s;
}

static void add_value(struct spread_claim *c, double value)
{
	double off = value - c->mean;

	c->n++;
	c->mean += off / c->n;
	c->squares += off * (value - c->mean);
	c->least = c->n == 1 || value < c->least ? value : c->least;
	c->most = c->n == 1 || value > c->most ? value : c->most;
}

void spread_add(struct experiment_spread *s, const struct experiment_result *r)
{
	s->seeds++;
	for (size_t i = 0; i < s->n_claims; i++) {
		const struct experiment_outcome *o = &r->outcomes[i];

		s->claims[i].judged += o->judged;
		s->claims[i].held += o->judged && o->ok;
		if (o->judged && o->known)
			add_value(&s->claims[i], o->value);
	}
}

/* Student's quantile of 97.5 %, by degrees of freedom from 1 on. */
static const double quantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
	2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074,
	2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045};
#define QUANTILES (sizeof(quantiles) / sizeof(*quantiles))

double spread_interval(const struct spread_claim *c)
{
	double t;

	if (c->n < 2)
		return NAN;
	t = c->n - 2 < QUANTILES ? quantiles[c->n - 2] : 1.96;
	return t * sqrt(c->squares / (c->n - 1) / c->n);
}
