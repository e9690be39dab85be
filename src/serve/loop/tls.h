/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls: GnuTLS sessions under a stream, X.509 or pre-shared keys, either side.
 */
#pragma once

#include <weir/err.h>
#include "serve/loop/stream.h"

struct tls_config {             /* files; NULL: none. X.509 or PSK, or both on a server */
	const char *cert, *key; /* of a server; of a client, if the server requests one */
	/* Trusted authorities: a server then requests a certificate from every client; a client
	 * without it uses the system's. */
	const char *ca;
	const char *psk; /* file of NAME:HEXKEY lines (psktool's); a client uses the first */
};

struct tls; /* credentials, read once; shared by sessions and threads; sessions may outlive them */
int tls_new(const struct tls_config *c, bool server, struct tls **ret_tls, struct weir_err *err);
struct tls *tls_ref(struct tls *t); /* one more tls_free; returns t */
void tls_free(struct tls *t);

/* Start a session on the stream (sets s->tls). hostname: client: the name that the certificate must
 * have. */
int tls_start(struct tls *t, struct stream *s, const char *hostname);
/* Continue the handshake. Return 0: done, -EAGAIN (*want: EPOLLIN or EPOLLOUT), or -EPROTO /
 * -EACCES and the reason. */
int tls_handshake(struct stream *s, uint32_t *want, struct weir_err *err);
/* For a server with a `ca`, after the handshake: return why this client must be refused: it has no
 * certificate, or an untrusted one; or NULL. The handshake does not fail for this, so that the
 * protocol above it can send the reason. */
const char *tls_refusal(const struct stream *s);
/* Return the proven name of the peer: the certificate's common name, or the key's name; NULL:
 * none. */
const char *tls_identity(const struct stream *s);

/* For a server whose sessions another library makes: put these credentials into a session before its handshake; the caller keeps
 * them until the session ends. 0 or -EPROTO. */
struct gnutls_session_int;
int tls_adopt(struct tls *t, struct gnutls_session_int *session);
/* After it: get the verified name of the client. 0 and malloc'ed, NULL: it sent no certificate; -EACCES and why it is refused; or
 * -ENOMEM. */
int tls_client(
	struct tls *t, struct gnutls_session_int *session, char **ret_name, struct weir_err *err);

/* For stream.c; as the functions of stream.h. */
ssize_t tls_recv(struct tls_session *s, void *data, size_t n);
ssize_t tls_send(struct tls_session *s, const struct iovec *iov, int n);
bool tls_pending(const struct tls_session *s);
void tls_end(struct tls_session *s); /* sends the closure alert and frees the session */
