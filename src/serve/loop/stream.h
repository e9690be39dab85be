/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream: a connected socket, plain or under TLS, that never blocks.
 */
#pragma once

#include <weir/err.h>
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

/* Return the bytes read, 0 at the end, -EAGAIN, or another negative errno. TLS may hold decrypted
 * data: call until -EAGAIN. */
ssize_t stream_recv(struct stream *s, void *data, size_t n);
/* Return the bytes accepted (all or the first part of the vectors), -EAGAIN, or another negative
 * errno. Never raises SIGPIPE. Under TLS accepted data may still be in a buffer (64 KiB):
 * stream_pending. */
ssize_t stream_send(struct stream *s, const struct iovec *iov, int n);
bool stream_pending(
	const struct stream *s); /* TLS: call stream_send again (n = 0 suffices) when writable */
void stream_close(struct stream *s); /* also frees tls */

/* Addresses: wire/address.h. Listening replaces the file of a dead unix socket; a live one is
 * -EADDRINUSE. A socket that was inherited (inherit.h) is taken as it is. Non-blocking, close-on-exec. Connect blocks for up to `timeout` ns. */
int stream_listen(const char *address, int *ret_fd, struct weir_err *err);
/* Remove the file of a unix socket that listened, unless it is another one by now, or another process listens at it
 * (inherit_keep_names). */
void stream_unlink(const char *path, dev_t dev, ino_t ino);
/* Check a listening address as far as possible without listening: does its group exist? Return 0 or
 * -EINVAL. */
int stream_listen_check(const char *address, struct weir_err *err);
/* Return the address of a listening socket, malloc'ed: with the assigned port instead of 0; a unix
 * socket's without mode and group. NULL: no memory. */
char *stream_listening(int fd, const char *address);
int stream_connect(const char *address, int64_t timeout, int *ret_fd, struct weir_err *err);
/* Return true if connecting looks up a name first, which may block for longer than the timeout. */
bool stream_looks_up(const char *address);
/* Accept the next client. Return its socket (non-blocking, close-on-exec, TCP_NODELAY), or -EAGAIN
 * or another negative errno. */
int stream_accept(int listening);
/* Detect a dead host: after 25 s without traffic, else when sent data are not acknowledged for
 * `timeout` ns. Has no effect on unix sockets. */
void stream_watch(int fd, int64_t timeout);
int stream_address_check(const char *address, struct weir_err *err);
/* The peer, for messages and for matching: numeric address ("10.0.0.7", "::1"), empty for unix;
 * "host:port" or "unix:pid" in `name`; uid of a unix peer or -1. */
struct stream_peer {
	char name[80];
	char address[64]; /* "" for unix */
	long uid;
};
void stream_peer(int fd, struct stream_peer *ret);
