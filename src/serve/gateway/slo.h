/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slo: whether tenants' slos are met, over the last minute and hour, from all resources together.
 *
 * Once a second the main thread takes the records of each resource with activity (resource_watch),
 * and logs when a window begins to be missed, and when that is over. A tenant keeps its windows
 * over a change of the policy if its path and its slo stay, and its counters if it still has an
 * slo. At most GATEWAY_SLO_HISTOGRAMS active tenants have percentiles, of 41 KiB each; for the
 * others only met or missed is known.
 *
 * Main thread, except for gateway_slo_take.
 */
#pragma once

#include "serve/gateway/impl.h"
#include "serve/snapshot/snapshot.h"

#define GATEWAY_SLO_HISTOGRAMS 2048

/* The workers run. 0 or -ENOMEM. */
int gateway_slo_start(struct gateway *g);
void gateway_slo_stop(struct gateway *g);
void gateway_slo_policy(struct gateway *g); /* g->policy has changed */

/* For a snapshot: begin; take from every resource, on its thread while the main one waits; look,
 * which adds the slos to the snapshot: O(tenants with an slo). */
void gateway_slo_begin(struct gateway *g);
void gateway_slo_take(struct gateway *g, struct gateway_resource *r);
void gateway_slo_look(struct gateway *g, struct snapshot *s);
