/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-nbd: what its parts share. Nobody else includes this.
 *
 *   back-nbd.c         open, start, submit, free: the table of functions
 *   back-nbd-dial.c    a connection until it can carry requests
 *   back-nbd-conn.c    one that does: sends and receives many at a time
 *   back-nbd-reply.c   what the upstream answers, byte by byte
 *   back-nbd-way.c     the way of a request: which may go, and what an answer to it means
 *   back-nbd-flush.c   FLUSHes, and what is done when one fails
 *   back-nbd-state.c   lost, back, failed
 *
 * STATES  Everything belongs to one of four phases.
 *
 *   UP      Requests are sent as they come.
 *   DRAIN   Nothing new is sent; what is under way is waited for, DRAIN_MOST at most. Because a
 *           connection was lost (`broken`; the others are then closed as well), or because what is
 *           kept must be sent again although nothing was lost (`doubt`).
 *   AWAY    There is no connection that carries requests; one is tried again and again.
 *   REPLAY  First the kept writes are sent, then those that were under way when a connection was
 *           lost; nothing else. When all are answered: UP.
 *
 *      UP ──lost──► DRAIN ──empty, or time is up──► AWAY ──connected──► REPLAY ──all answered──► UP
 *      UP ──a FLUSH failed──► DRAIN ──empty──► REPLAY; REPLAY ──lost──► DRAIN
 *
 * back.state is what others see: UP in phase UP and in a DRAIN or REPLAY without loss; else LOST, and
 * after `timeout` of it, or when the upstream came back as something else, FAILED, which ends when
 * phase UP is reached. One that was never reached is STARTING, in phase AWAY, for as long as it takes. While FAILED nothing waits inside: all fails with -EIO. The kept stays kept.
 * A process that ends (`leaving`) does not wait either: in a DRAIN after a loss, and AWAY, all fails
 * with -ESHUTDOWN. A REPLAY is let go on: the upstream is there.
 *
 * INVARIANTS
 *  1. Two writes that overlap are never under way together (overlap.h). So the order of the answers
 *     is the order of the effects, and `kept` in that order gives the content (unflushed.h).
 *  2. All connections that carry requests were made after the last loss: one lost ends them all. And
 *     one that is made beside others carries nothing until one of those has answered a read that was
 *     sent after its handshake (`joined`): a host that lost power says nothing on its old connections,
 *     and answers new ones when it is back. So none leads to a server that knows less than another,
 *     and a FLUSH on one covers all (it is asked for MULTI_CONN before there is a second).
 *  3. A write is answered to the client only when it is in `kept`, or durable, or the upstream has no
 *     FLUSH. Room in `kept` is taken before it is sent.
 *  4. A FLUSH is sent only in phase UP and without `doubt`, one at a time: then every kept write was
 *     acknowledged over the connections of now. Its success, if no other sync that was under way with it
 *     fails, frees what was kept when it was sent.
 *  5. A request stands in exactly one place: the queues `ready`, `again`, `full`, `flushes`, `covered`
 *     or `unsure`, the waiters of another in `overlap`, or a connection's `out` or `flight`.
 *  6. No write is lost by a lost connection: from `out` and `flight` it goes to `again`; all else goes
 *     to `ready`. Reads are sent after REPLAY, so they see what was acknowledged before.
 *  7. A FLUSH or a write with FUA (a sync) that fails may have undone kept writes before its answer is
 *     here. So a read near kept writes that is answered while syncs are under way is passed on when
 *     all of those have succeeded. If one fails or is lost, it is sent again after REPLAY; and other
 *     reads near kept writes wait for that.
 *
 * A lost connection's requests may still be with an upstream that lives on, and take effect late: NBD
 * has no way to call them back. Those of connections that live are waited for (DRAIN).
 */
#ifndef WEIR_PORT_BACK_NBD_H
#define WEIR_PORT_BACK_NBD_H

