/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls-credentials: certificates and keys, from their files. They are read once, and
 * reference-counted: sessions may outlive tls_free, and keep their credentials when new ones are
 * read.
 */
#include "serve/loop/tls-impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* At least TLS 1.2, without static RSA, which has no forward secrecy, and CBC with SHA-1;
 * optionally pre-shared keys beside certificates. */
#define PRIORITY     "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:-SHA1"
#define PRIORITY_PSK PRIORITY ":+ECDHE-PSK:+DHE-PSK:+PSK"

static int set_fault(struct weir_err *err, const char *file, int gnutls_error)
{
	int code = gnutls_error == GNUTLS_E_FILE_ERROR     ? -ENOENT
		   : gnutls_error == GNUTLS_E_MEMORY_ERROR ? -ENOMEM
							   : -EINVAL;
	const char *why = gnutls_error == GNUTLS_E_FILE_ERROR ? "cannot be read"
			  : gnutls_error == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE ||
					  gnutls_error == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR
				  ? "contains no certificate, or the key's file no key"
				  : gnutls_strerror(gnutls_error);

	return weir_err_set(err, code, "%s: %s", file, why);
}

static int read_x509(struct tls *t, const struct tls_config *c, struct weir_err *err)
{
	int r = gnutls_certificate_allocate_credentials(&t->x509);

	if (r < 0)
		return set_fault(err, "tls", r);
	if (c->ca) {
		r = gnutls_certificate_set_x509_trust_file(t->x509, c->ca, GNUTLS_X509_FMT_PEM);
		if (r == 0)
			return weir_err_set(err, -EINVAL, "%s: contains no certificate", c->ca);
		if (r < 0)
			return set_fault(err, c->ca, r);
	} else if (!t->server) {
		gnutls_certificate_set_x509_system_trust(t->x509); /* none: trust none */
	}
	if (c->cert) {
		r = gnutls_certificate_set_x509_key_file(
			t->x509, c->cert, c->key, GNUTLS_X509_FMT_PEM);
		if (r == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
			return weir_err_set(
				err, -EINVAL, "%s and %s do not match", c->cert, c->key);
		if (r < 0)
			return set_fault(err, c->cert, r);
	}
	t->checks = c->ca || !t->server;
	return 0;
}

/* Read the first line that is neither empty nor a comment: NAME:HEXKEY. */
static int read_psk_line(FILE *f, const char *file, char *line, size_t room, struct weir_err *err)
{
	while (fgets(line, (int)room, f)) {
		line[strcspn(line, "\r\n")] = 0;
		if (line[0] && line[0] != '#')
			return strchr(line, ':') ? 0
						 : weir_err_set(err, -EINVAL,
							   "%s: a line is NAME:HEXKEY", file);
	}
	return weir_err_set(err, -EINVAL, "%s: contains no key", file);
}

static int read_psk_client(struct tls *t, const char *file, struct weir_err *err)
{
	char line[1024], *colon;
	FILE *f = fopen(file, "re");
	gnutls_datum_t key;
	int r;

	if (!f)
		return weir_err_set(err, -errno, "%s: %s", file, strerror(errno));
	r = read_psk_line(f, file, line, sizeof(line), err);
	fclose(f);
	if (r < 0)
		goto out;
	colon = strchr(line, ':');
	*colon = 0;
	key = (gnutls_datum_t){(unsigned char *)colon + 1, (unsigned)strlen(colon + 1)};
	r = gnutls_psk_allocate_client_credentials(&t->psk_client);
	if (r == 0)
		r = gnutls_psk_set_client_credentials(
			t->psk_client, line, &key, GNUTLS_PSK_KEY_HEX);
	if (r < 0)
		r = set_fault(err, file, r);
out:
	explicit_bzero(line, sizeof(line));
	return r;
}

/* Return true for NAME:HEXKEY; GnuTLS also accepts #HEXNAME:HEXKEY. */
static bool is_psk_line(const char *line)
{
	const char *key = strchr(line, ':');
	size_t digits = key ? strspn(++key, "0123456789abcdefABCDEF") : 0;

	return key && key - line > 1 && digits && digits % 2 == 0 && !key[digits];
}

/* GnuTLS reads the file for each client: report errors in it now. */
static int check_psk_file(FILE *f, const char *file, struct weir_err *err)
{
	char line[1024];
	unsigned at = 0, keys = 0;
	int r = 0;

	while (r == 0 && fgets(line, sizeof(line), f)) {
		at++;
		line[strcspn(line, "\r\n")] = 0;
		if (is_psk_line(line))
			keys++;
		else if (line[0] && line[0] != '#')
			r = weir_err_set(err, -EINVAL, "%s:%u: a line is NAME:HEXKEY", file, at);
	}
	explicit_bzero(line, sizeof(line));
	if (r == 0 && !keys)
		r = weir_err_set(err, -EINVAL, "%s: contains no key", file);
	return r;
}

static int read_psk_server(struct tls *t, const char *file, struct weir_err *err)
{
	FILE *f = fopen(file, "re");
	int r;

	if (!f)
		return weir_err_set(err, -errno, "%s: %s", file, strerror(errno));
	r = check_psk_file(f, file, err);
	fclose(f);
	if (r < 0)
		return r;
	r = gnutls_psk_allocate_server_credentials(&t->psk_server);
	if (r == 0)
		r = gnutls_psk_set_server_credentials_file(t->psk_server, file);
	return r < 0 ? set_fault(err, file, r) : 0;
}

static int read_all(struct tls *t, const struct tls_config *c, struct weir_err *err)
{
	int r = 0;

	if (!c->cert != !c->key)
		return weir_err_set(err, -EINVAL,
			"tls: a certificate needs its key, and a key its certificate");
	if (t->server && !c->cert && !c->psk)
		return weir_err_set(err, -EINVAL,
			"tls: a server needs a certificate or a file of pre-shared keys (psk)");
	if (c->psk)
		r = t->server ? read_psk_server(t, c->psk, err) : read_psk_client(t, c->psk, err);
	/* A client with a key but no authority trusts the key only. */
	if (r == 0 && (c->cert || c->ca || !c->psk))
		r = read_x509(t, c, err);
	if (r < 0)
		return r;
	r = gnutls_priority_init(&t->priority, c->psk ? PRIORITY_PSK : PRIORITY, NULL);
	return r < 0 ? set_fault(err, "tls", r) : 0;
}

int tls_new(const struct tls_config *c, bool server, struct tls **ret_tls, struct weir_err *err)
{
	struct tls *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return weir_err_set(err, -ENOMEM, "tls: no memory");
	atomic_init(&t->refs, 1);
	t->server = server;
	r = read_all(t, c, err);
	if (r < 0) {
		tls_free(t);
		return r;
	}
	*ret_tls = t;
	return 0;
}

struct tls *tls_ref(struct tls *t)
{
	atomic_fetch_add(&t->refs, 1);
	return t;
}

void tls_free(struct tls *t)
{
	if (!t || atomic_fetch_sub(&t->refs, 1) != 1)
		return;
	if (t->x509)
		gnutls_certificate_free_credentials(t->x509);
	if (t->psk_server)
		gnutls_psk_free_server_credentials(t->psk_server);
	if (t->psk_client)
		gnutls_psk_free_client_credentials(t->psk_client);
	if (t->priority)
		gnutls_priority_deinit(t->priority);
	free(t);
}
