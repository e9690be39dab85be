/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front-nbd-impl: what the files of the NBD front end share.
 *
 *   front-nbd.c        connections: start, end, timeouts, the turn
 *   front-nbd-check.c  what the protocol allows (pure)
 *   front-nbd-job.c    jobs and memory: who may have how much
 *   front-nbd-wait.c   those that wait for memory, and in which order they get on
 *   front-nbd-read.c   bytes in, requests out
 *   front-nbd-reply.c  replies out
 *   front-nbd-held.c   what clients are told of weir:held
 *
 * Everything of one worker's connections happens on its thread.
 *
 * A JOB is one request on its way, or a piece of one (up to 256 KiB). A request of several pieces has
 * a job besides, its head, which does no I/O: it counts what is left and keeps the first error.
 *
 * PAUSED  A connection whose next request, or piece, may not have memory now is not read from. What was
 *         received behind that lies in `rest`.
 * DEAF    A connection that has replies and has taken none for a second.
 */
#ifndef WEIR_PORT_FRONT_NBD_IMPL_H
#define WEIR_PORT_FRONT_NBD_IMPL_H

#include "port/gateway-impl.h"
#include "port/resource-impl.h"
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
		uint32_t left; /* head: pieces not done, and 1 while more are to come */
		uint32_t held; /* block status: what weir:held says, µs */
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
	FRONT_NBD_MORE,    /* `head` is a read of which pieces are to be made */
	FRONT_NBD_PIECE,   /* `head`, if any, is a write whose next piece is to be made */
	FRONT_NBD_PAYLOAD, /* `piece` is being filled */
	FRONT_NBD_SKIP,    /* `skip` bytes of a refused write are thrown away */
};

struct front_nbd_conn {
	struct loop_fd fd; /* first */
	struct front_nbd *front;
	struct worker *worker;
	struct stream stream;
	struct client client;
	struct front_nbd_conn *next, **link;               /* of all */
	struct front_nbd_conn *next_todo;                  /* of those with something to do */
	struct front_nbd_conn *next_queued, **link_queued; /* of those that wait in its purse */

	/* the export, as the client was told */
	uint64_t offset, size; /* bytes */
	uint16_t flags;        /* enum nbd_export_flags */
	uint32_t block_min;
	uint32_t context_id, held_id;
	bool structured, base_allocation;
	bool tells_held;            /* weir:held is agreed on … */
	struct resource_held asked; /* … what its tenant had when it was last asked, … */
	uint32_t told;              /* … and what was said: µs */

	bool stopping; /* reads no more; ends when all is answered */
	bool ended;    /* the client sends no more, without NBD_DISC: stopping, unless it is gone */
	bool gone;     /* the client went; what is inside finishes unanswered */
	bool closed;   /* everything is given back but for jobs inside */
	bool doomed;   /* to be closed in the turn */
	bool blocked;  /* the socket takes no more now */
	bool listed;   /* in the front's list of those with something to do */
	bool unread;   /* stopped before the socket was empty: goes on in the next round */
	bool borrows;  /* some of `out` may be borrowed */
	bool paused;   /* waits for memory: in its purse's queue, or for its own jobs */
	bool own;      /* what it may not have now it may when a job of its own is back */
	bool deaf;
	bool heard;      /* it took a whole reply once */
	uint32_t events; /* asked of the loop */

	/* reading */
	uint8_t step;   /* enum front_nbd_step */
	uint8_t n_head; /* bytes of a request that came in part */
	uint8_t head_bytes[NBD_REQUEST_SIZE];
	struct nbd_request request;
	struct front_nbd_job *head, *piece;
	uint32_t done; /* bytes of the request for which pieces were made */
	uint32_t have; /* bytes of the piece's payload */
	uint32_t skip; /* bytes */
	int refusal;   /* what the skipped write is answered with */
	uint8_t *rest; /* received, not looked at yet */
	size_t rest_at, rest_n;
	weir_time received; /* return of the last recv: of `rest`, too */
	weir_time piece_since;

	/* held */
	size_t held;   /* bytes of chunks */
	uint32_t jobs; /* all of them, answered ones not */
	size_t need;   /* bytes that it may not have: why it is paused */
	struct front_nbd_till *till;
	struct front_nbd_purse *purse;     /* in which these are counted */
	struct front_nbd_purse *queued_in; /* where it waits; NULL: in no queue */

