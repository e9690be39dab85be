/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * front: the interface of a front end: a protocol by which clients send requests.
 *
 * A front end is a table of functions, struct front_ops, and its name in the list of meson.build. The
 * gateway knows nothing else of a protocol, and a protocol nothing of the gateway. It says what
 * bytes mean: the handshake, where a request ends, what a reply looks like. Everything else is
 * shared by all front ends:
 *
 *   serve/front/door.c     a new connection until its export is known: TLS, identity, time limits
 *   serve/front/conn.c     a connection after that: start, end, slow clients, the turn
 *   serve/front/receive.c  bytes in, requests out; pieces; pausing
 *   serve/front/job.c      memory for requests, and the limits of connections and tenants
 *   serve/front/wait.c     connections that wait for memory, and their order
 *   serve/front/send.c     replies out
 *   serve/front/keep.c     connections for the process that replaces this one; take.c: from the one before
 *   serve/front/request.h  a request, and the functions of the gate that takes it
 *
 * The arrows: serve/loop and serve/back/back.h (operations on storage) are below; serve/resource
 * and serve/gateway are above, and are called through struct front_gate and struct front_site.
 *
 * THREADS  The handshake is on the main thread, the rest on the thread of the client's resource.
 *
 * A JOB is one request, or a piece of one (up to 256 KiB). A request of several pieces has an extra
 * job, its head, which does no I/O: it counts the remaining pieces and keeps the first error.
 *
 * EXAMPLE  tests/serve/front-example/line.c: lines of text, in less than 250 lines.
 */
#pragma once

#include "base/container.h"
#include "policy/policy.h"
#include "serve/front/request.h"
#include "serve/loop/gather.h"
#include "serve/loop/stream.h"

struct front;
struct front_conn;
struct front_door;
struct front_job;
struct front_total;
struct front_usage;
struct front_visit;
struct gateway; /* opaque here */
struct record_in;
struct record_out;
struct tls;

/* ---- a front end */

enum front_hello {
	FRONT_HELLO_MORE,  /* send the output, give more input */
	FRONT_HELLO_TLS,   /* send the output, do the TLS handshake, then call `secured` */
	FRONT_HELLO_READY, /* send the output; requests for the export visit.name follow */
	/* send the output, and call again without input when front_find may succeed */
	FRONT_HELLO_WAIT,
	FRONT_HELLO_END, /* send the output, then close: the client left, or visit.fault is why */
};
#define FRONT_HELLO_OUT 16384 /* bytes of output at once, at most */

enum front_step {      /* next action of a connection */
	FRONT_HEAD,    /* parse a request */
	FRONT_BEGIN,   /* begin `request` */
	FRONT_MORE,    /* `head` is a read with pieces still to be made */
	FRONT_PIECE,   /* `head`, if any, is a write whose next piece is to be made */
	FRONT_PAYLOAD, /* `piece` is being filled */
	FRONT_SKIP,    /* `skip` bytes of a refused write are discarded */
};

struct front_ops {
	const char *name; /* of the protocol; "nbd+unix:/run/x.sock" listens for it */
	/* The protocol's own structs, whose first member is a struct front_visit, front_conn. */
	size_t visit_size, conn_size;
	size_t head_max;  /* bytes: the longest request, without its payload */
	size_t reply_max; /* bytes: the longest reply, without data and 16 for each extent */

	/* The handshake. greet: write the server's first words to out, if it speaks first; return
	 * their size. hello: process input until the output is full, the input is used up or the
	 * state is not MORE; while it is MORE, it is called again until it neither consumes nor
	 * writes anything. After READY the rest of the input is the first requests. secured: the
	 * TLS handshake is done; refuse everything if visit.denied is set. May be NULL. */
	size_t (*greet)(struct front_visit *v, uint8_t *out);
	enum front_hello (*hello)(struct front_visit *v, const uint8_t *in, size_t n,
		size_t *ret_used, uint8_t *out, size_t room, size_t *ret_made);
	void (*secured)(struct front_visit *v);
	/* Copy the agreed settings of the visit to the connection, which is zeroed but for the
	 * shared part. May be NULL. */
	void (*agree)(struct front_conn *c, const struct front_visit *v);

