/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: the controller of a cluster under pShift; control/pshift/pshift.h defines the protocol.
 *
 * The driver does three things:
 *   pshift_control_receive   passes each report
 *   pshift_control_step      is called at pshift_control_due at the latest; also after reports
 *   `send`                   sends a message to one server
 *
 * ROUNDS   Servers measure when a period begins, and every interval. When all have reported, or an
 *          eighth of an interval after the first report, tokens are placed again: those of the rest
 *          of this period (claims and caps), and those of a whole one (entitlements). Not if
 *          nothing changed; and a bucket that can be served as much with the tokens that its
 *          servers hold keeps them. A server's last report is extrapolated: used + serving·t, and
 *          so on. A server that has been silent for a period counts with no capacity, so that
 *          R-tokens go elsewhere.
 * INTERVAL (the paper's future work) If reported demand differs from the expected by more than 10 %
 *          of the servers' capacity in the interval, the interval is halved; below 2 %, it grows by
 *          a quarter. It is the shortest when demand of a bucket with a limit comes to a server or leaves
 *          one: the bucket has only its floor there until the next round.
 * LIMITS   Raised only by the rest in the books (control/pshift/books.h): a part that one server
 *          gives up is given to another when the first has acknowledged, one round trip later.
 *          Every server of a bucket keeps a floor: 1/16 of the limit in all, less if the
 *          reservation is nearly the limit, at least 1 token each. Of the unwanted rest half is
 *          spread, half is kept for new demand.
 *
 * Nothing here locks or reads a clock; one thread. O(entries) a round; an entry is a bucket at a
 * server.
 */
#pragma once

#include "control/cluster.h"
#include "control/pshift/alloc.h"
#include "control/pshift/pshift.h"

struct pshift_control;

/* 0, -EINVAL or -ENOMEM. */
int pshift_control_new(const struct cluster_lead_config *config, struct pshift_control **ret);
void pshift_control_free(struct pshift_control *c);
uint64_t pshift_control_instance(const struct pshift_control *c); /* as in its messages */

/* Add a server of the cluster by the name in its reports. Return its index from 0, or -ENOMEM,
 * -EINVAL. */
int64_t pshift_control_server(struct pshift_control *c, const char *name);

/* A new bucket, or other numbers of a known one (a limit that falls holds from the period after the
 * next): its index from 0, or -EINVAL, -ENOMEM. */
int64_t pshift_control_bucket(struct pshift_control *c, const struct cluster_bucket *b);
/* See control/cluster.h. */
int64_t pshift_control_stage(struct pshift_control *c, const struct cluster_bucket *b);
void pshift_control_enter(struct pshift_control *c);
void pshift_control_elect(struct pshift_control *c, uint64_t generation);

/* PEER_TAKEN; PEER_OLD: known already; PEER_UNPROVEN: restarted, and is asked first; PEER_NOISE:
 * from a server outside the cluster; PEER_BROKEN: not for a controller; PEER_CROWD: no memory. */
enum peer_verdict pshift_control_receive(
	struct pshift_control *c, weir_time now, const struct lease_message *m);
/* 0; -ENOMEM (the next step repeats it). */
int pshift_control_step(struct pshift_control *c, weir_time now);
weir_time pshift_control_due(const struct pshift_control *c);

/* ---- looking at it */

void pshift_control_status(const struct pshift_control *c, struct cluster_status *ret);

/* Report demand that no allocation can meet, by the last round: one line for each group of full
 * servers (control/pshift/alloc.h). The functions return names of servers and buckets by index. 0
 * or -ENOMEM. */
int pshift_control_explain(struct pshift_control *c, pshift_name *server_name,
	pshift_name *bucket_name, void *arg, void (*line)(void *arg, const char *words));
