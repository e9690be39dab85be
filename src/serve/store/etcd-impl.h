/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd-impl: shared by etcd*.c. */
#pragma once

#include "serve/store/etcd-json.h"
#include "serve/store/fetch.h"

#define ETCD_CONNECT WEIR_SEC       /* of one attempt */
#define ETCD_ATTEMPT (3 * WEIR_SEC) /* an election of etcd takes 1 to 2 s */
#define ETCD_BRISK   WEIR_SEC
#define ETCD_PAUSE   (200 * WEIR_MS)    /* before all servers are tried once more */
#define ETCD_BODY    ((size_t)16 << 20) /* bytes of an answer */

struct etcd_call;

struct etcd_store {
	struct store store; /* must be first */
	struct fetcher *fetcher;
	char **urls;       /* for messages (store_shown), without a slash at their end */
	char **reach;      /* the same with a user and password */
	size_t n_urls, at; /* at: the one in use */
	char *space;
	struct fetch_tls tls;
	char *user, *password, *token; /* token NULL: not logged in */
	weir_time patience;            /* for a request, over all attempts */
	uint64_t cluster;              /* id, of the first answer; 0: none came */
	uint64_t highest;              /* revision that was seen */
	struct etcd_call *calls, *login;
	struct store_watch *watches;
};

/* ---- etcd.c */

/* This server failed: use the next, unless another one is in use already. */
void etcd_next(struct etcd_store *s, size_t failed);
/* Check the ids of an answer. 0, or -EPROTO with the reason. */
int etcd_check(struct etcd_store *s, const struct etcd_answer *a, const char *url, uint64_t floor,
	struct weir_err *err);
/* Return the negative errno for an answer that is an error, and its message. */
int etcd_fault(const struct etcd_store *s, const char *url, unsigned status,
	const struct etcd_fault *f, struct weir_err *err);

/* ---- etcd-call.c */

void etcd_ask(struct store *store, const struct store_request *q, store_done *done, void *arg);
/* Log in, unless that is under way; etcd_logged_in is called then. */
void etcd_log_in(struct etcd_store *s);
void etcd_calls_end(struct etcd_store *s);

/* ---- etcd-watch.c */

struct store_watch *etcd_watch(
	struct store *store, const char *prefix, uint64_t from, store_watched *fn, void *arg);
void etcd_unwatch(struct store_watch *w);
/* There is a token, or logging in has failed (err). */
void etcd_watches_logged_in(struct etcd_store *s, const struct weir_err *err);
/* Revisions are lower than before: read everything anew. */
void etcd_watches_stale(struct etcd_store *s);
