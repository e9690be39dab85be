/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parallel: work in parts, on a few threads and the caller's own.
 *
 * The pure rooms know no threads: an algorithm that can be divided takes a function that runs its
 * parts, such as parallel_run. Which thread has which part is left open; what a part does must not
 * depend on it.
 */
#ifndef WEIR_SERVE_LOOP_PARALLEL_H
#define WEIR_SERVE_LOOP_PARALLEL_H

#include <stddef.h>

struct parallel;
/* `threads` ≥ 1 with the caller's own. Where the system gives fewer, there are fewer. 0 or -ENOMEM. */
int parallel_new(unsigned threads, struct parallel **ret);
void parallel_free(struct parallel *p); /* nothing runs; NULL is fine */
/* Calls part(arg, i) for each i < parts, in any order, and returns when all have. `pool` is a struct
 * parallel; one call at a time. */
void parallel_run(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg);

#endif
