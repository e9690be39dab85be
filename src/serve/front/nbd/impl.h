/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * impl: internals shared by the files of the NBD front end.
 *
 *   serve/front/nbd/nbd.c        connections: start, end, timeouts, the turn
 *   serve/front/nbd/check.c  the rules of the protocol (pure)
 *   serve/front/nbd/job.c    jobs and memory, and the limits on them
 *   serve/front/nbd/wait.c   connections that wait for memory, and their order
 *   serve/front/nbd/read.c   bytes in, requests out
 *   serve/front/nbd/reply.c  replies out
 *   serve/front/nbd/held.c   the answers about weir:held
 *
 * Everything of a worker's connections happens on its thread.
 *
 * A JOB is one request, or a piece of one (up to 256 KiB). A request of several pieces has an extra
 * job, its head, which does no I/O: it counts the remaining pieces and keeps the first error.
 *
 * PAUSED  A connection whose next request, or piece, may not have memory now is not read from. Bytes
 *         received after it are in `rest`.
 * DEAF    A connection that has replies and has read none for a second.
 */
#ifndef WEIR_SERVE_FRONT_NBD_IMPL_H
#define WEIR_SERVE_FRONT_NBD_IMPL_H

#include "serve/gateway/impl.h"
#include "serve/resource/impl.h"
#include "wire/nbd.h"

struct front_nbd_conn;

struct front_nbd_job {
	struct request req; /* first; req.next links replies and free jobs */
	struct front_nbd_conn *conn;
	struct front_nbd_job *head; /* of a piece; NULL: a whole request */
	uint64_t cookie;
	weir_time received; /* return of the recv that completed the request; 0: it is not timed */
	uint64_t offset;    /* bytes, in the export */
	uint32_t length;    /* bytes */
	union {
		uint32_t left; /* head: unfinished pieces, plus 1 while more are to come */
		uint32_t held; /* block status: the value of weir:held, µs */
	};
	struct front_nbd_job *next_piece, *pieces; /* head of a read answered as one: in order */
	struct front_nbd_job **pieces_end;
	uint32_t size;       /* bytes of its reply, as last gathered */
	uint8_t command;     /* enum nbd_command; READ, WRITE … */
	bool is_head, whole; /* whole: head of a read answered as one */
	bool last;           /* ends the reply to its request */
};

enum front_nbd_step {
	FRONT_NBD_HEAD,    /* the next 28 bytes are a request */
	FRONT_NBD_BEGIN,   /* `request` is to be started */
	FRONT_NBD_MORE,    /* `head` is a read with pieces still to be made */
	FRONT_NBD_PIECE,   /* `head`, if any, is a write whose next piece is to be made */
	FRONT_NBD_PAYLOAD, /* `piece` is being filled */
	FRONT_NBD_SKIP,    /* `skip` bytes of a refused write are discarded */
};

struct front_nbd_conn {
	struct loop_fd fd; /* first */
	struct front_nbd *front;
	struct worker *worker;
	struct stream stream;
	struct client client;
	struct front_nbd_conn *next, **link;               /* all connections */
	struct front_nbd_conn *next_todo;                  /* connections with something to do */
	struct front_nbd_conn *next_queued, **link_queued; /* connections waiting in its usage */

	/* the export, as described to the client */
	uint64_t offset, size; /* bytes */
	uint16_t flags;        /* enum nbd_export_flags */
	uint32_t block_min;
	uint32_t context_id, held_id;
	bool structured, base_allocation;
	bool tells_held;            /* weir:held is negotiated, … */
	struct resource_held asked; /* … its tenant's state at the last query, … */
	uint32_t told;              /* … and the last answer: µs */

	bool stopping; /* reads no more; ends when all is answered */
	bool ended;    /* end of file without NBD_DISC: stopping, unless the client is gone */
	bool gone;     /* the client left; jobs inside finish unanswered */
	bool closed;   /* everything is released except jobs inside */
	bool doomed;   /* to be closed in the turn */
	bool blocked;  /* the socket is full */
	bool listed;   /* in the front's list of connections with something to do */
	bool unread;   /* stopped before the socket was empty: continues in the next round */
	bool borrows;  /* parts of `out` may be borrowed */
	bool paused;   /* waits for memory: in its usage's queue, or for its own jobs */
	bool own;      /* may continue when one of its own jobs returns */
	bool deaf;
	bool heard;      /* it has read a whole reply before */
	uint32_t events; /* requested from the loop */

