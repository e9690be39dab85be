/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd: internals shared by its files.
 *
 *   serve/back/nbd.c         open, start, submit, free: the table of functions
 *   serve/back/nbd-link.c    a connection until it can carry requests
 *   serve/back/nbd-conn.c    a connection that carries requests: batched sending and receiving
 *   serve/back/nbd-replies.c parse the upstream's replies
 *   serve/back/nbd-way.c     the way of a request: when it may be sent, and what its reply means
 *   serve/back/nbd-flush.c   FLUSHes, and their failures
 *   serve/back/nbd-state.c   loss, reconnection, failure
 *
 * STATES  The back end is in one of four phases.
 *
 *   UP      Requests are sent as they come.
 *   DRAIN   No new requests are sent; those in flight are awaited, for DRAIN_MOST at most. The
 *           reason is a lost connection (`broken`; the others are then closed as well), or that the
 *           kept writes must be resent although no connection was lost (`doubt`).
 *   AWAY    No connection carries requests; connecting is retried.
 *   REPLAY  First the kept writes are sent, then those that were in flight when a connection was
 *           lost; nothing else. When all are answered: UP.
 *
 *      UP ──lost──► DRAIN ──empty, or time is up──► AWAY ──connected──► REPLAY ──all answered──► UP
 *      UP ──a FLUSH failed──► DRAIN ──empty──► REPLAY; REPLAY ──lost──► DRAIN
 *
 * back.state is the public state: UP in phase UP and in a DRAIN or REPLAY without loss; else LOST,
 * and after `timeout`, or when the upstream came back as something else, FAILED, which ends when
 * phase UP is reached. A back end that was never connected is STARTING, in phase AWAY, for as long
 * as it takes. While FAILED no request waits inside: all fail with -EIO. Kept writes stay kept. A
 * process that ends (`leaving`) does not wait either: in a DRAIN after a loss, and AWAY, all
 * requests fail with -ESHUTDOWN. A REPLAY continues: the upstream is reachable.
 *
 * INVARIANTS
 *  1. Two overlapping writes are never in flight together (overlap.h). So the order of the replies
 *     is the order of the effects, and `kept` in that order gives the content (unflushed.h).
 *  2. All connections that carry requests were made after the last loss: one loss closes them all.
 *     A connection made beside others carries no requests until one of the others has answered a
 *     read that was sent after its handshake (`joined`): a host that lost power is silent on its
 *     old connections, and accepts new ones when it is back. So no connection leads to a server
 *     that has less data than another, and a FLUSH on one covers all (MULTI_CONN is required for a
 *     second one).
 *  3. A write is acknowledged to the client only when it is in `kept`, or durable, or the upstream
 *     has no FLUSH. Room in `kept` is reserved before the write is sent.
 *  4. A FLUSH is sent only in phase UP and without `doubt`, one at a time: then every kept write
 *     was acknowledged over the current connections. Its success, if no other sync in flight with
 *     it fails, frees the writes that were kept when it was sent.
 *  5. A request is in exactly one place: the queues `ready`, `again`, `full`, `flushes`, `covered`
 *     or `unsure`, the waiters of another one in `overlap`, or a connection's `out` or `flight`.
 *  6. A lost connection loses no write: from `out` and `flight` it goes to `again`; other requests
 *     go to `ready`. Reads are sent after REPLAY, so they see the writes acknowledged before.
 *  7. A failing FLUSH or FUA write (a sync) may have undone kept writes before its reply arrives.
 *     So a read near kept writes that is answered while syncs are in flight is passed on only when
 *     all of those have succeeded. If one fails or is lost, the read is resent after REPLAY; and
 *     other reads near kept writes wait for that.
 *
 * Requests of a lost connection may still be inside an upstream that lives on, and take effect
 * late: NBD cannot cancel them. Those of live connections are awaited (DRAIN).
 */
#pragma once

