/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease-hub: the controller's side of its servers' connections: listens, and holds one connection a server.
 *
 * BOUNDED  So many connections and no more, and reports of so many entries, as long as the owner allows no others; a
 *          connection that comes then takes the place of the one that has gone longest without proving that it has the
 *          key, if there is such. No connection has more than a minute for that.
 * SAID     Whoever breaks the protocol is cut off and one line says so; of one sort of trouble there is a
 *          line a minute.
 *
 * One thread: the loop's.
 */
#pragma once

#include "serve/lease/lease-conn.h"

struct lease_hub;
struct lease_hub_server; /* one connection, of a server */

struct lease_hub_config {
	struct loop *loop;
	const char *const *addresses; /* as in stream.h; at least one */
	size_t n_addresses;
	const struct peer_key *key; /* borrowed */
	uint64_t cluster, instance;
	const char *name; /* borrowed */
	bool fabric;      /* as lease_conn_config */
	size_t entries;   /* of a report, at most; later: lease_hub_allow */
	size_t most;      /* connections; 0: 16,384; the same */
	/* From a server that has proven itself. May drop it. */
	void (*receive)(void *arg, struct lease_hub_server *g, struct lease_message *m);
	/* A server's connection has closed after `receive` was called; its `user` is the caller's again. */
	void (*gone)(void *arg, struct lease_hub_server *g);
	void *arg;
};
int lease_hub_new(
	const struct lease_hub_config *config, struct lease_hub **ret_hub, struct weir_err *err);
void lease_hub_free(struct lease_hub *h); /* does not call `gone` */
/* From now on, for connections that are there, too: so many entries of a report, and so many connections (0: as above).
 * Those beyond it stay. */
void lease_hub_allow(struct lease_hub *h, size_t entries, size_t most);

int lease_hub_send(struct lease_hub_server *g, uint8_t *frame, size_t n); /* as lease_conn_send */
int lease_hub_tell(struct lease_hub_server *g, struct lease_message *m);  /* as lease_conn_tell */
bool lease_hub_plans(const struct lease_hub_server *g);
/* Cuts it off; `gone` is not called. why: said, as trouble; NULL: nothing is wrong. */
void lease_hub_drop(struct lease_hub_server *g, const char *why);
const char *lease_hub_peer(const struct lease_hub_server *g); /* its address */
void *lease_hub_user(const struct lease_hub_server *g);       /* the caller's; NULL at first */
void lease_hub_set_user(struct lease_hub_server *g, void *user);

struct lease_hub_stats {
	struct lease_conn_stats conn;
	uint64_t accepted, refused; /* connections; ended for what they did, or for want of room */
	size_t servers, proven;     /* connections, now */
};
void lease_hub_stats(const struct lease_hub *h, struct lease_hub_stats *ret);
/* Return an address on which it listens, with the actual port; NULL: no more. */
const char *lease_hub_address(const struct lease_hub *h, size_t i);
