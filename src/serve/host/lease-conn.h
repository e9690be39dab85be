/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease-conn: one connection between a server of a cluster and its controller: frames in and out.
 *
 * Both sides are alike: each begins with a HELLO that carries a number at random, the other must put it
 * into all that it says, and what it says must be sealed, by the same name and instance, newer than the
 * last, and of a kind that the other side sends. Whatever is not so ends the connection.
 *
 * BOUNDED  Memory: while nobody has proven to have the key, one HELLO; then a frame that comes in, as far
 *          as it came, and what was not yet sent. Time: a HELLO has 5 s, and the other side 5 s to take
 *          something of what it is sent; else it is let go. Nothing is waited for.
 * LOST     What does not fit behind what is not yet sent is lost, which the protocol allows for: a later
 *          message says all that this one said.
 *
 * One thread: the loop's.
 */
#ifndef WEIR_SERVE_HOST_LEASE_CONN_H
#define WEIR_SERVE_HOST_LEASE_CONN_H

#include "serve/loop/loop.h"
#include "serve/host/peer-key.h"
#include "wire/lease.h"

struct lease_conn;

enum lease_side { LEASE_SERVER, LEASE_CONTROLLER };

struct lease_conn_stats {                 /* shared by many connections, if the owner likes */
	uint64_t verdicts[PEER_VERDICTS]; /* of frames that came */
	uint64_t sent, sent_bytes;        /* frames, with their seals */
	uint64_t received_bytes;          /* of whole frames */
	uint64_t lost;                    /* not sent: too much was waiting */
	uint64_t slow;                    /* connections let go since nothing was taken */
};

struct lease_conn_config {
	struct loop *loop;
	const struct peer_key *key; /* borrowed, as are all below */
	enum lease_side side;       /* ours */
	uint64_t cluster, instance; /* ours, for the HELLO; what is sent later may have another */
	const char *name;
	size_t entries; /* of a message that comes in, at most; larger ones end the connection */
	struct lease_conn_stats *stats;
	struct lease_message
		*message; /* where what comes is read; one for many connections will do */
	void (*greeted)(void *arg, struct lease_conn *c); /* its HELLO came; may be NULL */
	/* A message that is no HELLO, fresh and genuine. It lies in `message`; to keep its entries, take
	 * them and leave zeroes. */
	void (*receive)(void *arg, struct lease_conn *c, struct lease_message *m);
	/* It is over, by the other side or by the system, and is not used any more: free it. verdict: TAKEN
	 * if it is nobody's fault. `why` is for people. */
	void (*over)(void *arg, struct lease_conn *c, enum peer_verdict verdict, const char *why);
	void *arg;
	void *user; /* the owner's: lease_conn_user */
};

/* fd: connected and non-blocking; owned from now on, also on error. Says HELLO. 0 or -ENOMEM or what the
 * system says. */
int lease_conn_new(const struct lease_conn_config *config, int fd, struct lease_conn **ret);
/* Not inside `receive`: there it takes effect when that returns. */
void lease_conn_free(struct lease_conn *c);

/* The other side has proven that it has the key, and that it is there now. */
bool lease_conn_proven(const struct lease_conn *c);
/* Its HELLO came: it can be sent to. */
bool lease_conn_greeted(const struct lease_conn *c);
/* frame: as lease_write made it, n bytes, with PEER_SEAL bytes of room behind; its nonce and seal are
 * written here. 0; -ENOTCONN before the other's HELLO; -ENOBUFS: lost. An end comes by `over`, later. */
int lease_conn_send(struct lease_conn *c, uint8_t *frame, size_t n);
const char *lease_conn_peer(const struct lease_conn *c); /* "10.0.0.7:4711" */
const char *lease_conn_name(const struct lease_conn *c); /* as its HELLO has it; "" before that */
void *lease_conn_user(const struct lease_conn *c);

#endif
