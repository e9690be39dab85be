/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-pshift: shared by the benchmarks of pShift: one input, and each method on it. */
#pragma once

#include "bench/reference/maxflow.h"
#include "bench/reference/pshift-make.h"
#include "bench/bench.h"

struct bench_pshift {
	struct pshift_made made;
	struct pshift *pshift;
	int64_t *rtokens, *ltokens;
	struct pshift_result result; /* of the last run of ours */
	struct maxflow graph;
};

/* §IV-C: 8 active servers of 100,000, r = 1, m = 1.1, s = 0.5. */
struct pshift_shape bench_pshift_shape(size_t servers, size_t buckets);
/* Return 0 or a negative errno; after an error there is nothing to free. */
int bench_pshift_new(struct bench_pshift *b, const struct pshift_shape *shape);
void bench_pshift_free(struct bench_pshift *b);

/* Compute tokens from the input; *ret_ms is the processor time of one run in milliseconds. -EPROTO:
 * the result differs from the last one of ours for the same input. */
int bench_pshift_ours(
	struct bench_pshift *b, const struct pshift_options *o, unsigned times, double *ret_ms);
int bench_pshift_maxflow(struct bench_pshift *b, int64_t (*method)(struct maxflow *g),
	unsigned times, double *ret_ms);