#include "base/rng.h"
#include "port/back.h"
#include "port/cover.h"
#include "port/nbd-uri.h"
#include "port/overlap.h"
#include "port/stream.h"
#include "port/unflushed.h"
#include "wire/nbd.h"
#include <stddef.h>

#define BACK_NBD_CONNS   16           /* connections at most */
#define BACK_NBD_SCRATCH (256u << 10) /* bytes gathered for one send, or received at once */
#define BACK_NBD_IN      (4 * BACK_NBD_SCRATCH) /* of which all but a part may be lent (BACK_BORROW) */
#define BACK_NBD_COPY    (16u << 10) /* bytes: data up to this are copied beside their headers */

/* ---- requests */

struct slot {
	struct overlap_range range; /* first; of writes, from `entered` on */
	struct slot *next, *prev;   /* in its queue */
	struct back_io *io;         /* NULL: our own */
	struct conn *conn;          /* whose `flight` it is in, all of it sent; else NULL */
	struct conn *joins;         /* the one that may carry requests when this is answered */
	uint64_t cookie;
	uint64_t offset;
	const uint8_t *out; /* WRITE */
	uint8_t *in;        /* READ */
	uint64_t
		mark; /* FLUSH, `flushing`: what it must cover (unflushed_mark). In `unsure`: it waits
			* for syncs whose `born` is less */
	uint64_t born;      /* serial of slots: older is less */
	weir_time since;    /* when it was submitted */
	size_t cost;        /* bytes taken in `kept` */
	struct cover cover; /* READ: which bytes of it have come */
	uint32_t length;
	uint32_t got;   /* READ: bytes so far, none twice; STATUS: extents */
	uint32_t piece; /* REPLAY: of the plan */
	int error;      /* of the chunks so far */
	uint8_t op;     /* enum back_op */
	uint8_t flags;  /* enum back_flags */
	uint8_t losses; /* connections lost under it */
	bool entered;   /* in `overlap` */
	bool replay;    /* a piece of the plan */
	bool flushing;  /* a write that is done, and to be made durable by a FLUSH */
	bool kept;      /* … and it is in the log */
	uint32_t era;   /* … when it was answered */
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

enum conn_state {
	CONN_NONE,  /* no socket */
	CONN_GREET, /* the handshake */
	CONN_TLS,   /* the handshake of TLS inside it */
	CONN_READY, /* carries requests */
};

struct conn_rx { /* where in the stream of replies it is */
	uint8_t mode;
	uint8_t have, need; /* bytes in `small` */
	uint8_t small[24];
	bool held; /* EXTENTS: of weir:held */
	struct nbd_reply head;
	struct slot *slot; /* of the head */
	uint8_t *to;       /* DATA */
	uint32_t left;     /* bytes of this chunk that are still to come */
};

struct conn {
	struct loop_fd fd; /* first */
	struct nbd *nbd;
	enum conn_state state;
	struct stream stream;
	bool joined;              /* may carry requests: invariant 2 */
	bool watched;             /* in the loop */
	bool more;                /* TLS: there may be more to read without an event */
	const char *broken;       /* why it is of no use any more; NULL: it is */
	weir_time heard;          /* when it last received something, or had nothing to expect */
	weir_time deadline;       /* of the handshake */
	struct slot_queue out;    /* to be sent */
	struct slot_queue flight; /* sent */
	size_t sent;              /* bytes of the first of `out` that are sent */
	uint32_t large;           /* reads in flight of more than BACK_NBD_COPY */
	struct conn_rx rx;
	/* the handshake */
	struct nbd_greet greet;
	size_t n_hello, hello_at;
	uint8_t hello[NBD_GREET_OUT]; /* what we say */
	char why[200];                /* what `broken` points to, when it is not a constant */
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
	struct nbd_export export_; /* what the upstream said first, once it is known */
	bool known;
	bool fua, status; /* it has them */

