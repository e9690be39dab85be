/* SPDX-License-Identifier: BSD-3-Clause */
/* remedies: the changes of one number with which every slo would hold. */
#include "plan/planning.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define REMEDY_TENANTS 8 /* tenants without which the plan is tried */

void planning_remedies_free(struct planning_remedies *r)
{
	free(r->slo);
	free(r->rate);
	free(r->depth);
	free(r->without);
}

/* Find slos of all tenants that are late: at most the bounds at the priorities found. */
static int remedy_slos(const struct planning *p, struct planning_remedies *r)
{
	double x = 0;
	bool bounded = true;
	int rc = 0;

	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		double bound = meister_latency(&p->plan.system, i) * (1 + 1e-9);

		r->slo[i] = fmax(p->tenants[i].slo, bound);
		bounded &= isfinite(bound);
	}
	if (bounded)
		rc = plan_remedy_slo(&p->in, r->slo, &x);
	for (uint32_t i = 0; i < p->in.n_tenants; i++) {
		double slo = p->tenants[i].slo;

		r->slo[i] = rc == 1 && planning_miss(p, i) > 0 ? slo + x * (r->slo[i] - slo) : 0;
	}
	return rc < 0 ? rc : 0;
}

static int remedy_rates(const struct planning *p, struct planning_remedies *r)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->in.n_tenants; i++)
		if (planning_miss(p, i) > 0)
			rc = plan_remedy_rate(&p->in, i, &r->rate[i]);
	return rc < 0 ? rc : 0;
}

static int remedy_depths(const struct planning *p, struct planning_remedies *r)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->in.n_stages; i++)
		if (p->stage[i].used && !p->stage[i].link)
			rc = plan_remedy_depth(&p->in, i, &r->depth[i]);
	return rc < 0 ? rc : 0;
}

static int remedy_without(const struct planning *p, struct planning_remedies *r)
{
	int rc = 0;

	for (uint32_t i = 0; rc >= 0 && i < p->in.n_tenants && i < REMEDY_TENANTS; i++) {
		rc = plan_remedy_without(&p->in, i);
		r->without[i] = rc > 0;
	}
	return rc < 0 ? rc : 0;
}

int planning_remedies(const struct planning *p, struct planning_remedies *ret)
{
	int rc;

	*ret = (struct planning_remedies){.slo = calloc(p->in.n_tenants + 1, sizeof(*ret->slo)),
		.rate = calloc(p->in.n_tenants + 1, sizeof(*ret->rate)),
		.depth = calloc(p->in.n_stages + 1, sizeof(*ret->depth)),
		.without = calloc(p->in.n_tenants + 1, sizeof(*ret->without))};
	if (!ret->slo || !ret->rate || !ret->depth || !ret->without)
		return -ENOMEM;
	rc = remedy_slos(p, ret);
	if (rc == 0)
		rc = remedy_rates(p, ret);
	if (rc == 0)
		rc = remedy_depths(p, ret);
	return rc < 0 ? rc : remedy_without(p, ret);
}
