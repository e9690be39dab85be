/* SPDX-License-Identifier: BSD-3-Clause */
/* http-impl: shared by the files of the server.
 *
 *   http.c     listeners, connections
 *   secure.c   sessions of TLS
 *   admit.c    may this client send this request?
 *   length.c   is its end certain?
 *   request.c  one request
 *   record.c   the record of a change
 *   own.c      the routes that every API has
 *   file.c     files of a page
 */
#pragma once

#include "serve/access/access.h"
#include "serve/access/audit.h"
#include "serve/access/throttle.h"
#include "serve/http/http.h"
#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <sys/socket.h>

struct listener;

struct connection { /* from accept to close */
	struct connection *next, **link;
	struct http *http;
	int fd;
	bool tcp;
	bool proven;     /* it has proven a role, or needs none */
	bool busy;       /* a request is in progress */
	bool evicted;    /* shut down for another; no longer counted */
	bool streams;    /* a long reply is being sent */
	weir_time since; /* start of the current request, or of waiting for one */
	weir_time took;  /* with `streams`: when the client last read some of it */
	struct sockaddr_storage from;
	bool paid;     /* its first request is */
	unsigned owed; /* units of the throttle that it gets back when it is proven */
	struct access_who
		who;     /* of a unix socket, or a certificate; by NULL: none, or not looked at */
	struct tls *tls; /* of its session; NULL: none */
	bool looked;     /* at its certificate … */
	char *wrong;     /* … which is refused for this; NULL: it is not */
};

struct http_daemon {
	struct http *http;
	struct MHD_Daemon *mhd;
	struct loop_fd fd; /* its epoll */
};

struct http_later {
	struct http_later *next, **link; /* in the server's list */
	struct exchange *exchange;       /* NULL: the connection is closed */
};

struct http {
	struct loop *loop;
	struct http_daemon plain, secure; /* secure.mhd NULL: no TLS */
	struct loop_timer timer;
	struct listener *listeners;
	size_t n_listeners;
	struct connection *connections, *accepted; /* accepted: handed over, not yet announced */
	size_t n_connections, n_tcp;
	struct http_later *laters;
	const atomic_uint *crowd;
	bool ending; /* requests are refused, since replies cannot be deferred any more */
	bool paused; /* accepting is paused until the timer: no file descriptors left */
	struct access *access;
	struct audit *audit;
	struct throttle *throttle;
	struct http_routes routes;
	const struct http_file *files;
	size_t n_files;
	http_handler *handler;
	void *arg;
};

/* ---- http.c */

/* Continue resumed connections in this round of the loop. */
void http_run_soon(struct http *h);

/* ---- secure.c */

/* For the daemon of TLS: libmicrohttpd wants a certificate, or this function, which is never called. */
gnutls_certificate_retrieve_function2 http_secure_cert;
/* A connection begins: give its session the server's credentials. */
void http_secure_begin(struct connection *k, struct MHD_Connection *c);
/* Look at the client's certificate: sets k->who, or k->wrong. */
void http_secure_look(struct connection *k, struct MHD_Connection *c);
void http_secure_end(struct connection *k);

/* ---- admit.c */

struct http_admission {
	struct access_who who;
	const struct http_route *route;
	const struct http_file *file; /* to be sent; NULL: none */
	unsigned status;              /* of a refusal; 0: none */
	struct weir_err why;
	char allow[HTTP_METHOD_MAX]; /* with 405 */
};
void http_admit(struct http *h, struct connection *k, struct MHD_Connection *c, const char *method,
	const char *path, struct http_admission *ret);

/* ---- length.c */

/* Check that the end of the body is certain. If not, the connection must be closed: a proxy in front may have used the
 * other of two lengths, and split the requests differently. Return 0, or the status of the refusal. */
unsigned http_length_check(struct MHD_Connection *c, const char **ret_why);

/* ---- file.c */

const struct http_file *http_file_find(const struct http *h, const char *path);
enum MHD_Result http_file_send(struct MHD_Connection *c, const struct http_file *f);

/* ---- own.c */

extern const struct http_routes http_own_routes;
/* Answer a request for one of them. Return false for another. */
bool http_own_run(struct http *h, const struct http_request *q, struct http_reply *ret);

/* ---- record.c */

#define HTTP_FROM_MAX 64 /* "[ADDRESS]:PORT", "unix" */
void http_record_from(const struct connection *k, char to[HTTP_FROM_MAX]);
/* Begin the record of a request that wants to change something; NULL: it does not, or there is no memory. Only keys that the route
 * knows are recorded: a token at a wrong place is not. */
struct json_t *http_record_begin(const struct connection *k, struct MHD_Connection *c,
	const char *method, const char *path, const struct http_admission *a);
/* Add the body: as it is, or its length and digest. */
void http_record_body(struct json_t *record, const char *body, size_t n);
/* Write it with the result; *record, which may be NULL, is taken. */
void http_record_end(struct http *h, struct json_t **record, const struct http_reply *r);

/* ---- request.c */

/* The end: release all deferred requests, whose connections continue with an error, and refuse others from now on. */
void http_drop_laters(struct http *h);
/* libmicrohttpd's MHD_AccessHandlerCallback and MHD_RequestCompletedCallback; arg: struct http. */
enum MHD_Result http_handle(void *arg, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *data, size_t *n, void **state);
void http_completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why);
