/* SPDX-License-Identifier: BSD-3-Clause */
/* Every part runs once, on any number of threads; and pShift gives the same tokens on all of
 * them. */
#include "serve/loop/parallel.h"
#include "bench/reference/pshift-make.h"
#include "test.h"
#include <stdatomic.h>

#define PARTS 1000

static atomic_int done[PARTS];

static void part(void *arg, size_t i)
{
	CHECK(arg == done);
	atomic_fetch_add(&done[i], 1);
}

static void every_part_once(void)
{
	for (unsigned threads = 1; threads <= 5; threads++) {
		struct parallel *p;

		CHECK_INT(parallel_new(threads, &p), 0);
		for (int round = 1; round <= 50; round++) {
			parallel_run(p, PARTS, part, done);
			for (int i = 0; i < PARTS; i++)
				CHECK_INT(done[i], (int)(threads - 1) * 50 + round);
		}
		parallel_run(p, 0, part, done);
		parallel_free(p);
	}
	parallel_free(NULL);
}

static void same_tokens(void)
{
	struct pshift_shape shape = {.servers = 64,
		.buckets = 20000,
		.active = 8,
		.capacity = 100000,
		.reserved = 1,
		.demand = 1.1,
		.zipf = 0.5,
		.limit = 1.05};
	size_t n = shape.buckets * shape.active;
	int64_t *tokens = calloc(4 * n, sizeof(*tokens)), *again = tokens + 2 * n;
	struct pshift_result one, other;
	struct pshift_made m;
	struct pshift *p;

	CHECK(tokens);
	CHECK_INT(pshift_new(&p), 0);
	CHECK_INT(pshift_make(&shape, 1, &m), 0);
	CHECK_INT(pshift_allocate(p, &m.in, NULL, tokens, tokens + n, &one), 0);
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct pshift_parallel parallel = {.run = parallel_run};
		struct pshift_options o = {.parallel = &parallel};
		struct parallel *pool;

		CHECK_INT(parallel_new(threads, &pool), 0);
		parallel.pool = pool;
		CHECK_INT(pshift_allocate(p, &m.in, &o, again, again + n, &other), 0);
		CHECK_INT(other.phi, one.phi);
		CHECK_INT(other.lphi, one.lphi);
		CHECK(memcmp(tokens, again, 2 * n * sizeof(*tokens)) == 0);
		parallel_free(pool);
	}
	pshift_made_free(&m);
	pshift_free(p);
	free(tokens);
}

int main(void)
{
	RUN(every_part_once);
	RUN(same_tokens);
	return 0;
}
