/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load-dial: connect all connections of a job, with handshake and TLS.
 *
 * This blocks, so it runs before the load starts, or on a separate thread after a loss: the other
 * jobs of the thread continue. All connections or none.
 */
#include "base/container.h"
#include "load/load-impl.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static int wait_for(int fd, uint32_t want, weir_time until)
{
	struct pollfd p = {.fd = fd, .events = want == EPOLLOUT ? POLLOUT : POLLIN};
	weir_time left = until - loop_clock();
	int r = left > 0 ? poll(&p, 1, (int)(left / WEIR_MS + 1)) : 0;

	if (r < 0 && errno != EINTR)
		return -errno;
	return r == 0 ? -ETIMEDOUT : 0;
}

static int send_all(struct stream *s, const uint8_t *p, size_t n, weir_time until)
{
	while (n || stream_pending(s)) {
		struct iovec iov = {(void *)(uintptr_t)p, n};
		ssize_t sent = stream_send(s, &iov, n ? 1 : 0);

		if (sent == -EAGAIN || (sent == 0 && stream_pending(s)))
			sent = wait_for(s->fd, EPOLLOUT, until);
		else if (sent > 0) {
			p += sent;
			n -= (size_t)sent;
		}
		if (sent < 0)
			return (int)sent;
	}
	return 0;
}

static int start_tls(struct load_run *r, struct stream *s, weir_time until, struct weir_err *err)
{
	uint32_t want;
	int e = tls_start(r->tls, s, r->uri.host[0] ? r->uri.host : NULL);

	while (e == 0) {
		e = tls_handshake(s, &want, err);
		if (e == 0)
			return 0;
		if (e != -EAGAIN)
			return e;
		e = wait_for(s->fd, want, until);
	}
	return weir_err_set(err, e, "tls: %s", strerror(-e));
}

/* Feed input to the handshake and send its output. Return > 0 when it is done. */
static int feed_handshake(struct load_run *r, struct stream *s, struct nbd_greet *g,
	const uint8_t *in, size_t n, weir_time until, struct weir_err *err)
{
	uint8_t out[NBD_GREET_OUT];
	enum nbd_greet_state state;
	size_t used, made, at = 0;
	int e;

	do {
		state = nbd_greet_input(g, in + at, n - at, &used, out, sizeof(out), &made);
		at += used;
		e = send_all(s, out, made, until);
		if (e == 0 && state == NBD_GREET_TLS) {
			e = start_tls(r, s, until, err);
			if (e < 0)
				return e;
			nbd_greet_secure(g, out, sizeof(out), &made);
			return send_all(s, out, made, until);
		}
		if (e < 0)
			return e;
	} while (state == NBD_GREET_MORE && (used || made));
	if (state == NBD_GREET_FAILED)
		return weir_err_set(err, g->error, "%s", g->fault);
	return state == NBD_GREET_READY;
}

static int do_handshake(struct load_run *r, struct stream *s, weir_time until,
	struct nbd_export *ret, struct weir_err *err)
{
	struct nbd_greet g;
	uint8_t in[4096];
	int e;

	nbd_greet_init(&g, r->uri.name, r->uri.tls, r->job.structured, false);
	do {
		ssize_t n = stream_recv(s, in, sizeof(in));

		if (n > 0)
			e = feed_handshake(r, s, &g, in, (size_t)n, until, err);
		else if (n == 0)
			e = -ECONNRESET;
		else
			e = n == -EAGAIN ? wait_for(s->fd, EPOLLIN, until) : (int)n;
	} while (e == 0);
	if (e > 0)
		*ret = g.export_;
	return e > 0 ? 0 : e;
}

static int dial_one(struct load_run *r, weir_time until, struct stream *ret,
	struct nbd_export *export_, struct weir_err *err)
{
	struct weir_err inner = {""};
	struct stream s = {.fd = -1};
	weir_time left = until - loop_clock();
	int e;

	if (left <= 0)
		return weir_err_set(err, -ETIMEDOUT, "%s: no connection in time", r->job.uri);
	e = stream_connect(r->uri.address, left, &s.fd, &inner);
	if (e == 0)
		e = do_handshake(r, &s, until, export_, &inner);
	if (e < 0) {
		if (s.fd >= 0)
			stream_close(&s);
		return weir_err_set(
			err, e, "%s: %s", r->job.uri, inner.text[0] ? inner.text : strerror(-e));
	}
	*ret = s;
	return 0;
}

int load_dial(struct load_run *r, weir_time timeout, struct stream *streams,
	struct nbd_export *ret_export, struct weir_err *err)
{
	weir_time until = loop_clock() + timeout;
	uint32_t i;
	int e = 0;

	for (i = 0; i < r->job.connections && e == 0; i++)
		e = dial_one(r, until, &streams[i], ret_export, err);
	if (e < 0)
		for (i--; i-- > 0;)
			stream_close(&streams[i]);
	return e;
}

/* ---- reconnecting in the background */

static void dial_free(struct load_dial *d)
{
	free(d->streams);
	free(d);
}

static void on_dialled(struct loop_task *t) /* on the loop's thread */
{
	struct load_dial *d = container_of(t, struct load_dial, task);
	struct load_run *r = d->run;

	if (!d->joined)
		pthread_join(d->thread, NULL);
	r->dial = NULL;
	load_conn_dialled(r, d);
	dial_free(d);
}

static void *dial_thread(void *arg)
{
	struct load_dial *d = arg;

	d->result = load_dial(d->run, 5 * WEIR_SEC, d->streams, &d->export_, &d->err);
	loop_post(d->run->loop, &d->task);
	return NULL;
}

int load_dial_start(struct load_run *r)
{
	struct load_dial *d = calloc(1, sizeof(*d));
	int e;

	if (!d)
		return -ENOMEM;
	d->run = r;
	d->task.run = on_dialled;
	d->streams = calloc(r->job.connections, sizeof(*d->streams));
	if (!d->streams) {
		free(d);
		return -ENOMEM;
	}
	e = pthread_create(&d->thread, NULL, dial_thread, d);
	if (e) {
		dial_free(d);
		return -e;
	}
	r->dial = d;
	return 0;
}
