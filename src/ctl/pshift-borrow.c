/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pshift-borrow: R-tokens of a server that no controller tells anything: AdapTBF over its entitlements.
 *
 * A bucket's weight is what it is entitled to in a period, and all of them together are the rate: so who
 * wants all that it is entitled to has that, and what others leave is lent and paid back (alg/adaptbf).
 * The tokens are a first claim, as always; a cap still holds.
 */
#include "ctl/adaptbf.h"
#include "ctl/pshift-server-impl.h"
#include <errno.h>
#include <math.h>

#define BORROW_PERIOD (100 * WEIR_MS) /* AdapTBF's own */

static double rate_of(const struct pshift_server *s)
{
	double all = 0;

	for (size_t i = 0; i < s->n; i++)
		all += (double)s->spots[i].reserved;
	return fmax(all, 1) * ((double)WEIR_SEC / (double)s->length);
}

/* Weights are 32 bits. */
static uint32_t weight_of(const struct pshift_spot *b)
{
	return (uint32_t)fmin(fmax((double)b->reserved, 1), UINT32_MAX);
}

static int64_t jobs(void *driver, weir_time now, struct adaptbf_job *list, size_t max)
{
	struct pshift_server *s = driver;

	if (s->n > max)
		return (int64_t)s->n;
	for (size_t i = 0; i < s->n; i++) {
		const struct pshift_spot *b = &s->spots[i];

		list[i] = (struct adaptbf_job){.id = i + 1,
			.weight = weight_of(b),
			.arrived = b->arrived,
			.served = b->served,
			.queued = (int64_t)b->queued};
		if (pshift_limited(b))
			list[i].most =
				fmax((double)b->cap, 1) * ((double)WEIR_SEC / (double)s->length);
	}
	return (int64_t)s->n;
}

static int apply(void *driver, weir_time now, const struct adaptbf_rule *rules, size_t n)
{
	struct pshift_server *s = driver;

	for (size_t i = 0; i < n; i++) {
		struct pshift_spot *b = &s->spots[rules[i].id - 1];
		int64_t most = 2 * rules[i].tokens, now_has = b->r + rules[i].tokens;

		/* What it did not use is its own for one more of these periods. */
		b->borrowed = !rules[i].active ? 0 : now_has < most ? now_has : most;
	}
	return 0;
}

static const struct adaptbf_driver_ops ops = {.name = "pshift", .jobs = jobs, .apply = apply};

int pshift_borrow_step(struct pshift_server *s, weir_time now)
{
	/* What was spent of them since is not granted again. */
	for (size_t i = 0; i < s->n; i++) {
		struct pshift_spot *b = &s->spots[i];

		b->borrowed = b->borrowed < b->r ? b->borrowed : b->r;
	}
	if (!s->n || (s->borrow && now - s->borrowed < BORROW_PERIOD))
		return 0;
	if (!s->borrow) {
		struct adaptbf_config c = {.period = BORROW_PERIOD, .rate = rate_of(s)};

		if (adaptbf_new(&c, &s->borrow))
			return -ENOMEM;
	}
	s->borrowed = now;
	adaptbf_set_rate(s->borrow, rate_of(s));
	return adaptbf_step(s->borrow, now, &ops, s);
}

void pshift_borrow_end(struct pshift_server *s)
{
	adaptbf_free(s->borrow);
	s->borrow = NULL;
}