#include "base/container.h"
#include "base/rng.h"
#include "serve/back/back.h"
#include "serve/back/nbd-link.h"
#include "serve/back/nbd-replies.h"
#include "serve/back/overlap.h"
#include "serve/back/unflushed.h"
#include "wire/nbd.h"
#include <stddef.h>

#define BACK_NBD_CONNS 16 /* most connections */
#define BACK_NBD_DIAL                                                                              \
	(5 * WEIR_SEC) /* per attempt; longer than two lost SYNs. The same for the handshake */
#define BACK_NBD_SCRATCH (256u << 10) /* bytes gathered for one send, or received at once */
/* all but one part of it may be lent (BACK_BORROW) */
#define BACK_NBD_IN   (4 * BACK_NBD_SCRATCH)
#define BACK_NBD_COPY (16u << 10) /* bytes: data up to this are copied next to their headers */

/* ---- requests */

struct slot {
	struct overlap_range range; /* first; for writes, valid once `entered` */
	struct slot *next, *prev;   /* in its queue */
	struct back_io *io;         /* NULL: internal */
	struct conn *conn;    /* the connection whose `flight` it is in, fully sent; else NULL */
	struct conn *joins;   /* the connection that may carry requests after this reply */
	struct nbd_call call; /* STATUS: call.got is the number of extents */
	const uint8_t *out;   /* WRITE */
	uint64_t mark;   /* FLUSH: covers kept writes before it. `unsure`: waits for older syncs */
	uint64_t born;   /* serial of slots: older is less */
	weir_time since; /* when it was submitted */
	size_t cost;     /* bytes reserved in `kept` */
	uint32_t piece;  /* REPLAY: index in the plan */
	uint8_t op;      /* enum back_op */
	uint8_t flags;   /* enum back_flags */
	uint8_t losses;  /* connections lost while it was in flight */
	bool entered;    /* in `overlap` */
	bool replay;     /* a piece of the plan */
	bool flushing;   /* a finished write, to be made durable by a FLUSH */
	bool kept;       /* … and it is in the log */
	uint32_t era;    /* … when it was answered */
};

struct slot_queue {
	struct slot *first, *last;
	uint32_t n;
};
void slot_push(struct slot_queue *q, struct slot *s);
void slot_push_front(struct slot_queue *q, struct slot *s);
void slot_remove(struct slot_queue *q, struct slot *s);
struct slot *slot_pop(struct slot_queue *q); /* NULL: empty */

static inline bool slot_writes(const struct slot *s)
{
	return (s->op == BACK_WRITE || s->op == BACK_TRIM || s->op == BACK_ZERO) && !s->flushing;
}

/* ---- connections */

struct conn {
	struct loop_fd fd; /* first */
	struct nbd *nbd;
	struct nbd_link link;
	bool joined;              /* may carry requests: invariant 2 */
	bool watched;             /* in the loop */
	bool more;                /* TLS: more data may be readable without an event */
	const char *broken;       /* why it is unusable; NULL: it is usable */
	weir_time heard;          /* when data last arrived, or none was expected */
	weir_time deadline;       /* of the handshake */
	struct slot_queue out;    /* to be sent */
	struct slot_queue flight; /* sent */
	size_t sent;              /* bytes sent of the first request in `out` */
	uint32_t large;           /* reads in flight of more than BACK_NBD_COPY */
	struct nbd_replies replies;
};

struct dial; /* dial.h: one attempt to connect */

/* ---- the whole */

enum nbd_phase { NBD_PHASE_AWAY, NBD_PHASE_REPLAY, NBD_PHASE_UP, NBD_PHASE_DRAIN };

struct nbd {
	struct back back; /* first */
	struct nbd_uri uri;
	char *name; /* the URI, for messages */
	struct loop *loop;
	struct chunk_pool *pool;
	struct tls *tls;
	weir_time timeout;
	bool read_only, started;
	size_t keep;               /* bytes, as configured */
	char why[160];             /* why it was lost, or the last attempt failed */
	struct nbd_export export_; /* as the upstream first described it, once known */
	bool known;
	bool fua, status; /* supported by the upstream */

