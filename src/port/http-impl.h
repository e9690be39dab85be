/* SPDX-License-Identifier: BSD-3-Clause */
/* http-impl: what http.c (listeners, connections) and http-request.c (one request) know of each other. */
#ifndef WEIR_PORT_HTTP_IMPL_H
#define WEIR_PORT_HTTP_IMPL_H

#include "port/http.h"
#include <microhttpd.h>

#define HTTP_TOKEN_MAX 512

struct listener;

struct connection { /* from accept to close */
	struct connection *next, **link;
	struct http *http;
	int fd;
	bool tcp;
	bool proven;     /* it has shown the token, or needs none */
	bool busy;       /* a request is under way */
	bool evicted;    /* shut down for another; not counted any more */
	bool streams;    /* a long answer is being sent */
	weir_time since; /* of the request under way, or since when it waits for one */
	weir_time took;  /* with `streams`: when the client last took some of it */
};

struct http_later {
	struct http_later *next, **link; /* of the server's */
	struct exchange *exchange;       /* NULL: the connection is gone */
};

struct http {
	struct loop *loop;
	struct MHD_Daemon *daemon;
	struct loop_fd fd; /* the daemon's epoll */
	struct loop_timer timer;
	struct listener *listeners;
	size_t n_listeners;
	struct connection *connections, *accepted; /* accepted: handed over, not yet announced */
	size_t n_connections, n_tcp;
	struct http_later *laters;
	const atomic_bool *crowded;
	bool paused; /* nothing is accepted until the timer: no descriptors are left */
	char token[HTTP_TOKEN_MAX + 1];
	http_handler *handler;
	void *arg;
};

/* ---- http.c */

/* What was resumed goes on in this round of the loop. */
void http_run_soon(struct http *h);

/* ---- http-request.c */

/* Lets go of all requests that are to be answered later: their connections go on, with an error. */
void http_drop_laters(struct http *h);

int http_token_read(struct http *h, const char *file, struct weir_err *err);
/* libmicrohttpd's MHD_AccessHandlerCallback and MHD_RequestCompletedCallback; arg: struct http. */
enum MHD_Result http_handle(void *arg, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *data, size_t *n, void **state);
void http_completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why);

#endif
