/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-eight-avx2: one vector of eight, for processors with AVX2. */
#if defined(__x86_64__)
#include "control/pshift/alloc-two.h"

#define HALVES 1
#define TARGET __attribute__((target("avx2")))
#define HOT    inline __attribute__((always_inline)) TARGET

typedef int32_t lanes __attribute__((vector_size(32)));
typedef uint32_t bits __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(32)));
typedef int32_t four __attribute__((vector_size(16)));
typedef int64_t pair __attribute__((vector_size(16)));

#define SHUFFLE  __builtin_shufflevector
#define LOWER(v) SHUFFLE(v, v, 0, 1, 2, 3)
#define UPPER(v) SHUFFLE(v, v, 4, 5, 6, 7)

static const lanes place[] = {{7, 6, 5, 4, 3, 2, 1, 0}};

/* Swap between the order in which halves are combined and memory order. */
#define CROSS(v) SHUFFLE(v, v, 0, 1, 4, 5, 2, 3, 6, 7)

static HOT bool load(const int64_t *at, int64_t large, lanes *ret)
{
	lanes a, b, all;
	pair any;

	__builtin_memcpy(&a, at, sizeof(a));
	__builtin_memcpy(&b, at + 4, sizeof(b));
	ret[0] = SHUFFLE(a, b, 0, 2, 8, 10, 4, 6, 12, 14);
	ret[0] = CROSS(ret[0]);
	all = a | b;
	any = (pair)(LOWER(all) | UPPER(all));
	return !((any[0] | any[1]) & large);
}

static HOT void store(int64_t *at, const lanes *v)
{
	lanes zero = {0}, all = CROSS(v[0]);
	lanes a = SHUFFLE(all, zero, 0, 8, 1, 9, 4, 12, 5, 13);
	lanes b = SHUFFLE(all, zero, 2, 10, 3, 11, 6, 14, 7, 15);

	__builtin_memcpy(at, &a, sizeof(a));
	__builtin_memcpy(at + 4, &b, sizeof(b));
}

static HOT int32_t total(const lanes *v)
{
	four all = LOWER(v[0]) + UPPER(v[0]);

	all += SHUFFLE(all, all, 2, 3, 0, 1);
	return all[0] + all[1];
}

static HOT void scan(const lanes *v, lanes *ret)
{
	lanes zero = {0}, s = v[0];

	s += SHUFFLE(s, zero, 8, 0, 1, 2, 8, 4, 5, 6);
	s += SHUFFLE(s, zero, 8, 8, 0, 1, 8, 8, 4, 5);
	ret[0] = s + SHUFFLE(s, zero, 8, 8, 8, 8, 3, 3, 3, 3);
}

static HOT int32_t last(const lanes *v)
{
	return v[0][7];
}

/* Compare with one of its own half, and of the other: −1 if that is larger. */
#define RANK(from, i) (SHUFFLE(from, from, i, i, i, i, 4 + i, 4 + i, 4 + i, 4 + i) > all)

static HOT void ranks(const lanes *key, lanes *ret)
{
	lanes all = key[0], turned = SHUFFLE(all, all, 4, 5, 6, 7, 0, 1, 2, 3);
	lanes a = RANK(all, 0) + RANK(all, 1), b = RANK(all, 2) + RANK(all, 3);
	lanes c = RANK(turned, 0) + RANK(turned, 1), d = RANK(turned, 2) + RANK(turned, 3);

	ret[0] = -((a + b) + (c + d));
}

#include "control/pshift/alloc-eight-body.h"

const struct pshift_eight pshift_eight_avx2 = {split, stage, label};
#else
typedef int pshift_eight_none; /* a file must not be empty */
#endif
