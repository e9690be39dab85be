/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * aside: one thread for work that would block a loop: reading a large policy, freeing one, writing
 * to disk.
 *
 * Jobs run one after the other on the thread; then `done` runs on the loop that posted them. The
 * thread is started with the first job.
 */
#pragma once

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
/* Post a job; if the thread cannot be started, it runs at once, here. */
void aside_post(struct aside *a, struct aside_job *j);
/* Free it; the loop does not run. Wait for the running job up to `wait`; of the others only those
 * without `done` are run, here. Return false if a job still runs: the memory that it uses, and a,
 * must stay. */
bool aside_free(struct aside *a, weir_time wait);
