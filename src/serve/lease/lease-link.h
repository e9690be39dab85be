/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease-link: a server's connection to one controller, with reconnection.
 *
 * A controller may be away for long: attempts come after 0.1 s, then ever more rarely up to
 * `retry`, each with jitter so that a whole cluster does not reconnect at once. The loss or refusal
 * of a controller, and its return, are logged, not every attempt.
 *
 * One thread: the loop's. Nothing here blocks it.
 */
#pragma once

#include "serve/lease/lease-conn.h"

struct lease_link;

struct lease_link_config {
	const char *address; /* of the controller, as in stream.h; copied */
	weir_time retry;     /* ns between two attempts, at most, or 0.1 s; 0: 5 s */
	bool quiet;          /* log nothing about it */
	/* For its connections: loop, key, cluster, instance, name, entries, stats, message:
	 * borrowed. */
	struct lease_conn_config conn;
	void (*receive)(void *arg, struct lease_message *m); /* as lease_conn's */
	void (*up)(void *arg);   /* messages can be sent from now on; may be NULL */
	void (*down)(void *arg); /* they no longer can; may be NULL */
	void *arg;
};
/* Begin to connect. 0 or -ENOMEM. */
int lease_link_new(const struct lease_link_config *config, struct lease_link **ret);
void lease_link_free(struct lease_link *l);

/* As lease_conn_send; -ENOTCONN while it is not connected: dropped. */
int lease_link_send(struct lease_link *l, uint8_t *frame, size_t n);

/* As lease_conn_tell. */
int lease_link_tell(struct lease_link *l, struct lease_message *m);

struct lease_link_status {
	const char *address;
	bool up;         /* the controller has proven that it has the key */
	uint64_t downs;  /* connections that were lost or refused */
	weir_time since; /* since when it is up, or down; CLOCK_MONOTONIC */
	char why[96];    /* of the last loss; "": none */
};
void lease_link_status(const struct lease_link *l, struct lease_link_status *ret);
