/* SPDX-License-Identifier: BSD-3-Clause */
/* live-cluster: run servers, their controller and their clients live; see live-cluster.c. */
#pragma once

#include "cli/live/live-impl.h"
#include "sim/cluster/cluster.h"

/*
 * The largest rate of a live server, requests a second. A faster server is slowed down, with all
 * rates of its cluster, and measured rates are scaled back: eight servers, with their clients, must
 * fit on two cores.
 */
#define LIVE_CLUSTER_MOST  1000.0
#define LIVE_CLUSTER_LEAST 250.0
#define LIVE_CLUSTER_TOKENS                                                                        \
	150.0 /* of a reservation in a period, if its rate is between these two */

/* live-cluster-plan.c: set up servers, control and clients, and write their files. */
int live_cluster_plan(
	struct live *l, const struct sim_cluster_config *config, struct weir_err *err);
int live_cluster_start_clients(struct live *l, struct weir_err *err);
