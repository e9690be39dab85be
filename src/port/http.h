/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http: a small HTTP server on a loop, by libmicrohttpd; it has no thread of its own.
 *
 * Listens on unix sockets, where the file's mode says who may come, and on TCP, where every request
 * but GET /healthz must bring the token ("Authorization: Bearer TOKEN"). One handler answers all
 * requests, on the loop's thread: at once, later, or bit by bit, so that no request holds up the loop.
 * Bodies, connections and time are bounded: a client can use up neither memory nor places for ever.
 */
#ifndef WEIR_PORT_HTTP_H
#define WEIR_PORT_HTTP_H

#include "base/err.h"
#include "port/loop.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define HTTP_BODY_MAX                                                                              \
	((size_t)16 << 20) /* bytes of a body, a policy of 100,000 tenants; more is 413 */

struct http;
struct exchange;
struct http_request {
	const char *method; /* "GET" */
	const char *path;   /* decoded: "/v1/set/prod/db.max" */
	const char *body;   /* NUL-ended behind `length` bytes; "" when there is none */
	size_t length;
	const void *connection; /* for http_query */
	struct exchange *exchange;
};
/* A body that is made as it is sent, in pieces of some 64 KiB. If the client goes, no more is made. */
struct http_source {
	bool (*more)(struct http_source *s, FILE *to); /* writes a bit; false: that was the end */
	void (*end)(struct http_source *s);            /* sent, or the client has gone */
};
struct http_reply { /* zeroed before the handler is called; a status of 0 becomes 500 */
	unsigned status;
	const char *type; /* Content-Type, static; NULL: text/plain */
	char *body;       /* malloc'ed; freed by the server; NULL: empty */
	size_t length;
	struct http_source *source; /* instead of a body; NULL: none. Owned: `end` is called once */
	const char *allow;          /* with 405: the methods there are, static */
};
/* The value of ?key=value (decoded; "" for ?key), or NULL: there is none, or a zero byte is in it. */
const char *http_query(const struct http_request *q, const char *key);
/* The first key of the query that is not one of `keys`, which end with NULL; or NULL. */
const char *http_query_unknown(const struct http_request *q, const char *const *keys);

/* The body is the caller's from now on: malloc'ed, NUL-ended; NULL: there is none. */
char *http_take_body(struct http_request *q);

/* Instead of filling in its reply a handler may keep the request and answer it later, once, whether the client
 * is still there or not. NULL: no memory. */
struct http_later;
struct http_later *http_defer(struct http_request *q);
void http_answer(struct http_later *l, struct http_reply *r); /* frees l; on the loop's thread */

typedef void http_handler(void *arg, struct http_request *q, struct http_reply *ret);

struct http_config {
	const char *const *addresses; /* as stream_listen has them */
	size_t n_addresses;
	const int *sockets; /* already listening, from systemd; taken over */
	size_t n_sockets;
	const char *token_file; /* its first line, ≥ 16 characters; needed for TCP. NULL: none */
	mode_t mode;            /* of unix sockets that are made; 0: 0660 */
	const atomic_bool
		*crowded; /* while it is true, answers wait for others to be sent: whoever takes
				       nothing of a long one for 2 s is cut off. NULL: never */
	http_handler *handler;
	void *arg;
};
/* -EINVAL: TCP without a token, or a token that is none; else as stream_listen. */
int http_new(
	struct loop *l, const struct http_config *c, struct http **ret_http, struct weir_err *err);
void http_free(struct http *h); /* on the loop's thread; removes the socket files that it made */

/* Where a gateway's API is unless somebody says otherwise, the same for `weir serve` and its clients:
 * $WEIR_SOCKET, else /run/weir/api.sock, else $XDG_RUNTIME_DIR/weir-api.sock. `listen`: the first
 * that could be made there (/run/weir is made, if we may); else: the first that exists, or if none
 * does, the one that a gateway of this user would make. An address, "unix:…". -ENOENT: nowhere. */
#define HTTP_SOCKET_MAX 128
int http_socket(bool listen, char ret_address[HTTP_SOCKET_MAX]);

#endif
