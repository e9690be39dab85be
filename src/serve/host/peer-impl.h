/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer-impl: what the parts of serve/host/peer share. Nobody else includes this.
 *
 *   peer.c              names, what is counted and said, messages
 *   peer-key.c          the key and the seal
 *   peer-udp.c          datagrams; peer-udp-address.c: their sockets
 *   peer-file.c         a shared file, once a period; peer-file-open.c: what it is, and making it
 */
#ifndef WEIR_SERVE_HOST_PEER_IMPL_H
#define WEIR_SERVE_HOST_PEER_IMPL_H

#include "serve/host/peer.h"
#include "serve/host/peer-key.h"
#include <netinet/in.h>

#define PEER_SEALED_MAX (PEER_MAX + PEER_SEAL) /* bytes of a message with its seal */
#define PEER_HEARD      (10 * WEIR_SEC)        /* ns: hosts heard within it are counted as there */

struct peers_ops {
	void (*send)(struct peers *p);                              /* what peers->last holds */
	void (*stats)(const struct peers *p, struct peer_stats *s); /* adds what it alone knows */
	void (*close)(struct peers *p); /* and calls peer_closed at the end */
};

struct peers { /* first member of either way */
	const struct peers_ops *ops;
	struct peer_config config; /* strings in it are the opener's, and are not looked at later */
	struct peer_key key;
	struct peer_message last; /* what we say: name, cluster, instance, sequence, reports */
	struct peer_stats stats;
	weir_time said[PEER_VERDICTS + 1]; /* when it was last logged; 0: never */
	void (*closed)(void *arg);
	void *closed_arg;
};

/* The next message of ours. The caller seals it. */
const struct peer_message *peer_next(struct peers *p, enum peer_kind kind);
/* Counts what became of a message, and logs it if it is a sign of something wrong, once a minute. from:
 * who, for people; may be NULL. */
void peer_count(struct peers *p, enum peer_verdict v, const char *from);
/* Hands over what is fresh. same: its name is used by two. */
void peer_deliver(struct peers *p, const struct peer_message *m, bool same, weir_time now);
void peer_closed(struct peers *p); /* frees what is common, but not p, and tells */

int peer_udp_check(const char *const *addresses, struct weir_err *err);
int peer_udp_open(const struct peer_config *config, struct peers **ret_peers, struct weir_err *err);
int peer_file_check(const char *address, struct weir_err *err);
int peer_file_open(
	const struct peer_config *config, struct peers **ret_peers, struct weir_err *err);

/* Fills in what both ways have in common. */
int peer_init(struct peers *p, const struct peers_ops *ops, const struct peer_config *config,
	struct weir_err *err);

/* ---- peer-udp-address.c */

struct peer_udp_target {
	struct sockaddr_storage at;
	socklen_t len;
};
struct peer_udp_sockets {
	int own;   /* sends, and hears who speaks to us alone */
	int group; /* hears who speaks to all; -1: none */
	struct peer_udp_target *to;
	unsigned n_to;
};
int peer_udp_sockets(const struct peer_config *config, struct peer_udp_sockets *ret_sockets,
	struct weir_err *err);
/* "10.0.0.2:7000", for people. */
const char *peer_udp_name(const struct sockaddr_storage *at, char text[80]);

/* ---- peer-file-open.c */

struct peer_slots_config; /* wire/peer-slots.h */

#define PEER_FILE_TIMEOUT (10 * WEIR_SEC) /* ns: an NBD server away for longer is an error */

struct peer_file_place {
	char *back;     /* for back_open; allocated */
	unsigned slots; /* that its header says */
};
/* Finds out what stands at an address, and makes what is not there yet; c says how seals are made. May
 * block. */
int peer_file_place(const char *address, const struct peer_slots_config *c,
	struct peer_file_place *ret_place, struct weir_err *err);

#endif
