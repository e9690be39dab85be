/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: internals shared by the files of the front end that serve all protocols (front.h).
 *
 * Everything of a worker's connections happens on its thread.
 *
 * PAUSED  A connection whose next request, or piece, may not have memory now is not read from.
 *         Bytes received after it are in `rest`.
 * DEAF    A connection that has replies and has read none for a second.
 */
#pragma once

#include "base/container.h"
#include "serve/front/front.h"

struct front_ring { /* of usages; the head of the list is one, too; alone it points to itself */
	struct front_ring *next, *prev;
};

struct front_usage {            /* jobs and bytes of a tenant's good, or doubtful, connections */
	struct front_ring ring; /* first; next NULL: no connection waits */
	size_t held;            /* bytes of chunks, without those of deaf connections */
	uint32_t jobs;          /* without those of deaf connections */
	size_t deaf_held;
	uint32_t deaf_jobs;
	bool doubtful; /* of connections that read no replies now, or have read none yet */
	/* the waiting connections, in order */
	struct front_conn *first, **end;
	size_t n_queued, failed; /* failed: checked without success since the last change */
	uint64_t change;         /* the number of that change */
};

struct front_total { /* the usages of one resource, by tenant */
	struct front_total *next;
	const struct resource *resource;
	size_t held; /* bytes of chunks of all tenants, without those of deaf connections */
	uint32_t jobs;
	struct front_usage **usages; /* two per tenant; NULL: it never had such a connection */
	size_t n_usages;
	struct front_usage unknown; /* for an unknown tenant, or without memory for a usage */
};

/* Bytes of one receive or one send: 64 requests of 4 KiB with their headers, and still inside a
 * core's second-level cache. */
#define FRONT_SCRATCH ((size_t)288 << 10)

struct front { /* of one worker */
	const struct front_site *site;
	struct gateway *gateway;
	struct loop *loop;
	struct chunk_pool *pool;
	uint8_t *scratch; /* of FRONT_SCRATCH bytes, shared by its connections: never kept */
	struct loop_turn turn;
	struct loop_timer tick;
	bool finishing;       /* no new connections */
	bool frozen;          /* reads from none: front_freeze */
	bool kept;            /* and sends to none: front_keep has written what is not sent */
	bool submitted;       /* requests were submitted since the turn began */
	uint32_t n_submitted; /* in this round */

	struct front_conn *conns;
	size_t n_conns;
	struct front_conn *todo, **todo_end; /* linked by next_todo */

	struct request *free_jobs; /* linked by next */
	void *slabs;
	size_t n_jobs, n_used, most_jobs;
	struct front_total *totals;
	size_t n_totals;
	size_t rest_bytes; /* in all `rest` buffers */
	weir_time tick_at; /* expiry of the tick */

	/* serve/front/wait.c: usages with a queue */
	struct front_ring waiting; /* to be checked, in turn */
	struct front_ring looked;  /* none may continue until a change */
	struct front_conn *waking; /* precedes the waiting ones, for one request */
	uint64_t granted;          /* jobs so far */
	uint64_t given_back;       /* returns so far, and other reasons to continue */
	uint64_t changes;          /* events that may let a connection continue, as seen … */
	uint64_t seen_back;        /* … by this */
	size_t seen_held;          /* … and this, bytes */
};

static inline struct front_job *front_job_of(struct request *q)
{
	return container_of(q, struct front_job, req);
}

/* ---- serve/front/job.c */

#define FRONT_JOBS 1024 /* most jobs of one connection */

/* Get a job, with a chunk of `bytes` if not 0; NULL: not now, the connection must wait. anyway:
 * front_may was already called, for all of a request at once. */
struct front_job *front_job_get(struct front_conn *c, size_t bytes, bool anyway);
void front_job_put(struct front_job *j);
/* Return true if the connection may have `bytes` more, in one job or several. */
bool front_may(struct front_conn *c, size_t bytes);
/* Return true if the connection's tenant may. */
bool front_tenant_may(struct front_conn *c, size_t bytes);
/* Return true if it may continue when one of its own jobs returns. */
bool front_waits_for_own(const struct front_conn *c);
size_t front_left(const struct front *f); /* bytes of free chunks */
/* Register the connection with its resource's usages; before anything else. Return 0 or -ENOMEM. */
int front_job_join(struct front_conn *c);
/* The client has read no reply for a second: count its jobs separately. Return false if its tenant has too
 * many such connections. */
bool front_job_deaf(struct front_conn *c);
void front_job_blocked(struct front_conn *c); /* its socket is full */
void front_job_hears(struct front_conn *c);   /* it is not deaf (any more) */
/* client.waiting: of requests that have a job. */
void front_jobs_waiting(
	const struct client *client, void (*fn)(void *arg, weir_time received), void *arg);
void front_jobs_free(struct front *f);

/* ---- serve/front/wait.c */

void front_wait_init(struct front *f);
/* The connection may not have what it needs (c->need, c->own): do not read from it until it may. */
void front_pause(struct front_conn *c);
void front_unpause(struct front_conn *c); /* it ends: it no longer waits */
/* One of the client's jobs returned, or it reads again. */
void front_returned(struct front_conn *c);
/* Return true if a connection of its usage waits that will continue if others of the usage wait,
 * too. */
bool front_goes_behind(const struct front_conn *c);
/* Resume connections that may continue. Return true if there may be more: call again without
 * waiting for an event. Does nothing if none waits. */
bool front_wake(struct front *f);

/* ---- serve/front/receive.c */

/* Called when the socket is readable, or a paused connection may continue. */
void front_read(struct front_conn *c);
void front_resume(struct front_conn *c);
void front_read_end(struct front_conn *c); /* release what was begun */

/* ---- serve/front/send.c */

/* Return true if the data belong to the back end, for this round only (BACK_BORROW). */
static inline bool front_borrowed(const struct front_job *j)
{
	const struct back_io *io = &j->req.io;

	return io->flags & BACK_BORROW && io->data != io->chunk->data;
}
void front_own(struct front_job *j);      /* copy borrowed data to its own chunk */
void front_own_all(struct front_conn *c); /* the same for all unsent replies */

/* Give the bytes of each reply that are not sent yet, one after the other. */
void front_unsent(
	struct front_conn *c, void (*put)(void *arg, const struct iovec *iov, int n), void *arg);
/* Do one send. Return true if there is more, and the socket has room. */
bool front_send(struct front_conn *c);
void front_drop(struct front_conn *c); /* discard the queued replies */

/* ---- serve/front/keep.c, serve/front/take.c */

/* Return true if another process can take the connection over. */
bool front_kept(const struct front_conn *c);

/* ---- serve/front/conn.c */

/* Begin to watch the connection's socket, and join its resource. Return 0 or a negative errno. */
int front_conn_enter(struct front_conn *c);
void front_conn_unstarted(struct front_conn *c); /* close and free one that did not enter */

void front_todo(struct front_conn *c); /* handle it in this round's turn */
/* Its socket is full: its time starts. */
void front_blocked(struct front_conn *c);
void front_done(struct request *q); /* request.done of every piece */
/* No more pieces follow: the request is answered when the existing ones are done. */
void front_head_release(struct front_job *head);
void front_head_drop(struct front_job *head); /* with its pieces, unanswered */
void front_events(struct front_conn *c);
/* End of file: answer the requests that are complete, then close. If the client is gone altogether:
 * front_lost. */
void front_ended(struct front_conn *c);
void front_lost(struct front_conn *c, int error); /* the socket ended; 0: in good order */