	/* replies */
	struct request_list out;
	uint64_t sent; /* bytes of the first ones' replies; TLS may still hold the last of them */
	size_t takes;  /* bytes that its socket took when it was last full; 0: it was not */
	weir_time progress; /* when something was last sent, or the queue began */
	struct loop_task task;
};

struct front_nbd_ring { /* of purses; its head is one, too, and alone leads to itself */
	struct front_nbd_ring *next, *prev;
};

struct front_nbd_purse { /* what connections of a tenant to a resource hold: good, or doubtful */
	struct front_nbd_ring ring; /* first; next NULL: nobody waits */
	size_t held;                /* bytes of chunks; the deaf ones' not */
	uint32_t jobs;              /* theirs neither */
	size_t deaf_held;
	uint32_t deaf_jobs;
	bool doubtful; /* of those that take no replies now, or took none yet */
	/* those that wait, in order */
	struct front_nbd_conn *first, **end;
	size_t n_queued, in_vain; /* in_vain: looked at since the last change */
	uint64_t change;          /* which that was */
};

struct front_nbd_till { /* one resource's purses, by tenant */
	struct front_nbd_till *next;
	const struct resource *resource;
	size_t held; /* bytes of chunks, in all of them; the deaf ones' not */
	uint32_t jobs;
	struct front_nbd_purse **purses; /* two a tenant; NULL: it never had such a connection */
	size_t n_purses;
	struct front_nbd_purse nobody; /* whose tenant is not known, or has no memory for one */
};

struct front_nbd { /* one worker's */
	struct worker *worker;
	struct loop *loop;
	struct chunk_pool *pool;
	uint8_t *scratch;
	size_t scratch_room;
	struct loop_turn turn;
	struct loop_timer tick;
	bool finishing;       /* no new ones */
	bool submitted;       /* something, since the turn began */
	uint32_t n_submitted; /* in this round */

	struct front_nbd_conn *conns;
	size_t n_conns;
	struct front_nbd_conn *todo, **todo_end; /* linked by next_todo */

	struct request *free_jobs; /* linked by next */
	void *slabs;
	size_t n_jobs, n_used, most_jobs;
	struct front_nbd_till *tills;
	size_t n_tills;
	size_t rest_bytes; /* in all `rest`s */
	weir_time tick_at; /* what the tick is set to */

	/* front-nbd-wait.c's: purses with a queue */
	struct front_nbd_ring waiting; /* to be looked at, in turn */
	struct front_nbd_ring looked;  /* nobody of theirs may go on until something changes */
	struct front_nbd_conn *waking; /* it goes before those that wait, for one request */
	uint64_t granted;              /* jobs so far */
	uint64_t given_back;           /* the same; and whatever else may let somebody go on */
	uint64_t changes;              /* of what may let somebody go on, as seen … */
	uint64_t seen_back;            /* … by this */
	size_t seen_held;              /* … and this, bytes */
};

static inline struct front_nbd_job *front_nbd_job_of(struct request *q)
{
	return (struct front_nbd_job *)(void *)q;
}

/* ---- front-nbd-check.c */

struct front_nbd_rules {    /* what an export allows */
	uint64_t size;      /* bytes */
	uint16_t flags;     /* enum nbd_export_flags, as offered */
	uint32_t block_min; /* bytes */
	bool structured, status;
};
/* 0: to be done; else the negative errno that the protocol gives for it. NBD_DISC is not asked. */
int front_nbd_check(const struct front_nbd_rules *rules, const struct nbd_request *q);
/* The transmission flags of an export on such a back end. */
uint16_t front_nbd_flags(const struct back_info *info, bool read_only);

/* ---- front-nbd-job.c */

#define FRONT_NBD_JOBS 1024 /* the most of one connection */

/* A job, with a chunk of `bytes` if that is not 0; NULL: not now, the connection must wait. anyway: it
 * was asked before whether the connection may (front_nbd_may), for all of a request at once. */
