/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parallel: run work in parts, on a few threads and the caller's own.
 *
 * The pure rooms have no threads: an algorithm that can be divided takes a function that runs its
 * parts, such as parallel_run. Any thread may run any part; the result must not depend on it.
 */
#pragma once

#include <stddef.h>

struct parallel;
/* `threads` ≥ 1, including the caller's own. There may be fewer if the system refuses some. 0 or
 * -ENOMEM. */
int parallel_new(unsigned threads, struct parallel **ret);
void parallel_free(struct parallel *p); /* nothing runs; NULL is fine */
/* Call part(arg, i) for each i < parts, in any order, and return when all are done. `pool` is a
 * struct parallel; one call at a time. */
void parallel_run(void *pool, size_t parts, void (*part)(void *arg, size_t i), void *arg);
