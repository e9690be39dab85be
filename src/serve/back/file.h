/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: internals of a file back end, shared by its files. Users include back.h.
 *
 *   serve/back/file.c        the name, the kind of the file, start and end
 *   serve/back/file-steps.c  a request as a sequence of system calls, each after the last one
 *   serve/back/file-cached.c reads and writes of cached pages, done at once
 *   serve/back/file-ring.c   the system calls by io_uring
 *   serve/back/file-guard.c  locks against other users of the file; detection of its deletion
 *   serve/back/file-call.c   the system calls by threads: all of them, or those that io_uring lacks
 */
#ifndef WEIR_SERVE_BACK_FILE_H
#define WEIR_SERVE_BACK_FILE_H

#include "base/container.h"
#include "serve/back/back.h"
#include "serve/back/overlap.h"
#include "serve/loop/threads.h"
#include <liburing.h>
#include <stddef.h>

enum file_step { /* one system call */
	FILE_READ,
	FILE_WRITE,
	FILE_REWRITE, /* a failed FUA write, retried without FUA: did the write or the sync fail? */
	FILE_WRITE_ZERO, /* zeroes, if the file system cannot zero a range */
	FILE_SYNC,
	FILE_PUNCH,
	FILE_ZERO_RANGE,
	FILE_ADVISE,
	/* Not in io_uring: */
	FILE_DISCARD,  /* BLKDISCARD */
	FILE_ZERO_OUT, /* BLKZEROOUT */
	FILE_STATUS,
};

struct file_op { /* in back_io.scratch, while inside */
	struct threads_job job;
	struct file *file;
	uint64_t done; /* bytes read, written or zeroed */
	int32_t result;
	uint16_t step;
	bool sync;    /* a FILE_SYNC follows */
	bool entered; /* in file.overlap, as `range` */
	struct overlap_range range;
};
_Static_assert(sizeof(struct file_op) <= sizeof(((struct back_io *)0)->scratch), "scratch");

struct file_list {
	struct back_io *first, *last;
};

struct file_cached {        /* private to serve/back/file-cached.c */
	bool reads, writes; /* are attempted */
	bool no_nowait;     /* the file system does not support writes with RWF_NOWAIT … */
	bool plain;         /* … and plain ones are attempted instead */
	bool clean;         /* few pages were dirty when … */
	weir_time looked;   /* … they were last counted */
	weir_time again;    /* a plain write was slow: no other before this */
	uint32_t missed;    /* reads to skip after the next miss */
	uint32_t skip;      /* reads left to skip */
	uint8_t *map;       /* of the whole file, for mincore only; NULL: none */
	int vmstat;
};

struct file {
	struct back back;
	char *name; /* "file:PATH", for messages */
	int fd;
	bool block; /* a block device */
	bool threads_only;
	bool no_punch, no_zero_range;  /* learnt: not supported by the file system */
	bool flush_failed;             /* a FLUSH failed: no later one is trusted */
	bool locked, deleted, watched; /* by this process; unlinked; `watch` is active */
	bool heir;                     /* back_config.heir */
	struct loop_fd watch;
	uint8_t *zeroes; /* CHUNK_MAX bytes */
	struct loop *loop;

	struct threads *threads;
	struct threads_job *jobs, **jobs_end; /* for the threads, not yet handed over */

	bool ring_up, fixed; /* fixed: the fd is registered as index 0 */
	bool kicking;        /* inside ring_kick */
	struct io_uring ring;
	struct loop_fd ring_fd;
	struct loop_timer again; /* when the system did not accept a submission */
	uint32_t in_ring;
	struct file_cached cached;
	struct file_list waiting; /* for room in the ring */

	struct overlap overlap;         /* writes, trims and zeroes that are inside */
	struct overlap_range *released; /* may start now: nothing overlaps them any more */
	bool releasing;                 /* inside start_released */
};

static inline struct file_op *file_op(struct back_io *io)
{
	return (struct file_op *)(void *)io->scratch;
}
static inline struct back_io *file_io(struct file_op *op)
{
	return container_of(op, struct back_io, scratch);
}

/* serve/back/file-steps.c: start the op's first step, then, after each result (bytes or a negative
 * errno), the next one. Ends with the back end's `done`. */
void file_begin(struct file *f, struct back_io *io);
void file_advance(struct file *f, struct back_io *io, int result);
int file_fua(const struct back_io *io, enum file_step step); /* RWF_DSYNC or 0 */
/* Return the part of the data or of the range for the current step. */
void *file_data(const struct file *f, struct back_io *io);
uint32_t file_bytes(struct back_io *io);
static inline uint64_t file_offset(struct back_io *io)
{
	return io->offset + file_op(io)->done;
}

/* serve/back/file-cached.c */
void file_cached_start(struct file *f, bool direct); /* once the size is known */
void file_cached_free(struct file *f);
/* Attempt a READ or WRITE that was begun, and count the bytes done. Return true if all were. */
bool file_cached(struct file *f, struct back_io *io);

/* serve/back/file-ring.c */
int file_ring_start(struct file *f); /* or a negative errno: not available here */
void file_ring_put(struct file *f, struct back_io *io);
void file_ring_kick(struct file *f); /* submit, and process completions */
void file_ring_free(struct file *f);

/* serve/back/file-call.c */
int file_call_start(struct file *f, unsigned threads);
void file_call_put(struct file *f, struct back_io *io);
void file_call_kick(struct file *f);

/* serve/back/file-guard.c */
int file_guard_lock(struct file *f, struct weir_err *err); /* -EBUSY: in use by another process */
int file_guard_watch(struct file *f); /* watch for deletion; on the loop's thread */
void file_guard_end(struct file *f);

/* Submit all steps that were begun or advanced. */
static inline void file_kick(struct file *f)
{
	if (f->ring_up)
		file_ring_kick(f);
	file_call_kick(f);
}

#endif
