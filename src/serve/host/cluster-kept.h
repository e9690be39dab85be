/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cluster-kept: the highest generation that each server of this gateway has obeyed, in the state folder, so that a server that
 * starts again takes nothing of a controller that was deposed before.
 *
 *   generations.json   {"cluster": "prod", "generations": {"disk-1": 57}}
 *
 * A request to follow a higher generation waits until that is written. One that cannot be written is obeyed all the same, and
 * logged: a full disk must not leave a cluster without a controller.
 *
 * One thread: the gateway's main thread; the file is written aside.
 */
#pragma once

#include <weir/err.h>
#include "serve/loop/loop.h"

struct cluster_kept;

struct cluster_kept_wait { /* owned by the caller until `done` */
	const char *server;
	uint64_t generation;
	void (*done)(struct cluster_kept_wait *w);
	bool cancelled;                 /* the server has left */
	struct cluster_kept_wait *next; /* private */
};

/* folder NULL: nothing is kept. 0 or -ENOMEM. */
int cluster_kept_new(struct loop *l, const char *folder, const char *cluster,
	struct cluster_kept **ret_kept, struct weir_err *err);
/* Waits end without `done`: they are given to `drop`. NULL is fine. */
void cluster_kept_free(struct cluster_kept *k, void (*drop)(struct cluster_kept_wait *w));
uint64_t cluster_kept_get(const struct cluster_kept *k, const char *server); /* 0: none */
/* Return false if the server's generation is as high already, or nothing is kept: `done` is not called. */
bool cluster_kept_raise(struct cluster_kept *k, struct cluster_kept_wait *w);
/* The server leaves: `done` of its waits is called as `cancelled`. */
void cluster_kept_leave(struct cluster_kept *k, const char *server);
