/* SPDX-License-Identifier: BSD-3-Clause */
/* A profile against its buckets one by one, each by the law of bucket.h: when a request fits,
 * and its cost; with one unit and with several, few and many, slow and fast. */
#include "gate/limits.h"
#include "gate/profile.h"
#include "law.h"
#include <stdlib.h>

#define MOST 6 /* buckets: more than PROFILE_FEW */

struct plain { /* the buckets of the profile, one by one */
	struct bucket b[MOST];
	uint32_t n;
	weir_time stamp;
};

/* A bucket of bytes or device time. */
static struct weir_bucket_spec large_bucket(unsigned unit)
{
	return (struct weir_bucket_spec){.kind = WEIR_PROFILE,
		.unit = unit,
		.rate = law_log(1e5, 1e10),
		.size = law_log(1e4, law_chance(0.02) ? 1e11 : 1e9)};
}

static struct weir_bucket_spec any_bucket(unsigned unit)
{
	bool wide = law_chance(0.05); /* more than a narrow bucket can hold */

	return (struct weir_bucket_spec){.kind = WEIR_PROFILE,
		.unit = unit,
		.rate = law_log(wide ? 0.001 : 0.07, law_chance(0.2) ? 1e9 : 1e4),
		.size = law_log(1, wide ? 1e9 : 2e6)};
}

/* Make a profile of several units, or of one; large: of bytes. */
static struct profile *any_profile(struct plain *plain, unsigned units, bool large)
{
	uint32_t n = (uint32_t)law_between(1, law_chance(0.1) ? MOST : PROFILE_FEW);
	size_t size = profile_lines(n) * POOL_LINE;
	struct profile *p = aligned_alloc(POOL_LINE, size);
	bool same = law_chance(0.1); /* then all become full together */

	CHECK(p != NULL);
	memset(p, 0, size);
	for (uint32_t i = 0; i < n; i++) {
		struct weir_bucket_spec spec = large ? large_bucket(WEIR_UNIT_BYTES)
						     : any_bucket((unsigned)law_below(units));

		bucket_init(&p->b[i], &spec);
		if (same) {
			p->b[i] = p->b[0];
			p->b[i].rate += law_below(3); /* or nearly together */
		}
	}
	p->n = (uint8_t)n;
	profile_round(p);
	memcpy(plain->b, p->b, n * sizeof *p->b);
	plain->n = n;
	p->stamp = plain->stamp = law_chance(0.5) ? 0 : INT64_C(3155760000) * WEIR_SEC;
	profile_changed(p);
	return p;
}

static struct weir_req any_request(weir_time now, bool large)
{
	struct weir_req r = {.submitted = now};

	r.requests = (uint32_t)law_between(1, 20);
	r.bytes = (uint32_t)law_log(1, law_chance(0.05) ? 4e9 : large ? 1e9 : 2e6);
	r.time = law_chance(0.05) ? 0 : (uint32_t)law_log(1, 2e6);
	return r;
}

/* Return the first time, not before its submit, at which all buckets admit it, or WEIR_NEVER if it is larger than one. */
static weir_time fits(const struct plain *plain, const struct weir_req *r)
{
	weir_time when = plain->stamp > r->submitted ? plain->stamp : r->submitted;

	for (uint32_t i = 0; i < plain->n; i++) {
		int64_t cost = limits_cost(r, plain->b[i].unit);
		weir_time wait = bucket_wait(&plain->b[i], cost);

		if (cost > plain->b[i].size || wait >= WEIR_NEVER - plain->stamp)
			return WEIR_NEVER;
		when = plain->stamp + wait > when ? plain->stamp + wait : when;
	}
	return when;
}

static void charge(struct plain *plain, const struct weir_req *r, weir_time when)
{
	for (uint32_t i = 0; i < plain->n; i++) {
		bucket_fill(&plain->b[i], when - plain->stamp);
		bucket_take(&plain->b[i], limits_cost(r, plain->b[i].unit));
	}
	plain->stamp = when;
}

