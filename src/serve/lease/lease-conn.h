/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease-conn: one connection between a server of a cluster and its controller: frames in and out.
 *
 * Both sides are alike: each begins with a HELLO that carries a random number, which the other must
 * put into all its messages; these must be sealed, have the same name and instance, be newer than
 * the last, and of a kind that the other side sends. Anything else ends the connection.
 *
 * BOUNDED  Memory: before the other side has proven to have the key, one HELLO; then the received
 *          part of a frame, and unsent output. Time: 5 s for a HELLO, and 5 s for the other side to
 *          accept some of its data; else it is disconnected. Nothing blocks.
 * LOST     A frame that does not fit behind unsent ones is dropped, which the protocol allows: a
 *          later message contains all of it.
 *
 * One thread: the loop's.
 */
#pragma once

#include "serve/loop/loop.h"
#include "serve/peer/peer-key.h"
#include "wire/lease.h"

struct lease_conn;

enum lease_side { LEASE_SERVER, LEASE_CONTROLLER };

struct lease_conn_stats {                 /* shared by many connections, if the owner likes */
	uint64_t verdicts[PEER_VERDICTS]; /* of received frames */
	uint64_t sent, sent_bytes;        /* frames, with their seals */
	uint64_t received_bytes;          /* of whole frames */
	uint64_t lost;                    /* not sent: too much was waiting */
	uint64_t slow;                    /* connections closed because nothing was accepted */
};

struct lease_conn_config {
	struct loop *loop;
	const struct peer_key *key; /* borrowed, as are all below */
	enum lease_side side;       /* ours */
	bool fabric;                /* of the fabric's broker: only LEASE_USAGE and LEASE_LIMITS */
	uint64_t cluster, instance; /* ours, for the HELLO; later messages may have another */
	const char *name;
	size_t entries; /* most entries of a received message; larger ones end the connection */
	struct lease_conn_stats *stats;
	struct lease_message
		*message; /* where messages are read into; many connections may share one */
	void (*greeted)(void *arg, struct lease_conn *c); /* its HELLO arrived; may be NULL */
	/* Receive a message other than a HELLO, fresh and genuine. It is in `message`; to keep its
	 * entries, take them and leave zeroes. */
	void (*receive)(void *arg, struct lease_conn *c, struct lease_message *m);
	/* The connection has ended, by the other side or by the system, and is no longer used: free
	 * it. verdict: TAKEN if there is no fault. `why` is for people. */
	void (*over)(void *arg, struct lease_conn *c, enum peer_verdict verdict, const char *why);
	void *arg;
	void *user; /* the owner's: lease_conn_user */
};

/* Make a connection and send HELLO. fd: connected and non-blocking; owned from now on, also on
 * error. 0, -ENOMEM or the system's error. */
int lease_conn_new(const struct lease_conn_config *config, int fd, struct lease_conn **ret);
/* Inside `receive` it takes effect when that returns. */
void lease_conn_free(struct lease_conn *c);

/* Return true if the other side has proven that it has the key, and that it is live. */
bool lease_conn_proven(const struct lease_conn *c);
/* Send a frame made by lease_write, n bytes, with PEER_SEAL bytes of room after it; its nonce and
 * seal are written here. 0; -ENOTCONN before the other's HELLO; -ENOBUFS: dropped. An end is
 * reported by `over`, later. */
int lease_conn_send(struct lease_conn *c, uint8_t *frame, size_t n);
/* Send a message that carries bytes (lease_has_bytes); everything before its union is filled in here. As lease_conn_send; -EPROTONOSUPPORT: the other
 * side's version knows no plans. */
int lease_conn_tell(struct lease_conn *c, struct lease_message *m);
bool lease_conn_plans(const struct lease_conn *c);       /* the other side knows plans */
const char *lease_conn_peer(const struct lease_conn *c); /* "10.0.0.7:4711" */
const char *lease_conn_name(const struct lease_conn *c); /* as in its HELLO; "" before that */
void *lease_conn_user(const struct lease_conn *c);
void lease_conn_allow(struct lease_conn *c, size_t entries); /* changes config.entries */
