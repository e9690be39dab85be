/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * borrow: R-tokens of a server without a controller: AdapTBF over its entitlements.
 *
 * LAW     HELD: a bucket that asks for its entitlement gets it, in every period, as with the
 *         controller: its first claim is the open part of its entitlement. Beside these claims
 *         others may borrow the rest: AdapTBF's tokens beyond a bucket's own, in sum no more than
 *         the server's capacity until the period ends beyond the open claims of buckets that ask.
 *         STATIC: there are no periods, and so no claims: AdapTBF sets all tokens.
 * SYMBOLS weight = entitlement, tokens a period; rate = Σ entitlements, or the server's capacity if
 *         that is less (tokens a second): then each bucket has the same part of its own.
 * METHOD  A step every 100 ms; O(buckets). Debts are bounded by the policy's default (lend.h,
 *         DEBT): a server may be STATIC for hours.
 * DIFFERS AdapTBF alone takes from a bucket whatever it did not use in the last 100 ms, and gives
 *         that back gradually. A closed loop sends only as much as it is served: so a bucket that
 *         was once late by a moment would send less, and have less, and end a period below its
 *         reservation.
 */
#include "control/lend/lend.h"
#include "control/pshift/server-impl.h"
#include <errno.h>
#include <math.h>

#define BORROW_PERIOD (100 * WEIR_MS) /* AdapTBF's own */

/* Return its entitlement; STATIC: the policy's, even if that changed since. */
static int64_t entitled(const struct pshift_server *s, const struct pshift_spot *b)
{
	return s->state == LEASE_STATIC ? b->static_r : b->reserved;
}

static double rate_of(const struct pshift_server *s)
{
	double all = 0;

	for (size_t i = 0; i < s->n; i++)
		all += (double)entitled(s, &s->spots[i]);
	all = fmax(all, 1) * ((double)WEIR_SEC / (double)s->length);
	return s->capacity > 0 ? fmin(all, s->capacity) : all;
}

/* Weights are 32 bits. */
static uint32_t weight_of(const struct pshift_server *s, const struct pshift_spot *b)
{
	return (uint32_t)fmin(fmax((double)entitled(s, b), 1), UINT32_MAX);
}

static int64_t jobs(void *driver, weir_time now, struct lend_job *list, size_t max)
{
	struct pshift_server *s = driver;

	if (s->n > max)
		return (int64_t)s->n;
	for (size_t i = 0; i < s->n; i++) {
		const struct pshift_spot *b = &s->spots[i];

		list[i] = (struct lend_job){.id = i + 1,
			.weight = weight_of(s, b),
			.arrived = b->arrived,
			.served = b->served,
			.queued = (int64_t)b->queued};
		if (pshift_limited(b))
			list[i].most =
				fmax((double)b->cap, 1) * ((double)WEIR_SEC / (double)s->length);
	}
	return (int64_t)s->n;
}

/* STATIC: return all R-tokens that it should have. Unused tokens are kept for one more of these
 * periods. */
static int64_t all_of(const struct pshift_spot *b, const struct lend_rule *rule)
{
	int64_t most = 2 * rule->tokens, now_has = b->borrowed + rule->tokens;

	return now_has < most ? now_has : most;
}

/* HELD: return the tokens beyond its own. */
static int64_t beyond_own(
	const struct pshift_server *s, const struct pshift_spot *b, const struct lend_rule *rule)
{
	int64_t own =
		(int64_t)ceil((double)b->reserved * ((double)BORROW_PERIOD / (double)s->length));

	return rule->tokens > own ? rule->tokens - own : 0;
}

/* Return the server's capacity until the next step beyond the claims of buckets that ask. */
static double left_over(
	const struct pshift_server *s, weir_time now, const struct lend_rule *rules, size_t n)
{
	double left = (double)(s->end - now) / (double)WEIR_SEC, open = 0;
	double step = (double)BORROW_PERIOD / (double)WEIR_SEC;

	for (size_t i = 0; i < n; i++) {
		const struct pshift_spot *b = &s->spots[rules[i].id - 1];

		if (rules[i].active && b->claim > b->used)
			open += (double)(b->claim - b->used);
	}
	if (left <= 0 || s->capacity * left <= open)
		return 0;
	return (s->capacity * left - open) * fmin(step / left, 1);
}

static int apply(void *driver, weir_time now, const struct lend_rule *rules, size_t n)
{
	struct pshift_server *s = driver;
	double asked = 0, part;

	for (size_t i = 0; i < n; i++) {
		struct pshift_spot *b = &s->spots[rules[i].id - 1];

		b->borrowed = !rules[i].active           ? 0
			      : s->state == LEASE_STATIC ? all_of(b, &rules[i])
							 : beyond_own(s, b, &rules[i]);
		asked += (double)b->borrowed;
	}
	if (s->state == LEASE_STATIC || asked < 1)
		return 0;
	part = fmin(left_over(s, now, rules, n) / asked, 1);
	for (size_t i = 0; i < n; i++) {
		struct pshift_spot *b = &s->spots[rules[i].id - 1];

		b->borrowed = (int64_t)((double)b->borrowed * part);
	}
	return 0;
}

static const struct lend_driver_ops ops = {.name = "pshift", .jobs = jobs, .apply = apply};

/* Subtract spent tokens, so that they are not granted again. HELD: its own first. STATIC: tokens
 * arrive at a pace, and those that have not yet are still to come. */
static void spend(const struct pshift_server *s, struct pshift_spot *b)
{
	int64_t left = s->state == LEASE_STATIC ? b->borrowed - (b->put - b->r) : b->r;

	b->put = b->r;
	b->borrowed = b->borrowed < left ? b->borrowed : left > 0 ? left : 0;
}

int pshift_borrow_step(struct pshift_server *s, weir_time now)
{
	for (size_t i = 0; i < s->n; i++)
		if (!s->resting[i])
			spend(s, &s->spots[i]);
	if (!s->n || (s->borrow && now - s->borrowed < BORROW_PERIOD))
		return 0;
	if (!s->borrow) {
		struct lend_config c = {
			.period = BORROW_PERIOD, .rate = rate_of(s), .debt = LEND_DEBT};

		if (lend_new(&c, &s->borrow))
			return -ENOMEM;
	}
	s->borrowed = now;
	lend_set_rate(s->borrow, rate_of(s));
	return lend_step(s->borrow, now, &ops, s);
}

void pshift_borrow_end(struct pshift_server *s)
{
	lend_free(s->borrow);
	s->borrow = NULL;
}
