/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http: a small HTTP server on a loop, by libmicrohttpd; it has no thread of its own.
 *
 * Listens on unix sockets, and on TCP, with TLS if the configuration has a certificate; without one only on this machine's own
 * addresses. A client has a role (serve/access/access.h), and each route needs one (route.h). Files need none. One handler answers
 * the requests that may be sent, on the loop's thread: at once, later, or piece by piece, so that no request blocks the
 * loop. Changes are recorded (serve/access/audit.h). Bodies, connections and times are bounded: a client cannot exhaust memory or
 * connections.
 */
#pragma once

#include <weir/err.h>
#include "serve/access/access.h"
#include "serve/http/route.h"
#include "serve/loop/loop.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define HTTP_BODY_MAX                                                                              \
	((size_t)16 << 20) /* bytes of a body, e.g. a policy of 100,000 tenants; more is 413 */

struct http;
struct exchange;
struct http_request {
	const char *method; /* "GET" */
	const char *path;   /* decoded: "/v1/set/prod/db.max" */
	const char *body;   /* NUL-terminated after `length` bytes; "" if there is none */
	size_t length;
	const struct http_route *route; /* of the table */
	const struct access_who *who;
	const void *connection; /* for http_query */
	struct exchange *exchange;
};
/* A body generated while it is sent, in pieces of some 64 KiB. If the client leaves, generation
 * stops. */
struct http_source {
	bool (*more)(struct http_source *s, FILE *to); /* write a piece; return false at the end */
	void (*end)(struct http_source *s);            /* sent, or the client has left */
};
struct http_reply { /* zeroed before the handler is called; a status of 0 becomes 500 */
	unsigned status;
	const char *type; /* Content-Type, static; NULL: text/plain */
	char *body;       /* malloc'ed; freed by the server; NULL: empty */
	size_t length;
	struct http_source *source; /* instead of a body; NULL: none. Owned: `end` is called once */
	const char *allow;          /* with 405: the allowed methods, static */
	bool secret;                /* the body is overwritten when it was sent */
};
/* Return the value of ?key=value (decoded; "" for ?key), or NULL: absent, or it contains a NUL
 * byte. */
const char *http_query(const struct http_request *q, const char *key);
/* Return the first key of the query that is not in `keys` (NULL-terminated); or NULL. */
const char *http_query_unknown(const struct http_request *q, const char *const *keys);

/* Transfer the body to the caller: malloc'ed, NUL-terminated; NULL: there is none. */
char *http_take_body(struct http_request *q);

/* Instead of filling in its reply a handler may keep the request and answer it later, or still in the handler, once, whether
 * or not the client is still connected. NULL: no memory. */
struct http_later;
struct http_later *http_defer(struct http_request *q);
void http_answer(struct http_later *l, struct http_reply *r); /* frees l; on the loop's thread */

typedef void http_handler(void *arg, struct http_request *q, struct http_reply *ret);

/* A file of a page for browsers. Anyone may read it, without the token: it must hold no data. */
struct http_file {
	const char *path, *type;
	const void *text, *packed; /* as it is, and by gzip */
	size_t length, n_packed;
};

struct http_config {
	const char *const *addresses; /* in the syntax of stream_listen */
	size_t n_addresses;
	const int *sockets; /* already listening, from systemd; owned by the server from now on */
	size_t n_sockets;
	struct access_config access;
	struct http_routes routes; /* static; the handler is called for these only */
	mode_t mode;               /* of created unix sockets; 0: 0660 */
	/* Replies that wait for others to be sent: while there are any, a client that reads nothing of a
	 * long one for 2 s is disconnected, sooner if many wait. NULL: never. */
	const atomic_uint *crowd;
	const struct http_file
		*files; /* static; GET and HEAD of their paths do not reach the handler */
	size_t n_files;
	http_handler *handler;
	void *arg;
};
/* Return -EINVAL: TCP without tokens, or beyond this machine without TLS; or as access_new and stream_listen. */
int http_new(
	struct loop *l, const struct http_config *c, struct http **ret_http, struct weir_err *err);
void http_free(struct http *h); /* on the loop's thread; removes the socket files that it created */

/* Check that an API may listen at an address: TCP beyond this machine needs TLS. 0 or -EINVAL. */
int http_reach_check(const char *address, bool tls, struct weir_err *err);

/* Get the default address of a gateway's API, the same for `weir serve` and its clients:
 * $WEIR_SOCKET, else /run/weir/api.sock, else $XDG_RUNTIME_DIR/weir-api.sock. `listen`: the
 * first that could be created (/run/weir is created, if permitted); else: the first that exists,
 * or if none does, the one that a gateway of this user would create. An address, "unix:…".
 * -ENOENT: none. */
#define HTTP_SOCKET_MAX 128
int http_socket(bool listen, char ret_address[HTTP_SOCKET_MAX]);
