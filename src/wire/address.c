/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/address.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 80 /* bytes of an address in a message, so that the reason behind it is not cut off */

static int parse_unix(const char *text, struct address *ret, struct weir_err *err)
{
	const char *path = text + 5;
	size_t n = strlen(path);

	if (!n || n >= sizeof(ret->path))
		return weir_err_set(err, -EINVAL,
			"%.*s: a socket's path has 1 to %zu bytes, this one %zu", SHOWN, text,
			sizeof(ret->path) - 1, n);
	ret->is_unix = true;
	memcpy(ret->path, path, n + 1);
	return 0;
}

/* The colon before the port, or NULL and why there is none. */
static const char *find_port(const char *text, const char *host, struct weir_err *err)
{
	const char *colon = strrchr(host, ':'), *close;

	if (host[0] == '[') {
		close = strchr(host, ']');
		if (!close) {
			weir_err_set(err, -EINVAL, "%.*s: ']' is missing", SHOWN, text);
			return NULL;
		}
		colon = close[1] == ':' ? close + 1 : NULL;
	} else if (colon && memchr(host, ':', (size_t)(colon - host))) {
		weir_err_set(err, -EINVAL, "%.*s: put an IPv6 address into brackets, [::1]", SHOWN,
			text);
		return NULL;
	}
	if (!colon)
		weir_err_set(err, -EINVAL, "%.*s: where is the port? (tcp:HOST:PORT)", SHOWN, text);
	return colon;
}

static int parse_tcp(const char *text, struct address *ret, struct weir_err *err)
{
	const char *host = text + 4, *colon = find_port(text, host, err);
	bool brackets = host[0] == '[';
	unsigned long port;
	size_t len;
	char *rest;

	if (!colon)
		return -EINVAL;
	len = (size_t)(colon - host) - (brackets ? 2 : 0);
	if (len >= sizeof(ret->host))
		return weir_err_set(err, -EINVAL, "%.*s: the host's name is too long", SHOWN, text);
	port = strtoul(colon + 1, &rest, 10);
	if (colon[1] < '0' || colon[1] > '9' || *rest || port > 65535)
		return weir_err_set(
			err, -EINVAL, "%.*s: a port is a number from 0 to 65535", SHOWN, text);
	memcpy(ret->host, host + brackets, len);
	snprintf(ret->port, sizeof(ret->port), "%lu", port);
	return 0;
}

int address_parse(const char *text, struct address *ret, struct weir_err *err)
{
	*ret = (struct address){0};
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text, ret, err);
	if (strncmp(text, "tcp:", 4) == 0)
		return parse_tcp(text, ret, err);
	return weir_err_set(err, -EINVAL,
		"'%.*s' is no address: \"unix:/run/x.sock\" or \"tcp:HOST:PORT\" is", SHOWN, text);
}
