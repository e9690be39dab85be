/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reports: the messages between the controllers of hosts (control/controller.h, has_peers), on the gateway's main thread.
 *
 * A controller publishes a report once a period, on its resource's thread. When all resources have, the peers get one
 * message with the reports of all (serve/host/peer.h); a resource that is late is left out until the next message. Messages
 * of peers go to the resources that they are about. Resources of this host with one name among the hosts are each other's
 * peers, too. Threads hand over by posted tasks; none waits.
 */
#pragma once

#include "policy/policy.h"
#include "serve/host/peer.h"

struct gateway;
struct gateway_resource;

/* Reach the peers if the policy names some, and start the clock. Resources are open; their threads do not run yet. */
int reports_start(struct gateway *g, struct weir_err *err);
/* Give a resource, which does not run yet, its place among them; does nothing before reports_start, which does the same
 * for all. Any thread. 0 or -ENOMEM. */
int reports_join(struct gateway_resource *r);
/* Main thread: it is removed: it sends and receives nothing more. reports_forget: its thread has nothing of it. */
void reports_leave(struct gateway_resource *r);
void reports_forget(struct gateway_resource *r);

/* Check that this policy may follow the one in force. -EINVAL: other peers take a restart. */
int reports_fits(const struct gateway *g, const struct weir_policy *p, struct weir_err *err);
/* Take over g->policy, which is new, and in every resource. */
void reports_policy(struct gateway *g);
/* Tell the peers, stop and free. The main loop does not run; it may be run for a moment. */
void reports_stop(struct gateway *g);
/* false: no peers are named. */
bool reports_stats(const struct gateway *g, struct peer_stats *ret);
