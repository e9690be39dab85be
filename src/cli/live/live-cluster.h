/* SPDX-License-Identifier: BSD-3-Clause */
/* live-cluster: servers, their controller and their clients, live; see live-cluster.c. */
#ifndef WEIR_CLI_LIVE_LIVE_CLUSTER_H
#define WEIR_CLI_LIVE_LIVE_CLUSTER_H

#include "cli/live/live-impl.h"
#include "sim/control/pshift-cluster.h"

/* Requests a second that a server does live, at most. One that would do more is made slower, like all rates
 * of its cluster, and the rates that are measured are given as if it were not: eight of them, with their
 * clients, must find room on two cores. */
#define LIVE_CLUSTER_MOST  1000.0
#define LIVE_CLUSTER_LEAST 250.0
#define LIVE_CLUSTER_TOKENS                                                                        \
	150.0 /* of a reservation in a period, if that is a rate between these two */

/* live-cluster-plan.c: fills in servers, control and clients, and writes their files; starts them. */
int live_cluster_plan(
	struct live *l, const struct pshift_cluster_config *config, struct weir_err *err);
int live_cluster_start(/* the controller, if there is to be one, and the servers */
	struct live *l, const struct pshift_cluster_config *config, struct weir_err *err);
int live_cluster_start_clients(struct live *l, struct weir_err *err);
int live_cluster_start_control(struct live *l, struct weir_err *err);

#endif