static void check_levels(struct profile *p, const struct plain *plain)
{
	profile_fill(
		p, plain->stamp - (weir_time)law_below(3)); /* an earlier time changes nothing */
	CHECK_INT(p->stamp, plain->stamp);
	for (uint32_t i = 0; i < plain->n; i++)
		CHECK(p->b[i].lack == plain->b[i].lack);
}

/* Submit requests at random times, of which some pass by the profile. Return how many went the short way, and add to *ret_fit how
 * many fit at some time. */
static uint64_t run_requests(unsigned units, bool large, uint64_t *ret_fit)
{
	struct plain plain;
	struct profile *p = any_profile(&plain, units, large);
	double span = law_log(1, 1e11);
	weir_time now = plain.stamp;
	uint64_t alike = 0;

	for (unsigned k = 0; k < 300; k++) {
		struct weir_req r = any_request(now, large);
		weir_time when = fits(&plain, &r);

		profile_look(p, &r);
		CHECK_INT(p->fits, when);
		alike += p->alike && p->head;
		*ret_fit += when < WEIR_NEVER;
		law_operations++;
		if (when - now < 1000 * WEIR_SEC && law_chance(0.8)) {
			charge(&plain, &r, when);
			profile_charge(p, &r);
			now = when > now ? when : now;
		}
		now += (weir_time)law_log(1, span);
		if (law_chance(0.05))
			check_levels(p, &plain);
		if (law_chance(0.05) && now > plain.stamp) { /* a knob fills them up to now */
			for (uint32_t i = 0; i < plain.n; i++)
				bucket_fill(&plain.b[i], now - plain.stamp);
			plain.stamp = now;
			profile_fill(p, now);
			check_levels(p, &plain);
		}
	}
	check_levels(p, &plain);
	free(p);
	return alike;
}

static void as_its_buckets_say(void)
{
	uint64_t alike = 0, fit = 0;

	for (unsigned i = 0; i < 2000; i++)
		alike += run_requests(i % 2 ? 1 : WEIR_UNITS, false, &fit);
#ifdef __SSE2__
	CHECK(alike > fit / 2);
#else
	CHECK_INT(alike, 0);
#endif
}

/* Buckets of bytes and device time go the short way, too, unless one is too large or too slow for it. */
static void large_buckets(void)
{
	uint64_t alike = 0, fit = 0;

	for (unsigned i = 0; i < 1000; i++)
		alike += run_requests(1, true, &fit);
#ifdef __SSE2__
	CHECK(alike > fit / 5 * 4);
#endif
}

/* Two buckets admit a request after 10 s, the second 98 ns later: closer than a float can
 * resolve. */
static void nearly_last_together(void)
{
	for (unsigned first = 0; first < 2; first++) {
		const struct weir_bucket_spec specs[] = {
			{.kind = WEIR_PROFILE, .unit = WEIR_UNIT_BYTES, .rate = 1e5, .size = 1e6},
			{.kind = WEIR_PROFILE,
				.unit = WEIR_UNIT_TIME,
				.rate = 1e5 - 1.0 / 1024,
				.size = 1e6}};
		struct weir_req r = {.requests = 1, .bytes = 1000000, .time = 1000000};
		struct profile *p = aligned_alloc(POOL_LINE, profile_lines(2) * POOL_LINE);
		struct plain plain = {.n = 2};

		CHECK(p != NULL);
		memset(p, 0, profile_lines(2) * POOL_LINE);
		p->n = 2;
		for (unsigned i = 0; i < 2; i++) {
			bucket_init(&p->b[i], &specs[i ^ first]);
			plain.b[i] = p->b[i];
		}
		profile_changed(p);
		profile_look(p, &r);
		profile_charge(p, &r);
		charge(&plain, &r, 0);
		profile_look(p, &r);
		CHECK_INT(p->fits, fits(&plain, &r));
		CHECK(p->fits > 10 * WEIR_SEC);
		free(p);
	}
}

int main(int argc, char **argv)
{
	law_start(argc, argv, "profile");
	RUN(as_its_buckets_say);
	RUN(large_buckets);
	RUN(nearly_last_together);
	return law_end(500000);
}
