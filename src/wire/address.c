/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/address.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 80 /* bytes of an address in a message, so that the reason after it is not cut off */

int address_mode(const char *text)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	return *text < '0' || *text > '7' || *end || mode > 0777 ? -EINVAL : (int)mode;
}

/* Parse one word of the options; the word ends at `end`. */
static int parse_option(
	const char *text, const char *p, const char *end, struct address *ret, struct weir_err *err)
{
	char word[48] = "";
	size_t n = (size_t)(end - p);

	if (n < sizeof(word))
		memcpy(word, p, n);
	if (ret->path[0] == '@')
		return weir_err_set(err, -EINVAL, "%.*s: an abstract name has no mode and no group",
			SHOWN, text);
	if (strncmp(word, "mode=", 5) == 0) {
		ret->mode = address_mode(word + 5);
		return ret->mode < 0 ? weir_err_set(err, -EINVAL,
					       "%.*s: a mode is octal, such as 0660", SHOWN, text)
				     : 0;
	}
	if (strncmp(word, "group=", 6) == 0 && word[6] && n - 6 < sizeof(ret->group)) {
		memcpy(ret->group, word + 6, n - 6 + 1);
		return 0;
	}
	return weir_err_set(err, -EINVAL,
		"%.*s: only mode=0660, group=NAME, or both joined by '&' may follow '?'", SHOWN,
		text);
}

static int parse_options(const char *text, const char *p, struct address *ret, struct weir_err *err)
{
	while (p) {
		const char *end = strchrnul(p, '&');
		int r = parse_option(text, p, end, ret, err);

		if (r)
			return r;
		p = *end ? end + 1 : NULL;
	}
	return 0;
}

/* Return the '?' that starts the options, or the end: a path may contain '?', too. */
static const char *find_options(const char *path)
{
	const char *p = path;

	while (*(p = strchrnul(p, '?')) && strncmp(p, "?mode=", 6) != 0 &&
		strncmp(p, "?group=", 7) != 0)
		p++;
	return p;
}

static int parse_unix(const char *text, struct address *ret, struct weir_err *err)
{
	const char *path = text + 5, *end = find_options(path);
	size_t n = (size_t)(end - path);

	if (!n || n >= sizeof(ret->path))
		return weir_err_set(err, -EINVAL,
			"%.*s: a socket's path has 1 to %zu bytes, this one %zu", SHOWN, text,
			sizeof(ret->path) - 1, n);
	ret->is_unix = true;
	memcpy(ret->path, path, n);
	return *end ? parse_options(text, end + 1, ret, err) : 0;
}

/* Return the colon before the port, or NULL and an error message. */
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
		weir_err_set(
			err, -EINVAL, "%.*s: the port is missing (tcp:HOST:PORT)", SHOWN, text);
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

const char *address_plain(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n && text[n] == '+' ? text + n + 1 : text;
}

int address_parse(const char *text, struct address *ret, struct weir_err *err)
{
	*ret = (struct address){.mode = -1};
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text, ret, err);
	if (strncmp(text, "tcp:", 4) == 0)
		return parse_tcp(text, ret, err);
	return weir_err_set(err, -EINVAL,
		"'%.*s' is no address: use \"unix:/run/x.sock\" or \"tcp:HOST:PORT\"", SHOWN, text);
}

bool address_is_local(const struct address *a)
{
	static const char digits[] = "0123456789.";

	if (a->is_unix || strcmp(a->host, "::1") == 0 || strcmp(a->host, "localhost") == 0)
		return true;
	return strncmp(a->host, "127.", 4) == 0 && !a->host[strspn(a->host, digits)];
}
