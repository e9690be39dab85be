/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls: GnuTLS sessions under a stream.
 *
 * METHOD   GnuTLS requires that an unfinished send is repeated with the same data. So data are
 *          first copied into the session's own buffer, many small pieces into one record, and stay
 *          there until sent. Copied data count as accepted; data that do not fit are not accepted.
 *          The buffer is bounded: KEEP bytes per session, allocated when TLS starts.
 *
 *   tls-credentials.c  certificates and keys, from their files
 */
#include "serve/loop/tls-impl.h"
#include <ctype.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define KEEP   (64u << 10) /* bytes not yet sent: four records of the largest size */
#define RECORD 16384       /* bytes: the most that one send of GnuTLS accepts */

struct tls_session {
	gnutls_session_t session;
	struct tls *tls;
	char *hostname; /* borrowed by GnuTLS until the handshake */
	char *identity;
	char *refusal; /* tls_refusal */
	bool secure;   /* the handshake is done */
	bool again;    /* a send is unfinished */
	uint32_t from, to;
	uint8_t keep[KEEP]; /* from … to: accepted, not yet passed to GnuTLS */
};

/* ---- a session */

static int set_credentials(struct tls *t, gnutls_session_t session)
{
	int r = gnutls_priority_set(session, t->priority);

	if (r == 0 && t->x509)
		r = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, t->x509);
	if (r == 0 && t->psk_server)
		r = gnutls_credentials_set(session, GNUTLS_CRD_PSK, t->psk_server);
	if (r == 0 && t->psk_client)
		r = gnutls_credentials_set(session, GNUTLS_CRD_PSK, t->psk_client);
	if (r == 0 && t->checks && t->server) /* requested here, verified later */
		gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
	return r;
}

static bool is_address(const char *hostname) /* SNI must not contain an address */
{
	return strchr(hostname, ':') || !hostname[strspn(hostname, "0123456789.")];
}

static int session_init(struct tls_session *s, int fd, const char *hostname)
{
	unsigned flags = GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL;
	int r;

	if (hostname && !(s->hostname = strdup(hostname)))
		return -ENOMEM;
	r = gnutls_init(&s->session, flags | (s->tls->server ? GNUTLS_SERVER : GNUTLS_CLIENT));
	if (r == 0)
		r = set_credentials(s->tls, s->session);
	if (r < 0)
		return -EPROTO;
	if (s->hostname && !s->tls->server && !is_address(s->hostname))
		gnutls_server_name_set(
			s->session, GNUTLS_NAME_DNS, s->hostname, strlen(s->hostname));
	if (s->tls->checks && !s->tls->server)
		gnutls_session_set_verify_cert(s->session, s->hostname, 0);
	gnutls_transport_set_int(s->session, fd);
	gnutls_handshake_set_timeout(
		s->session, GNUTLS_INDEFINITE_TIMEOUT); /* the caller's timeout */
	return 0;
}

static void session_free(struct tls_session *s)
{
	if (s->session)
		gnutls_deinit(s->session);
	tls_free(s->tls);
	free(s->hostname);
	free(s->identity);
	free(s->refusal);
	free(s);
}

int tls_start(struct tls *t, struct stream *stream, const char *hostname)
{
	struct tls_session *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->tls = tls_ref(t);
	r = session_init(s, stream->fd, hostname);
	if (r < 0) {
		session_free(s);
		return r;
	}
	stream->tls = s;
	return 0;
}

void tls_end(struct tls_session *s)
{
	if (s->secure)
		gnutls_bye(s->session, GNUTLS_SHUT_WR); /* best effort */
	session_free(s);
}

/* ---- the handshake */

static char *common_name(gnutls_session_t session)
{
	const gnutls_datum_t *list;
	gnutls_x509_crt_t cert;
	unsigned n = 0;
	char name[256];
	size_t len = sizeof(name);
	int r;

	list = gnutls_certificate_get_peers(session, &n);
	if (!list || !n || gnutls_x509_crt_init(&cert) < 0)
		return NULL;
	r = gnutls_x509_crt_import(cert, &list[0], GNUTLS_X509_FMT_DER);
	if (r == 0)
		r = gnutls_x509_crt_get_dn_by_oid(
			cert, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &len);
	gnutls_x509_crt_deinit(cert);
	/* A NUL inside the name would truncate it. */
	return r == 0 && strlen(name) == len ? strdup(name) : NULL;
}

