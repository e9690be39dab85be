/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-uri: names of NBD servers.
 *
 * SOURCE  The NBD URI specification (doc/uri.md of the NBD project):
 *           nbd://host[:port]/export       nbd+unix:///export?socket=PATH
 *           nbds://host[:port]/export      nbds+unix:///export?socket=PATH
 *         The export and the path may have %XX. Keys are read from the configuration, so the
 *         specification's other parameters after '?' are refused, as is a user name.
 */
#include "serve/back/nbd-uri.h"
#include "wire/address.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode %XX in text[0 … len) into `to`. Return false if it is too long, or malformed. */
static bool decode(const char *text, size_t len, char *to, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)text[i];

		if (c == '%') {
			if (i + 2 >= len || digit(text[i + 1]) < 0 || digit(text[i + 2]) < 0)
				return false;
			c = digit(text[i + 1]) * 16 + digit(text[i + 2]);
			i += 2;
		}
		if (c == 0 || n + 1 >= room)
			return false;
		to[n++] = (char)c;
	}
	to[n] = '\0';
	return true;
}

/* Parse "socket=PATH" and nothing else. */
static int read_query(const char *uri, const char *query, bool unix_, char *path, size_t room,
	struct weir_err *err)
{
	for (const char *p = query; *p;) {
		size_t len = strcspn(p, "&");

		if (unix_ && strncmp(p, "socket=", 7) == 0) {
			if (!decode(p + 7, len - 7, path, room))
				return weir_err_set(err, -EINVAL,
					"%s: the socket's path is not well formed, or too long",
					uri);
		} else if (len) {
			return weir_err_set(err, -EINVAL, "%s: '%.*s' is not supported%s", uri,
				(int)(len < 60 ? len : 60), p,
				unix_ ? " (only socket=PATH is)" : "");
		}
		p += len + (p[len] == '&');
	}
	return 0;
}

static int read_host(
	const char *uri, const char *text, size_t len, struct nbd_uri *ret, struct weir_err *err)
{
	const char *end = text + len, *port = NULL;
	size_t host;

	if (memchr(text, '@', len))
		return weir_err_set(err, -EINVAL, "%s: a user name is not supported", uri);
	if (len && *text == '[') {
		const char *close = memchr(text, ']', len);
		if (!close || (close + 1 < end && close[1] != ':'))
			return weir_err_set(
				err, -EINVAL, "%s: the address is not well formed", uri);
		host = (size_t)(close - text) + 1;
	} else {
		const char *colon = memchr(text, ':', len);
		host = colon ? (size_t)(colon - text) : len;
	}
	if (host < len)
		port = text + host + 1;
	if (!host || host >= sizeof(ret->host) - 2 || (port && end - port > 5))
		return weir_err_set(err, -EINVAL, "%s: the host is not well formed", uri);
	if (port && port < end)
		snprintf(ret->address, sizeof(ret->address), "tcp:%.*s:%.*s", (int)host, text,
			(int)(end - port), port);
	else
		snprintf(ret->address, sizeof(ret->address), "tcp:%.*s:%d", (int)host, text,
			NBD_PORT);
	if (*text == '[')
		snprintf(ret->host, sizeof(ret->host), "%.*s", (int)host - 2, text + 1);
	else
		snprintf(ret->host, sizeof(ret->host), "%.*s", (int)host, text);
	return 0;
}

static int read_unix(const char *uri, const char *path, struct nbd_uri *ret, struct weir_err *err)
{
	int n;

	if (!*path)
		return weir_err_set(err, -EINVAL, "%s: the socket is missing (…?socket=PATH)", uri);
	n = snprintf(ret->address, sizeof(ret->address), "unix:%s", path);
	if (n < 0 || (size_t)n >= sizeof(ret->address))
		return weir_err_set(err, -EINVAL, "%s: the socket's path is too long", uri);
	ret->host[0] = '\0';
	return 0;
}

/* Check the address as the client that connects to it will read it. */
static int check_address(const char *uri, const char *text, struct weir_err *err)
{
	struct address ignored;
	struct weir_err why;

	if (address_parse(text, &ignored, &why) < 0)
		return weir_err_set(err, -EINVAL, "%s: %s", uri, why.text);
	return 0;
}

static const char *read_scheme(const char *uri, bool *tls, bool *unix_)
{
	static const struct {
		const char *text;
		bool tls, unix_;
	} schemes[] = {
		{"nbd://", false, false},
		{"nbds://", true, false},
		{"nbd+unix://", false, true},
		{"nbds+unix://", true, true},
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t len = strlen(schemes[i].text);
		if (strncmp(uri, schemes[i].text, len) == 0) {
			*tls = schemes[i].tls;
			*unix_ = schemes[i].unix_;
			return uri + len;
		}
	}
	return NULL;
}

int nbd_uri_parse(const char *uri, struct nbd_uri *ret, struct weir_err *err)
{
	const char *host, *path, *query;
	char socket[sizeof(ret->address)] = "";
	size_t len, name;
	bool unix_;
	int r;

	host = read_scheme(uri, &ret->tls, &unix_);
	if (!host)
		return weir_err_set(err, -EINVAL,
			"%s: must be nbd://HOST:PORT/NAME or nbd+unix:///NAME?socket=PATH", uri);
	len = strcspn(host, "/?");
	path = host + len + (host[len] == '/');
	name = strcspn(path, "?");
	query = path + name + (path[name] == '?');
	r = read_query(uri, query, unix_, socket, sizeof(socket), err);
	if (r)
		return r;
	if (!decode(path, name, ret->name, sizeof(ret->name)))
		return weir_err_set(
			err, -EINVAL, "%s: the export's name is not well formed, or too long", uri);
	if (unix_ && len)
		return weir_err_set(err, -EINVAL, "%s: a unix socket has no host", uri);
	r = unix_ ? read_unix(uri, socket, ret, err) : read_host(uri, host, len, ret, err);
	return r ? r : check_address(uri, ret->address, err);
}

int nbd_uri_check(const char *uri, struct weir_err *err)
{
	struct nbd_uri ignored;

	return nbd_uri_parse(uri, &ignored, err);
}
