/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure-facts: the facts of controllers among the metrics of a run.
 *
 * NAMES   KIND.SELF.FACT for a controller's own values and KIND.KEY.FACT for those of a row, e.g.
 *         "adaptbf.server.rate" and "adaptbf.db.tokens". Times are in ms.
 */
#pragma once

#include "control/facts.h"
#include "sim/metrics.h"

/* Append a point at t seconds to the series of every fact that has one; t < 0: put the values that
 * are reported at the end. `self` names the controller's own values. 0, -ENOMEM if the facts were
 * not filled, or as metrics_append and metrics_put. */
int measure_facts(struct metrics *m, const struct facts *f, const char *self, double t);
