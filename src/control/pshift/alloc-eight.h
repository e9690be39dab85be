/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc-eight: rows of up to 64 entries with small numbers, as most buckets are, in vectors of eight; nobody
 * but pshift includes it. Each function works on rows one after the other and stops at the first that
 * is not of this kind, or so near the end that vectors would pass it; the caller does that one.
 * Tokens are the same as those of the code for any row, bit by bit, and with each form.
 */
#ifndef WEIR_CONTROL_PSHIFT_ALLOC_EIGHT_H
#define WEIR_CONTROL_PSHIFT_ALLOC_EIGHT_H

#include "control/pshift/alloc-impl.h"

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
	/* Of each server: tokens that it could take, 0 where it is not at the level; and that it could
	 * pass on to the level, which is added to. */
	const int64_t *room;
	int64_t *pass;
	int64_t spare;        /* demand at the level, of all buckets */
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
	/* Tokens in proportion to demand of the buckets b … end − 1, and what they add to gap. Tokens
	 * of a bucket may be written to before it is its turn. Returns the bucket at which it stopped. */
	size_t (*split)(const struct pshift_flow *f, const int64_t *want, int64_t *gap, size_t b,
		size_t end);
	/* Rows x … end − 1, of those given, or of all. Returns the row at which it stopped. */
	size_t (*stage)(struct pshift_stage *s, size_t x, size_t end);
	size_t (*label)(struct pshift_label *l, size_t x, size_t end);
};

#define PSHIFT_EIGHT_LONG 64 /* entries that a row may have */
/* The sum of a row that is split is less, so that an estimate in floats is off by less than 1; the
 * demand of an entry that is shifted is, so that eight of it fit in 31 bits (in longer rows an eighth of that
 * is the most); and what a server may give
 * or take is at most this, which fits in 32 with its sign. */
#define PSHIFT_EIGHT_SUM ((int64_t)1 << 20)
#define PSHIFT_EIGHT_ONE ((int64_t)1 << 27)
#define PSHIFT_EIGHT_MAY ((int64_t)1 << 30)

extern const struct pshift_eight pshift_eight_plain; /* for any processor */
#if defined(__x86_64__)
extern const struct pshift_eight pshift_eight_avx2; /* for those that have it */
#endif
/* The best that this processor can do. */
const struct pshift_eight *pshift_eight_best(void);

#endif
