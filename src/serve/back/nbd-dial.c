/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-dial: a connection until it can carry requests: connecting, the handshake, TLS inside
 * it.
 *
 * METHOD  Connecting may take seconds and is done by dial.c. The handshake is wire/nbd-greet.c, fed
 *         from the loop or, while a back end is opened, from poll.
 */
#include "serve/back/nbd.h"
#include "serve/loop/dial.h"
#include "serve/loop/loop.h"
#include "serve/loop/tls.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define CONNECT_MOST (5 * WEIR_SEC) /* per attempt; longer than two lost SYNs */

int back_nbd_dial(struct nbd *n)
{
	return dial_start(n->loop, n->uri.address, CONNECT_MOST, back_nbd_dialled, n, &n->dial);
}

void back_nbd_dial_drop(struct nbd *n)
{
	dial_drop(n->dial);
	n->dial = NULL;
}

/* ---- the handshake */

void back_nbd_greet_begin(struct nbd *n, struct conn *c, int fd)
{
	/* Structured replies are requested only because block status needs them; a server that has
	 * them may omit holes and report where an error is. */
	nbd_greet_init(&c->greet, n->uri.name, n->uri.tls, true, true);
	c->greet.want_held = true;
	stream_watch(fd, n->timeout);
	c->stream = (struct stream){.fd = fd};
	c->nbd = n;
	c->state = CONN_GREET;
	c->joined = false;
	c->broken = NULL;
	c->n_hello = c->hello_at = 0;
	c->out = c->flight = (struct slot_queue){0};
	c->rx = (struct conn_rx){0};
	c->deadline = loop_clock() + (CONNECT_MOST < n->timeout ? CONNECT_MOST : n->timeout);
}

static int fail(struct conn *c, int error, const char *why)
{
	snprintf(c->why, sizeof(c->why), "%s", why);
	back_nbd_conn_break(c, c->why);
	return error;
}

/* Send the pending output. Return 0 when all is sent. */
static int send_hello(struct conn *c)
{
	while (c->hello_at < c->n_hello || stream_pending(&c->stream)) {
		struct iovec v = {c->hello + c->hello_at, c->n_hello - c->hello_at};
		ssize_t r = stream_send(&c->stream, &v, v.iov_len ? 1 : 0);
		if (r < 0)
			return r == -EAGAIN ? -EAGAIN : fail(c, (int)r, strerror((int)-r));
		c->hello_at += (size_t)r;
	}
	c->n_hello = c->hello_at = 0;
	return 0;
}

/* Receive and process input. Return 0 if the state may have changed. */
static int receive_hello(struct conn *c)
{
	uint8_t in[1024];
	ssize_t got = stream_recv(&c->stream, in, sizeof(in));
	size_t at = 0;

	if (got == -EAGAIN)
		return -EAGAIN;
	if (got < 0)
		return fail(c, (int)got, strerror((int)-got));
	if (got == 0)
		return fail(c, -ECONNRESET, "the connection was closed during the handshake");
	while (at < (size_t)got && c->state == CONN_GREET) {
		size_t used, made;
		enum nbd_greet_state s = nbd_greet_input(&c->greet, in + at, (size_t)got - at,
			&used, c->hello + c->n_hello, sizeof(c->hello) - c->n_hello, &made);
		at += used;
		c->n_hello += made;
		if (s == NBD_GREET_FAILED)
			return fail(c, c->greet.error, c->greet.fault);
		if (s == NBD_GREET_READY)
			c->state = CONN_READY;
		else if (s == NBD_GREET_TLS)
			c->state = CONN_TLS;
		else if (!used && !made)
			return fail(c, -EPROTO, "the handshake is stuck");
		/* The server answers one option at a time, and speaks unasked only at the start. */
		if ((made || c->state != CONN_GREET) && at < (size_t)got)
			return fail(c, -EPROTO, "the server sent unrequested data");
	}
	return 0;
}

static int do_tls(struct nbd *n, struct conn *c, uint32_t *want)
{
	struct weir_err err = {""};
	int r = 0;

	if (!c->stream.tls) {
		r = tls_start(n->tls, &c->stream, n->uri.host[0] ? n->uri.host : NULL);
		if (r)
			return fail(c, r, "TLS cannot be started");
	}
	r = tls_handshake(&c->stream, want, &err);
	if (r)
		return r == -EAGAIN ? r : fail(c, r, err.text);
	c->state = CONN_GREET;
	nbd_greet_secure(&c->greet, c->hello, sizeof(c->hello), &c->n_hello);
	return 0;
}

int back_nbd_greet(struct nbd *n, struct conn *c, uint32_t *want)
{
	for (;;) {
		int r = send_hello(c);

		*want = r == -EAGAIN ? EPOLLOUT : EPOLLIN;
		if (!r && c->state == CONN_READY)
			return 0;
		if (!r)
			r = c->state == CONN_TLS ? do_tls(n, c, want) : receive_hello(c);
		if (r)
			return r;
	}
}

/* ---- comparing with the first handshake */

const char *back_nbd_changed(const struct nbd *n, const struct nbd_greet *g)
{
	/* Features offered to our clients. */
	const uint16_t offered = NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM |
				 NBD_SEND_WRITE_ZEROES | NBD_SEND_CACHE | NBD_SEND_FAST_ZERO;

	if (g->export_.size < n->export_.size)
		return "the upstream came back smaller";
	if ((g->export_.flags & NBD_READ_ONLY) && !n->back.info.read_only)
		return "the upstream came back read-only";
	if (n->export_.flags & ~g->export_.flags & offered)
		return "the upstream came back without a feature that it had";
	if (g->export_.block_min > n->export_.block_min || g->export_.block_max < CHUNK_MAX)
		return "the upstream came back with another block size";
	if (n->status && !g->base_allocation)
		return "the upstream came back without base:allocation";
	return NULL;
}
