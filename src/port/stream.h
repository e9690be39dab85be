/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream: a connected socket, plain or under TLS, that never blocks.
 */
#ifndef WEIR_PORT_STREAM_H
#define WEIR_PORT_STREAM_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct tls_session; /* tls.h */

struct stream {
	int fd;                  /* non-blocking */
	struct tls_session *tls; /* NULL: plain */
};

/* Bytes read, 0 at the end, -EAGAIN, or another negative errno. Under TLS also reads what is already
 * decrypted: call until -EAGAIN. */
ssize_t stream_recv(struct stream *s, void *data, size_t n);
/* Bytes taken (all or the first part of the vectors), -EAGAIN, or another negative errno. Never a
 * SIGPIPE. Under TLS what was taken may still lie in a buffer (64 KiB): stream_pending. */
ssize_t stream_send(struct stream *s, const struct iovec *iov, int n);
bool stream_pending(
	const struct stream *s);     /* TLS: call stream_send again (n = 0 will do) when writable */
void stream_close(struct stream *s); /* also frees tls */

/* Addresses: wire/address.h. Listening sockets replace a dead
 * unix socket's file; ones in use are -EADDRINUSE. Non-blocking, close-on-exec. Connect blocks up to
 * `timeout` ns. */
int stream_listen(const char *address, int *ret_fd, struct weir_err *err);
/* Could it be listened on, as far as that can be told without: is there such a group? 0 or -EINVAL. */
int stream_listen_check(const char *address, struct weir_err *err);
/* The address of a listening socket, malloc'ed: where its port is 0, with the one that it got; of a unix
 * socket without its mode and group. NULL: no memory. */
char *stream_listening(int fd, const char *address);
int stream_connect(const char *address, int64_t timeout, int *ret_fd, struct weir_err *err);
/* The next client: its socket (non-blocking, close-on-exec, without Nagle's delay), or -EAGAIN or
 * another negative errno. */
int stream_accept(int listening);
/* A host that went away without a word is noticed: after 25 s in which nothing was asked of it, else when
 * what it was sent is not acknowledged for `timeout` ns. A unix socket needs none of this. */
void stream_watch(int fd, int64_t timeout);
int stream_address_check(const char *address, struct weir_err *err);
/* The peer, for messages and for matching: numeric address ("10.0.0.7", "::1") or NULL for unix;
 * "host:port" or "unix:pid" in `name`; uid of a unix peer or -1. */
struct stream_peer {
	char name[80];
	char address[64]; /* "" for unix */
	long uid;
};
void stream_peer(int fd, struct stream_peer *ret);

#endif
