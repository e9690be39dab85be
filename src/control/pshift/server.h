/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: one server of a cluster under pShift; control/pshift/pshift.h defines the protocol.
 *
 * The driver does three things:
 *   pshift_server_look     reads the gate's counters, at pshift_server_due at the latest; it
 *                          reports (through `grant`) by how much each bucket's tokens change
 *   pshift_server_receive  passes each message of the controller
 *   `send`                 sends its messages
 * Between two looks the gate spends only tokens that it was granted: a driver that stalls exceeds
 * no limit, it only serves less.
 *
 * DEMAND   (§III-D) What waits, and what arrived in the last interval, extrapolated to the period's end; of
 *          a closed loop (pshift.h) what the server can do. Capacity is the caller's estimate. Demand of a
 *          bucket with a limit that comes or leaves is measured at once: it would be held until then.
 * TOKENS   Of a bucket without a limit: R-tokens are granted as they come due, 1/32 of a period ahead and 125 ms
 *          at least, an eighth at most (where no bucket has a limit: at once). If more came ahead, small claims would be served
 *          first and large ones at the period's end: with an eighth, by a server whose capacity was all claimed, the
 *          largest of 100 claims had a third of its part after 60 % of a period, and could then not be made up for at
 *          another server. With a limit, R- and L-tokens together come in at the
 *          rate of its cap, spread over the period, and a gate holds what comes in in 20 ms, and 2 at least, so that a first
 *          request never waits for any of this. What was not used in time is lost, as with the max of
 *          a single gateway: over all servers, no second has more than 1.05 times the limit's part of it,
 *          and a request at each server: caps add up to no more than the limit at any time. A claim that would
 *          not be met at that rate comes in faster, if by the controller's count all that make up for one stay within
 *          the limit's pace beside the present service of the others; beyond it if demand has moved between servers, or
 *          waited for its turn with tokens at the gate: a second may then have what is left of the reservation
 *          besides. Not where tokens were with a server that ended, or while this one
 *          had only its static parts: a server that ends or starts lets no more pass in a second.
 * BORROW   HELD and STATIC: AdapTBF (control/lend/lend) over the entitlements, every 100 ms.
 *
 * Nothing here locks or reads a clock; one thread.
 */
#pragma once

#include "control/cluster.h"
#include "control/pshift/pshift.h"
#include <stdbool.h>

struct pshift_server;

/* 0, -EINVAL or -ENOMEM. */
int pshift_server_new(const struct cluster_server_config *config, struct pshift_server **ret);
void pshift_server_free(struct pshift_server *s);

/* A new bucket, or another part of a known one: its index, counting from 0, or -ENOMEM. Its counters are
 * taken to begin at `served`. */
int64_t pshift_server_add(
	struct pshift_server *s, const struct cluster_server_bucket *b, uint64_t served);

/* Return the index of a bucket that was added, or -ENOENT. */
int64_t pshift_server_find(const struct pshift_server *s, uint64_t id);

/* The loads of all buckets by index; capacity in tokens a second, as it is estimated now. 0 or -ENOMEM
 * (the next look makes up for it). */
int pshift_server_look(struct pshift_server *s, weir_time now,
	const struct cluster_server_load *loads, double capacity);
/* Return an array by index, not 0 for each bucket that rests; NULL: none does. Its load need not be up to date: it is
 * taken to be as in the last look. */
const uint8_t *pshift_server_resting(const struct pshift_server *s);
/* A request of that bucket came. Before a look. */
void pshift_server_wake(struct pshift_server *s, size_t index);
/* When to look next, at the latest. */
weir_time pshift_server_due(const struct pshift_server *s);

/* PEER_TAKEN, PEER_OLD (from another controller, late, or known already), PEER_BROKEN (not for a
 * server). After PEER_TAKEN, look at once: tokens may have changed. */
enum peer_verdict pshift_server_receive(
	struct pshift_server *s, weir_time now, const struct lease_message *m);

/* The highest generation that it, or an instance before it, obeyed: it takes nothing of an older one, and reports it. */
void pshift_server_obeyed(struct pshift_server *s, uint64_t generation);
/* A controller has connected: report the holdings of this server. Look soon. */
void pshift_server_met(struct pshift_server *s);
/* The connection to that controller (its instance) was closed: tell the others at once that it is
 * no longer followed, so that they may take over. Look soon. It is followed again if it sends a
 * message. */
void pshift_server_lost(struct pshift_server *s, uint64_t controller);

/* ---- looking at it */

struct pshift_server_status {
	enum lease_state state;
	uint64_t period, granted, generation;
	uint64_t until; /* the last period for which it keeps its holdings */
	weir_time interval;
	uint64_t reports, entries, taken, refused; /* messages out, entries in them; grants in */
};
void pshift_server_status(const struct pshift_server *s, struct pshift_server_status *ret);

struct pshift_server_tokens {
	int64_t used, claim, cap, reserved, limit; /* cap and limit may be LEASE_NO_LIMIT */
	int64_t r, l;                              /* at the gate */
	bool closed;
};
void pshift_server_tokens(
	const struct pshift_server *s, size_t index, struct pshift_server_tokens *ret);
