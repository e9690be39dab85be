/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster: the gateway's side of a pShift cluster: the connections of its resources to the
 * controllers.
 *
 * Each resource is a server of the cluster by itself, with a link to every controller in the
 * policy; its messages go to all of them, and it decides which of them it follows
 * (control/pshift/server.h). Up to three servers may stand in for a controller (lessor.c), and have
 * links from every server, too. The links belong to the main thread, a server to its resource's
 * (serve/resource/control.c): frames and messages are passed by posted tasks, and no thread waits.
 */
#ifndef WEIR_SERVE_HOST_CLUSTER_H
#define WEIR_SERVE_HOST_CLUSTER_H

#include <weir/err.h>
#include "policy/policy.h"

struct gateway;
struct snapshot;

/* Read the key and begin to connect, if the policy has a cluster. Workers run; the main loop does
 * not. */
int cluster_start(struct gateway *g, struct weir_err *err);
/* Check that this policy may follow the one in force. -EINVAL: another cluster needs a restart. */
int cluster_fits(const struct gateway *g, const struct weir_policy *p, struct weir_err *err);
/* Another policy is in force. */
void cluster_policy(struct gateway *g);
/* Close the links and free. The main loop does not run; it is run for a moment. */
void cluster_stop(struct gateway *g);
/* Add the state of the links. Main thread. */
void cluster_look(const struct gateway *g, struct snapshot *s);

#endif
