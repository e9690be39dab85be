/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-link: a connection to an NBD server until it can carry requests: connecting, the handshake,
 * TLS inside it. For all clients: the NBD back end and `weir load`.
 *
 * METHOD  The handshake is wire/nbd-greet.c, fed from a loop (nbd_link_greet) or from poll
 *         (nbd_link_open).
 */
#pragma once

#include <weir/clock.h>
#include "serve/back/nbd-uri.h"
#include "serve/loop/stream.h"

struct tls;

enum nbd_link_state {
	NBD_LINK_NONE,  /* no socket */
	NBD_LINK_GREET, /* in the handshake */
	NBD_LINK_TLS,   /* in the TLS handshake inside it */
	NBD_LINK_READY, /* can carry requests */
};

struct nbd_link {
	enum nbd_link_state state;
	struct stream stream;
	struct nbd_greet greet;
	size_t n_out, out_at;
	uint8_t out[NBD_GREET_OUT]; /* our output */
	char why[200];              /* why it failed */
};

/* Begin the handshake on a connected socket, which the link owns from now on. The caller may set
 * l->greet.want_held. */
void nbd_link_begin(
	struct nbd_link *l, const struct nbd_uri *uri, int fd, bool structured, bool allocation);
/* Continue it. Return 0: READY, -EAGAIN (*want: EPOLLIN, EPOLLOUT), or an error and l->why. */
int nbd_link_greet(struct nbd_link *l, const struct nbd_uri *uri, struct tls *tls, uint32_t *want);
/* Continue it until it is READY, blocking until that time at most. Return 0, or an error and
 * l->why. */
int nbd_link_wait(struct nbd_link *l, const struct nbd_uri *uri, struct tls *tls, weir_time until);
/* Connect and shake hands, blocking for `timeout` ns at most. Return 0, or an error and err. */
int nbd_link_open(struct nbd_link *l, const struct nbd_uri *uri, struct tls *tls, weir_time timeout,
	bool structured, struct weir_err *err);
/* Send a farewell, best effort. */
void nbd_link_farewell(struct stream *s);
