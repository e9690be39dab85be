/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file: internals of a file back end, shared by its files. Users include back.h.
 *
 *   serve/back/file.c        the name, the kind of the file, start and end
 *   serve/back/file-steps.c  a request as a sequence of system calls, each after the last one
 *   serve/back/file-cached.c reads and writes of cached pages, done at once
 *   serve/back/file-ring.c   the system calls by io_uring
 *   serve/back/file-guard.c  locks against other users of the file; its deletion and shrinking
 *   serve/back/file-call.c   the system calls by threads: all of them, or those that io_uring lacks
 *   serve/back/file-hub.c    what the files of a loop share
 */
#pragma once

#include "base/container.h"
#include "serve/back/back.h"
#include "serve/back/overlap.h"
#include "serve/loop/threads.h"
#include <liburing.h>

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
	weir_time again;    /* a plain write was slow: no other before this */
	uint32_t missed;    /* reads to skip after the next miss */
	uint32_t skip;      /* reads left to skip */
	uint8_t *map;       /* of the whole file, for mincore only; NULL: none */
	size_t mapped;      /* bytes */
};

#define FILE_FIXED 1024 /* files of a ring that are registered with it */

struct file_hub { /* of all files of a loop; serve/back/file-hub.c */
	struct file_hub *next;
	struct loop *loop;
	bool threads_only;
	unsigned users;
	struct threads *threads;
	struct threads_job *jobs, **jobs_end; /* for the threads, not yet handed over */

	bool ring_up;
	bool kicking; /* inside ring_kick */
	struct io_uring ring;
	struct loop_fd ring_fd;
	struct loop_timer again; /* when the system did not accept a submission */
	uint32_t in_ring;
	struct file_list waiting; /* for room in the ring */
	bool fixed;               /* the ring has room for FILE_FIXED registered files */
	struct file *registered[FILE_FIXED];

	struct file *
		*watched; /* files whose deletion and size are noticed, by `wd`, one for each */
	size_t n_watched, room_watched;
	struct loop_fd watch;     /* fd -1: none */
	struct file *resting;     /* modified: not watched for that until … */
	struct loop_timer rested; /* … this */

	int vmstat;       /* -1: none */
	bool clean;       /* few pages were dirty when … */
	weir_time looked; /* … they were last counted */
};

struct file {
	struct back back;
	char *name; /* "file:PATH", for messages */
	int fd;
	bool block; /* a block device */
	bool threads_only;
	bool no_punch, no_zero_range; /* learnt: not supported by the file system */
	bool flush_failed;            /* a FLUSH failed: no later one is trusted */
	bool locked, deleted;         /* by this process; unlinked */
	bool heir, followed;          /* as in back_config */
	int wd;                       /* of the hub's watch; -1: none */
	struct file *same_watch;      /* the next one with this `wd` */
	struct file *next_resting, **resting_link;
	struct loop *loop;
	struct file_hub *hub; /* NULL: not started */
	int fixed;            /* the fd's index in the ring; -1: not registered */
	struct file_cached cached;

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
void file_cached_grown(struct file *f);              /* the size is another one */
void file_cached_free(struct file *f);
/* Attempt a READ or WRITE that was begun, and count the bytes done. Return true if all were. */
bool file_cached(struct file *f, struct back_io *io);

/* serve/back/file-hub.c: the first file of a loop makes it, the last frees it. On the loop's thread. */
int file_hub_join(struct file *f);
void file_hub_leave(struct file *f); /* nothing if it has not joined */

/* serve/back/file-ring.c */
int file_ring_start(struct file_hub *h); /* or a negative errno: not available here */
void file_ring_free(struct file_hub *h);
void file_ring_register(struct file *f);
void file_ring_unregister(struct file *f);
void file_ring_put(struct file *f, struct back_io *io);
void file_ring_kick(struct file_hub *h); /* submit, and process completions */

/* serve/back/file-call.c */
void file_call_put(struct file *f, struct back_io *io);
void file_call_kick(struct file_hub *h);

/* serve/back/file-guard.c */
int file_guard_lock(
	struct file *f, weir_time by, struct weir_err *err); /* -EBUSY: in use by another process */
void file_guard_watch(struct file *f); /* for deletion and size; on the loop's thread */
/* On the loop's thread: the file may have become smaller; another program may have made it long enough again. */
void file_guard_size(struct file *f);
void file_guard_whole(struct file *f);
void file_guard_end(struct file *f);
void file_guard_free(struct file_hub *h);

/* Submit all steps that were begun or advanced. */
static inline void file_kick(struct file_hub *h)
{
	if (h->ring_up)
		file_ring_kick(h);
	file_call_kick(h);
}
