/* SPDX-License-Identifier: BSD-3-Clause */
/* http-impl: shared by http.c (listeners, connections) and http-request.c (one request). */
#pragma once

#include "serve/http/http.h"
#include <microhttpd.h>

#define HTTP_TOKEN_MAX 512

struct listener;

struct connection { /* from accept to close */
	struct connection *next, **link;
	struct http *http;
	int fd;
	bool tcp;
	bool proven;     /* it has sent the token, or needs none */
	bool busy;       /* a request is in progress */
	bool evicted;    /* shut down for another; no longer counted */
	bool streams;    /* a long reply is being sent */
	weir_time since; /* start of the current request, or of waiting for one */
	weir_time took;  /* with `streams`: when the client last read some of it */
};

struct http_later {
	struct http_later *next, **link; /* in the server's list */
	struct exchange *exchange;       /* NULL: the connection is closed */
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
	const atomic_uint *crowd;
	bool ending; /* requests are refused, since replies cannot be deferred any more */
	bool paused; /* accepting is paused until the timer: no file descriptors left */
	char token[HTTP_TOKEN_MAX + 1];
	const struct http_file *files;
	size_t n_files;
	http_handler *handler;
	void *arg;
};

/* ---- http.c */

/* Continue resumed connections in this round of the loop. */
void http_run_soon(struct http *h);

/* ---- http-request.c */

/* The end: release all deferred requests, whose connections continue with an error, and refuse others from now on. */
void http_drop_laters(struct http *h);

int http_token_read(struct http *h, const char *file, struct weir_err *err);
/* libmicrohttpd's MHD_AccessHandlerCallback and MHD_RequestCompletedCallback; arg: struct http. */
enum MHD_Result http_handle(void *arg, struct MHD_Connection *c, const char *path,
	const char *method, const char *version, const char *data, size_t *n, void **state);
void http_completed(
	void *arg, struct MHD_Connection *c, void **state, enum MHD_RequestTerminationCode why);
