/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * systems: random systems of tenants with slos, planned and run one after the other, to compare bounds with latencies.
 *
 * A scenario with `systems:` instead of devices and hosts is run here. A system is a device that takes a fixed time for each
 * request, in half of them with a link behind it, two to six tenants whose longest bursts coincide, and a backlogged tenant
 * without an slo that has the largest requests. Systems that the planner does not call feasible are not run.
 */
#pragma once

#include "base/yamldoc.h"
#include "sim/metrics.h"
#include "sim/sim.h"

struct sim_systems_config { /* weir-scenario(5), "systems" */
	uint32_t count;
	bool blocking;      /* bounds count requests of lower priority that are inside */
	bool links;         /* half of the systems have a link */
	const char *traces; /* folder from which tenants have their arrivals; NULL: made */
};

int sim_systems_read(yamldoc_node map, struct sim_systems_config *ret, struct weir_err *err);
int sim_systems_run(const struct scenario *s, weir_time duration, uint64_t seed,
	const struct sim_options *o, struct metrics **ret, struct sim_cost *ret_cost,
	struct weir_err *err);
