/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd-link: see nbd-link.h. */
#include "serve/back/nbd-link.h"
#include "serve/loop/loop.h"
#include "serve/loop/tls.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

void nbd_link_begin(
	struct nbd_link *l, const struct nbd_uri *uri, int fd, bool structured, bool allocation)
{
	nbd_greet_init(&l->greet, uri->name, uri->tls, structured, allocation);
	l->stream = (struct stream){.fd = fd};
	l->state = NBD_LINK_GREET;
	l->n_out = l->out_at = 0;
}

static int fail(struct nbd_link *l, int error, const char *why)
{
	snprintf(l->why, sizeof(l->why), "%s", why);
	if (l->state == NBD_LINK_READY)
		l->state = NBD_LINK_GREET;
	return error;
}

/* Send the pending output. Return 0 when all is sent. */
static int send_out(struct nbd_link *l)
{
	while (l->out_at < l->n_out || stream_pending(&l->stream)) {
		struct iovec v = {l->out + l->out_at, l->n_out - l->out_at};
		ssize_t r = stream_send(&l->stream, &v, v.iov_len ? 1 : 0);

		if (r < 0)
			return r == -EAGAIN ? -EAGAIN : fail(l, (int)r, strerror((int)-r));
		l->out_at += (size_t)r;
	}
	l->n_out = l->out_at = 0;
	return 0;
}

/* Receive and process input. Return 0 if the state may have changed. */
static int receive(struct nbd_link *l)
{
	uint8_t in[1024];
	ssize_t got = stream_recv(&l->stream, in, sizeof(in));
	size_t at = 0;

	if (got == -EAGAIN)
		return -EAGAIN;
	if (got < 0)
		return fail(l, (int)got, strerror((int)-got));
	if (got == 0)
		return fail(l, -ECONNRESET, "the connection was closed during the handshake");
	while (at < (size_t)got && l->state == NBD_LINK_GREET) {
		size_t used, made;
		enum nbd_greet_state s = nbd_greet_input(&l->greet, in + at, (size_t)got - at,
			&used, l->out + l->n_out, sizeof(l->out) - l->n_out, &made);
		at += used;
		l->n_out += made;
		if (s == NBD_GREET_FAILED)
			return fail(l, l->greet.error, l->greet.fault);
		if (s == NBD_GREET_READY)
			l->state = NBD_LINK_READY;
		else if (s == NBD_GREET_TLS)
			l->state = NBD_LINK_TLS;
		else if (!used && !made)
			return fail(l, -EPROTO, "the handshake is stuck");
		/* The server answers one option at a time, and speaks unasked only at the start. */
		if ((made || l->state != NBD_LINK_GREET) && at < (size_t)got)
			return fail(l, -EPROTO, "the server sent unrequested data");
	}
	return 0;
}

static int do_tls(struct nbd_link *l, const struct nbd_uri *uri, struct tls *tls, uint32_t *want)
{
	struct weir_err err = {""};
	int r = 0;

	if (!l->stream.tls) {
		r = tls_start(tls, &l->stream, uri->host[0] ? uri->host : NULL);
		if (r)
			return fail(l, r, "TLS cannot be started");
	}
	r = tls_handshake(&l->stream, want, &err);
	if (r)
		return r == -EAGAIN ? r : fail(l, r, err.text);
	l->state = NBD_LINK_GREET;
	nbd_greet_secure(&l->greet, l->out, sizeof(l->out), &l->n_out);
	return 0;
}

int nbd_link_greet(struct nbd_link *l, const struct nbd_uri *uri, struct tls *tls, uint32_t *want)
{
	for (;;) {
		int r = send_out(l);

		*want = r == -EAGAIN ? EPOLLOUT : EPOLLIN;
		if (!r && l->state == NBD_LINK_READY)
			return 0;
		if (!r)
			r = l->state == NBD_LINK_TLS ? do_tls(l, uri, tls, want) : receive(l);
		if (r)
			return r;
	}
}

int nbd_link_wait(struct nbd_link *l, const struct nbd_uri *uri, struct tls *tls, weir_time until)
{
	uint32_t want;
	int r;

	while ((r = nbd_link_greet(l, uri, tls, &want)) == -EAGAIN) {
		struct pollfd p = {
			.fd = l->stream.fd, .events = want == EPOLLOUT ? POLLOUT : POLLIN};
		weir_time left = until - loop_clock();

		if (left <= 0)
			return fail(l, -ETIMEDOUT, "the handshake took too long");
		if (poll(&p, 1, (int)(left / WEIR_MS) + 1) < 0 && errno != EINTR)
			return fail(l, -errno, strerror(errno));
	}
	return r;
}

int nbd_link_open(struct nbd_link *l, const struct nbd_uri *uri, struct tls *tls, weir_time timeout,
	bool structured, struct weir_err *err)
{
	weir_time until = loop_clock() + timeout;
	int fd, r = stream_connect(uri->address, timeout, &fd, err);

	if (r)
		return r;
	nbd_link_begin(l, uri, fd, structured, false);
	r = nbd_link_wait(l, uri, tls, until);
	if (!r)
		return 0;
	stream_close(&l->stream);
	return weir_err_set(err, r, "%s", l->why);
}

void nbd_link_farewell(struct stream *s)
{
	uint8_t bye[NBD_REQUEST_SIZE];
	struct iovec v = {bye, sizeof(bye)};

	nbd_request_write(bye, &(struct nbd_request){.command = NBD_DISC});
	(void)!stream_send(s, &v, 1);
}
