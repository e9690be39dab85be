/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-make: buckets over servers as the evaluation of pShift draws them (§IV-B and §IV-C), for
 * benchmarks, experiments and tests. The same shape and seed give the same input everywhere.
 */
#pragma once

#include "control/pshift/alloc.h"
#include "base/arena.h"
#include "base/rng.h"

struct pshift_shape {
	size_t servers, buckets;
	size_t active;    /* servers at which a bucket has demand; 1 … servers */
	int64_t capacity; /* of each server */
	double reserved;  /* r: Σ reservations / Σ capacities */
	double demand;    /* m: a bucket's demand / its reservation */
	/* s: exponent of the reservations; the demand of a bucket over its servers has 0.5 */
	double zipf;
	double skew;  /* Zipf exponent of the choice of servers; 0: uniform */
	double limit; /* a bucket's limit / its reservation; 0: none */
	bool chain;   /* a bucket's servers are neighbours: one that it draws, and those after it */
};

struct pshift_made {
	struct pshift_input in; /* points to the arrays below */
	struct pshift_shape shape;
	struct arena memory; /* of these arrays */
	int64_t *capacity, *reservation, *limit, *demand;
	uint32_t *first, *server;
	struct rng_zipf where;
	struct rng rng;
};
/* Return 0, -EINVAL (an impossible shape) or -ENOMEM. Free with pshift_made_free. */
int pshift_make(const struct pshift_shape *shape, uint64_t seed, struct pshift_made *ret);
void pshift_made_free(struct pshift_made *m);
/* Draw new servers for bucket i and spread its demand over them: a demand change of §IV-B. */
void pshift_make_move(struct pshift_made *m, size_t i);
