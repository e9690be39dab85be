/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back: storage behind a gate, as a table of functions.
 *
 * A back end belongs to one loop and lives on its thread. Requests are submitted in batches and
 * returned one by one through `done`, in any order, also from inside submit. A back end accepts all
 * requests: the gate limits their number.
 *
 *   back.c          opens back ends by name: "memory:1G", "file:disk.img", "nbd://host:10809/lun0",
 *                   "nbd+unix:///lun0?socket=/run/x.sock", "model:array+memory:64G"
 *   serve/back/name.c     options in names: "memory:64G?most=2G"
 *   serve/back/memory.c   memory, without persistence
 *   serve/back/file.c     a file or block device, by io_uring or by threads
 *   serve/back/nbd.c      another NBD server
 *   serve/back/model.c    any of them, with the timing of a device model
 *   serve/back/volumes.c  any number of them, each with its own part of the offsets
 */
#pragma once

#include <stdatomic.h>
#include <weir/clock.h>
#include <weir/err.h>
#include "serve/loop/chunk.h"
#include "serve/loop/loop.h"
#include <stdbool.h>
#include <stdint.h>

enum back_op {
	BACK_READ,
	BACK_WRITE,
	BACK_FLUSH,
	BACK_TRIM,
	BACK_ZERO,   /* WRITE_ZEROES */
	BACK_CACHE,  /* a hint: may do nothing */
	BACK_STATUS, /* which parts are data, hole or zero */
	/* Not for back ends: done by the front end (struct request); counted as a read, or
	 * write. */
	BACK_CALL,
	BACK_CALL_WRITE,
};
enum back_flags {
	BACK_FUA = 1,
	BACK_NO_HOLE = 2,
	BACK_FAST_ZERO = 4,
	/* READ: the data may stay where the back end received them: `data` then points there when
	 * the request is done, and is valid until the loop's round is over. A user that cannot use
	 * them in the turns of that round copies them. Only data that are done before the round's
	 * turns, and whole, are lent in this way. */
	BACK_BORROW = 8,
};

struct back_extent {
	uint64_t length; /* bytes */
	uint32_t flags;  /* of base:allocation: 1 hole, 2 zero */
};

struct back_io {              /* the caller's memory; the back end's from submit to done */
	struct back_io *next; /* links a batch; the back end's while inside */
	uint64_t offset;      /* bytes */
	/* bytes; READ, WRITE: ≤ CHUNK_MAX; inside the back end's size. FLUSH: which acknowledged
	 * writes it must cover; 0: all */
	uint64_t length;
	uint8_t op, flags;
	uint8_t room; /* out, with BACK_BORROW: bytes before lent `data` that may be overwritten */
	int error;    /* out: 0 or a negative errno */
	/* READ: destination; WRITE: source. A back end with `lends` sets it on READ, and the data
	 * stay readable until the back end is freed */
	uint8_t *data;
	/* the chunk that contains data, or NULL. A back end that needs the data of a WRITE for
	 * longer keeps it (chunk_keep) */
	struct chunk *chunk;
	struct back_extent *extents; /* STATUS: room for n_extents */
	uint32_t n_extents; /* STATUS: in: room, ≥ 1; out: how many, from offset on, ≥ 1; the
	                                last may reach beyond the range asked for */
	uint32_t source;    /* who: some models keep state by it */
	weir_time device;   /* out, with info.tells_device: ns of the device's time that it took */
	uint64_t scratch[13]; /* the back end's, while inside */
};

struct back_info {
	uint64_t size; /* bytes */
	bool read_only, rotational;
	bool can_flush, can_fua, can_trim, can_zero, can_fast_zero, can_cache, can_status;
	bool multi_conn;   /* a flush covers all acknowledged writes of all clients */
	bool transient;    /* the data end with the process */
	bool lends;        /* see back_io.data */
	bool tells_device; /* see back_io.device */
	uint32_t block_min, block_preferred; /* bytes */
	/* the default window: the requests that it can use at once */
	uint32_t depth;
	/* requests to receive in a round before its turns: more would not be cheaper; 0: any number */
	uint32_t batch;
	uint64_t depth_bytes; /* the default window in bytes if cost is time; 0: none */
};

enum back_state {
	BACK_UP,
	BACK_LOST,   /* not reachable now: requests wait inside while it reconnects */
	BACK_FAILED, /* given up: requests fail with -EIO until it is back */
	/* never reached: `info` is not known; it keeps trying; requests fail with -EIO */
	BACK_STARTING,
};

