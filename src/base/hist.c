/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hist: a log-linear histogram of 64-bit values.
 *
 * LAW      With e the number of bits of v beyond seven (0 for v < 128), v's bucket is
 *          64·e + ⌊v / 2^e⌋. For e = 0 that is v itself; for e ≥ 1 the quotient is 64 … 127, so
 *          an octave fills the 64 buckets from 64·e + 64 on, right behind the one below.
 *
 * METHOD   Record: one count-leading-zeros, one shift, no branch. A bucket's width is 2^e and its
 *          low end at least 64·2^e, so its middle is within 1/128 of everything in it.
 *
 * EXAMPLE  v = 1000: ten bits, e = 3, bucket 64·3 + 125 = 317, which holds 1000 … 1007; middle 1004.
 */
#include "base/hist-impl.h"
#include <float.h>
#include <math.h>
#include <string.h>

static uint64_t hist_middle(unsigned index)
{
	unsigned e = index < 128 ? 0 : index / 64 - 1;
	uint64_t low = (uint64_t)(index - 64 * e) << e;

	return low + (UINT64_C(1) << e) / 2;
}

void weir_hist_clear(struct weir_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void weir_hist_record(struct weir_hist *h, uint64_t value)
{
	uint32_t *bucket = &h->bucket[hist_index(value)];

	*bucket += *bucket != UINT32_MAX;
	h->count++;
	if (__builtin_add_overflow(h->sum, value, &h->sum))
		h->sum = UINT64_MAX;
	h->min = value < h->min ? value : h->min;
	h->max = value > h->max ? value : h->max;
}

void weir_hist_fetch(const struct weir_hist *h, uint64_t value)
{
	__builtin_prefetch(h, 1);
	__builtin_prefetch(&h->bucket[hist_index(value)], 1);
}

void weir_hist_merge(struct weir_hist *into, const struct weir_hist *from)
{
	for (unsigned i = 0; i < WEIR_HIST_BUCKETS; i++) {
		uint32_t total = into->bucket[i] + from->bucket[i];
		into->bucket[i] = total < from->bucket[i] ? UINT32_MAX : total;
	}
	into->count += from->count;
	if (__builtin_add_overflow(into->sum, from->sum, &into->sum))
		into->sum = UINT64_MAX;
	into->min = from->min < into->min ? from->min : into->min;
	into->max = from->max > into->max ? from->max : into->max;
}

/* Return the rank, from 1, of a percentile. 99.9 % of 1,000 must be 999, although neither 99.9 nor
 * the product is exact in binary: hence the slack, larger than the rounding errors of three
 * operations. */
static uint64_t hist_rank(uint64_t total, double percent)
{
	double x = percent / 100.0 * (double)total;

	x = ceil(x - x * 4 * DBL_EPSILON);
	if (!(x > 1)) /* NaN too */
		return 1;
	return x >= (double)total ? total : (uint64_t)x;
}

uint64_t weir_hist_percentile(const struct weir_hist *h, double percent)
{
	uint64_t total = 0, seen = 0, rank, value;
	unsigned i;

	for (i = 0; i < WEIR_HIST_BUCKETS;
		i++) /* not `count`: a bucket may have stopped counting */
		total += h->bucket[i];
	if (!total)
		return 0;
	rank = hist_rank(total, percent);
	for (i = 0; i < WEIR_HIST_BUCKETS - 1; i++) {
		seen += h->bucket[i];
		if (seen >= rank)
			break;
	}
	if (i == WEIR_HIST_BUCKETS - 1 && h->max > WEIR_HIST_MAX)
		return h->max; /* beyond the scale: the maximum is the only known value */
	value = hist_middle(i);
	return value < h->min ? h->min : value > h->max ? h->max : value;
}

double weir_hist_mean(const struct weir_hist *h)
{
	return h->count ? (double)h->sum / (double)h->count : 0.0;
}