struct front_nbd_job *front_nbd_job_get(struct front_nbd_conn *c, size_t bytes, bool anyway);
void front_nbd_job_put(struct front_nbd_job *j);
/* May the connection have `bytes` more, in a job or several? */
bool front_nbd_may(struct front_nbd_conn *c, size_t bytes);
/* May the connection's tenant? */
bool front_nbd_tenant_may(struct front_nbd_conn *c, size_t bytes);
/* Is what it may not have now in the hands of jobs of its own, whose return will be seen? */
bool front_nbd_waits_for_own(const struct front_nbd_conn *c);
size_t front_nbd_left(const struct front_nbd *f); /* bytes of chunks that nobody holds */
/* The connection has its place among those of its resource; before anything else. 0 or -ENOMEM. */
int front_nbd_job_join(struct front_nbd_conn *c);
/* It has taken no reply for a second: its jobs are counted apart. false: its tenant has too many such. */
bool front_nbd_job_deaf(struct front_nbd_conn *c);
void front_nbd_job_blocked(struct front_nbd_conn *c); /* its socket takes no more */
void front_nbd_job_hears(struct front_nbd_conn *c);   /* it is not deaf, or not any more */
void front_nbd_jobs_free(struct front_nbd *f);

/* ---- front-nbd-wait.c */

void front_nbd_wait_init(struct front_nbd *f);
/* It may not have what it needs (c->need, c->own): not read from until it may. */
void front_nbd_pause(struct front_nbd_conn *c);
void front_nbd_unpause(struct front_nbd_conn *c); /* it ends: waits no more */
/* A job of its own is back, or it is not deaf any more. */
void front_nbd_returned(struct front_nbd_conn *c);
/* Does somebody of its purse wait who will get on when others of it wait, too? */
bool front_nbd_goes_behind(const struct front_nbd_conn *c);
/* Those that may go on do. true: there may be more of them; again, without waiting for an event.
 * Nothing to do while nobody waits. */
bool front_nbd_wake(struct front_nbd *f);

/* ---- front-nbd-read.c */

/* The socket can be read, or what was paused may go on. */
void front_nbd_read(struct front_nbd_conn *c);
void front_nbd_resume(struct front_nbd_conn *c);
void front_nbd_keep(struct front_nbd_conn *c, const uint8_t *p, size_t n); /* into `rest` */
void front_nbd_read_end(struct front_nbd_conn *c); /* what was begun is given back */

/* ---- front-nbd-held.c */

/* Is the block status c->request the question for weir:held? Then c->told is its answer from now on. */
bool front_nbd_held(struct front_nbd_conn *c);

/* ---- front-nbd-reply.c */

/* Are its data the back end's, for this round only (BACK_BORROW)? */
static inline bool front_nbd_borrowed(const struct front_nbd_job *j)
{
	const struct back_io *io = &j->req.io;

	return io->flags & BACK_BORROW && io->data != io->chunk->data;
}
void front_nbd_own(struct front_nbd_job *j);      /* then they are copied to its own chunk */
void front_nbd_own_all(struct front_nbd_conn *c); /* the same for what was not sent */

/* A request that does not reach the resource is answered. false: not now, no job is to be had. */
bool front_nbd_answer(struct front_nbd_conn *c, const struct nbd_request *q, int error);
void front_nbd_reply(struct front_nbd_job *j); /* it is done, and stands in the queue from now on */
/* One send of what there is. true: there is more, and the socket would take it. */
bool front_nbd_send(struct front_nbd_conn *c);
void front_nbd_drop(struct front_nbd_conn *c); /* replies that nobody waits for any more */

/* ---- front-nbd.c */

void front_nbd_todo(struct front_nbd_conn *c); /* look at it in this round's turn */
/* Its socket takes no more: from now on it is timed. */
void front_nbd_blocked(struct front_nbd_conn *c);
void front_nbd_done(struct request *q); /* request.done of every piece */
/* No more pieces come: the request is answered when those that there are, are done. */
void front_nbd_head_release(struct front_nbd_job *head);
void front_nbd_head_drop(struct front_nbd_job *head); /* with its pieces, unanswered */
void front_nbd_events(struct front_nbd_conn *c);
/* Cut off, with one line in the log and counted: the client broke the protocol. */
void front_nbd_broken(struct front_nbd_conn *c, const char *why);
/* It sends no more: what it asked for before is answered, then it is closed. Gone altogether: lost. */
void front_nbd_ended(struct front_nbd_conn *c);
void front_nbd_lost(struct front_nbd_conn *c, int error); /* the socket ended; 0: in order */

#endif
