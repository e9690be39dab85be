/* SPDX-License-Identifier: BSD-3-Clause */
/* plan: shared by the parts of `weir plan`. plan.c has the command line. */
#pragma once

#include "cli/common/verb.h"
#include "plan/planning.h"

extern const struct verb verb_plan;

/* show.c: the table and the sentences below it. r: NULL if all slos are met. 0 or -ENOMEM. */
int planning_show(const struct planning *p, const struct planning_remedies *r);
