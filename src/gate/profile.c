/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/profile.h"
#include "gate/limits.h"

#ifdef __SSE2__
#include <emmintrin.h>
#define PROFILE_PAIRS 1 /* two buckets at a time */
#else
#define PROFILE_PAIRS 0
#endif

#define PROFILE_SLOW    (UINT64_C(1) << 31) /* rates: times a span of 32 bits it fits in 63 */
#define PROFILE_EXACT   (UINT64_C(1) << 16) /* least rate that may be rounded, by half of one */
#define PROFILE_MOST    (INT64_C(1) << 30) /* units: the greatest size and cost, 32 bits with a sign */
#define PROFILE_BELOW_0 (UINT64_C(1) << 63) /* the sign of a number */
#define PROFILE_BITS    19                  /* BUCKET_UNIT is an odd number times 2 to this */

/* Return true if profile_wait_alike and profile_pay_alike can be used. */
static bool profile_is_alike(const struct profile *p)
{
	for (unsigned i = 0; i < p->n; i++)
		if (p->unit[i] != p->unit[0] || p->rate[i] >= PROFILE_SLOW)
			return false;
	return PROFILE_PAIRS && p->narrow;
}

/* Return the greatest size and cost of narrow buckets with this shift. */
static int64_t profile_most(unsigned shift)
{
	int64_t most = BUCKET_NARROW << shift;

	return most < PROFILE_MOST ? most : PROFILE_MOST;
}

/* Return a rate in 1/1024 · 2^shift units/s, rounded. */
static uint64_t profile_rate(const struct bucket *b, unsigned shift)
{
	return (b->rate + ((UINT64_C(1) << shift) >> 1)) >> shift;
}

/* Return the least shift with which the buckets are narrow and alike; 0 if there is none that keeps the rates. */
static unsigned profile_shift(const struct profile *p)
{
	unsigned shift = 0;

	for (unsigned i = 0; i < p->n; i++)
		while (p->b[i].size > profile_most(shift) ||
			profile_rate(&p->b[i], shift) >= PROFILE_SLOW)
			if (++shift > PROFILE_BITS)
				return 0;
	for (unsigned i = 0; i < p->n; i++)
		if (profile_rate(&p->b[i], shift) < PROFILE_EXACT)
			return 0;
	return shift;
}

/* Return true if the bucket is narrow at some level. */
static bool profile_can_be_narrow(const struct profile *p, const struct bucket *b)
{
	struct bucket full = *b;

	full.lack = 0;
	return p->shift || bucket_narrow(&full);
}

/* Return the largest cost in range; of buckets of one unit: that ever fits, too. */
static uint32_t profile_largest(const struct profile *p)
{
	int64_t most = profile_most(p->shift), size = most;

	for (unsigned i = 0; i < p->n; i++) {
		if (p->b[i].unit != p->b[0].unit)
			return (uint32_t)most;
		size = p->b[i].size < size ? p->b[i].size : size;
	}
	return (uint32_t)size;
}

void profile_round(struct profile *p)
{
	const bucket_parts one = (bucket_parts)1 << (p->shift = (uint8_t)profile_shift(p));

	p->most = profile_largest(p);
	for (unsigned i = 0; i < p->n; i++) {
		struct bucket *b = &p->b[i];

		b->rate = profile_rate(b, p->shift) << p->shift & BUCKET_RATE_BITS;
		b->lack = (b->lack + one - 1) & -one;
	}
	p->wide = p->n > PROFILE_FEW;
	for (unsigned i = 0; i < p->n; i++)
		p->wide |= p->b[i].ops != WEIR_OPS_ALL || !profile_can_be_narrow(p, &p->b[i]);
}

/* Return true if the bucket can be narrow now. */
static bool profile_is_narrow(const struct profile *p, const struct bucket *b)
{
	return p->shift ? b->lack >= 0 && b->lack <= 3 * bucket_units(profile_most(p->shift))
			: bucket_narrow(b);
}

void profile_changed(struct profile *p)
{
	p->narrow = !p->wide;
	for (unsigned i = 0; i < p->n && p->narrow; i++) {
		const struct bucket *b = &p->b[i];

		p->narrow = profile_is_narrow(p, b);
		p->lack[i] = (int64_t)(b->lack >> p->shift);
		p->unit[i] = b->unit;
		p->rate[i] = b->rate >> p->shift;
		p->size[i] = (uint32_t)b->size;
		p->per_rate[i] = 1 / (float)p->rate[i];
	}
	p->alike = p->narrow && profile_is_alike(p);
}

bucket_parts profile_lack(const struct profile *p, unsigned i)
{
	return p->narrow ? (bucket_parts)p->lack[i] << p->shift : p->b[i].lack;
}

