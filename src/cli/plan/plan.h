/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: shared by the parts of `weir plan`. plan.c has the command line. */
#pragma once

#include "cli/common/verb.h"
#include "control/meister/plan.h"
#include "model/estimate.h"
#include "policy/plan.h"
#include <jansson.h>

#define PLAN_DIGEST 65 /* SHA-256 in hex, with its NUL */
#define PLAN_BEYOND 10 /* requests beyond a percentile, without which it means little */

extern const struct verb verb_plan;

struct planning_stage { /* a resource or a link */
	const char *name;
	bool link, used;
	double depth;
	struct estimate estimate; /* of a resource */
	char digest[PLAN_DIGEST]; /* of its profile; "": it has none */
	const char *largest_of;   /* path of the tenant that has the largest request; NULL: none */
	bool assumed;             /* that tenant has no trace, and its requests are io_unit long */
};

struct planning_tenant { /* one that is planned */
	size_t tenant;   /* index in the policy */
	size_t requests; /* of its trace */
	bool too_short;  /* for its percentile */
};

struct planning {
	struct weir_policy *policy;
	size_t first_new; /* tenants from here on are those of --admit; n_tenants: none */
	char digest[PLAN_DIGEST];
	struct planning_stage *stage; /* resources, then links: as in the plan's input */
	struct plan_stage *stages;
	struct planning_tenant *tenant;
	struct plan_tenant *tenants;
	size_t *unknown; /* indices in the policy: an slo without a trace */
	size_t n_unknown;
	struct plan_input in;
	struct plan plan;
	bool planned; /* `plan` is set */
};

struct planning_options { /* as given; NULL: not */
	const char *policy, *admit, *work, *inside, *pairs;
};

/* read.c: read the policy and the files that it names, and reduce the traces. Return 0, or the exit status with the reason
 * printed. In both cases planning_free is called. */
int planning_read(const struct planning_options *o, struct planning *ret);
void planning_free(struct planning *p);

static inline const struct weir_tenant *planning_tenant(const struct planning *p, uint32_t i)
{
	return &p->policy->tenants[p->tenant[i].tenant];
}
/* Return the bound of a tenant beyond its slo, in s; negative: the margin; INFINITY. */
double planning_miss(const struct planning *p, uint32_t i);

struct planning_remedies {
	double *slo; /* by tenant, s: of all that are late together; 0: none does, or it is not late */
	double *rate;  /* by tenant: a part of its trace's rate; 0: none does, or it is not late */
	double *depth; /* by stage; 0: none does */
	bool *without; /* by tenant */
};
/* Find remedies if an slo is missed. 0 or -ENOMEM; always freed. */
int planning_remedies(const struct planning *p, struct planning_remedies *ret);
void planning_remedies_free(struct planning_remedies *r);

/* show.c: the table and the sentences below it. r: NULL if all slos are met. 0 or -ENOMEM. */
int planning_show(const struct planning *p, const struct planning_remedies *r);
/* json.c: the same as an object; the plan's file. NULL: no memory. */
json_t *planning_json(const struct planning *p, const struct planning_remedies *r);
json_t *planning_file(const struct planning *p, const char *made);