	struct conn *conns; /* BACK_NBD_CONNS */
	uint32_t wanted;    /* connections now */
	uint32_t most;      /* connections where the upstream allows several */
	uint32_t ready_conns;
	uint32_t turn_of; /* conns index, for spreading */
	uint32_t run;     /* requests it got in a row */
	struct dial *dial;
	weir_time dial_at; /* when to try next */
	weir_time back_off;
	weir_time up_since;
	uint32_t answered; /* requests since then */
	struct rng rng;
	bool said; /* a failed attempt was logged since the loss */

	enum nbd_phase phase;
	uint32_t era;        /* REPLAYs so far: what was not kept may be forgotten since */
	bool broken;         /* DRAIN: then AWAY, else REPLAY */
	bool doubt;          /* kept writes may not be in place: see invariant 4 */
	weir_time resend_at; /* … and are sent again then; WEIR_NEVER: not before a FLUSH */
	weir_time doubt_at;  /* when the last REPLAY began */
	weir_time drain_until;
	weir_time lost_since; /* WEIR_NEVER: it is not */
	bool mismatch;        /* it came back as something else */
	bool leaving;         /* the process ends: nothing waits for an upstream that is away */

	struct unflushed *kept; /* NULL: the upstream has no FLUSH, or it is read-only */
	struct overlap overlap;
	struct slot_queue ready; /* may go */
	struct slot_queue again; /* writes lost under way */
	struct slot_queue full;  /* writes that wait for room in `kept` */
	/* back-nbd-flush.c's */
	struct slot_queue
		flushes; /* FLUSHes, and writes to be made durable, that wait for the next */
	struct slot_queue covered; /* those that the one under way will answer */
	struct slot *flush;        /* the one under way; NULL: none */
	uint64_t flush_answered;   /* … has succeeded, when nbd.born was this; 0: not yet */
	struct slot_queue unsure;  /* reads that may see too little: invariant 7 */
	uint32_t tries;            /* failures in a row */
	weir_time quiet_until;     /* none is sent before this */
	bool own_flush;            /* we want one, to free what is kept, or at the start */
	weir_time own_after;       /* ours failed: the next not before this */
	bool history_safe; /* a FLUSH has succeeded: writes of an earlier process are durable */
	bool history_lost; /* they may be lost, and nobody was told */

	struct slot *question;  /* for weir:held */
	size_t n_plan, plan_at; /* REPLAY */
	uint32_t under_way;     /* slots in `out` and `flight` of all connections */
	uint32_t syncs;         /* … that are syncs */
	uint32_t inside;        /* requests of the user that are inside */

	struct slot **blocks; /* of SLOT_BLOCK slots each */
	uint32_t n_blocks;
	struct slot *free_slots; /* by next */
	uint64_t born;           /* slots made so far */
	uint32_t serial;         /* of cookies */

	struct loop_turn turn;
	struct loop_timer timer; /* of the state */
	struct loop_timer kick;  /* what was submitted after this round's turn */
	uint64_t turned;         /* the round of the last turn */
	bool attend;             /* something happened to a connection */
	bool finished; /* a request ended in this turn, after the turn of those who wait for it */