/* Copy the levels to the buckets. */
static void profile_settle(struct profile *p)
{
	for (unsigned i = 0; i < p->n; i++)
		p->b[i].lack = profile_lack(p, i);
}

/* Return units in 2^shift parts. */
POOL_HOT int64_t profile_parts(const struct profile *p, int64_t units)
{
	return units * (int64_t)(BUCKET_UNIT >> PROFILE_BITS) << (PROFILE_BITS - p->shift);
}

/* Return the number of parts that bucket i lacks for a cost, of at most its size; none if that is not positive. */
POOL_HOT int64_t profile_missing(const struct profile *p, unsigned i, int64_t cost)
{
	int64_t slack = p->size[i] - cost;

	return p->lack[i] - profile_parts(p, slack < 0 ? 0 : slack);
}

POOL_HOT uint64_t profile_wait_of(const struct profile *p, unsigned i, int64_t missing)
{
	return ((uint64_t)(missing < 0 ? 0 : missing) + p->rate[i] - 1) / p->rate[i];
}

/* Return how long after the stamp all buckets admit r, by a division for each, since it is not clear which is
 * last. */
static weir_time profile_wait_each(const struct profile *p, const struct weir_req *r)
{
	uint64_t wait = 0;

	for (unsigned i = 0; i < p->n; i++) {
		uint64_t t =
			profile_wait_of(p, i, profile_missing(p, i, limits_cost(r, p->unit[i])));

		wait = t > wait ? t : wait;
	}
	return (weir_time)wait;
}

#define PROFILE_NEAR 1e-6F /* relative: four roundings of a float are a quarter of that */

/* Return how long after the stamp all buckets admit r, or -1 if a cost is out of range or above a size. The last
 * bucket to admit is found without a division or a branch, which would be mispredicted. */
static weir_time profile_wait_narrow(struct profile *p, const struct weir_req *r)
{
	float last = 0, second = 0;
	int64_t missing = 0;
	uint64_t costs = 0;
	unsigned which = 0;

	for (unsigned i = 0; i < p->n; i++) {
		int64_t cost = limits_cost(r, p->unit[i]), m = profile_missing(p, i, cost);
		float t = (float)m * p->per_rate[i], less = t < last ? t : last;

		costs |= (uint64_t)(cost - 1) | ((uint64_t)(p->size[i] - cost) & PROFILE_BELOW_0);
		second = less > second ? less : second;
		which = t > last ? i : which;
		missing = t > last ? m : missing;
		last = t > last ? t : last;
	}
	if (costs >= p->most)
		return -1;
	p->last = (uint8_t)which;
	if (second > last * (1 - PROFILE_NEAR))
		return profile_wait_each(p, r);
	return (weir_time)profile_wait_of(p, which, missing);
}

#if PROFILE_PAIRS
/* Load 16 aligned bytes of any type. */
POOL_HOT __m128i profile_load(const void *from)
{
	return _mm_load_si128(from);
}

/* profile_parts for two numbers, each less than 2^32. */
POOL_HOT __m128i profile_parts_two(const struct profile *p, __m128i units)
{
	_Static_assert(BUCKET_UNIT == UINT64_C(1953125) << PROFILE_BITS, "5^9 · 2^19");
	return _mm_sll_epi64(_mm_mul_epu32(units, _mm_set1_epi64x(1953125)),
		_mm_cvtsi32_si128(PROFILE_BITS - p->shift));
}

/* Return the parts that two buckets hold beyond what they need, `wait` after the stamp; `slack` is the most that
 * they may lack. */
POOL_HOT __m128i profile_over(const struct profile *p, unsigned first, __m128i wait, __m128i slack)
{
	__m128i more = _mm_mul_epu32(profile_load(&p->rate[first]), wait);

	return _mm_sub_epi64(
		_mm_add_epi64(more, profile_parts_two(p, slack)), profile_load(&p->lack[first]));
}

/* profile_wait_narrow for buckets that are alike, if the bucket that was the last to admit a request is so again:
 * when that one does, all do. Return -1 if it is not, or the wait exceeds 32 bits. */
POOL_HOT weir_time profile_wait_alike(const struct profile *p, int64_t cost)
{
	const __m128i zero = _mm_setzero_si128();
	uint64_t wait = profile_wait_of(p, p->last, profile_missing(p, p->last, cost));
	__m128i time = _mm_set1_epi64x((int64_t)wait);
	__m128i slack = _mm_sub_epi32(profile_load(p->size), _mm_set1_epi32((int)cost));

	slack = _mm_and_si128(slack, _mm_cmpgt_epi32(slack, zero));
	__m128i over = _mm_or_si128(profile_over(p, 0, time, _mm_unpacklo_epi32(slack, zero)),
		profile_over(p, 2, time, _mm_unpackhi_epi32(slack, zero)));

	return _mm_movemask_pd(_mm_castsi128_pd(over)) || wait > UINT32_MAX ? -1 : (weir_time)wait;
}