	struct conn *conns; /* BACK_NBD_CONNS */
	uint32_t wanted;    /* connections to have now */
	uint32_t most;      /* connections to have if the upstream allows several */
	uint32_t ready_conns;
	uint32_t turn_of;   /* index of the connection in turn */
	uint32_t run;       /* requests that it got in a row */
	uint64_t run_round; /* … from this round on */
	struct dial *dial;
	weir_time dial_at; /* time of the next attempt */
	weir_time back_off;
	weir_time up_since;
	uint32_t answered; /* requests since then */
	struct rng rng;
	bool said; /* a failed attempt was logged since the loss */

	enum nbd_phase phase;
	uint32_t era;        /* REPLAYs so far: writes that are not kept may be lost since */
	bool broken;         /* DRAIN: AWAY follows, else REPLAY */
	bool doubt;          /* kept writes may not be in place: invariant 4 */
	weir_time resend_at; /* … and are resent then; WEIR_NEVER: not before a FLUSH */
	weir_time doubt_at;  /* start of the last REPLAY */
	weir_time drain_until;
	weir_time lost_since; /* WEIR_NEVER: not lost */
	bool mismatch;        /* it came back as something else */
	bool leaving;         /* the process ends: no request waits for an unreachable upstream */

	struct unflushed *kept; /* NULL: the upstream has no FLUSH, or is read-only */
	struct overlap overlap;
	struct slot_queue ready; /* may be sent */
	struct slot_queue again; /* writes that were in flight at a loss */
	struct slot_queue full;  /* writes waiting for room in `kept` */
	/* private to serve/back/nbd-flush.c */
	struct slot_queue
		flushes; /* FLUSHes, and writes to make durable, that wait for the next FLUSH */
	struct slot_queue covered; /* those that the FLUSH in flight will answer */
	struct slot *flush;        /* the FLUSH in flight; NULL: none */
	uint64_t flush_answered;   /* … has succeeded when nbd.born was this; 0: not yet */
	struct slot_queue unsure;  /* reads that may have seen old data: invariant 7 */
	uint32_t tries;            /* failures in a row */
	weir_time quiet_until;     /* no FLUSH before this */
	bool own_flush;      /* this back end wants a FLUSH, to free `kept`, or at the start */
	weir_time own_after; /* its own FLUSH failed: the next one not before this */
	bool history_safe;   /* a FLUSH has succeeded: writes of an earlier process are durable */
	bool history_lost;   /* those may be lost, and no client was told */

	struct slot *question;  /* the query for weir:held */
	size_t n_plan, plan_at; /* REPLAY */
	uint32_t under_way;     /* slots in `out` and `flight` of all connections */
	uint32_t syncs;         /* … of which syncs */
	uint32_t inside;        /* the user's requests inside */

	struct slot **blocks; /* of SLOT_BLOCK slots each */
	uint32_t n_blocks;
	struct slot *free_slots; /* by next */
	uint64_t born;           /* slots created so far */
	uint32_t serial;         /* of cookies */

	struct loop_turn turn;
	struct loop_timer timer; /* of the state */
	struct loop_timer kick;  /* for requests submitted after this round's turn */
	uint64_t turned;         /* the round of the last turn */
	bool attend;             /* an event on a connection needs attention */
	bool finished;           /* a request ended in this turn, after its waiter's turn */

	uint8_t *scratch_out, *scratch_in;
	size_t in_at;        /* bytes of scratch_in received in this round, which may be lent */
	uint64_t in_round;   /* the number of that round */
	bool in_turn;        /* the turns are running: nothing is lent any more */
	bool lends;          /* … of the current receive */
	uint8_t *sink;       /* block_min bytes: data of reads that only test for a reply */
	uint64_t reconnects; /* for `say` */
};

