/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/bucket.h"
#include <math.h>

const char *bucket_check(const struct weir_bucket_spec *spec)
{
	if (spec->kind > WEIR_LTOKENS)
		return "no such kind of bucket";
	if (spec->unit > WEIR_UNIT_TIME)
		return "no such unit";
	if (spec->ops & ~WEIR_OPS_ALL)
		return "no such operation";
	if (!(spec->rate >= 0 && spec->rate <= BUCKET_RATE_MAX))
		return "rate must be between 0 and 2.7e11 per second";
	if (spec->rate > 0 && spec->rate < 1.0 / BUCKET_RATE_ONE)
		return "rate must be 0 or at least 1/1024 per second";
	if (!(spec->size >= 1 && spec->size <= BUCKET_SIZE_MAX))
		return "size must be between 1 and 2^52";
	return NULL;
}

void bucket_init(struct bucket *b, const struct weir_bucket_spec *spec)
{
	*b = (struct bucket){
		.size = (int64_t)ceil(spec->size),
		.rate = (uint64_t)llround(spec->rate * (double)BUCKET_RATE_ONE) & BUCKET_RATE_BITS,
		.unit = (unsigned)spec->unit & 3,
		.kind = (unsigned)spec->kind & 3,
		.ops = (spec->ops ? spec->ops : WEIR_OPS_ALL) & WEIR_OPS_ALL,
	};
	/* Tokens that only a controller grants begin at none. */
	if (b->rate == 0 && (b->kind == WEIR_RTOKENS || b->kind == WEIR_LTOKENS))
		b->lack = bucket_units(b->size);
}

void bucket_inherit(struct bucket *b, const struct bucket *old, weir_time late)
{
	bucket_parts lack = bucket_units(b->size) - bucket_level(old) +
			    ((int64_t)b->rate - (int64_t)old->rate) * (bucket_parts)late;

	b->lack = lack < 0 ? 0 : lack;
}

void bucket_grant(struct bucket *b, int64_t units)
{
	b->lack -= bucket_units(units);
}

void bucket_forgive(struct bucket *b)
{
	b->lack = 2 * bucket_units(b->size) + b->lack % (int64_t)BUCKET_UNIT;
	if (b->lack > 2 * bucket_units(b->size))
		b->lack -= (int64_t)BUCKET_UNIT;
}

weir_time bucket_wait_slow(const struct bucket *b, bucket_uparts missing)
{
	if (b->rate == 0)
		return WEIR_NEVER;
	bucket_uparts span = (missing + b->rate - 1) / b->rate;

	return span >= (bucket_uparts)WEIR_NEVER ? WEIR_NEVER : (weir_time)span;
}
