/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-file: the inside of a file back end, shared by its files. Users see back.h.
 *
 *   back-file.c        the name, what kind of file it is, start and end
 *   back-file-steps.c  a request as a row of system calls, each after the result of the last
 *   back-file-cached.c reads and writes of cached pages, at once
 *   back-file-ring.c   the system calls by io_uring
 *   back-file-guard.c  locks against others who use it; deleted
 *   back-file-call.c   the system calls by threads: all of them, or those that io_uring does not have
 */
#ifndef WEIR_PORT_BACK_FILE_H
#define WEIR_PORT_BACK_FILE_H

#include "port/back.h"
#include "port/threads.h"
#include <liburing.h>
#include <stddef.h>

enum file_step { /* one system call */
	FILE_READ,
	FILE_WRITE,
	FILE_REWRITE,    /* a FUA write that failed, again without: was it the write or the sync? */
	FILE_WRITE_ZERO, /* zeroes, where the file system cannot make them by itself */
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
	bool sync; /* a FILE_SYNC follows */
};
_Static_assert(sizeof(struct file_op) <= sizeof(((struct back_io *)0)->scratch), "scratch");

struct file_list {
	struct back_io *first, *last;
};

struct file_cached {        /* back-file-cached.c's */
	bool reads, writes; /* are tried */
	bool no_nowait;     /* the file system has no writes with RWF_NOWAIT … */
	bool plain;         /* … and plain ones are tried instead */
	bool clean;         /* few pages were dirty when … */
	weir_time looked;   /* … it looked */
	weir_time again;    /* a plain write was slow: none before this */
	uint32_t missed;    /* reads that are skipped after the next one that is not cached */
	uint32_t skip;      /* reads that are not tried */
	uint8_t *map;       /* of the whole file, never touched; NULL: none */
	int vmstat;
};

struct file {
	struct back back;
	char *name; /* "file:PATH", for messages */
	int fd;
	bool block; /* a block device */
	bool threads_only;
	bool no_punch, no_zero_range;  /* learnt: the file system cannot */
	bool flush_failed;             /* a FLUSH failed: none is believed any more */
	bool locked, deleted, watched; /* by us; it has no name any more; `watch` tells */
	struct loop_fd watch;
	uint8_t *zeroes; /* CHUNK_MAX of them */
	struct loop *loop;

	struct threads *threads;
	struct threads_job *jobs, **jobs_end; /* for the threads, not yet given */

	bool ring_up, fixed; /* fixed: the fd is registered as 0 */
	bool kicking;        /* inside ring_kick */
	struct io_uring ring;
	struct loop_fd ring_fd;
	struct loop_timer again; /* when the system did not take what was submitted */
	uint32_t in_ring;
	struct file_cached cached;
	struct file_list waiting; /* until there is room in the ring */
};

static inline struct file_op *file_op(struct back_io *io)
{
	return (struct file_op *)(void *)io->scratch;
}
static inline struct back_io *file_io(struct file_op *op)
{
	return (struct back_io *)(void *)((char *)op - offsetof(struct back_io, scratch));
}

/* back-file-steps.c: the op's first step, then, after each, what follows from its result (bytes or a
 * negative errno). Ends with the back end's done. */
void file_begin(struct file *f, struct back_io *io);
void file_advance(struct file *f, struct back_io *io, int result);
int file_fua(const struct back_io *io, enum file_step step); /* RWF_DSYNC or 0 */
/* The part of the data or of the range that the step is about. */
void *file_data(const struct file *f, struct back_io *io);
uint32_t file_bytes(struct back_io *io);
static inline uint64_t file_offset(struct back_io *io)
{
	return io->offset + file_op(io)->done;
}

/* back-file-cached.c */
void file_cached_start(struct file *f, bool direct); /* the size is known */
void file_cached_free(struct file *f);
/* Tries a READ or WRITE that was begun; what was done of it is counted. true: all of it. */
bool file_cached(struct file *f, struct back_io *io);

/* back-file-ring.c */
int file_ring_start(struct file *f); /* or a negative errno: not to be had here */
void file_ring_put(struct file *f, struct back_io *io);
void file_ring_kick(struct file *f); /* hands over what was put, takes what has come */
void file_ring_free(struct file *f);

/* back-file-call.c */
int file_call_start(struct file *f, unsigned threads);
void file_call_put(struct file *f, struct back_io *io);
void file_call_kick(struct file *f);

/* back-file-guard.c */
int file_guard_lock(struct file *f, struct weir_err *err); /* -EBUSY: another process uses it */
int file_guard_watch(struct file *f); /* for its deletion; on the loop's thread */
void file_guard_end(struct file *f);

/* What was begun or advanced is on its way after this. */
static inline void file_kick(struct file *f)
{
	if (f->ring_up)
		file_ring_kick(f);
	file_call_kick(f);
}

#endif
