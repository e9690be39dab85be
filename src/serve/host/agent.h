/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agent: the controllers of a host, on the gateway's main thread.
 *
 * Once a period, for each resource that the policy gives a controller: its upstream, if that is a gateway
 * like this one, is asked for how long limits held our requests there; the resource's thread leaves what its
 * gate measured (a posted task; nobody waits), the controller (control/parda/parda) makes a window of it and
 * of what the peers said, and the window goes back the same way. When all resources are through, the
 * peers are told, in one message (serve/host/peer.h). The first window is set before a client is let in.
 *
 *   agent.c        start, change of the policy, end; the peers
 *   agent-step.c   a period
 *   agent-say.c    the log
 */
#ifndef WEIR_SERVE_HOST_AGENT_H
#define WEIR_SERVE_HOST_AGENT_H

#include <weir/err.h>
#include "control/facts.h"
#include "policy/policy.h"
#include "serve/host/peer.h"

struct gateway;
struct agent;

/* Reaches the peers if the policy names some, and starts the clock. Workers run; the main loop does not. */
int agent_start(struct gateway *g, struct weir_err *err);
/* May this policy follow the one in force? -EINVAL: other peers take a restart. */
int agent_fits(const struct gateway *g, const struct weir_policy *p, struct weir_err *err);
/* g->policy is new, and in every resource. */
void agent_policy(struct gateway *g);
/* Tells the peers, stops and frees. The main loop does not run; it may be run for a moment. */
void agent_stop(struct gateway *g);

/* ---- look; main thread */

/* Fill the facts of the controller of a resource (index), if it has one here. */
void agent_look(
	const struct gateway *g, size_t resource, const struct facts_site *site, struct facts *ret);
/* false: no peers are named. */
bool agent_peers(const struct gateway *g, struct peer_stats *ret);

#endif