	/* Parse the request that begins at p. Return its size, without the payload, with c->step
	 * FRONT_BEGIN; 0 if its end is not there yet. Calls front_broken if it is not one. */
	size_t (*parse)(struct front_conn *c, const uint8_t *p, size_t n);
	/* Begin the request: fill in c->request and return front_begin_read or front_begin_write;
	 * or make jobs (front_job_make) and pass them to front_submit or front_reply; or
	 * front_answer. Return FRONT_HEAD if that is done, FRONT_BEGIN if there is no job for it
	 * now: it is called again when there is. */
	enum front_step (*begin)(struct front_conn *c);
	/* Write the reply of a finished job; io.error is its result. The same every time: a reply
	 * that was sent in part is written again. */
	void (*reply)(struct gather *g, struct front_job *j);

	/* For a process that replaces another one (serve/handover): write the protocol's own part of a
	 * connection, between two requests or in one; and read it again: 0; -ESTALE: the export is
	 * another one by now; or -EBADMSG. NULL: its connections are drained and closed. */
	void (*keep)(const struct front_conn *c, struct record_out *o);
	int (*take)(struct front_conn *c, struct record_in *in);
};

/* ---- the handshake */

struct front_place {         /* where the requests of an export go */
	struct front *front; /* of the resource's thread */
	const struct front_gate *gate;
	struct resource *resource;
	const struct back_info *info;
	uint64_t offset, size; /* of the export in the resource */
	uint64_t
		storage; /* a hash: of another process's export, too, it is the same only if the data are */
	bool read_only;
	bool known; /* false: its storage was not reached yet; size and read_only are undefined */
	weir_time timeout; /* how long a client should wait for that */
	int tenant;
	const char *tenant_path,
		*description; /* the policy's: not to be kept; the latter or NULL */
};

struct front_visit { /* a handshake; the first member of the protocol's own */
	/* the result: the name by which the client calls its share of a resource, matched by the
	 * policy as `export` (READY); the client's fault, NULL if there is none (END) */
	const char *name, *fault;
	const char *denied; /* why TLS requires that this client be refused, or NULL */
	bool tls_offered, tls_required;
	/* private to door.c */
	struct loop_fd fd;
	const struct front_ops *ops;
	struct front_door *door;
	struct front_visit *next, *prev; /* next: younger */
	weir_time since, until;
	struct stream stream;
	struct stream_peer peer;
	char uid[16], tls[128];
	char export_[256];      /* name in the policy */
	enum front_hello state; /* once `out` is sent */
	bool shaking;           /* in the TLS handshake */
	bool waiting;           /* for the storage of its export, in the door's other list */
	bool late;              /* it waited long enough */
	bool ready;             /* it waits at the end of the handshake */
	bool refused;           /* was counted */
	weir_time timeout;      /* of that resource */
	struct loop_timer patience;
	uint32_t events;
	size_t listed, list_at; /* the listed-th name for this client is the list_at-th of all */
	uint8_t in[512]; /* received at once: options are short, and the rest goes to the worker */
	size_t in_at, in_n;
	uint8_t *out; /* produced but not sent yet */
	size_t out_at, out_n;
};

/* Look up the export of that name ("": the default) for this client. Return 0; -ENOENT; -EACCES:
 * not allowed for this client; -EAGAIN: its storage is not reachable, wait (FRONT_HELLO_WAIT);
 * -ETIMEDOUT: it waited long enough; -ENODEV: it ends beyond its resource, or its file. */
int front_find(struct front_visit *v, const char *name, struct front_place *ret);
/* The client is about to use the export that front_find found. Call this before the reply that ends
 * the handshake, not for a client that only asks for the export's properties. Return 0; -EAGAIN: its
 * tenant is being made, wait (FRONT_HELLO_WAIT) and call front_find again. */
int front_enter(struct front_visit *v);
/* Return the i-th name for this client, or NULL, and its description or NULL. Valid until the next
 * call. */
