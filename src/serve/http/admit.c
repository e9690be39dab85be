/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http-admit: may this client send this request? Judged when its headers are there, before its body is read.
 *
 * METHOD  A token that is sent decides; else the certificate of the connection; else its user, on a unix socket. Each request is
 *         judged by itself: a token that is removed, or ends, is refused at the next request of a connection.
 */
#include "serve/http/impl.h"
#include "serve/http/route.h"
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <strings.h>

#define STACK 8192 /* bytes: what comparing and hashing a token uses, and finding a symbol */

static const struct sockaddr *from_of(const struct connection *k)
{
	return (const struct sockaddr *)&k->from;
}

static void refuse(struct http_admission *ret, unsigned status, const char *why)
{
	ret->status = status;
	weir_err_set(&ret->why, -EACCES, "%s", why);
}

/* Return true if the page of another site sent the request: a browser presents a certificate whichever page asks. */
static bool is_foreign(struct MHD_Connection *c)
{
	const char *origin = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Origin");
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Host");
	const char *at = origin ? strstr(origin, "://") : NULL;

	return origin && (!at || !host || strcasecmp(at + 3, host) != 0);
}

/* Get the client and its role. Return false and the reason if they are not known. */
static bool identify(struct http *h, struct connection *k, struct MHD_Connection *c,
	struct access_who *ret, struct weir_err *why)
{
	const char *header = MHD_lookup_connection_value(c, MHD_HEADER_KIND, "Authorization");
	int rc;

	if (header) {
		rc = access_token(h->access, header, ret, why);
		/* no copy stays in the memory of the connection, nor a part of one on the stack */
		explicit_bzero((char *)(uintptr_t)header, strlen(header));
		sodium_stackzero(STACK);
		return rc == 0;
	}
	http_secure_look(k, c);
	if (k->wrong) {
		weir_err_set(why, -EACCES, "the client's certificate is refused: %s", k->wrong);
		return false;
	}
	if (k->who.by)
		*ret = k->who;
	else
		access_token(h->access, NULL, ret, why);
	return k->who.by;
}

static void find_route(
	struct http *h, const char *method, const char *path, struct http_admission *ret)
{
	ret->route = http_route_find(&http_own_routes, method, path);
	if (!ret->route)
		ret->route = http_route_find(&h->routes, method, path);
	if (ret->route)
		return;
	http_route_methods(&http_own_routes, path, ret->allow);
	http_route_methods(&h->routes, path, ret->allow);
	if (ret->allow[0])
		refuse(ret, 405, "method not allowed");
	else if (http_route_misnamed(&h->routes, path, &ret->why) < 0 ||
		 http_route_misnamed(&http_own_routes, path, &ret->why) < 0)
		ret->status = 400;
	else
		refuse(ret, 404, "no such path");
}

static void judge_role(struct http_admission *ret)
{
	enum policy_role needed = ret->route ? ret->route->role : POLICY_ROLE_READ;

	if (ret->who.role >= needed)
		return;
	ret->status = 403;
	weir_err_set(&ret->why, -EACCES, "this needs the role %s; %s has %s%s",
		policy_role_name(needed), ret->who.name, ret->who.role ? "the role " : "none",
		ret->who.role ? policy_role_name(ret->who.role) : "");
}

/* Count the units of the throttle, and the age of the connection. */
static void prove(struct http *h, struct connection *k, bool proven)
{
	weir_time now = loop_now(h->loop);

	if (proven && k->owed)
		throttle_give(h->throttle, from_of(k), now, k->owed);
	if (proven)
		k->owed = 0;
	k->proven |= proven;
	/* an unauthenticated client's age counts from its arrival, whatever it sends */
	if (k->proven)
		k->since = now;
}

/* Pay for a request of a client that has proven nothing on this connection. */
static bool may_ask(struct http *h, struct connection *k)
{
	bool free = !k->tcp || k->proven || k->paid;

	k->paid = false;
	if (!free && !throttle_take(h->throttle, from_of(k), loop_now(h->loop)))
		return false;
	k->owed += !free;
	return true;
}

void http_admit(struct http *h, struct connection *k, struct MHD_Connection *c, const char *method,
	const char *path, struct http_admission *ret)
{
	bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
	const struct http_file *file = http_file_find(h, path);
	struct weir_err unknown;
	bool known;

	*ret = (struct http_admission){.who.by = "none"};
	if (!may_ask(h, k)) {
		refuse(ret, 429, "too many requests without a token from this address");
		return;
	}
	known = identify(h, k, c, &ret->who, &unknown);
	prove(h, k, known && ret->who.role > POLICY_ROLE_NONE);
	if (file && reads) {
		ret->file = file;
		return;
	}
	find_route(h, method, path, ret);
	if (ret->route && ret->route->role == POLICY_ROLE_NONE)
		return;
	if (!known) {
		ret->status = 401;
		ret->why = unknown;
		ret->allow[0] = 0;
		return;
	}
	if (file) {
		refuse(ret, 405, "method not allowed");
		memcpy(ret->allow, "GET, HEAD", sizeof("GET, HEAD"));
	}
	if (!ret->status || ret->who.role == POLICY_ROLE_NONE)
		judge_role(ret);
	if (!ret->status && !reads && is_foreign(c))
		refuse(ret, 403, "the request comes from the page of another site");
}
