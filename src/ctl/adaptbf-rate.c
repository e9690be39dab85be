/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own.
 * LAW     Over a second, in which the tokens were K, used U of them, and the server was full for a
 *         part φ of the time, f long, and served n requests meanwhile:
 *           C ← C + (1 − e^(−f/τ))·(n/f − C)              what it does while it is full, it can do
 *           U ≥ 0.95 K and φ < 0.5        C ← 1.01 C      all is used, and there is room
 *           not full for 10 s, jobs wait  C ← 1.05 C      what it can do is a guess
 * SYMBOLS C estimate, per second; τ 3 s of being full.
 * METHOD  Counters, looked at once a second. O(jobs) a period.
 * DIFFERS From ctl/capacity, which learns from intervals that are full as a whole: tokens empty a slot
 *         now and then, and where they are too few the server would never be full, and it would
 *         never be known that there is more.
 * EXAMPLE A server of 1000, taken for 700: 5 % more each second, 985 after seven of them; soon it is
 *         full now and then, and n/f is 1000.
 */
#include "ctl/adaptbf-impl.h"
#include <math.h>

#define SETTLE       (3 * WEIR_SEC)  /* of being full: a wrong guess is halved in 2 s of it */
#define PROBE        WEIR_SEC        /* long enough that a fast moment is no reason to grow */
#define GROWTH       1.01            /* slow: by chance it comes, and must be undone */
#define GROWTH_GUESS 1.05            /* 30 % in 6 s */
#define DOUBT        (10 * WEIR_SEC) /* what was not seen for so long is not known */
#define USED         0.95            /* of the tokens: all, but for the last fractions */
#define FULL         0.5             /* of the time: below that the server was not the limit */
#define SEEN         0.1             /* of the time: enough to tell what it can do */

bool adaptbf_waits(const struct adaptbf_slot *s)
{
	if (s->queued == ADAPTBF_UNKNOWN)
		return s->tokens > 0 && (double)s->serves >= USED * (double)s->tokens;
	return s->queued > 0 && (int64_t)s->serves + s->queued >= s->tokens;
}

/* Of the last period: tokens that were used (what passed without a rule says nothing of them), and
 * whether somebody waits for tokens, and not for limits of its own. */
static int64_t used(const struct adaptbf *a, bool *ret_waits)
{
	int64_t sum = 0;

	*ret_waits = false;
	for (uint32_t i = 0; i < a->n_slots; i++) {
		const struct adaptbf_slot *s = &a->slots[i];

		if (s->step <= a->state.steps)
			continue;
		sum += (int64_t)s->serves < s->tokens ? (int64_t)s->serves : s->tokens;
		*ret_waits |= s->most <= 0 && adaptbf_waits(s);
	}
	return sum;
}

static void judge(struct adaptbf *a, weir_time now)
{
	struct adaptbf_probe *p = &a->probe;
	double *rate = &a->state.rate, span = (double)(now - p->since);
	bool all = (double)p->used >= USED * (double)p->tokens;
	bool guess = now - p->full_at > DOUBT;

	if ((double)p->full < FULL * span && (all || (p->waited && guess)))
		*rate *= guess ? GROWTH_GUESS : GROWTH;
	if (p->full > 0 && p->served > 0) {
		double full = (double)p->full, did = (double)p->served * WEIR_SEC / full;

		*rate += (1 - exp(-full / SETTLE)) * (did - *rate);
	}
	if ((double)p->full >= SEEN * span)
		p->full_at = now;
}

static void begin(struct adaptbf_probe *p, weir_time now)
{
	*p = (struct adaptbf_probe){
		.since = now, .waited = true, .full_at = p->full_at, .last = p->last};
}

static void add(struct adaptbf *a, const struct adaptbf_totals *totals)
{
	struct adaptbf_probe *p = &a->probe;
	bool waits;

	p->tokens += a->state.tokens;
	p->used += used(a, &waits);
	p->waited = p->waited && waits;
	p->full += totals->full - p->last.full;
	p->served += totals->served - p->last.served;
}

void adaptbf_learn(
	struct adaptbf *a, weir_time now, const struct adaptbf_driver_ops *ops, void *driver)
{
	struct adaptbf_probe *p = &a->probe;
	struct adaptbf_totals totals;

	if (!a->config.learn || !ops->totals || ops->totals(driver, now, &totals))
		return;
	if (a->first) {
		p->full_at = now - DOUBT - 1; /* a guess */
		begin(p, now);
	} else {
		add(a, &totals);
		if (now - p->since >= PROBE) {
			judge(a, now);
			begin(p, now);
		}
	}
	p->last = totals;
}
