/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: requests to NBD servers, many and fast, and how long each took.
 *
 * A job is one kind of load on one export: over one connection or several, in a closed loop (so many
 * requests are always under way) or an open one (so many begin each second, however long they
 * take). Several jobs run together, so that one process drives a victim and its neighbour. `weir
 * load`, `weir replay`, `weir bench gateway` and `weir demo` use it.
 *
 * LATENCY  From the intended start to the moment at which the whole reply was received. In an open
 *          loop the intended start is when the request was due, whether or not it could be sent then:
 *          a server that stalls is seen to stall. In a closed loop it is when it was sent.
 * WINDOW   What completes after the warm-up is counted. The rate is of those that also completed
 *          before the end; what was under way at the end is waited for, and its latency counts.
 * VERIFY   load-verify.c says what is written and what a read may give.
 *
 *   load.c          a running job: its phases and turns; threads
 *   load-new.c      put together and taken apart
 *   load-spec.c     jobs as people write them
 *   load-dial.c     connections, with handshake and TLS
 *   load-conn.c     sending and receiving, many at a time; loss and reconnection
 *   load-reply.c    what the server answers, byte by byte
 *   load-next.c     which request comes next, and when
 *   load-count.c    what a finished request adds to the results
 *   load-verify.c   what blocks must hold
 */
#ifndef WEIR_PORT_LOAD_H
#define WEIR_PORT_LOAD_H

#include "base/err.h"
#include "base/hist.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

#define LOAD_SIZES     16
#define LOAD_DEPTH_MAX 65536 /* requests under way over one connection */

enum load_order { LOAD_RANDOM, LOAD_SEQUENTIAL, LOAD_ZIPF };

struct load_size {
	uint32_t bytes;
	double share; /* of the requests, in proportion to the other sizes' shares */
};

/* Start with load_job_default. All pointers are borrowed until load_free. */
struct load_job {
	const char *name; /* for people */
	const char *uri; /* nbd://host:port/export, nbd+unix:///export?socket=PATH, nbds… for TLS */
	const char *tls_ca, *tls_cert, *tls_key, *tls_psk; /* files, see tls.h */
	uint32_t connections;                              /* 1 */
	uint32_t depth; /* requests under way per connection; in an open loop at most (1024) */
	double rate;    /* requests a second, over all connections; 0: a closed loop */
	bool even;      /* evenly spaced; else at random (Poisson) */
	struct load_size sizes[LOAD_SIZES];
	size_t n_sizes;
	double reads; /* share of reads among reads and writes, 0 … 1 */
	double fua;   /* share of the writes that are durable when answered, 0 … 1 */
	enum load_order order;
	double zipf;             /* exponent, for LOAD_ZIPF */
	uint64_t offset, length; /* bytes: the part of the export that is used; 0: to its end */
	uint32_t flush_every;    /* writes; 0: never (with verify: 64) */
	weir_time think;    /* closed loop: between a reply and the next request in its place */
	weir_time start;    /* this long after the others */
	weir_time duration; /* from its start; WEIR_NEVER: until the requests are done */
	uint64_t requests;  /* at most; UINT64_MAX: no matter */
	weir_time warm_up;  /* this long at first is not counted */
	uint64_t seed;
	bool structured; /* ask for structured replies */
	bool verify;
	const char *table;   /* file: what is known of the blocks, read at the start and kept */
	weir_time reconnect; /* try for so long when a connection is lost; 0: that ends the job */
	weir_time timeout;   /* without any answer the connection counts as lost; 30 s */

	/* A trace instead of all that says which requests there are (replay). */
	const struct trace *trace;
	double speed;       /* 2: twice as fast */
	bool scale_offsets; /* so that the trace's extent becomes the export's */
};
void load_job_default(struct load_job *j);

/* One property by its name ("depth", "size", …: load_keys) from text; 0, or -EINVAL and why. The job
 * may borrow the text. */
int load_job_set(struct load_job *j, const char *key, const char *value, struct weir_err *err);
extern const char *const load_keys[]; /* NULL at the end */
bool load_key_flag(const char *key);  /* needs no value */
/* "[NAME=]URI[,KEY=VALUE]...": cuts the text into pieces, which the job borrows. Without a name the
 * job keeps the one that it has. */
int load_job_parse(struct load_job *j, char *text, struct weir_err *err);

enum load_error { /* what a server may answer, and what happens without an answer */
	LOAD_EPERM,
	LOAD_EIO,
	LOAD_ENOMEM,
	LOAD_EINVAL,
	LOAD_ENOSPC,
	LOAD_EOVERFLOW,
	LOAD_ENOTSUP,
	LOAD_ESHUTDOWN,
	LOAD_UNANSWERED, /* lost with its connection */
	LOAD_ERRORS
};
extern const char *const load_error_names[LOAD_ERRORS + 1]; /* "EPERM", …, NULL */

struct load_result {
	const char *name;
	uint64_t size;     /* bytes of the export */
	weir_time elapsed; /* of what is counted */
	uint64_t requests; /* that completed and are counted, errors too */
	uint64_t in_time;  /* of them before the end: what iops and rate are of */
	uint64_t bytes;    /* of in_time: read and written */
	uint64_t reads, writes, flushes, trims; /* of requests */
	double iops, bytes_per_second;
	struct weir_hist latency; /* ns, of requests */
	struct weir_hist late; /* open loop: ns from the intended start until sent, where the load
	                             itself was late and not the server */
	uint64_t missed;  /* open loop: were due before the end and could not be sent before it */
	uint64_t skipped; /* replay: trims where the server has none */
	uint64_t errors[LOAD_ERRORS], n_errors;
	uint64_t reconnects, resent;
	uint64_t checked, unchecked, wrong; /* verify: blocks */
	char fault[400];                    /* why it ended before its time; "" if it did not */
};

struct load_interval { /* what one job did since the last one */
	size_t job;
	const char *name;
	weir_time at, span; /* the end, from the start of load_run on; how long it was */
	bool warm;          /* counted */
	uint64_t requests, bytes;
	const struct weir_hist *latency; /* until the callback returns */
};

struct load_options {       /* 0 or NULL: the default */
	unsigned threads;   /* jobs are dealt out to so many; 1 */
	weir_time interval; /* 100 ms */
	/* Each is called on a thread of the load, never two at once. */
	void (*tick)(void *arg, const struct load_interval *i);
	void (*say)(void *arg, const char *job, const char *text); /* a wrong block, a loss, … */
	void *arg;
	const int *cores; /* thread i runs on cores[i % n_cores], the caller of load_run being the
	                     first, and stays there; NULL: anywhere */
	size_t n_cores;
};

struct load;
/* Connects all jobs, so it may block for seconds; -EINVAL: a job makes no sense, or not for that
 * export. */
int load_new(const struct load_job *jobs, size_t n, const struct load_options *o,
	struct load **ret_load, struct weir_err *err);
/* Until all jobs are done. 0, or a negative errno when the system fails us; what failed in a job is
 * in its result. Once. */
int load_run(struct load *l);
void load_stop(
	struct load *l); /* any thread, a signal's handler too: jobs end as if at their time */
const struct load_result *load_result(const struct load *l, size_t job); /* after load_run */
void load_free(struct load *l);

#endif
