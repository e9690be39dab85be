/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: shared by the parts of `weir plan`. plan.c has the command line. */
#pragma once

#include "cli/common/verb.h"
#include "plan/planning.h"

extern const struct verb verb_plan;

/* show.c: the table and the sentences below it. r: NULL if all slos are met. 0 or -ENOMEM. */
int planning_show(const struct planning *p, const struct planning_remedies *r);

/* place.c: on which of equal servers the traces of a folder fit. slo: of traces that no tenant of the policy names, or NULL. Return
 * the exit status. */
int plan_place(const struct planning_options *o, const char *folder, uint32_t servers,
	const char *slo, bool json);

/* watch.c: plan again and again from a gateway's own record, until a signal arrives; at: the values of REMOTE_ROWS. Return the exit
 * status. */
struct plan_watch {
	const char *every; /* as written */
	const char *const *values;
	/* print a plan; put it in force if that was asked for. Return -1, or the exit status with the reason printed */
	int (*show)(const struct planning *p, const char *const *values);
	int (*use)(const struct planning *p, const char *const *values);
};
int plan_watch(
	const struct planning_options *o, const struct plan_watch *how, const char *const *at);
