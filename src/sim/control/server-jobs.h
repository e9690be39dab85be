/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server-jobs: the jobs of a simulated server: the leaves of the gate that stands before a device.
 *
 * What the controllers `adaptbf` and `tbf` share: which device, who its jobs are, and what they weigh.
 */
#ifndef WEIR_SIM_CONTROL_SERVER_JOBS_H
#define WEIR_SIM_CONTROL_SERVER_JOBS_H

#include "control/adaptbf/gate.h"
#include "sim/world.h"

struct server_jobs {
	struct world_station *station;
	struct world_gate *gate;
	struct adaptbf_gate_leaf *leaves; /* ids are 1 + the index here */
	const char **names;               /* paths */
	size_t n;
};

/* The map's `device`, which may be left out if there is one only: it has a gate with tenants. */
int server_jobs_check(const struct scenario *s, yamldoc_node map, struct weir_err *err);
int server_jobs_init(
	struct server_jobs *j, struct world *w, yamldoc_node map, struct weir_err *err);
void server_jobs_free(struct server_jobs *j);

#endif
