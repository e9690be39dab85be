/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist: a log-linear histogram of 64-bit values.
 *
 * LAW     Values below 128 have a bucket each; above, every octave is cut into 64 equal buckets,
 *         so a value read back (a bucket's middle) is within 1/128 < 1 % of every value recorded.
 * COST    record: O(1), no branch. Percentile, merge: O(buckets). 32 octaves of 32-bit counts.
 * LIMITS  Values over WEIR_HIST_MAX (550 s in ns) are counted in the last bucket; `max` stays
 *         exact, and a percentile that falls among them reads as `max`. A bucket stops counting at
 *         2³² − 1, `sum` at 2⁶⁴ − 1.
 */
#ifndef WEIR_HIST_H
#define WEIR_HIST_H

#include <weir/clock.h>

WEIR_BEGIN_DECLS

#define WEIR_HIST_OCTAVES 32
#define WEIR_HIST_BUCKETS (128 + 64 * (WEIR_HIST_OCTAVES))
#define WEIR_HIST_MAX     ((UINT64_C(128) << WEIR_HIST_OCTAVES) - 1)

struct weir_hist {
	uint64_t count; /* values recorded */
	uint64_t sum;   /* of the values */
	uint64_t min;   /* UINT64_MAX while empty */
	uint64_t max;   /* 0 while empty */
	uint32_t bucket[WEIR_HIST_BUCKETS];
};

/* Call this first: a zeroed struct is not an empty one (`min`). */
WEIR_API void weir_hist_clear(struct weir_hist *h);
WEIR_API void weir_hist_record(struct weir_hist *h, uint64_t value);
/* Prefetch the memory that recording this value touches, for a caller that records into more
 * histograms than fit a cache and knows the value some time ahead. */
WEIR_API void weir_hist_fetch(const struct weir_hist *h, uint64_t value);
/* Add the values of `from` to `into`. */
WEIR_API void weir_hist_merge(struct weir_hist *into, const struct weir_hist *from);

/* Return the smallest value v such that at least `percent` (0…100, e.g. 99.99) of the values are ≤
 * v, as the bucket's middle, clamped to [min, max]; 0 while empty. */
WEIR_API uint64_t weir_hist_percentile(const struct weir_hist *h, double percent);
WEIR_API double weir_hist_mean(const struct weir_hist *h); /* sum / count, exact; 0 while empty */

WEIR_END_DECLS

#endif
