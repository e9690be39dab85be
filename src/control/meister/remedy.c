/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remedy: the least change of one number that meets every slo.
 *
 * METHOD   Bisection to 1 %, each step a whole search with fewer moves. A search may miss an order that exists, so a value that
 *          is found does, and a smaller change might do as well.
 */
#include "control/meister/plan.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 7     /* halve the interval so often */
#define MOVES 10000 /* of annealing, in each step */

/* A copy of an input that may be changed. */
struct trial {
	struct plan_input in;
	struct plan_stage *stages;
	struct plan_tenant *tenants;
	struct plan_hop *hops; /* of one tenant */
};

static int trial_new(const struct plan_input *in, struct trial *ret)
{
	struct trial t = {*in, calloc(in->n_stages + 1, sizeof(*t.stages)),
		calloc(in->n_tenants + 1, sizeof(*t.tenants)), NULL};

	if (!t.stages || !t.tenants) {
		free(t.stages);
		free(t.tenants);
		return -ENOMEM;
	}
	memcpy(t.stages, in->stages, in->n_stages * sizeof(*t.stages));
	memcpy(t.tenants, in->tenants, in->n_tenants * sizeof(*t.tenants));
	t.in.stages = t.stages;
	t.in.tenants = t.tenants;
	t.in.how.moves = MOVES;
	*ret = t;
	return 0;
}

static void trial_free(struct trial *t)
{
	free(t->stages);
	free(t->tenants);
	free(t->hops);
}

/* Return 1 if every slo is met, 0, or -ENOMEM. */
static int holds(const struct plan_input *in)
{
	struct plan p;
	int rc = plan_make(in, &p);

	if (rc < 0)
		return rc;
	rc = p.feasible;
	plan_free(&p);
	return rc;
}

/* Bisect between a value that does not hold and one that might; `set` changes the trial to a value. */
static int bisect(struct trial *t, void (*set)(struct trial *t, const void *arg, double x),
	const void *arg, double bad, double good, double *ret)
{
	int rc;

	set(t, arg, good);
	rc = holds(&t->in);
	for (int i = 0; rc == 1 && i < STEPS; i++) {
		double x = (bad + good) / 2;
		int now;

		set(t, arg, x);
		now = holds(&t->in);
		if (now < 0)
			return now;
		bad = now ? bad : x;
		good = now ? x : good;
	}
	if (rc == 1)
		*ret = good;
	return rc;
}

struct stretched {
	const struct plan_input *from;
	const double *most;
};

static void set_slo(struct trial *t, const void *arg, double x)
{
	const struct stretched *s = arg;

	for (uint32_t i = 0; i < t->in.n_tenants; i++) {
		double slo = s->from->tenants[i].slo;

		t->tenants[i].slo = slo + x * (s->most[i] - slo);
	}
}

int plan_remedy_slo(const struct plan_input *in, const double *most, double *ret_x)
{
	const struct stretched s = {in, most};
	struct trial t;
	int rc = trial_new(in, &t);

	if (rc < 0)
		return rc;
	rc = bisect(&t, set_slo, &s, 0, 1, ret_x);
	trial_free(&t);
	return rc;
}

static void set_rate(struct trial *t, const void *arg, double x)
{
	const struct plan_tenant *from = arg;

	for (uint32_t i = 0; i < from->n_hops; i++)
		for (unsigned k = 0; k < from->hop[i].n; k++)
			t->hops[i].pair[k].rate = from->hop[i].pair[k].rate * x;
}

int plan_remedy_rate(const struct plan_input *in, uint32_t tenant, double *ret_part)
{
	const struct plan_tenant *from = &in->tenants[tenant];
	struct trial t;
	int rc = trial_new(in, &t);

	if (rc < 0)
		return rc;
	t.hops = calloc(from->n_hops + 1, sizeof(*t.hops));
	rc = t.hops ? 0 : -ENOMEM;
	if (rc == 0) {
		memcpy(t.hops, from->hop, from->n_hops * sizeof(*t.hops));
		t.tenants[tenant].hop = t.hops;
		rc = bisect(&t, set_rate, from, 1, 0.01, ret_part);
	}
	trial_free(&t);
	return rc;
}

int plan_remedy_depth(const struct plan_input *in, uint32_t stage, double *ret_depth)
{
	double least = 1, most = ceil(in->stages[stage].depth) - 1;
	struct trial t;
	int rc;

	if (most < 1)
		return 0;
	rc = trial_new(in, &t);
	if (rc < 0)
		return rc;
	t.stages[stage].depth = least;
	rc = holds(&t.in);
	while (rc == 1 && least < most) { /* the greatest that does */
		double x = ceil((least + most) / 2);
		int now;

		t.stages[stage].depth = x;
		now = holds(&t.in);
		rc = now < 0 ? now : rc;
		least = now == 1 ? x : least;
		most = now == 1 ? most : x - 1;
	}
	if (rc == 1)
		*ret_depth = least;
	trial_free(&t);
	return rc;
}

int plan_remedy_without(const struct plan_input *in, uint32_t tenant)
{
	struct trial t;
	int rc = trial_new(in, &t);

	if (rc < 0)
		return rc;
	t.tenants[tenant] = t.tenants[--t.in.n_tenants];
	rc = holds(&t.in);
	trial_free(&t);
	return rc;
}