	/* reading */
	uint8_t step;   /* enum front_nbd_step */
	uint8_t n_head; /* bytes of a partial request */
	uint8_t head_bytes[NBD_REQUEST_SIZE];
	struct nbd_request request;
	struct front_nbd_job *head, *piece;
	uint32_t done; /* bytes of the request that have pieces */
	uint32_t have; /* bytes of the piece's payload */
	uint32_t skip; /* bytes */
	int refusal;   /* the error of the skipped write */
	uint8_t *rest; /* received, not processed yet */
	size_t rest_at, rest_n;
	weir_time received; /* return of the last recv, also for `rest` */
	weir_time piece_since;

	/* held */
	size_t held;   /* bytes of chunks */
	uint32_t jobs; /* all jobs not yet answered */
	size_t need;   /* bytes that it may not have: why it is paused */
	struct front_nbd_total *total;
	struct front_nbd_usage *usage;     /* where its jobs and bytes are counted */
	struct front_nbd_usage *queued_in; /* where it waits; NULL: in no queue */

	/* replies */
	struct request_list out;
	uint64_t sent; /* bytes sent of the first replies; TLS may still hold the last of them */
	size_t takes;  /* bytes that its socket accepted when it was last full; 0: it was not */
	weir_time progress; /* when bytes were last sent, or the queue began */
	struct loop_task task;
};

struct front_nbd_ring { /* of usages; the head of the list is one, too; alone it points to itself */
	struct front_nbd_ring *next, *prev;
};

struct front_nbd_usage { /* jobs and bytes of a tenant's good, or doubtful, connections */
	struct front_nbd_ring ring; /* first; next NULL: no connection waits */
	size_t held;                /* bytes of chunks, without those of deaf connections */
	uint32_t jobs;              /* without those of deaf connections */
	size_t deaf_held;
	uint32_t deaf_jobs;
	bool doubtful; /* of connections that read no replies now, or have read none yet */
	/* the waiting connections, in order */
	struct front_nbd_conn *first, **end;
	size_t n_queued, failed; /* failed: checked without success since the last change */
	uint64_t change;         /* the number of that change */
};

struct front_nbd_total { /* the usages of one resource, by tenant */
	struct front_nbd_total *next;
	const struct resource *resource;
	size_t held; /* bytes of chunks of all tenants, without those of deaf connections */
	uint32_t jobs;
	struct front_nbd_usage **usages; /* two per tenant; NULL: it never had such a connection */
	size_t n_usages;
	struct front_nbd_usage unknown; /* for an unknown tenant, or without memory for a usage */
};

struct front_nbd { /* of one worker */
	struct worker *worker;
	struct loop *loop;
	struct chunk_pool *pool;
	uint8_t *scratch;
	size_t scratch_room;
	struct loop_turn turn;
	struct loop_timer tick;
	bool finishing;       /* no new connections */
	bool submitted;       /* requests were submitted since the turn began */
	uint32_t n_submitted; /* in this round */

	struct front_nbd_conn *conns;
	size_t n_conns;
	struct front_nbd_conn *todo, **todo_end; /* linked by next_todo */

	struct request *free_jobs; /* linked by next */
	void *slabs;
	size_t n_jobs, n_used, most_jobs;
	struct front_nbd_total *totals;
	size_t n_totals;
	size_t rest_bytes; /* in all `rest` buffers */
	weir_time tick_at; /* expiry of the tick */

	/* serve/front/nbd/wait.c: usages with a queue */
	struct front_nbd_ring waiting; /* to be checked, in turn */
	struct front_nbd_ring looked;  /* none may continue until a change */
	struct front_nbd_conn *waking; /* precedes the waiting ones, for one request */
	uint64_t granted;              /* jobs so far */
	uint64_t given_back;           /* returns so far, and other reasons to continue */
	uint64_t changes;              /* events that may let a connection continue, as seen … */
	uint64_t seen_back;            /* … by this */
	size_t seen_held;              /* … and this, bytes */
};

static inline struct front_nbd_job *front_nbd_job_of(struct request *q)
{
	return (struct front_nbd_job *)(void *)q;
}

/* ---- serve/front/nbd/check.c */

struct front_nbd_rules {    /* the rules of an export */
	uint64_t size;      /* bytes */
	uint16_t flags;     /* enum nbd_export_flags, as offered */
	uint32_t block_min; /* bytes */
	bool structured, status;
};
/* Return 0 if the request may be done, else the negative errno that the protocol prescribes. Not
 * for NBD_DISC. */
int front_nbd_check(const struct front_nbd_rules *rules, const struct nbd_request *q);
/* Return the transmission flags of an export on such a back end. */
uint16_t front_nbd_flags(const struct back_info *info, bool read_only);

/* ---- serve/front/nbd/job.c */

#define FRONT_NBD_JOBS 1024 /* most jobs of one connection */

/* Get a job, with a chunk of `bytes` if not 0; NULL: not now, the connection must wait. anyway:
 * front_nbd_may was already called, for all of a request at once. */
