/* SPDX-License-Identifier: BSD-3-Clause */
/* live-cluster: servers, their controller and their clients, live; see live-cluster.c. */
#ifndef WEIR_PROG_LIVE_CLUSTER_H
#define WEIR_PROG_LIVE_CLUSTER_H

#include "prog/live-impl.h"
#include "sim/pshift-cluster.h"

/* live-cluster-plan.c: fills in servers, control and clients, and writes their files; starts them. */
int live_cluster_plan(struct live *l, struct weir_err *err);
int live_cluster_start(struct live *l, struct weir_err *err); /* the controller and the servers */
int live_cluster_start_clients(struct live *l, struct weir_err *err);
int live_cluster_start_control(struct live *l, struct weir_err *err);

#endif
