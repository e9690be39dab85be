/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease-hub: the controller's side of its servers' connections: listens, and holds one guest per
 * server.
 *
 * BOUNDED  The number of guests is limited; a further one replaces the guest that is unproven (has
 *          not shown that it has the key) for longest, if there is one. A guest has a minute to
 *          prove that.
 * LOGGED   A guest that breaks the protocol is disconnected and logged; one line a minute per kind
 *          of problem.
 *
 * One thread: the loop's.
 */
#ifndef WEIR_SERVE_HOST_LEASE_HUB_H
#define WEIR_SERVE_HOST_LEASE_HUB_H

#include "serve/host/lease-conn.h"

struct lease_hub;
struct lease_guest; /* one connection */

struct lease_hub_config {
	struct loop *loop;
	const char *const *addresses; /* as in stream.h; at least one */
	size_t n_addresses;
	const struct peer_key *key; /* borrowed */
	uint64_t cluster, instance;
	const char *name; /* borrowed */
	size_t entries;   /* of a report, at most */
	size_t most;      /* guests; 0: 16,384 */
	/* Receive from a guest that has proven itself. May drop it. */
	void (*receive)(void *arg, struct lease_guest *g, struct lease_message *m);
	/* A guest that has sent a message disconnected: its `user` is the caller's again. */
	void (*gone)(void *arg, struct lease_guest *g);
	void *arg;
};
int lease_hub_new(
	const struct lease_hub_config *config, struct lease_hub **ret_hub, struct weir_err *err);
void lease_hub_free(struct lease_hub *h); /* does not call `gone` */

int lease_hub_send(struct lease_guest *g, uint8_t *frame, size_t n); /* as lease_conn_send */
/* Disconnect a guest; `gone` is not called. why: logged, as a problem; NULL: no problem. */
void lease_hub_drop(struct lease_guest *g, const char *why);
const char *lease_hub_name(const struct lease_guest *g); /* in its messages */
const char *lease_hub_peer(const struct lease_guest *g); /* its address */
void *lease_hub_user(const struct lease_guest *g);       /* the caller's; NULL at first */
void lease_hub_set_user(struct lease_guest *g, void *user);

struct lease_hub_stats {
	struct lease_conn_stats conn;
	uint64_t accepted, refused; /* connections; closed for a fault, or for lack of room */
	size_t guests, proven;      /* now */
};
void lease_hub_stats(const struct lease_hub *h, struct lease_hub_stats *ret);
/* Return an address on which it listens, with the actual port; NULL: no more. */
const char *lease_hub_address(const struct lease_hub *h, size_t i);

#endif
