/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-impl: shared by the files of the peers.
 *
 *   peer.c              names, counters, logging, messages
 *   peer-key.c          the key and the seal
 *   peer-udp.c          datagrams; peer-udp-address.c: their sockets
 *   peer-file.c         a shared file, once a period; peer-file-open.c: opens or makes it
 */
#pragma once

#include "serve/peer/peer.h"
#include "serve/peer/peer-key.h"
#include <netinet/in.h>

#define PEER_SEALED_MAX (PEER_MAX + PEER_SEAL) /* bytes of a message with its seal */
/* ns: hosts heard within this time count as present */
#define PEER_HEARD (10 * WEIR_SEC)

struct peers_ops {
	void (*send)(struct peers *p); /* sends peers->last */
	void (*tell)(struct peers *p, const struct sockaddr_storage *to, enum peer_kind kind,
		const uint64_t *words, unsigned n);                 /* NULL: not here */
	void (*stats)(const struct peers *p, struct peer_stats *s); /* adds its own counters */
	void (*close)(struct peers *p); /* and calls peer_closed at the end */
};

struct peers { /* first member of either way */
	const struct peers_ops *ops;
	struct peer_config config; /* its strings belong to the caller, and are not used later */
	struct peer_key key;
	struct peer_message last; /* our message: name, cluster, instance, sequence, reports */
	struct peer_stats stats;
	weir_time said[PEER_VERDICTS + 1]; /* when it was last logged; 0: never */
	void (*closed)(void *arg);
	void *closed_arg;
};

/* Return our next message. The caller seals it. */
const struct peer_message *peer_next(struct peers *p, enum peer_kind kind);
/* Count the outcome of a message, and log it if it indicates a problem, once a minute. from: the
 * sender, for people; may be NULL. */
void peer_count(struct peers *p, enum peer_verdict v, const char *from);
/* Deliver a fresh message. from: NULL for a file; same: its name is used by two hosts. */
void peer_deliver(struct peers *p, const struct peer_message *m,
	const struct sockaddr_storage *from, bool same, weir_time now);
void peer_closed(struct peers *p); /* frees the common parts, but not p, and calls `closed` */

int peer_udp_check(const char *const *addresses, struct weir_err *err);
int peer_udp_open(const struct peer_config *config, struct peers **ret_peers, struct weir_err *err);
int peer_file_check(const char *address, struct weir_err *err);
int peer_file_open(
	const struct peer_config *config, struct peers **ret_peers, struct weir_err *err);

/* Initialise the common parts of both transports. */
int peer_init(struct peers *p, const struct peers_ops *ops, const struct peer_config *config,
	struct weir_err *err);

/* ---- peer-udp-address.c */

struct peer_udp_target {
	struct sockaddr_storage at;
	socklen_t len;
};
struct peer_udp_sockets {
	int own;   /* sends, and receives messages to this host */
	int group; /* receives messages to the group; -1: none */
	struct peer_udp_target *to;
	unsigned n_to;
};
int peer_udp_sockets(const struct peer_config *config, struct peer_udp_sockets *ret_sockets,
	struct weir_err *err);
/* Format "10.0.0.2:7000", for people. */
const char *peer_udp_name(const struct sockaddr_storage *at, char text[80]);

/* ---- peer-file-open.c */

struct peer_slots_config; /* wire/peer-slots.h */

/* ns: an NBD server that is away for longer is an error */
#define PEER_FILE_TIMEOUT (10 * WEIR_SEC)

struct peer_file_place {
	char *back;     /* for back_open; allocated */
	unsigned slots; /* from its header */
};
/* Examine the file at an address, and make it if it is missing; c makes the seals. May block. */
int peer_file_place(const char *address, const struct peer_slots_config *c,
	struct peer_file_place *ret_place, struct weir_err *err);