const char *front_list(struct front_visit *v, size_t i, const char **ret_about);

/* ---- a connection */

struct front_job {
	struct request req; /* first; req.next links replies and free jobs */
	struct front_conn *conn;
	struct front_job *next, **link; /* of the connection's jobs */
	struct front_job *head;         /* of a piece; NULL: a whole request */
	uint64_t cookie;                /* the protocol's, of the request */
	weir_time received; /* return of the recv that completed the request; 0: it is not timed */
	uint64_t offset;    /* bytes, in the export */
	uint32_t length;    /* bytes */
	union {
		uint32_t left; /* head: unfinished pieces, plus 1 while more are to come */
		uint32_t note; /* else the protocol's */
	};
	struct front_job *next_piece, *pieces; /* head of a read answered as one: in order */
	struct front_job **pieces_end;
	uint32_t size;   /* bytes of its reply, as last gathered */
	uint8_t command; /* the protocol's, of the request */
	bool is_head;
	bool parts, whole; /* head of a read answered piece by piece, or as one */
	bool last;         /* ends the reply to its request */
	bool raw;          /* bytes of replies that the process before had not sent */
};

struct front_request {   /* request of a client */
	uint64_t cookie; /* of the protocol, and its command: copied to the request's jobs */
	uint64_t offset; /* bytes, in the export */
	uint32_t length; /* bytes */
	uint8_t command;
	uint8_t flags; /* enum back_flags */
	bool whole;    /* READ: its reply must come as one */
};

struct front_conn {        /* the first member of the protocol's own */
	struct loop_fd fd; /* first */
	const struct front_ops *ops;
	struct front *front;
	struct stream stream;
	struct client client;
	struct front_conn *next, **link; /* all connections */
	struct front_conn *next_todo;    /* connections with something to do */
	uint32_t number;                 /* among those that are kept, from 1 on; 0: it is not */
	struct front_conn *next_queued, **link_queued; /* connections waiting in its usage */

	/* the export, as described to the client */
	const struct front_gate *gate;
	const struct back_info *info;
	uint64_t offset, size; /* bytes */
	uint64_t storage;      /* as in front_place */
	bool read_only;

	bool stopping; /* reads no more; ends when all is answered */
	bool ended;    /* end of file without a farewell: stopping, unless the client is gone */
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
	uint8_t step;    /* enum front_step */
	uint32_t n_part; /* bytes of a request that is not complete */
	uint8_t *part;   /* of ops->head_max bytes, behind the protocol's struct */
	struct front_request request;
	struct front_job *head, *piece;
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
	uint32_t jobs; /* all jobs not yet answered, and their list */
	struct front_job *first_job;
	size_t need; /* bytes that it may not have: why it is paused */
	struct front_total *total;
	struct front_usage *usage;     /* where its jobs and bytes are counted */
	struct front_usage *queued_in; /* where it waits; NULL: in no queue */

	/* replies */
	struct request_list out;
	uint64_t sent; /* bytes sent of the first replies; TLS may still hold the last of them */
	size_t takes;  /* bytes that its socket accepted when it was last full; 0: it was not */
	weir_time progress; /* when bytes were last sent, or the queue began */
	struct loop_task task;
};

/* ---- for `begin` */

/* Begin the read, or write, c->request, in pieces if it is long. The range must lie in the export.
 * error of a write: its payload is skipped, and it is answered with that. */
enum front_step front_begin_read(struct front_conn *c);
enum front_step front_begin_write(struct front_conn *c, int error);
/* Answer c->request without the resource. Return FRONT_HEAD, or FRONT_BEGIN: no job is
 * available. */
enum front_step front_answer(struct front_conn *c, int error);
/* Get a job for c->request, with a chunk of `memory` bytes if not 0; NULL: not now. */
struct front_job *front_job_make(struct front_conn *c, size_t memory);
/* Pass a job to the gate; op: enum back_op; for a BACK_CALL req.call is set. */
void front_submit(struct front_conn *c, struct front_job *j, enum back_op op);
/* The call of a request (req.call) is done. */
static inline void front_called(struct request *q, int error)
{
	const struct front_conn *c = container_of(q, struct front_job, req)->conn;

	q->io.error = error;
	c->gate->finish(c->client.resource, q);
}
void front_reply(struct front_job *j); /* queue the reply of a finished job */
/* The client says farewell: read no more, answer everything, close. */
void front_leave(struct front_conn *c);
/* Disconnect the client, with a log line and a count: it broke the protocol. */
void front_broken(struct front_conn *c, const char *why);

