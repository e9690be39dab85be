/* SPDX-License-Identifier: BSD-3-Clause */
/* control: the table of controllers, and the one that does nothing but at a swap: rules as Lustre's token
 * bucket filter has them. What a rule is in a gate, control/tbf/tbf.h says. */
#include "serve/host/control.h"
#include "control/tbf/tbf.h"
#include "serve/resource/impl.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>

/* ---- static rules */

static int make_rules(const struct weir_policy_tbf *spec, struct tbf **ret)
{
	struct tbf *t;
	int rc = tbf_new(spec->depth, spec->other, &t);

	for (size_t i = 0; rc == 0 && i < spec->n_rules; i++) {
		char name[TBF_NAME];

		snprintf(name, sizeof(name), "r%u", (unsigned)i % 1000000u);
		rc = tbf_start(t, name, spec->rules[i].match, spec->rules[i].rate, "default");
		if (rc)
			tbf_free(t);
	}
	if (rc == 0)
		*ret = t;
	return rc;
}

static int tbf_prepare(struct resource *r, const struct control_version *v, size_t from, size_t to)
{
	struct tbf *t;
	int rc = make_rules(&v->spec->tbf, &t);

	if (rc)
		return rc;
	for (size_t i = from; i < to; i++) {
		double rate;

		if (v->policy->tenants[i].first_child >= 0)
			continue;
		tbf_match(t, v->policy->tenants[i].path, &rate);
		if (!isinf(rate))
			v->rules[i].bucket = (struct weir_bucket_spec){
				WEIR_HOLD, WEIR_UNIT_REQUESTS, 0, rate, tbf_depth(t)};
	}
	tbf_free(t);
	return 0;
}

/* ---- the table */

static const struct control_ops none_ops = {.name = NULL};
static const struct control_ops parda_ops = {
	.name = "parda", .window = true}; /* the rest: agent.c */
static const struct control_ops tbf_ops = {.name = "tbf", .prepare = tbf_prepare};

const struct control_ops *const control_table[WEIR_CONTROLLERS] = {
	[WEIR_CONTROLLER_NONE] = &none_ops,
	[WEIR_CONTROLLER_PARDA] = &parda_ops,
	[WEIR_CONTROLLER_ADAPTBF] = &steward_ops,
	[WEIR_CONTROLLER_TBF] = &tbf_ops,
	[WEIR_CONTROLLER_PSHIFT] = &lessee_ops,
};

void control_free(struct resource *r)
{
	for (int i = 0; i < WEIR_CONTROLLERS; i++)
		if (control_table[i]->free)
			control_table[i]->free(r);
}