static inline struct nbd *nbd_of(struct back *b)
{
	return container_of(b, struct nbd, back);
}

/* serve/back/nbd.c */
struct slot *back_nbd_slot(struct nbd *n); /* cleared except its cookie; NULL: no memory */
void back_nbd_slot_free(struct nbd *n, struct slot *s);
/* Record the upstream's properties after the first handshake. Return 0 or an error, e.g. -EINVAL:
 * not usable. */
int back_nbd_learn(struct nbd *n, const struct nbd_greet *g, struct weir_err *err);
struct slot *back_nbd_find(struct nbd *n, uint64_t cookie); /* NULL: none */

/* serve/back/nbd-conn.c */
void back_nbd_conn_begin(struct nbd *n, struct conn *c, int fd);       /* its handshake */
void back_nbd_conn_put(struct nbd *n, struct conn *c, struct slot *s); /* queue for sending */
void back_nbd_conn_send(struct nbd *n, struct conn *c);
void back_nbd_conn_recv(struct nbd *n, struct conn *c);
/* Parse replies; p NULL: data received in place. Return 0 or a negative errno. */
int back_nbd_conn_input(struct conn *c, const uint8_t *p, size_t n);
void back_nbd_conn_close(struct nbd *n, struct conn *c);   /* its queues must be empty */
void back_nbd_conn_break(struct conn *c, const char *why); /* keeps the first reason */
void back_nbd_conn_fault(struct conn *c, int error);       /* the same for a negative errno */
struct conn *back_nbd_conn_pick(struct nbd *n);            /* NULL: none carries requests */

/* serve/back/nbd-way.c */
void back_nbd_way_go(struct nbd *n); /* send all requests that may go */
void back_nbd_way_answer(
	struct nbd *n, struct slot *s, int error); /* already removed from `flight` */
void back_nbd_way_lost(struct nbd *n, struct slot *s);
void back_nbd_way_finish(struct nbd *n, struct slot *s, int error);
void back_nbd_way_fail_all(struct nbd *n, int error); /* except those in flight */
void back_nbd_way_no_room(struct nbd *n);             /* fail those that wait for room in `kept` */
void back_nbd_way_settle(struct nbd *n); /* answer reads in `unsure` that are sure now */
void back_nbd_way_reread(struct nbd *n); /* resend all reads in `unsure` */
/* Return true if the request makes earlier writes durable, or may report that some are lost. */
bool back_nbd_way_is_sync(const struct nbd *n, const struct slot *s);

/* serve/back/nbd-flush.c */
void back_nbd_flush_want(struct nbd *n, struct slot *s); /* s waits for a FLUSH */
void back_nbd_flush_go(struct nbd *n);                   /* phase UP: send one if wanted */
void back_nbd_flush_answer(struct nbd *n, int error);    /* of n->flush */
void back_nbd_flush_settle(
	struct nbd *n, uint64_t oldest); /* `born` of the oldest sync under way */
void back_nbd_flush_lost(struct nbd *n); /* n->flush was lost with its connection */
void back_nbd_flush_doubt(
	struct nbd *n); /* a sync failed: the success of another no longer counts */
void back_nbd_flush_fua_answer(struct nbd *n, int error); /* of a write with FUA */
void back_nbd_flush_own(struct nbd *n);                   /* want one if much is kept */

/* serve/back/nbd-state.c */
void back_nbd_dial_drop(struct nbd *n);
void back_nbd_attend(struct nbd *n);
bool back_nbd_abandon(struct back *b);       /* back_ops.abandon */
bool back_nbd_given_up(const struct nbd *n); /* `leaving`, and the upstream is away */
void back_nbd_recheck(struct nbd *n);        /* UP, in doubt: DRAIN, then REPLAY */
void back_nbd_timer(struct nbd *n);          /* set the timer */
void back_nbd_due(struct loop_timer *t, weir_time now);
void back_nbd_ready(struct loop_fd *f, uint32_t events); /* of a connection */