/* ---- for `reply` */

/* Add the data of a read, in pieces or not, or of a call. */
void front_gather_data(struct gather *g, const struct front_job *j);

/* ---- for the gateway */

struct front_site { /* functions of the gateway for its front ends */
	const char *(*export_)(const struct gateway *g, size_t i); /* name, or NULL */
	/* As front_find, without -EAGAIN. Any name in the identity may be NULL. */
	int (*find)(struct gateway *g, const struct weir_who *who, struct front_place *ret);
	/* The client is about to use its export. 0; -EAGAIN: call again after front_known. May be NULL. */
	int (*admit)(struct gateway *g, const struct weir_who *who);
	struct tls *(*tls)(const struct gateway *g, bool *ret_required);            /* NULL: none */
	void (*count)(struct gateway *g, int connections, int refused, int broken); /* any thread */
	const struct front_ops *const *fronts; /* all protocols; ends with NULL */
};

/* The main thread. */
int front_door_new(const struct front_site *site, struct gateway *g, struct loop *loop,
	struct front_door **ret_door);
void front_door_free(struct front_door *d); /* ends the handshakes; NULL is fine */
void front_accept(struct front_door *d, const struct front_ops *ops, int fd); /* owns the socket */
bool front_door_evict(struct front_door *d); /* end the oldest handshake; false: there is none */
size_t front_door_talking(const struct front_door *d); /* handshakes under way */
void front_known(struct front_door *d); /* a resource became known: continue; NULL is fine */

/* The connections on a worker's thread. Return 0 or -ENOMEM. free: when none is left; NULL is
 * fine. */
int front_new(const struct front_site *site, struct gateway *g, struct loop *loop,
	struct chunk_pool *pool, struct front **ret_front);
void front_free(struct front *f);

/* After the handshake: make a connection (any thread; stream and strings are copied; `early`: bytes
 * that the client sent already; NULL: no memory), and start it on the place's thread. */
struct front_start {
	const struct front_ops *ops;
	struct stream stream;
	struct front_place place;
	struct client client; /* strings, tenant */
	const uint8_t *early;
	size_t n_early;
};
struct front_conn *front_conn_new(const struct front_start *s);
void front_conn_start(struct front_conn *c);

/* The end, on the thread. finish: read no more from any connection; each closes when its requests
 * are answered. now: close them at once, and discard what is queued. count: connections that are
 * left. */
void front_finish(struct front *f, bool now);
/* Stop reading from all connections, and go on: requests inside are still answered. */
void front_freeze(struct front *f, bool on);
/* Read no more from the connections that no other process can take over (TLS); each closes when its requests are answered. Return
 * how many are left. */
size_t front_drain(struct front *f);
/* Write the frozen connections of a resource that has nothing inside. From then on nothing is sent either, until front_freeze
 * ends that. */
void front_keep(struct front *f, struct resource *r, struct record_out *o);
/* Read them, and make connections that do nothing yet, while the main thread waits. Return 0, -ENOMEM, or -EBADMSG; connections
 * whose export is gone, or has other data, are closed. whole: -EAGAIN if the storage of one was not reached yet; else such a connection
 * is closed, too. */
struct front_taken;
int front_take(struct front *f, struct resource *r, struct record_in *in, bool whole,
	struct front_taken **ret);
/* Start them, and submit their requests in their order. Frees t. */
void front_taken_start(struct front_taken *t);
void front_taken_free(struct front_taken *t); /* they were not started; NULL is fine */
/* A turn was added to the loop whose requests the front end answers: its own turn goes behind that. On the thread. */
void front_turn_last(struct front *f);
size_t front_count(const struct front *f);
