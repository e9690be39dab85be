/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads: a few threads that make the system calls that block.
 *
 * A job is worked on by one of them and then comes back to the loop it was added on, through
 * loop_post: its `done.run` is called there. Threads are started when there is work for them, and
 * take no signals.
 */
#ifndef WEIR_SERVE_LOOP_THREADS_H
#define WEIR_SERVE_LOOP_THREADS_H

#include "serve/loop/loop.h"

struct threads_job {                         /* the caller's memory, until done has run */
	struct loop_task done;               /* run: on the loop's thread */
	void (*work)(struct threads_job *j); /* on one of the threads */
	struct threads_job *next;            /* links what is added at once; theirs while inside */
};

struct threads;
/* At most `most` ≥ 1 of them. Completions go to `loop`, which is borrowed. 0 or a negative errno. */
int threads_new(struct loop *loop, unsigned most, struct threads **ret_threads);
/* Takes a list, linked by next, begun in its order. Never fails: a job for which no thread can be had
 * is worked on at once, by the caller. */
void threads_add(struct threads *t, struct threads_job *jobs);
void threads_free(struct threads *t); /* no job is inside; NULL is fine */

#endif
