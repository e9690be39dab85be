/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rng: seeded random streams, one per component.
 *
 * SOURCE  xoshiro256** (Blackman and Vigna), seeded through splitmix64 from (seed, name), so that
 *         adding a component to a scenario does not shift the numbers of the others.
 */
#pragma once

#include <stdint.h>

struct rng {
	uint64_t s[4];
};

/* Start an independent stream for each (seed, name); `name` e.g. "host3/vm1/arrivals". */
void rng_init(struct rng *r, uint64_t seed, const char *name);

static inline uint64_t rng_rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

static inline uint64_t rng_u64(struct rng *r)
{
	uint64_t *s = r->s, result = rng_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rng_rotate(s[3], 45);
	return result;
}

static inline double rng_double(struct rng *r) /* uniform on [0, 1), 53 bits */
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

uint64_t rng_below(struct rng *r, uint64_t n); /* uniform on [0, n), unbiased; n > 0 */
double rng_exp(struct rng *r, double mean);    /* exponential; never below 0, at most 37 means */
double rng_normal(struct rng *r);              /* mean 0, deviation 1 */

/* Zipf on 0 … n−1 with exponent s ≥ 0 (s = 0: uniform), O(1) per draw by rejection-inversion
 * (Hörmann and Derflinger 1996): P(k) ∝ (k+1)^−s. n ≥ 1. The fields are private to rng.c. */
struct rng_zipf {
	uint64_t n;
	double s, h_x1, h_n, cut;
};
void rng_zipf_init(struct rng_zipf *z, uint64_t n, double s);
uint64_t rng_zipf_draw(struct rng *r, const struct rng_zipf *z);
