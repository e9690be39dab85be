/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back: what stands behind a gate: storage, by a small table of functions.
 *
 * A back end belongs to one loop and lives on its thread. Requests are handed to it in batches and
 * come back one by one through `done`, in any order, also from inside submit. It takes as many as it
 * is given: how many are inside is the gate's to decide.
 *
 *   back.c          names into back ends: "memory:1G", "file:disk.img", "nbd://host:10809/lun0",
 *                   "nbd+unix:///lun0?socket=/run/x.sock", "model:array+memory:64G"
 *   serve/back/name.c     options in names: "memory:64G?most=2G"
 *   serve/back/memory.c   memory that forgets everything at the end
 *   serve/back/file.c     a file or block device, by io_uring or by threads
 *   serve/back/nbd.c      another NBD server
 *   serve/back/model.c    any of them, made to take the time of a device model
 */
#ifndef WEIR_SERVE_BACK_BACK_H
#define WEIR_SERVE_BACK_BACK_H

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
	/* Not for back ends: done by the front end (struct request); counted as a read, or write. */
	BACK_CALL,
	BACK_CALL_WRITE,
};
enum back_flags {
	BACK_FUA = 1,
	BACK_NO_HOLE = 2,
	BACK_FAST_ZERO = 4,
	/* READ: the data may stay where the back end received them: `data` then points there when it is
	 * done, and not to where it did, and they are gone when the loop's round is over. Who cannot use
	 * them in the turns of that round copies them. Only what is done before the round's turns comes
	 * so, and only whole. */
	BACK_BORROW = 8,
};

struct back_extent {
	uint64_t length; /* bytes */
	uint32_t flags;  /* of base:allocation: 1 hole, 2 zero */
};

struct back_io {              /* the caller's memory; the back end's from submit to done */
	struct back_io *next; /* links a batch; the back end's while inside */
	uint64_t offset;      /* bytes */
	uint64_t length;      /* bytes; READ, WRITE: ≤ CHUNK_MAX; inside the back end's size.
	                         FLUSH: which answered writes it must cover; 0: all of them */
	uint8_t op, flags;
	int error; /* out: 0 or a negative errno */
	uint8_t *
		data; /* READ: where to; WRITE: from where. A back end with `lends` sets it on READ, and
	                  what it points to stays readable until the back end is freed */
	struct chunk
		*chunk; /* that data lies in, or NULL. Kept by a back end that needs the data of a
	                        WRITE for longer (chunk_keep) */
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
	bool multi_conn;   /* a flush covers what any client wrote and was told is done */
	bool lends;        /* see back_io.data */
	bool tells_device; /* see back_io.device */
	uint32_t block_min, block_preferred; /* bytes */
	uint32_t depth;                      /* the default window: what it can use at once */
	uint64_t depth_bytes; /* the default window in bytes where cost is time; 0: none */
};

enum back_state {
	BACK_UP,
	BACK_LOST,   /* not reachable now: requests wait inside; it is trying */
	BACK_FAILED, /* given up: requests fail with -EIO until it is back */
	BACK_STARTING, /* was never reached: `info` is not known; it is trying; requests fail with -EIO */
};

struct back;
struct back_ops {
	const char *name;
	/* Once, on the loop's thread, before the first submit: adds its fds, timers and turns to the
	 * loop. 0 or a negative errno. */
	int (*start)(struct back *b);
	/* Takes a list linked by next. Each comes back through back->done exactly once. */
	void (*submit)(struct back *b, struct back_io *ios);
	/* Asks an upstream that can tell for how long its limits hold our requests; `held` is the answer
	 * when it came. May be NULL. */
	void (*ask)(struct back *b);
	/* Stops: nothing is inside (the caller waited). */
	void (*free)(struct back *b);
	/* The process ends, and will not wait: from now on, whenever the storage is not reachable, what
	 * would wait for it fails with -ESHUTDOWN. true: so it is now. May be called again; NULL: its
	 * requests never wait for that. */
	bool (*abandon)(struct back *b);
	/* Bytes that were acknowledged and would be lost if the storage never came back: neither
	 * flushed nor sent again. NULL: none. */
	uint64_t (*unflushed)(const struct back *b);
	/* One line for people: "2 connections, 3 reconnects". May be NULL. */
	void (*say)(const struct back *b, char *text, size_t len);
};
struct back { /* first member of every back end */
	const struct back_ops *ops;
	struct back_info info;
	enum back_state state;
	uint64_t lost; /* times that it went from UP to LOST */
	/* What is wrong although requests still pass; a constant, such as "a FLUSH failed: data may be
	 * lost". NULL: nothing. */
	const char *trouble;
	uint64_t flush_errors; /* FLUSHes, and writes with FUA, that were answered with an error */
	weir_time flush_said;  /* back_flush_failed's: when it was last logged; how many since */
	uint64_t flush_unsaid;
	weir_time
		held; /* ns: for how long limits of an upstream held a request, mean between the last
	                   two times that it was asked; 0: not known, or none */
	struct back
		*behind; /* a back end that only passes on: to this; NULL: it has its own state */
	/* Set by the user of the back end before the first submit. */
	void (*done)(void *arg, struct back_io *io);
	void *done_arg;
	/* May be NULL: it was reached for the first time, and `info` is known, for good. On the loop's
	 * thread, after `start`. */
	void (*known)(void *arg);
	void *known_arg;
};

#define BACK_KEEP_LEAST (4 * CHUNK_MAX) /* bytes: less would flush after every few writes */

struct back_config {       /* 0 or NULL: the default */
	struct loop *loop; /* the thread on which it lives */
	struct chunk_pool *pool;
	weir_time
		timeout; /* nbd: a client sees an error when the upstream is away for longer; 60 s */
	/* nbd: how long to wait for the upstream when it is opened; after that it is opened in state
	 * BACK_STARTING. 0: 10 s, and then it is an error. */
	weir_time patience;
	uint32_t connections; /* nbd: 4, or 1 where the upstream does not allow several */
	size_t keep; /* nbd: bytes of writes kept since the last flush, ≥ BACK_KEEP_LEAST; 64 MiB */
	bool read_only;
	bool direct;   /* file: O_DIRECT */
	bool threads;  /* file: never io_uring */
	bool lock;     /* file: nobody else may write to it meanwhile; -EBUSY: somebody does */
	uint64_t seed; /* model: of what is random in it */
	const char *tls_ca, *tls_cert, *tls_key, *tls_psk; /* nbds: files; see tls.h */
};

/* From its name. Done when the back end is usable (its size is known), or when `patience` is over. May block (an upstream is
 * connected to), so not on a thread whose loop runs; touches the loop in no way before ops->start.
 * Errors name the back end and what is wrong with it: "file:disk.img: no such file". */
int back_open(const char *name, const struct back_config *config, struct back **ret_back,
	struct weir_err *err);
/* Is the name well formed? 0 or -EINVAL. Opens nothing. */
int back_check(const char *name, struct weir_err *err);
/* How large it is, as far as that can be told without opening it: 0, or -ENODATA: it cannot be. */
int back_size(const char *name, uint64_t *ret_size);
/* The one whose state, losses and troubles count. */
static inline const struct back *back_real(const struct back *b)
{
	while (b->behind)
		b = b->behind;
	return b;
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

/* A FLUSH, or a write with FUA, is being answered with an error: counts it, and logs it at most once a
 * second, with how many there were since. For back ends. */
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

#endif