struct front_nbd_job *front_nbd_job_get(struct front_nbd_conn *c, size_t bytes, bool anyway);
void front_nbd_job_put(struct front_nbd_job *j);
/* Return true if the connection may have `bytes` more, in one job or several. */
bool front_nbd_may(struct front_nbd_conn *c, size_t bytes);
/* Return true if the connection's tenant may. */
bool front_nbd_tenant_may(struct front_nbd_conn *c, size_t bytes);
/* Return true if it may continue when one of its own jobs returns. */
bool front_nbd_waits_for_own(const struct front_nbd_conn *c);
size_t front_nbd_left(const struct front_nbd *f); /* bytes of free chunks */
/* Register the connection with its resource's usages; before anything else. Return 0 or -ENOMEM. */
int front_nbd_job_join(struct front_nbd_conn *c);
/* It has read no reply for a second: count its jobs separately. Return false if its tenant has too
 * many such connections. */
bool front_nbd_job_deaf(struct front_nbd_conn *c);
void front_nbd_job_blocked(struct front_nbd_conn *c); /* its socket is full */
void front_nbd_job_hears(struct front_nbd_conn *c);   /* it is not deaf (any more) */
void front_nbd_jobs_free(struct front_nbd *f);

/* ---- serve/front/nbd/wait.c */

void front_nbd_wait_init(struct front_nbd *f);
/* The connection may not have what it needs (c->need, c->own): do not read from it until it may. */
void front_nbd_pause(struct front_nbd_conn *c);
void front_nbd_unpause(struct front_nbd_conn *c); /* it ends: it no longer waits */
/* One of its jobs returned, or it is no longer deaf. */
void front_nbd_returned(struct front_nbd_conn *c);
/* Return true if a connection of its usage waits that will continue if others of the usage wait,
 * too. */
bool front_nbd_goes_behind(const struct front_nbd_conn *c);
/* Resume connections that may continue. Return true if there may be more: call again without
 * waiting for an event. Does nothing if none waits. */
bool front_nbd_wake(struct front_nbd *f);

/* ---- serve/front/nbd/read.c */

/* Called when the socket is readable, or a paused connection may continue. */
void front_nbd_read(struct front_nbd_conn *c);
void front_nbd_resume(struct front_nbd_conn *c);
void front_nbd_keep(struct front_nbd_conn *c, const uint8_t *p, size_t n); /* into `rest` */
void front_nbd_read_end(struct front_nbd_conn *c); /* release what was begun */

/* ---- serve/front/nbd/held.c */

/* Return true if the block status c->request is the query for weir:held. Then c->told is the new
 * answer. */
bool front_nbd_held(struct front_nbd_conn *c);

/* ---- serve/front/nbd/reply.c */

/* Return true if the data belong to the back end, for this round only (BACK_BORROW). */
static inline bool front_nbd_borrowed(const struct front_nbd_job *j)
{
	const struct back_io *io = &j->req.io;

	return io->flags & BACK_BORROW && io->data != io->chunk->data;
}
void front_nbd_own(struct front_nbd_job *j);      /* copy borrowed data to its own chunk */
void front_nbd_own_all(struct front_nbd_conn *c); /* the same for all unsent replies */

/* Answer a request that does not reach the resource. Return false if no job is available now. */
bool front_nbd_answer(struct front_nbd_conn *c, const struct nbd_request *q, int error);
void front_nbd_reply(struct front_nbd_job *j); /* queue the reply of a finished job */
/* Do one send. Return true if there is more, and the socket has room. */
bool front_nbd_send(struct front_nbd_conn *c);
void front_nbd_drop(struct front_nbd_conn *c); /* discard the queued replies */

/* ---- serve/front/nbd/nbd.c */

void front_nbd_todo(struct front_nbd_conn *c); /* handle it in this round's turn */
/* Its socket is full: its time starts. */
void front_nbd_blocked(struct front_nbd_conn *c);
void front_nbd_done(struct request *q); /* request.done of every piece */
/* No more pieces follow: the request is answered when the existing ones are done. */
void front_nbd_head_release(struct front_nbd_job *head);
void front_nbd_head_drop(struct front_nbd_job *head); /* with its pieces, unanswered */
void front_nbd_events(struct front_nbd_conn *c);
/* Disconnect the client, with a log line and a count: it broke the protocol. */
void front_nbd_broken(struct front_nbd_conn *c, const char *why);
/* End of file: answer the earlier requests, then close. If the client is gone altogether:
 * front_nbd_lost. */
void front_nbd_ended(struct front_nbd_conn *c);
void front_nbd_lost(struct front_nbd_conn *c, int error); /* the socket ended; 0: in good order */

#endif