/* Return what is wrong with a certificate, malloc'ed; NULL: no memory. */
static char *status_text(unsigned status)
{
	gnutls_datum_t text = {0};
	char *copy;

	if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
		return strdup("the certificate is not trusted");
	while (text.size && isspace(text.data[text.size - 1]))
		text.data[--text.size] = 0;
	copy = strdup((const char *)text.data);
	gnutls_free(text.data);
	return copy;
}

/* Verify a client's certificate: one that its authority gave out for servers only is none of a client; one that states no purpose
 * is for all. Return 0 or an error of GnuTLS, as gnutls_certificate_verify_peers. */
static int verify_client(gnutls_session_t session, unsigned *ret_status)
{
	gnutls_typed_vdata_st purpose = {
		GNUTLS_DT_KEY_PURPOSE_OID, (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0};

	return gnutls_certificate_verify_peers(session, &purpose, 1, ret_status);
}

/* Verify the client's certificate. Return 0, or -ENOMEM: without a reason the client must not be
 * accepted. */
static int check_client(struct tls_session *s)
{
	unsigned status = 0;
	int r;

	if (!s->tls->server || !s->tls->checks ||
		gnutls_auth_get_type(s->session) == GNUTLS_CRD_PSK)
		return 0;
	r = verify_client(s->session, &status);
	if (r == GNUTLS_E_NO_CERTIFICATE_FOUND)
		s->refusal = strdup("this server requires a TLS client certificate from its "
				    "authority, and the client sent none");
	else if (r < 0)
		s->refusal = strdup(gnutls_strerror(r));
	else if (status)
		s->refusal = status_text(status);
	else
		return 0;
	return s->refusal ? 0 : -ENOMEM;
}

/* Only a verified name counts as an identity. */
static void find_identity(struct tls_session *s)
{
	if (s->refusal)
		return;
	if (gnutls_auth_get_type(s->session) == GNUTLS_CRD_PSK) {
		const char *name =
			s->tls->server ? gnutls_psk_server_get_username(s->session) : NULL;
		s->identity = name ? strdup(name) : NULL;
	} else if (s->tls->checks) {
		s->identity = common_name(s->session);
	}
}

static int refused_cert(struct tls_session *s, struct weir_err *err)
{
	char *text = status_text(gnutls_session_get_verify_cert_status(s->session));

	weir_err_set(err, -EACCES, "tls: %s", text ? text : "the certificate is not trusted");
	free(text);
	return -EACCES;
}

static int set_error(struct tls_session *s, int r, struct weir_err *err)
{
	if (r == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
		return refused_cert(s, err);
	if (r == GNUTLS_E_FATAL_ALERT_RECEIVED)
		return weir_err_set(err, -EACCES, "tls: the peer refused: %s",
			gnutls_alert_get_name(gnutls_alert_get(s->session)));
	if (r == GNUTLS_E_NO_CERTIFICATE_FOUND || r == GNUTLS_E_CERTIFICATE_REQUIRED)
		return weir_err_set(err, -EACCES, "tls: the client has no certificate");
	/* The errors of a wrong or unknown key in TLS 1.3 and 1.2. */
	if (s->tls->psk_server &&
		(r == GNUTLS_E_RECEIVED_ILLEGAL_PARAMETER || r == GNUTLS_E_DECRYPTION_FAILED))
		return weir_err_set(err, -EACCES, "tls: %s", gnutls_strerror(r));
	return weir_err_set(err, -EPROTO, "tls: %s", gnutls_strerror(r));
}

int tls_handshake(struct stream *stream, uint32_t *want, struct weir_err *err)
{
	struct tls_session *s = stream->tls;
	int r;

	do {
		r = gnutls_handshake(s->session);
		if (r == GNUTLS_E_AGAIN) {
			*want = gnutls_record_get_direction(s->session) ? EPOLLOUT : EPOLLIN;
			return -EAGAIN;
		}
	} while (r < 0 && !gnutls_error_is_fatal(r));
	if (r < 0) {
		gnutls_alert_send_appropriate(s->session, r); /* tell the peer why, if possible */
		return set_error(s, r, err);
	}
	s->secure = true;
	if (check_client(s) < 0)
		return weir_err_set(err, -ENOMEM, "tls: no memory");
	find_identity(s);
	return 0;
}

const char *tls_refusal(const struct stream *s)
{
	return s->tls ? s->tls->refusal : NULL;
}

const char *tls_identity(const struct stream *s)
{
	return s->tls ? s->tls->identity : NULL;
}

/* ---- sessions of another library */

int tls_adopt(struct tls *t, gnutls_session_t session)
{
	return set_credentials(t, session) < 0 ? -EPROTO : 0;
}

int tls_client(struct tls *t, gnutls_session_t session, char **ret_name, struct weir_err *err)
{
	unsigned status = 0;
	char *text;
	int r;

	*ret_name = NULL;
	if (!t->checks)
		return 0;
	r = verify_client(session, &status);
	if (r == GNUTLS_E_NO_CERTIFICATE_FOUND)
		return 0;
	if (r < 0)
		return weir_err_set(err, -EACCES, "%s", gnutls_strerror(r));
	if (status) {
		text = status_text(status);
		weir_err_set(err, -EACCES, "%s", text ? text : "the certificate is not trusted");
		free(text);
		return -EACCES;
	}
	*ret_name = common_name(session);
	return *ret_name ? 0 : weir_err_set(err, -EACCES, "the certificate has no common name");
}

/* ---- bytes */

static int errno_of(int r)
{
	switch (r) {
	case GNUTLS_E_AGAIN:
		return -EAGAIN;
	case GNUTLS_E_PUSH_ERROR:
	case GNUTLS_E_PULL_ERROR:
		return -ECONNRESET;
	case GNUTLS_E_MEMORY_ERROR:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

static ssize_t recv_record(struct tls_session *s, void *data, size_t n)
{
	ssize_t r;

	do {
		r = gnutls_record_recv(s->session, data, n);
		/* A renegotiation is refused by continuing. */
	} while (r == GNUTLS_E_INTERRUPTED || r == GNUTLS_E_REHANDSHAKE ||
		 r == GNUTLS_E_WARNING_ALERT_RECEIVED);
	if (r == GNUTLS_E_PREMATURE_TERMINATION)
		return 0; /* closed without a closure alert: NBD detects its own end */
	return r < 0 ? errno_of((int)r) : r;
}

/* GnuTLS returns a record at a time: repeat until the buffer is full, as the caller prefers many
 * requests at once. */
ssize_t tls_recv(struct tls_session *s, void *data, size_t n)
{
	size_t got = 0;
	ssize_t r = 0;

	while (got < n) {
		r = recv_record(s, (uint8_t *)data + got, n - got);
		if (r <= 0)
			break;
		got += (size_t)r;
	}
	return got ? (ssize_t)got : r; /* the next call finds the end or error again */
}

static int flush_kept(struct tls_session *s)
{
	while (s->again || s->from < s->to) {
		size_t n = s->to - s->from < RECORD ? s->to - s->from : RECORD;
		ssize_t r = s->again ? gnutls_record_send(s->session, NULL, 0)
				     : gnutls_record_send(s->session, s->keep + s->from, n);
		if (r == GNUTLS_E_AGAIN || r == GNUTLS_E_INTERRUPTED) {
			s->again = true;
			if (r == GNUTLS_E_AGAIN)
				return -EAGAIN;
			continue;
		}
		if (r < 0)
			return errno_of((int)r);
		s->again = false;
		s->from += (uint32_t)r;
	}
	s->from = s->to = 0;
	return 0;
}

/* Copy data from `skip` on into the free part of the buffer. Return how much. */
static size_t copy_to_keep(struct tls_session *s, const struct iovec *iov, int n, size_t skip)
{
	size_t taken = 0;

	for (int i = 0; i < n && s->to < KEEP; i++) {
		size_t len = iov[i].iov_len, room = KEEP - s->to;
		if (skip >= len) {
			skip -= len;
			continue;
		}
		len -= skip;
		len = len < room ? len : room;
		memcpy(s->keep + s->to, (const uint8_t *)iov[i].iov_base + skip, len);
		skip = 0;
		s->to += (uint32_t)len;
		taken += len;
	}
	return taken;
}

ssize_t tls_send(struct tls_session *s, const struct iovec *iov, int n)
{
	size_t taken = 0, now;
	int r;

	do {
		now = copy_to_keep(s, iov, n, taken);
		taken += now;
		r = flush_kept(s);
	} while (r == 0 && now);
	if (r < 0 && r != -EAGAIN)
		return r;
	return taken || r == 0 || n == 0 ? (ssize_t)taken : -EAGAIN;
}

bool tls_pending(const struct tls_session *s)
{
	return s->again || s->from < s->to;
}
