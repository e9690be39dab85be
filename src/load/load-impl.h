/* SPDX-License-Identifier: BSD-3-Clause */
/* load-impl: internals shared by the files of load. See load.h. */
#pragma once

#include "base/rng.h"
#include "serve/back/nbd-link.h"
#include "serve/back/nbd-replies.h"
#include "load/load-verify.h"
#include "load/load.h"
#include "serve/loop/gather.h"
#include "serve/loop/loop.h"
#include "serve/loop/tls.h"
#include <pthread.h>
#include <stdatomic.h>

#define LOAD_RECV (256u << 10) /* bytes received at once: fits a core's L2 cache */
#define LOAD_COPY (16u << 10)  /* bytes: payloads up to this are copied next to their header */
#define LOAD_IOV  1024         /* iovecs per send: the system's limit */

struct load_request {
	uint64_t offset;
	uint32_t length;
	uint16_t flags;
	uint8_t command; /* enum nbd_command */
	bool counts;     /* in the results; else internal to verification */
	weir_time intended;
};

struct load_slot { /* a request in flight, or a free slot */
	struct load_request r;
	struct nbd_call
		call; /* cookie: index in the connection, with a serial number above; 0: free */
	weir_time free_at; /* closed loop: when it may be reused (think) */
	uint64_t mark;     /* FLUSH: load_verify_mark */
	uint8_t *data;     /* verify: the slot's own buffer */
};

struct load_conn {
	struct loop_fd fd; /* first */
	struct load_run *run;
	struct stream stream;
	struct load_slot *slots;
	uint32_t *ring; /* of free slots: the first freed is the first reused */
	uint32_t ring_at, n_free, n_slots;
	uint32_t serial;
	struct gather out; /* to be sent: headers, payloads next to them or where they are */
	size_t room_out;
	int iov_at, room_iov;
	bool watched, dirty, blocked; /* in the loop; in run->dirty; the socket is full */
	struct load_conn *next_dirty;
	uint32_t resend_at; /* slots from here on may have to be resent */
	struct nbd_replies replies;
	weir_time received; /* when the last data came */
};

enum load_phase {
	LOAD_WAIT,  /* until its start */
	LOAD_RUN,   /* requests are sent */
	LOAD_DRAIN, /* the last ones are answered */
	LOAD_FLUSH, /* verify: one flush before everything is read back */
	LOAD_BACK,  /* verify: everything written is read */
	LOAD_DONE,
};

struct load_dial { /* connecting all connections of a job, on any thread */
	struct load_run *run;
	struct stream *streams;
	struct nbd_export export_;
	int result;
	struct weir_err err;
	struct loop_task task;
	pthread_t thread;
	bool joined;
};

struct load_run { /* a running job */
	struct load_job job;
	struct load *load;
	struct load_thread *thread;
	struct loop *loop;
	size_t index;
	struct nbd_uri uri;
	struct tls *tls;
	struct nbd_export export_;
	struct load_conn *conns;
	struct load_conn *dirty; /* connections with something to send or a free slot */
	uint32_t pick;           /* open loop: the next connection */
	uint64_t in_flight;
	enum load_phase phase;

	/* load-next.c */
	struct rng rng;
	struct rng_zipf zipf;
	uint64_t base, span;  /* bytes: the range of the export */
	uint32_t align;       /* offsets are multiples of it: the common divisor of the sizes */
	uint32_t least, most; /* sizes */
	uint64_t places,
		stride;     /* in units of align; the stride that scatters the ranks of a zipf */
	uint64_t cursor;    /* sequential: next place */
	uint64_t issued;    /* requests */
	uint32_t unflushed; /* writes since the last flush */
	weir_time next_at;  /* open loop: when the next one is due */
	double next_exact;  /* even: the same without rounding */
	weir_time unblocked_at; /* open loop: since when requests can be sent */
	bool blocked;           /* all slots are in use, and a request is due */
	bool starved;           /* verify: no range was free */
	double shares;          /* sum over the sizes */
	size_t trace_at;
	uint64_t trace_extent;

	struct load_verify *verify;
	struct load_verify_count count;
	uint64_t said_wrong;
	uint64_t back_at; /* cursor of load_verify_next */
	bool flushed_last, back_over;

	/* times, CLOCK_MONOTONIC */
	weir_time start, end, warm_at, drained_at;
	weir_time heard; /* when data last arrived, or no request was in flight */
	weir_time lost_at, retry_at;
	weir_time wake_at; /* expiry of `wake` */
	bool lost, warm, thinking, ended_by_count;
	struct load_dial *dial;
	weir_time back_off;

	struct load_result result;
	struct weir_hist interval;
	uint64_t interval_requests, interval_bytes;
	weir_time interval_at; /* start of the interval */

	struct loop_turn turn;
	struct loop_timer tick, wake, mark; /* intervals; the next request; warm-up and end */
	uint8_t *payload;                   /* data of unverified writes: shared, constant */
};

struct load_thread {
	struct load *load;
	struct loop *loop;
	uint8_t *scratch; /* LOAD_RECV */
	pthread_t thread;
	bool started;
	size_t running; /* jobs not done */
	int core;       /* -1: not pinned */
	int result;
};

struct load {
	struct load_options options;
	struct load_run *runs;
	size_t n;
	struct load_thread *threads;
	unsigned n_threads;
	weir_time start;
	atomic_bool stop;
	pthread_mutex_t lock; /* held during callbacks */
};

/* load.c */
void load_say(struct load_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void load_fail(struct load_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* load-count.c */
void load_count_done(struct load_run *r, struct load_slot *s, int error, weir_time now);
/* End an interval: report it, and add it to the totals if it counts. */
void load_count_interval(struct load_run *r, weir_time now);

/* load-dial.c */
int load_dial(struct load_run *r, weir_time timeout, struct stream *streams,
	struct nbd_export *ret_export, struct weir_err *err);
int load_dial_start(struct load_run *r); /* on another thread; load_conn_dialled follows */

/* load-conn.c */
int load_conn_new(struct load_run *r, struct load_conn *c);
void load_conn_free(struct load_conn *c);
int load_conn_open(struct load_conn *c, struct stream s); /* and watch it */
void load_conn_dirty(struct load_conn *c);
bool load_conn_room(const struct load_conn *c); /* for one more request */
/* Requires a free slot and room. */
void load_conn_issue(struct load_conn *c, const struct load_request *r, weir_time now);
bool load_conn_resend(struct load_conn *c); /* false: more to resend, but no room */
void load_conn_send(struct load_conn *c);
void load_conn_dialled(struct load_run *r, struct load_dial *d);
void load_conn_lost(struct load_run *r, const char *why);
void load_conn_retry(struct load_run *r, weir_time now);
void load_conn_end(struct load_run *r); /* send NBD_CMD_DISC and close all */

static inline struct load_slot *load_conn_free_slot(struct load_conn *c)
{
	return c->n_free ? &c->slots[c->ring[c->ring_at]] : NULL;
}

/* load-next.c */
int load_next_init(struct load_run *r, struct weir_err *err);
static inline bool load_open_loop(const struct load_run *r)
{
	return r->job.rate > 0 || r->job.trace;
}
void load_next_begin(struct load_run *r, weir_time now);
/* Get the next request of the phase. Return true if one is due; else *ret_when is when to call
 * again. */
bool load_next(struct load_run *r, weir_time now, struct load_request *ret, weir_time *ret_when);
/* Return true if the phase has no more requests. */
bool load_next_over(const struct load_run *r, weir_time now);
void load_next_missed(struct load_run *r); /* counts requests that were due but never sent */
