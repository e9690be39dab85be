/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc-eight: two vectors of four, for any 64-bit processor; and the choice of the best
 * variant. */
#include "control/pshift/alloc-two.h"

#define HALVES 2
#define TARGET
#define HOT inline __attribute__((always_inline)) TARGET

typedef int32_t lanes __attribute__((vector_size(16)));
typedef uint32_t bits __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));
typedef int64_t pair __attribute__((vector_size(16)));

#define SHUFFLE __builtin_shufflevector
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LOW         1, 3, 5, 7 /* halves of four int64_t */
#define WIDEN(a, b) 4, a, 5, b
#else
#define LOW         0, 2, 4, 6
#define WIDEN(a, b) a, 4, b, 5
#endif

static const lanes place[] = {{7, 6, 5, 4}, {3, 2, 1, 0}};

static HOT bool load(const int64_t *at, int64_t large, lanes *ret)
{
	pair v[4], all;

	__builtin_memcpy(v, at, sizeof(v));
	ret[0] = SHUFFLE((lanes)v[0], (lanes)v[1], LOW);
	ret[1] = SHUFFLE((lanes)v[2], (lanes)v[3], LOW);
	all = v[0] | v[1] | v[2] | v[3];
	return !((all[0] | all[1]) & large);
}

static HOT void store(int64_t *at, const lanes *v)
{
	lanes zero = {0};
	lanes wide[4] = {SHUFFLE(v[0], zero, WIDEN(0, 1)), SHUFFLE(v[0], zero, WIDEN(2, 3)),
		SHUFFLE(v[1], zero, WIDEN(0, 1)), SHUFFLE(v[1], zero, WIDEN(2, 3))};

	__builtin_memcpy(at, wide, sizeof(wide));
}

static HOT int32_t total(const lanes *v)
{
	lanes all = v[0] + v[1];

	all += SHUFFLE(all, all, 2, 3, 0, 1);
	return all[0] + all[1];
}

static HOT void scan(const lanes *v, lanes *ret)
{
	lanes zero = {0};

	PSHIFT_UNROLL
	for (int h = 0; h < HALVES; h++) {
		ret[h] = v[h] + SHUFFLE(v[h], zero, 4, 0, 1, 2);
		ret[h] += SHUFFLE(ret[h], zero, 4, 4, 0, 1);
	}
	ret[1] += SHUFFLE(ret[0], zero, 3, 3, 3, 3);
}

static HOT int32_t last(const lanes *v)
{
	return v[1][3];
}

#define RANK(from, i)                                                                              \
	do {                                                                                       \
		lanes one = SHUFFLE(from, from, i, i, i, i);                                       \
		ret[0] -= one > key[0];                                                            \
		ret[1] -= one > key[1];                                                            \
	} while (0)

static HOT void ranks(const lanes *key, lanes *ret)
{
	ret[0] = ret[1] = (lanes){0};
	RANK(key[0], 0);
	RANK(key[0], 1);
	RANK(key[0], 2);
	RANK(key[0], 3);
	RANK(key[1], 0);
	RANK(key[1], 1);
	RANK(key[1], 2);
	RANK(key[1], 3);
}

#include "control/pshift/alloc-eight-body.h"

const struct pshift_eight pshift_eight_plain = {split, stage, label};

const struct pshift_eight *pshift_eight_best(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return &pshift_eight_avx2;
#endif
	return &pshift_eight_plain;
}
