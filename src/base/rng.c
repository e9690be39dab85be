/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rng: random streams and the distributions drawn from them.
 *
 * SOURCE   D. Blackman, S. Vigna: Scrambled Linear Pseudorandom Number Generators (2021), for
 *          xoshiro256** and the advice to seed it through splitmix64; the FNV-1a hash of Fowler,
 *          Noll and Vo; D. Lemire: Fast Random Integer Generation in an Interval (2019);
 *          W. Hörmann, G. Derflinger: Rejection-inversion to generate variates from monotone
 *          discrete distributions (1996).
 *
 * LAW      Zipf: P(k) ∝ h(k) = k^−s for k = 1 … n. With H the integral of h, the strips
 *          [H(k−½), H(k+½)] are each at least h(k) high, because h is convex. A point drawn evenly
 *          from H's range belongs to a strip; it is kept when it lies in the upper h(k) of it.
 *
 * SYMBOLS  h_x1   H(1½) − h(1): the low end of the range, cut so that k = 1 is never rejected
 *          h_n    H(n+½): the high end
 *          cut    k − x ≤ cut is always kept: most draws end there, with no second power
 *
 * METHOD   H(x) = ((x^(1−s)) − 1)/(1−s), or log x at s = 1; written with expm1 and log1p so that it
 *          goes over smoothly near s = 1. Less than 2 % of the draws are rejected, for every s and n.
 *
 * DIFFERS  s = 0 is drawn exactly, as integers, since n may exceed a double's 53 bits.
 *
 * EXAMPLE  n = 3, s = 1: probabilities 6/11, 3/11, 2/11.
 */
#include "base/hash.h"
#include "base/rng.h"
#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 rng_u128;

static uint64_t rng_splitmix(uint64_t *x)
{
	uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void rng_init(struct rng *r, uint64_t seed, const char *name)
{
	/* Scramble the seed before mixing in the name: neighbouring seeds and names that differ in
	 * few bits must not collide. Four successive splitmix outputs are never all zero. */
	uint64_t x = rng_splitmix(&seed) ^ hash_more(HASH_BEGIN, name, strlen(name));

	for (int i = 0; i < 4; i++)
		r->s[i] = rng_splitmix(&x);
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	rng_u128 product = (rng_u128)rng_u64(r) * n;

	if ((uint64_t)product < n) { /* may be one of the 2⁶⁴ mod n that would bias */
		uint64_t surplus = -n % n;
		while ((uint64_t)product < surplus)
			product = (rng_u128)rng_u64(r) * n;
	}
	return (uint64_t)(product >> 64);
}

double rng_exp(struct rng *r, double mean)
{
	return -mean * log1p(-rng_double(r));
}

double rng_normal(struct rng *r)
{
	/* Box and Muller's method, one of the pair: always two draws, so streams stay aligned. */
	double radius = sqrt(rng_exp(r, 2.0));

	return radius * cos(6.283185307179586 * rng_double(r));
}

static double zipf_h(double x, double s)
{
	return exp(-s * log(x));
}

static double zipf_integral(double x, double s)
{
	double log_x = log(x), t = (1.0 - s) * log_x;

	return fabs(t) < 1e-9 ? log_x * (1.0 + t / 2) : expm1(t) / (1.0 - s);
}

static double zipf_inverse(double y, double s)
{
	double t = y * (1.0 - s);

	if (t <= -1.0) /* by rounding, at the far end when s > 1 */
		return HUGE_VAL;
	return exp(fabs(t) < 1e-9 ? y * (1.0 - t / 2) : log1p(t) / (1.0 - s));
}

void rng_zipf_init(struct rng_zipf *z, uint64_t n, double s)
{
	z->n = n;
	z->s = s;
	z->h_x1 = zipf_integral(1.5, s) - 1.0;
	z->h_n = zipf_integral((double)n + 0.5, s);
	z->cut = 2.0 - zipf_inverse(zipf_integral(2.5, s) - zipf_h(2.0, s), s);
}

uint64_t rng_zipf_draw(struct rng *r, const struct rng_zipf *z)
{
	double n = (double)z->n;

	if (!(z->s > 0))
		return rng_below(r, z->n);
	for (;;) {
		double y = z->h_n + rng_double(r) * (z->h_x1 - z->h_n);
		double x = zipf_inverse(y, z->s), k = floor(x + 0.5);

		k = k < 1.0 ? 1.0 : k > n ? n : k;
		if (k - x <= z->cut || y >= zipf_integral(k + 0.5, z->s) - zipf_h(k, z->s)) {
			uint64_t rank = (uint64_t)(k - 1.0);
			return rank < z->n ? rank : z->n - 1; /* a double may round n up */
		}
	}
}
