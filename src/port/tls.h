/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls: GnuTLS sessions under a stream, X.509 or pre-shared keys, either side.
 */
#ifndef WEIR_PORT_TLS_H
#define WEIR_PORT_TLS_H

#include "base/err.h"
#include "port/stream.h"

struct tls_config {             /* files; NULL: none. X.509 or PSK, or both on a server */
	const char *cert, *key; /* a server's own; a client's if the server asks for one */
	const char
		*ca; /* whom to trust: a server then asks every client for a certificate; a client
	                     without one uses the system's */
	const char *
		psk; /* server: file of NAME:HEXKEY lines (psktool's); client: the same, first line */
};

struct tls; /* credentials, read once; shared by sessions and threads, and outlived by sessions */
int tls_new(const struct tls_config *c, bool server, struct tls **ret_tls, struct weir_err *err);
void tls_free(struct tls *t);

/* Starts a session on the stream (s->tls is set). hostname: client: whom the certificate must name. */
int tls_start(struct tls *t, struct stream *s, const char *hostname);
/* Goes on with the handshake: 0 done, -EAGAIN (want says for what: EPOLLIN or EPOLLOUT), or -EPROTO /
 * -EACCES and the reason. */
int tls_handshake(struct stream *s, uint32_t *want, struct weir_err *err);
/* A server with a `ca`, after the handshake: why this client may not be served: it has no certificate, or one
 * that is not trusted. NULL: it may. The handshake does not fail for this, so that the protocol above can
 * say it in words. */
const char *tls_refusal(const struct stream *s);
/* Who the peer proved to be: the certificate's common name, or the key's name; NULL: nobody. */
const char *tls_identity(const struct stream *s);

/* For stream.c, as the functions of stream.h. */
ssize_t tls_recv(struct tls_session *s, void *data, size_t n);
ssize_t tls_send(struct tls_session *s, const struct iovec *iov, int n);
bool tls_pending(const struct tls_session *s);
void tls_end(struct tls_session *s); /* says farewell and frees it */

#endif
