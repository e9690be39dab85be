/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-eight: rows of up to eight entries with small numbers, as most buckets are, in vectors. Each
 * function works on rows one after the other and stops at the first that is not of this kind, which
 * the caller then does by itself: it gives the same tokens as the code for any row, bit by bit.
 */
#ifndef WEIR_ALG_PSHIFT_EIGHT_H
#define WEIR_ALG_PSHIFT_EIGHT_H

#include "alg/pshift-impl.h"

/* One pass from servers that may give to servers that may take, within buckets. */
struct pshift_stage {
	struct pshift_flow *f;
	int64_t *may;         /* of each server: > 0 may give that many, < 0 may take */
	int64_t moved;        /* tokens */
	int64_t left;         /* at this many it ends */
	const uint32_t *rows; /* these buckets; NULL: all */
	uint32_t *list;       /* NULL, or where buckets are listed of which more could be taken */
	size_t listed;
};

/* What buckets could give to a level, and who would. */
struct pshift_label {
	const struct pshift_flow *f;
	const int64_t *
		room; /* of each server: tokens that it could take, 0 where it is not at the level */
	int64_t *pass; /* of each server: tokens that it could pass on to the level; added to */
	int64_t spare; /* demand at the level, of all buckets */
	const uint32_t *rows; /* as above */
	uint32_t *list;       /* NULL, or where buckets with spare demand at the level are listed */
	size_t listed;
};

/* Before a loop over parts of eight: the compiler must make registers of them. */
#if defined(__clang__)
#define PSHIFT_UNROLL _Pragma("unroll")
#else
#define PSHIFT_UNROLL _Pragma("GCC unroll 8")
#endif

struct pshift_eight {
	/* Tokens in proportion to demand of the buckets b … end − 1, and what they add to gap. Entries
	 * of these are written before it is their turn. Returns the bucket at which it stopped. */
	size_t (*split)(const struct pshift_flow *f, const int64_t *want, int64_t *gap, size_t b,
		size_t end);
	/* Of the rows x … end − 1. Each |may| and |room| is at most PSHIFT_EIGHT_MAY. */
	size_t (*stage)(struct pshift_stage *s, size_t x, size_t end);
	size_t (*label)(struct pshift_label *l, size_t x, size_t end);
};

#define PSHIFT_EIGHT_SUM                                                                           \
	((int64_t)1 << 20) /* of a row that is split: what a float keeps, with a bit \
                                             * to spare */
#define PSHIFT_EIGHT_ONE ((int64_t)1 << 27) /* of an entry's demand, else: eight fit in 31 bits */
#define PSHIFT_EIGHT_MAY ((int64_t)1 << 30)

extern const struct pshift_eight pshift_eight_plain; /* for any processor */
#if defined(__x86_64__)
extern const struct pshift_eight pshift_eight_avx2; /* for those that have it */
#endif
/* The best that this processor can do. */
const struct pshift_eight *pshift_eight_best(void);

#endif
