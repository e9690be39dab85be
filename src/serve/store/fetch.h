/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fetch: HTTP requests on a loop, by libcurl.
 *
 * Redirects are not followed and no proxy is used. `data` gets the body of an answer as it arrives; `done` is called once, from the
 * loop, unless the fetch was cancelled before.
 */
#pragma once

#include <weir/err.h>
#include "serve/loop/loop.h"
#include <stddef.h>

struct fetcher;

struct fetch_tls { /* names of files; NULL: the system's authorities; no certificate */
	char *ca, *cert, *key;
};

struct fetch { /* owned by the caller until done or cancelled; zero it */
	const char *url;
	const char *authorization;  /* NULL: none */
	const char *const *headers; /* NULL-terminated; NULL: none */
	const char *body;           /* POST; all of these stay until it is done */
	size_t length;
	weir_time connect, whole; /* time; whole WEIR_NEVER: a stream */
	const struct fetch_tls *tls;
	/* Never sent twice: by a new connection, since libcurl sends a request again if one that it reuses turns out to be closed. */
	bool once;
	/* false: enough, the fetch ends, with -EPROTO */
	bool (*data)(struct fetch *f, const char *bytes, size_t n);
	/* status: of HTTP. rc: 0; -ENOTCONN: nothing was sent; -ETIMEDOUT: no answer, or only a part; -EACCES: the certificates do
	 * not fit; -EPROTO: no HTTP. text: the reason, valid during the call */
	void (*done)(struct fetch *f, int rc, unsigned status, const char *text);
	/* private */
	struct fetcher *of;
	struct fetch *next, **link;
	void *curl, *list;
	char why[256];
	bool full;
};

int fetcher_new(struct loop *l, struct fetcher **ret_fetcher); /* 0 or -ENOMEM */
void fetcher_free(struct fetcher *f);                          /* without fetches; NULL is fine */
int fetch_start(struct fetcher *to, struct fetch *f); /* 0 or -ENOMEM: done is not called */
void fetch_cancel(
	struct fetch *f); /* does nothing if it is done or was not started; not from `data` */