struct back;
struct back_ops {
	const char *name;
	/* Called once, on the loop's thread, before the first submit: add fds, timers and turns to
	 * the loop. 0 or a negative errno. */
	int (*start)(struct back *b);
	/* Submit a list linked by next. Each request is returned through back->done exactly
	 * once. */
	void (*submit)(struct back *b, struct back_io *ios);
	/* Ask an upstream that supports it how long its limits hold our requests; the answer is
	 * stored in `held` when it arrives. May be NULL. */
	void (*ask)(struct back *b);
	/* Stop and free; no request is inside (the caller waited). */
	void (*free)(struct back *b);
	/* The process ends and will not wait: from now on, while the storage is not reachable,
	 * requests that would wait fail with -ESHUTDOWN. Return true if it is not reachable now.
	 * May be called again; NULL: its requests never wait for that. */
	bool (*abandon)(struct back *b);
	/* Return the acknowledged bytes that would be lost if the storage never came back: neither
	 * flushed nor resent. NULL: none. */
	uint64_t (*unflushed)(const struct back *b);
	/* Bring state, lost, trouble, flush_errors and held up to date: of a back end that consists of others. NULL:
	 * they always are. */
	void (*look)(struct back *b);
	/* The storage may have grown: take its size anew. 0 or a negative errno. NULL: not supported. */
	int (*grown)(struct back *b);
	/* Write one line for people: "2 connections, 3 reconnects". May be NULL. */
	void (*say)(const struct back *b, char *text, size_t len);
};
#define BACK_SHRUNK "its file became smaller: the bytes at its end are lost" /* a `trouble` */
struct back { /* first member of every back end */
	const struct back_ops *ops;
	struct back_info info;
	_Atomic(enum back_state) state; /* read by any thread, as is `trouble` */
	uint64_t lost;                  /* transitions from UP to LOST */
	uint64_t
		file; /* of a file or device: a hash of what it is, whatever its name; 0: it is none */
	/* A problem although requests still pass; a constant, such as "a FLUSH failed: data may be
	 * lost". NULL: none. */
	const char *_Atomic trouble;
	/* The storage has become smaller than info.size: new clients should be refused. Read by any thread. */
	atomic_bool shrunk;
	uint64_t flush_errors; /* FLUSHes, and writes with FUA, that failed */
	weir_time flush_said;  /* back_flush_failed: time of the last log message; failures since */
	uint64_t flush_unsaid;
	/* ns: how long limits of an upstream held a request, mean between the last two queries; 0:
	 * not known, or none */
	weir_time held;
	/* for a back end that only passes requests on: the next one; NULL: it has its own state */
	struct back *behind;
	/* Set by the user of the back end before the first submit. */
	void (*done)(void *arg, struct back_io *io);
	void *done_arg;
	/* May be NULL. Called on the loop's thread, after `start`, when it was reached for the
	 * first time, and `info` is known and final. */
	void (*known)(void *arg);
	void *known_arg;
};

#define BACK_KEEP_LEAST (4 * CHUNK_MAX) /* bytes: less would flush after every few writes */

struct back_config {       /* 0 or NULL: the default */
	struct loop *loop; /* the thread on which it lives */
	struct chunk_pool *pool;
	weir_time
		timeout; /* nbd: clients get an error when the upstream is away for longer; 60 s */
	/* nbd: how long to wait for the upstream when it is opened; after that it is opened in
	 * state BACK_STARTING. 0: 10 s, and then it is an error. Less than a second: a name is
	 * looked up only after that, in the background. */
	weir_time patience;
	uint32_t connections; /* nbd: 4, or 1 where the upstream does not allow several */
	size_t keep; /* nbd: bytes of writes kept since the last flush, ≥ BACK_KEEP_LEAST; 64 MiB */
	bool read_only;
	bool direct;   /* file: O_DIRECT */
	bool threads;  /* file: never io_uring */
	bool no_links; /* file: the path must not be a symbolic link */
	bool lock;     /* file: fail with -EBUSY if another program writes to it; lock it */
	/* file: until when to wait for the lock of a process that ends (loop_clock); 0: for half a second */
	weir_time lock_by;
	bool heir; /* file: this process has it locked, and closes that one later: look for no conflict */
	bool followed; /* file: the caller closes it when it is deleted: that is no error */
	uint64_t seed; /* model: seed of its random numbers */
	const char *tls_ca, *tls_cert, *tls_key, *tls_psk; /* nbds: files; see tls.h */
};

/* Open a back end by name. Returns when it is usable (its size is known), or when `patience` is
 * over. May block (to connect to an upstream), so not on a thread whose loop runs; does not touch
 * the loop before ops->start. Errors name the back end and the problem: "file:disk.img: no such
 * file". */
int back_open(const char *name, const struct back_config *config, struct back **ret_back,
	struct weir_err *err);
/* Check that the name is well formed. 0 or -EINVAL. Opens nothing. */
int back_check(const char *name, struct weir_err *err);
/* Get the size, if it can be known without opening: 0, or -ENODATA. */
int back_size(const char *name, uint64_t *ret_size);
/* Of the name of a file's back end, which may be that of another one: 0, with what its options change of `lock` and
 * `read_only`; or -EINVAL: it is not well formed. */
int back_file_use(const char *name, bool *lock, bool *read_only);
/* Return the back end whose state, losses and problems count. */
static inline const struct back *back_real(const struct back *b)
{
	while (b->behind)
		b = b->behind;
	return b;
}
static inline void back_look(struct back *b)
{
	if (b->ops->look)
		b->ops->look(b);
}
static inline void back_submit(struct back *b, struct back_io *ios)
{
	b->ops->submit(b, ios);
}
static inline void back_free(struct back *b)
{
	if (b)
		b->ops->free(b);
}

/* A FLUSH, or a write with FUA, fails: count it, and log it at most once a second, with the number
 * since. For back ends. */
void back_flush_failed(struct back *b, const char *name, int error, weir_time now);

/* ---- a kind of back end, one in the table of back.c: back_NAME_kind */

struct back_kind {
	const char *const *names; /* what stands before the colon; NULL-terminated */
	bool whole; /* the functions get the whole name, a URI, and not what is behind the colon */
	int (*open)(const char *rest, const struct back_config *config, struct back **ret_back,
		struct weir_err *err);
	int (*check)(const char *rest, struct weir_err *err);
	int (*size)(const char *rest, uint64_t *ret_size); /* NULL: it cannot be told */
};