	uint8_t *scratch_out, *scratch_in;
	size_t in_at; /* bytes of scratch_in that were received, and may be lent, in this round */
	uint64_t in_round; /* which that is */
	bool in_turn;      /* it is the turns' time: nothing is lent any more */
	bool lends;        /* … of what is being taken right now */
	uint8_t *sink;     /* block_min bytes: what is read only to see that somebody answers */
	uint64_t reconnects, replayed, own_flushes; /* for people */
};

static inline struct nbd *nbd_of(struct back *b)
{
	return (struct nbd *)(void *)b;
}

/* back-nbd.c */
struct slot *back_nbd_slot(struct nbd *n); /* cleared but for its cookie; NULL: no memory */
void back_nbd_slot_free(struct nbd *n, struct slot *s);
/* The first handshake is done: takes what the upstream is. An error, e.g. -EINVAL: it cannot be used. */
int back_nbd_learn(struct nbd *n, const struct nbd_greet *g, struct weir_err *err);
struct slot *back_nbd_find(struct nbd *n, uint64_t cookie); /* NULL: no such */

/* back-nbd-dial.c */
int back_nbd_dial(struct nbd *n); /* begins an attempt; its end comes by back_nbd_dialled */
void back_nbd_dial_drop(struct nbd *n);
void back_nbd_greet_begin(struct nbd *n, struct conn *c, int fd);
/* Goes on: 0 done, -EAGAIN (*want: EPOLLIN, EPOLLOUT), or an error and c->broken. */
int back_nbd_greet(struct nbd *n, struct conn *c, uint32_t *want);
/* Is what it says still what it said first? NULL, or what is not. */
const char *back_nbd_changed(const struct nbd *n, const struct nbd_greet *g);

/* back-nbd-conn.c */
void back_nbd_conn_put(struct nbd *n, struct conn *c, struct slot *s); /* to be sent */
void back_nbd_conn_send(struct nbd *n, struct conn *c);
void back_nbd_conn_recv(struct nbd *n, struct conn *c);
void back_nbd_conn_close(struct nbd *n, struct conn *c);   /* its queues must be empty */
void back_nbd_conn_break(struct conn *c, const char *why); /* for attention; keeps the first */
void back_nbd_conn_fault(struct conn *c, int error);       /* the same for a negative errno */
struct conn *back_nbd_conn_pick(struct nbd *n);            /* NULL: none carries requests */

/* back-nbd-reply.c */
int back_nbd_reply(struct nbd *n, struct conn *c, const uint8_t *p, size_t len);

/* back-nbd-way.c */
void back_nbd_way_go(struct nbd *n);                                /* sends what may go */
void back_nbd_way_answer(struct nbd *n, struct slot *s, int error); /* out of `flight` already */
void back_nbd_way_lost(struct nbd *n, struct slot *s);
void back_nbd_way_finish(struct nbd *n, struct slot *s, int error);
void back_nbd_way_fail_all(struct nbd *n, int error); /* but what is under way */
void back_nbd_way_no_room(struct nbd *n);             /* fails what waits for room in `kept` */
void back_nbd_way_settle(struct nbd *n); /* `unsure`: answers those that are not any more */
void back_nbd_way_reread(struct nbd *n); /* `unsure`: all are sent again */
/* Does it make earlier writes durable, or may it tell that some are lost? */
bool back_nbd_way_is_sync(const struct nbd *n, const struct slot *s);

/* back-nbd-flush.c */
void back_nbd_flush_want(struct nbd *n, struct slot *s); /* it waits for a FLUSH */
void back_nbd_flush_go(struct nbd *n);                   /* phase UP: sends one if one is wanted */
void back_nbd_flush_answer(struct nbd *n, int error);    /* of n->flush */
void back_nbd_flush_settle(
	struct nbd *n, uint64_t oldest);  /* `born` of the oldest sync under way */
void back_nbd_flush_lost(struct nbd *n);  /* n->flush, with its connection */
void back_nbd_flush_doubt(struct nbd *n); /* a sync failed: the success of another counts no more */
void back_nbd_flush_fua_answer(struct nbd *n, int error); /* of a write with FUA */
void back_nbd_flush_own(struct nbd *n);                   /* wants one when much is kept */

/* back-nbd-state.c */
void back_nbd_attend(struct nbd *n);
void back_nbd_replay(struct nbd *n);         /* goes on with REPLAY */
bool back_nbd_abandon(struct back *b);       /* back_ops.abandon */
bool back_nbd_given_up(const struct nbd *n); /* `leaving`, and it is away */
void back_nbd_recheck(struct nbd *n);        /* UP, in doubt: DRAIN, then REPLAY */
void back_nbd_timer(struct nbd *n);          /* sets it */
void back_nbd_due(struct loop_timer *t, weir_time now);
void back_nbd_dialled(
	void *arg, int fd, const struct weir_err *err);  /* a dial_done; arg: the nbd */
void back_nbd_ready(struct loop_fd *f, uint32_t events); /* of a connection */

#endif
