/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aside: one thread for work that would hold up a loop: reading a large policy, freeing one, writing to disk.
 *
 * Jobs run one after the other on the thread; then `done` runs on the loop that asked. The thread is started
 * with the first job.
 */
#ifndef WEIR_SERVE_LOOP_ASIDE_H
#define WEIR_SERVE_LOOP_ASIDE_H

#include "serve/loop/loop.h"

struct aside;

struct aside_job {                         /* in the owner's memory until done */
	void (*run)(struct aside_job *j);  /* on the thread */
	void (*done)(struct aside_job *j); /* on the loop; NULL: the job owns itself once it runs */
	struct aside_job *next;            /* aside's */
	struct aside *aside;               /* aside's */
	struct loop_task task;             /* aside's */
};

int aside_new(struct loop *l, struct aside **ret_aside); /* 0 or -ENOMEM */
/* If the thread cannot be had the job runs at once, here. */
void aside_post(struct aside *a, struct aside_job *j);
/* The loop does not run. Waits for the job that runs up to `wait`; of those that were not begun only the ones
 * without `done` are run, here. False: one still runs: what it uses must stay, and so does a. */
bool aside_free(struct aside *a, weir_time wait);

#endif
