/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http-secure: TLS, with credentials of the server's own.
 *
 * METHOD  libmicrohttpd makes the sessions. Before the handshake each gets the credentials that are in force then, so that a renewed
 *         certificate needs no restart, and the same protocols and ciphers as the clients of storage.
 */
#include "serve/http/impl.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int http_secure_cert(gnutls_session_t session, const gnutls_datum_t *authorities, int n,
	const gnutls_pk_algorithm_t *algorithms, int n_algorithms, gnutls_pcert_st **ret_certs,
	unsigned *ret_n, gnutls_privkey_t *ret_key)
{
	return -1;
}

static gnutls_session_t session_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);

	return info ? info->tls_session : NULL;
}

void http_secure_begin(struct connection *k, struct MHD_Connection *c)
{
	gnutls_session_t session = session_of(c);

	k->tls = session ? access_tls(k->http->access) : NULL;
	if (k->tls && tls_adopt(k->tls, session) < 0)
		shutdown(k->fd, SHUT_RDWR);
}

void http_secure_look(struct connection *k, struct MHD_Connection *c)
{
	gnutls_session_t session = session_of(c);
	struct weir_err err;
	char *name = NULL;
	int rc;

	if (k->looked || !k->tls || !session)
		return;
	k->looked = true;
	rc = tls_client(k->tls, session, &name, &err);
	if (rc < 0)
		k->wrong = strdup(rc == -EACCES ? err.text : "out of memory");
	else if (name)
		access_cert(k->http->access, name, &k->who);
	free(name);
}

void http_secure_end(struct connection *k)
{
	tls_free(k->tls);
	free(k->wrong);
	k->tls = NULL;
	k->wrong = NULL;
}
