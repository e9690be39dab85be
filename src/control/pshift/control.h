/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control: the controller of a cluster under pShift; control/pshift/pshift.h has the protocol.
 *
 * Whoever drives it does three things:
 *   pshift_control_receive   hands over each report
 *   pshift_control_step      at the latest when pshift_control_due says; after reports, too
 *   `send`                   carries its messages to one server
 *
 * ROUNDS   Servers measure when a period begins, and every interval. When all have been heard, or an eighth of an
 *          interval after the first news, tokens are placed again with what has been heard by then:
 *          of the rest of this period (claims and caps), and of a whole one (entitlements). Not if
 *          nothing changed; and a bucket that can be served as much with the tokens that its servers hold
 *          keeps them. What was heard last of a server is carried on: used + serving·t, and so on. Of
 *          who has been silent for a period the capacity counts as none, so that R-tokens go elsewhere.
 * INTERVAL (the paper's future work) Where demands that were reported differ from what was expected by
 *          more than 10 % of what the servers can do in the interval, it is halved; by less than 2 %, it
 *          grows by a quarter.
 * LIMITS   Raised only by what the books leave (control/pshift/books.h): what one server gives up is another's
 *          when the first has said so, one round trip later. Every server of a bucket keeps a floor:
 *          1/16 of the limit in all, less where the reservation is nearly the limit, 1 token each at least.
 *          Of what nobody wants half is spread, half is kept for whoever wants it next.
 *
 * Nothing here locks or reads a clock; one thread. O(entries) a round; an entry is a bucket at a server.
 */
#ifndef WEIR_CONTROL_PSHIFT_CONTROL_H
#define WEIR_CONTROL_PSHIFT_CONTROL_H

#include "control/cluster.h"
#include "control/pshift/alloc.h"
#include "control/pshift/pshift.h"

struct pshift_control;

/* 0, -EINVAL or -ENOMEM. */
int pshift_control_new(const struct cluster_lead_config *config, struct pshift_control **ret);
void pshift_control_free(struct pshift_control *c);
uint64_t pshift_control_instance(const struct pshift_control *c); /* as its messages have it */

/* Who belongs to the cluster: the name that its reports carry. Its index from 0, or -ENOMEM, -EINVAL. */
int64_t pshift_control_server(struct pshift_control *c, const char *name);

/* A new bucket, or other numbers of a known one (a limit that falls holds from the period after the
 * next): its index from 0, or -EINVAL, -ENOMEM. */
int64_t pshift_control_bucket(struct pshift_control *c, const struct cluster_bucket *b);

/* PEER_TAKEN; PEER_OLD: known already; PEER_UNPROVEN: started anew, and is asked first; PEER_NOISE: of who does not belong here; PEER_BROKEN: not for a
 * controller; PEER_CROWD: no memory. */
enum peer_verdict pshift_control_receive(
	struct pshift_control *c, weir_time now, const struct lease_message *m);
/* 0; -ENOMEM (the next step makes up for it). */
int pshift_control_step(struct pshift_control *c, weir_time now);
weir_time pshift_control_due(const struct pshift_control *c);

/* ---- looking at it */

void pshift_control_status(const struct pshift_control *c, struct cluster_status *ret);

/* What no allocation can meet, with the demand of the last round: one line for each group of servers that
 * are full (control/pshift/alloc.h). names: of a server and of a bucket, by index. 0 or -ENOMEM. */
int pshift_control_explain(struct pshift_control *c, pshift_name *server_name,
	pshift_name *bucket_name, void *arg, void (*line)(void *arg, const char *words));

#endif
