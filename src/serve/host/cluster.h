/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster: the gateway's side of a cluster: the links of each of its resources to the controllers.
 *
 * Each resource is a server of the cluster by itself, with a link to every controller that the policy names. Its messages go
 * to all of them, and it decides itself which of them it follows. Up to three servers may stand in for a controller
 * (control.c), and have links of every server, too. The links are the main thread's, a server is its resource's
 * (serve/resource/control.c): frames and messages change hands by posted tasks, and no thread waits.
 */
#pragma once

#include "policy/policy.h"

struct gateway;
struct gateway_resource;
struct snapshot;

/* Read the key and begin to connect, if the policy has a cluster. Workers run; the main loop does
 * not. */
int cluster_start(struct gateway *g, struct weir_err *err);
/* Main thread: a resource was added to the policy in force, or removed from it. cluster_forget: its thread has nothing of the
 * cluster's any more. */
void cluster_join(struct gateway_resource *r);
void cluster_leave(struct gateway_resource *r);
void cluster_forget(struct gateway_resource *r);

/* Check that this policy may follow the one in force. -EINVAL: another cluster needs a restart. */
int cluster_fits(const struct gateway *g, const struct weir_policy *p, struct weir_err *err);
/* Another policy is in force. */
void cluster_policy(struct gateway *g);
/* Close the links and free. The main loop does not run; it is run for a moment. */
void cluster_stop(struct gateway *g);
/* Add the state of the links. Main thread. */
void cluster_look(const struct gateway *g, struct snapshot *s);