/* Fill two buckets for `span` and take parts out of them. */
POOL_HOT void profile_pay_two(int64_t *lack, const uint64_t *rate, __m128i span, __m128i parts)
{
	__m128i more = _mm_mul_epu32(profile_load(rate), span);
	__m128i left = _mm_sub_epi64(profile_load(lack), more);
	__m128i below = _mm_shuffle_epi32(_mm_srai_epi32(left, 31), _MM_SHUFFLE(3, 3, 1, 1));

	void *to = lack;

	_mm_store_si128(to, _mm_add_epi64(_mm_andnot_si128(below, left), parts));
}

/* Fill buckets that are alike for `span` < 2^32 and charge r. */
POOL_HOT void profile_pay_alike(struct profile *p, const struct weir_req *r, weir_time span)
{
	static const _Alignas(16) int64_t used[PROFILE_FEW + 1][PROFILE_FEW] = {
		{0}, {-1}, {-1, -1}, {-1, -1, -1}, {-1, -1, -1, -1}};
	const int64_t *mask = used[p->n];
	__m128i parts = profile_parts_two(p, _mm_set1_epi64x(limits_cost(r, p->unit[0])));
	__m128i time = _mm_set1_epi64x(span);

	profile_pay_two(
		&p->lack[0], &p->rate[0], time, _mm_and_si128(parts, profile_load(&mask[0])));
	profile_pay_two(
		&p->lack[2], &p->rate[2], time, _mm_and_si128(parts, profile_load(&mask[2])));
}
#else
POOL_HOT weir_time profile_wait_alike(const struct profile *p, int64_t cost)
{
	return -1;
}
POOL_HOT void profile_pay_alike(struct profile *p, const struct weir_req *r, weir_time span)
{
}
#endif

/* Computing when a bucket admits takes a division: skip buckets that admit by then anyway. */
static weir_time profile_wait(const struct profile *p, const struct weir_req *r)
{
	weir_time wait = r->submitted > p->stamp ? r->submitted - p->stamp : 0;

	for (const struct bucket *b = p->b, *end = b + p->n; b < end; b++) {
		int64_t cost = limits_cost(r, b->unit);

		if (!limits_counts(b, r))
			continue;
		if (cost > b->size)
			return WEIR_NEVER;
		if (!bucket_admits_after(b, cost, wait))
			wait = bucket_wait(b, cost);
	}
	return wait;
}

/* The same for any profile; sets p->head. */
static __attribute__((noinline)) weir_time profile_wait_any(
	struct profile *p, const struct weir_req *r)
{
	weir_time wait = p->narrow ? profile_wait_narrow(p, r) : -1;

	p->head = wait >= 0;
	if (!p->head) {
		profile_settle(p);
		wait = profile_wait(p, r);
	}
	return wait;
}

void profile_look(struct profile *p, const struct weir_req *r)
{
	int64_t cost = limits_cost(r, p->unit[0]);
	weir_time wait = -1;

	if (p->alike && (uint64_t)(cost - 1) < p->most)
		wait = profile_wait_alike(p, cost);
	p->head = true;
	if (wait < 0)
		wait = profile_wait_any(p, r);
	wait = limits_later(p->stamp, wait);
	p->fits = wait > r->submitted ? wait : r->submitted;
}

void profile_charge(struct profile *p, const struct weir_req *r)
{
	weir_time span = p->fits - p->stamp;

	if (!p->head) { /* the buckets have the levels since the look */
		if (p->fits > p->stamp)
			limits_fill_some(p->b, p->n, &p->stamp, p->fits);
		limits_take(p->b, p->n, r);
		profile_changed(p);
		return;
	}
	p->stamp = p->fits;
	if (p->alike && span <= UINT32_MAX) {
		profile_pay_alike(p, r, span);
		return;
	}
	for (unsigned i = 0; i < p->n; i++)
		p->lack[i] = bucket_filled_narrow(p->lack[i], p->rate[i], span) +
			     profile_parts(p, limits_cost(r, p->unit[i]));
}

void profile_fill(struct profile *p, weir_time now)
{
	profile_settle(p);
	if (now > p->stamp)
		limits_fill_some(p->b, p->n, &p->stamp, now);
	profile_changed(p);
}
