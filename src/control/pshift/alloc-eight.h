/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc-eight: rows of up to 64 entries with small numbers, as most buckets are, in vectors of
 * eight; internal to pshift. Each function works on rows one after the other and stops at the first
 * row that is not of this kind, or so near the end that vectors would pass it; the caller handles
 * that row. Tokens equal those of the code for any row, bit by bit, and with each vector width.
 */
#pragma once

#include "control/pshift/alloc-impl.h"

/* One pass from servers that may give to servers that may take, within buckets. */
struct pshift_stage {
	struct pshift_flow *f;
	int64_t *may;         /* of each server: > 0 may give that many, < 0 may take */
	int64_t moved;        /* tokens */
	int64_t left;         /* stop when this many were moved */
	const uint32_t *rows; /* these buckets; NULL: all */
	uint32_t *list;       /* NULL, or list of buckets of which more could be taken */
	size_t listed;
};

/* Tokens that buckets could give to a level, and the servers that would give them. */
struct pshift_label {
	const struct pshift_flow *f;
	/* By server: tokens that it could take, 0 if it is not at the level; and tokens that it
	 * could pass on to the level, which are added to. */
	const int64_t *room;
	int64_t *pass;
	int64_t spare;        /* demand at the level, of all buckets */
	const uint32_t *rows; /* as above */
	uint32_t *list;       /* NULL, or list of buckets with spare demand at the level */
	size_t listed;
};

/* Before a loop over parts of eight: force the compiler to keep them in registers. */
#if defined(__clang__)
#define PSHIFT_UNROLL _Pragma("unroll")
#else
#define PSHIFT_UNROLL _Pragma("GCC unroll 8")
#endif

struct pshift_eight {
	/* Split tokens of buckets b … end − 1 in proportion to demand, and add them to gap. Tokens
	 * of a bucket may be written before its turn. Return the bucket at which it stopped. */
	size_t (*split)(const struct pshift_flow *f, const int64_t *want, int64_t *gap, size_t b,
		size_t end);
	/* Work on rows x … end − 1, of those given, or of all. Return the row at which it
	 * stopped. */
	size_t (*stage)(struct pshift_stage *s, size_t x, size_t end);
	size_t (*label)(struct pshift_label *l, size_t x, size_t end);
};

#define PSHIFT_EIGHT_LONG 64 /* most entries of a row */
/* Bound of the sum of a row that is split, so that an estimate in floats is off by less than 1; of
 * the demand of an entry that is shifted, so that eight of them fit in 31 bits (in longer rows an
 * eighth of the bound); and of the tokens that a server may give or take, so that they fit in 32
 * bits with their sign. */
#define PSHIFT_EIGHT_SUM ((int64_t)1 << 20)
#define PSHIFT_EIGHT_ONE ((int64_t)1 << 27)
#define PSHIFT_EIGHT_MAY ((int64_t)1 << 30)

extern const struct pshift_eight pshift_eight_plain; /* for any processor */
#if defined(__x86_64__)
extern const struct pshift_eight pshift_eight_avx2; /* for processors with AVX2 */
#endif
/* Return the fastest variant that this processor can run. */
const struct pshift_eight *pshift_eight_best(void);
