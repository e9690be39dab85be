/* SPDX-License-Identifier: BSD-3-Clause */
/* pshift-eight-avx2: one vector of eight, for processors that have AVX2; others never come here. */
#if defined(__x86_64__)
#include "alg/pshift-eight.h"
#include <immintrin.h>

#define HALVES 1
#define TARGET __attribute__((target("avx2")))
#define HOT    inline __attribute__((always_inline)) TARGET

typedef int32_t lanes __attribute__((vector_size(32)));
typedef uint32_t bits __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(32)));

static const lanes place[] = {{7, 6, 5, 4, 3, 2, 1, 0}};

static HOT bool load(const int64_t *at, int64_t large, lanes *ret)
{
	__m256i a = _mm256_loadu_si256((const __m256i_u *)at);
	__m256i b = _mm256_loadu_si256((const __m256i_u *)(at + 4));
	/* 0 1 4 5 and 2 3 6 7 */
	__m256 low = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88);

	ret[0] = (lanes)_mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);
	return _mm256_testz_si256(_mm256_or_si256(a, b), _mm256_set1_epi64x(large));
}

static HOT void store(int64_t *at, const lanes *v)
{
	__m256i all = (__m256i)v[0];

	_mm256_storeu_si256((__m256i_u *)at, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(all)));
	_mm256_storeu_si256(
		(__m256i_u *)(at + 4), _mm256_cvtepi32_epi64(_mm256_extracti128_si256(all, 1)));
}

static HOT lanes least(lanes a, lanes b)
{
	return (lanes)_mm256_min_epi32((__m256i)a, (__m256i)b);
}

static HOT lanes most(lanes a, lanes b)
{
	return (lanes)_mm256_max_epi32((__m256i)a, (__m256i)b);
}

static HOT int32_t total(const lanes *v)
{
	__m256i all = (__m256i)v[0];
	__m128i four = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));

	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
	four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
	return _mm_cvtsi128_si32(four);
}

static HOT void scan(const lanes *v, lanes *ret)
{
	__m256i s = (__m256i)v[0], half;

	s = _mm256_add_epi32(s, _mm256_slli_si256(s, 4));
	s = _mm256_add_epi32(s, _mm256_slli_si256(s, 8));
	half = _mm256_permute2x128_si256(s, s, 0x08); /* nothing, and the lower half */
	ret[0] = (lanes)_mm256_add_epi32(s, _mm256_shuffle_epi32(half, 0xff));
}

static HOT int32_t last(const lanes *v)
{
	return _mm256_extract_epi32((__m256i)v[0], 7);
}

#define RANK(from, i) (lanes) _mm256_cmpgt_epi32(_mm256_shuffle_epi32(from, (i)*0x55), all)

static HOT void ranks(const lanes *key, lanes *ret)
{
	__m256i all = (__m256i)key[0], turned = _mm256_permute4x64_epi64(all, 0x4e);
	lanes a = RANK(all, 0) + RANK(all, 1), b = RANK(all, 2) + RANK(all, 3);
	lanes c = RANK(turned, 0) + RANK(turned, 1), d = RANK(turned, 2) + RANK(turned, 3);

	ret[0] = -((a + b) + (c + d)); /* true is −1 */
}

#include "alg/pshift-eight-body.h"

const struct pshift_eight pshift_eight_avx2 = {split, stage, label};
#else
typedef int pshift_eight_none; /* a file must not be empty */
#endif
