/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * load: send many requests to NBD servers and measure their latency.
 *
 * A job is one kind of load on one export: over one connection or several, in a closed loop (a
 * fixed number of requests in flight) or an open one (a fixed rate of new requests, however long
 * they take). Several jobs run together, so that one process drives a victim and its neighbour.
 * `weir load`, `weir replay`, `weir bench gateway` and `weir demo` use it.
 *
 * LATENCY  From the intended start to the moment at which the whole reply was received. In an open
 *          loop the intended start is when the request was due, whether or not it could be sent then:
 *          so a stalled server shows as such. In a closed loop it is when it was sent.
 * WINDOW   Requests that complete after the warm-up count. The rate is of those that also completed
 *          before the end; requests in flight at the end are awaited, and their latency counts.
 * VERIFY   load-verify.c defines the written data and the data that a read may return.
 *
 *   load.c          a running job: its phases and turns; threads
 *   load-new.c      create and free a load
 *   load-spec.c     parse jobs
 *   load-dial.c     connections, with handshake and TLS
 *   load-conn.c     batched sending and receiving; loss and reconnection. The parser of replies and
 *                   the handshake are the NBD back end's: serve/back/nbd-replies.h, nbd-link.h
 *   load-next.c     choose the next request and its time
 *   load-count.c    add a finished request to the results
 *   load-verify.c   the expected contents of blocks
 */
#pragma once

#include <weir/err.h>
#include <weir/hist.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace;

#define LOAD_SIZES     16
#define LOAD_DEPTH_MAX 65536 /* requests in flight on one connection */

enum load_order { LOAD_RANDOM, LOAD_SEQUENTIAL, LOAD_ZIPF };

struct load_size {
	uint32_t bytes;
	double share; /* of the requests, relative to the other sizes' shares */
};

/* Start with load_job_default. All pointers are borrowed until load_free. */
struct load_job {
	const char *name; /* for messages */
	const char *uri; /* nbd://host:port/export, nbd+unix:///export?socket=PATH, nbds… for TLS */
	const char *tls_ca, *tls_cert, *tls_key, *tls_psk; /* files, see tls.h */
	uint32_t connections;                              /* 1 */
	uint32_t depth; /* requests in flight per connection, in an open loop at most (1024) */
	double rate;    /* requests/s over all connections; 0: a closed loop */
	bool even;      /* evenly spaced; else at random (Poisson) */
	struct load_size sizes[LOAD_SIZES];
	size_t n_sizes;
	double reads; /* share of reads among reads and writes, 0 … 1 */
	double fua;   /* share of the writes with FUA, 0 … 1 */
	enum load_order order;
	double zipf;             /* exponent, for LOAD_ZIPF */
	uint64_t offset, length; /* bytes: the range of the export in use; length 0: to its end */
	uint32_t flush_every;    /* writes; 0: never (with verify: 64) */
	weir_time think;         /* closed loop: between a reply and the next request in its slot */
	weir_time start;         /* delay of its start */
	weir_time duration;      /* from its start; WEIR_NEVER: until `requests` are done */
	uint64_t requests;       /* at most; UINT64_MAX: unlimited */
	weir_time warm_up;       /* initial time that is not counted */
	uint64_t seed;
	bool structured; /* request structured replies */
	bool verify;
	const char *table;   /* file of expected contents, loaded at the start, saved at the end */
	weir_time reconnect; /* how long to try after a loss; 0: a loss ends the job */
	weir_time timeout;   /* without any reply the connection counts as lost; 30 s */

	/* A trace instead of generated requests (replay). */
	const struct trace *trace;
	double speed;       /* 2: twice as fast */
	bool scale_offsets; /* scale the trace's extent to the export's size */
};
void load_job_default(struct load_job *j);

/* Set one property by its name ("depth", "size", …: load_keys) from text. Return 0, or -EINVAL and
 * an error. The job may borrow the text. */
int load_job_set(struct load_job *j, const char *key, const char *value, struct weir_err *err);
extern const char *const load_keys[]; /* NULL-terminated */
/* Parse "[NAME=]URI[,KEY=VALUE]...": cut the text into pieces, which the job borrows. Without a
 * name the job keeps its name. */
int load_job_parse(struct load_job *j, char *text, struct weir_err *err);

enum load_error { /* errors of a server's reply, and a missing reply */
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
	weir_time elapsed; /* time of the counted part */
	uint64_t requests; /* completed and counted, including errors */
	uint64_t in_time;  /* completed before the end: the base of iops and rate */
	uint64_t bytes;    /* read and written by in_time */
	uint64_t reads, writes, flushes, trims; /* of requests */
	double iops, bytes_per_second;
	struct weir_hist latency; /* ns, of requests */
	struct weir_hist
		late;     /* open loop: ns by which the load itself (not the server) sent late */
	uint64_t missed;  /* open loop: due before the end, but not sent */
	uint64_t skipped; /* replay: flushes and trims that the server does not support */
	uint64_t errors[LOAD_ERRORS], n_errors;
	uint64_t reconnects, resent;
	uint64_t checked, unchecked, wrong; /* verify: blocks */
	char fault[400];                    /* why it ended early; "" if it did not */
};

struct load_interval { /* activity of one job since its last interval */
	size_t job;
	const char *name;
	weir_time at, span; /* end, relative to the start of load_run; length */
	bool warm;          /* counted */
	uint64_t requests, bytes;
	const struct weir_hist *latency; /* valid until the callback returns */
};

struct load_options {       /* 0 or NULL: the default */
	unsigned threads;   /* jobs are spread over them; 1 */
	weir_time interval; /* 100 ms */
	/* Called on threads of the load, never two at once. */
	void (*tick)(void *arg, const struct load_interval *i);
	void (*say)(void *arg, const char *job, const char *text); /* a wrong block, a loss, … */
	void *arg;
	const int *cores; /* thread i is pinned to cores[i % n_cores]; NULL: not pinned */
	size_t n_cores;
};

struct load;
/* Connect all jobs; may block for seconds. Return -EINVAL if a job is invalid, or not possible on
 * that export. */
int load_new(const struct load_job *jobs, size_t n, const struct load_options *o,
	struct load **ret_load, struct weir_err *err);
/* Run until all jobs are done; call once. Return 0, or a negative errno if the system fails; the
 * failure of a job is in its result. */
int load_run(struct load *l);
void load_stop(struct load
		*l); /* from any thread or a signal handler: jobs end as if their time were over */
const struct load_result *load_result(const struct load *l, size_t job); /* after load_run */
void load_free(struct load *l);
