/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server: one server of a cluster under pShift; control/pshift/pshift.h has the protocol.
 *
 * Whoever drives it does three things:
 *   pshift_server_look     reads the gate's counters, at least when pshift_server_due says so; it
 *                          says (through `grant`) by how much each bucket's tokens change
 *   pshift_server_receive  hands over each message of the controller
 *   `send`                 carries its messages
 * Between two looks the gate spends only tokens that it was granted: a driver that stalls passes no
 * limit, it only serves less.
 *
 * DEMAND   (§III-D) What waits, and what arrived in the last interval, extrapolated to the period's end; of
 *          a closed loop (pshift.h) what the server can do. Capacity is the caller's estimate.
 * TOKENS   Of a bucket without a limit: R-tokens are granted as they come due, an eighth of a period ahead
 *          (where no bucket has a limit: at once). With a limit, R- and L-tokens together come in at the
 *          rate of its entitlement, and a gate holds what comes in in 20 ms, and 2 at least, so that a first
 *          request never waits for any of this. What was not used in time is lost, as with the max of
 *          a single gateway: over all servers, no second has more than 1.05 times the limit's part of it,
 *          and a request at each server. A claim that would not be met at that rate, since demand has moved
 *          here, comes in faster: a second may then have what is left of the reservation besides. Not
 *          in the period in which a server that had only static parts is granted more: what is missing of a
 *          claim then says nothing of demand.
 * BORROW   HELD and STATIC: AdapTBF (control/adaptbf/adaptbf) over the entitlements, every 100 ms.
 *
 * Nothing here locks or reads a clock; one thread.
 */
#ifndef WEIR_CONTROL_PSHIFT_SERVER_H
#define WEIR_CONTROL_PSHIFT_SERVER_H

#include "control/pshift/pshift.h"
#include <stdbool.h>

struct pshift_server;

struct pshift_server_config {
	const char *name;  /* copied; peer_name_check */
	uint64_t cluster;  /* peer_hash of its name */
	uint64_t instance; /* random at each start, not 0 */
	weir_time length;  /* ns of a QoS period, until a controller says */
	bool fresh; /* the cluster's first start, or this server's: need not be BLIND (pshift.h) */
	/* What is not worth a report, as a part of what was expected; 0: 0.02, below 0: nothing is. */
	double tolerance;
	/* Bucket `index` gets so many R- and L-tokens more at the gate, or fewer; exact. */
	void (*grant)(void *arg, size_t index, int64_t r, int64_t l);
	/* A message for the controller: to be sent or lost before this returns. */
	void (*send)(void *arg, const struct lease_message *m);
	void *arg;
};

/* 0, -EINVAL or -ENOMEM. */
int pshift_server_new(const struct pshift_server_config *config, struct pshift_server **ret);
void pshift_server_free(struct pshift_server *s);

struct pshift_server_bucket {
	uint64_t id; /* peer_hash of its name */
	/* Its part of the reservation, and of the limit (or LEASE_NO_LIMIT), in tokens a period, when no
	 * controller is there. Parts of limits add up to no more than the limit over all servers. */
	int64_t reserved, limit;
	int64_t reservation; /* over all servers; 0: it never waits for a stand-in (pshift.h) */
};
/* A new bucket, or another part of a known one: its index, counting from 0, or -ENOMEM. Its counters are
 * taken to begin at `served`. */
int64_t pshift_server_add(
	struct pshift_server *s, const struct pshift_server_bucket *b, uint64_t served);

/* The index of a bucket that was added, or -ENOENT. */
int64_t pshift_server_find(const struct pshift_server *s, uint64_t id);

struct pshift_server_load {       /* counters of one bucket since any origin; tokens (requests) */
	uint64_t arrived, served; /* served: for which the gate spent tokens, or would have */
	uint64_t queued;          /* waiting now */
	double waited;            /* request·ns, as the gate counts them */
	uint64_t inside;          /* passed and not yet done */
};
/* The loads of all buckets by index; capacity in tokens a second, as it is estimated now. 0 or -ENOMEM
 * (the next look makes up for it). */
int pshift_server_look(struct pshift_server *s, weir_time now,
	const struct pshift_server_load *loads, double capacity);
/* When to look next, at the latest. */
weir_time pshift_server_due(const struct pshift_server *s);

/* PEER_TAKEN, PEER_OLD (another controller's, late, or known already), PEER_BROKEN (not for a server).
 * After a message that was taken, look at once: tokens may have changed. */
enum peer_verdict pshift_server_receive(
	struct pshift_server *s, weir_time now, const struct lease_message *m);

/* A controller has connected: it is told what this server holds. Look soon. */
void pshift_server_met(struct pshift_server *s);
/* The connection to that controller (its instance) was closed: others are told at once that it is no longer
 * followed, and may take over. Look soon. It is followed again if it speaks. */
void pshift_server_lost(struct pshift_server *s, uint64_t controller);

/* ---- looking at it */

struct pshift_server_status {
	enum lease_state state;
	uint64_t period, granted, generation;
	uint64_t until; /* the last period for which it holds what it was told */
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

#endif
