/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads: a few threads for system calls that block.
 *
 * One of them works on a job, which then returns through loop_post to the loop on which it was
 * added: its `done.run` is called there. Threads are started on demand, and take no signals.
 */
#pragma once

#include "serve/loop/loop.h"
#include <pthread.h>

/* Start a thread that takes no signals. `name` (NULL: none) is for debuggers. 0 or a negative errno. */
int threads_start(pthread_t *ret_id, const char *name, void *(*run)(void *arg), void *arg);

struct threads_job {                         /* the caller's memory, until done has run */
	struct loop_task done;               /* run: on the loop's thread */
	void (*work)(struct threads_job *j); /* on one of the threads */
	/* links jobs that are added at once; private while inside */
	struct threads_job *next;
};

struct threads;
/* Start at most `most` ≥ 1 threads. Completions go to `loop`, which is borrowed. 0 or a negative
 * errno. */
int threads_new(struct loop *loop, unsigned most, struct threads **ret_threads);
/* Add a list of jobs, linked by next, begun in that order. Never fails: without a thread, the
 * caller works on a job at once. */
void threads_add(struct threads *t, struct threads_job *jobs);
void threads_free(struct threads *t); /* no job is inside; NULL is fine */
