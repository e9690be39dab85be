/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own, around ctl/capacity.
 * LAW     Over a second, in which the tokens were K, used U of them, and the server was full for a
 *         part φ of the time; n requests were served in those periods of it that were full for 60 %
 *         or more, b long together, f of it full:
 *           U ≥ 0.95 K and φ < 0.5        C ← 1.01 C      all is used, and there is room
 *           not full for 10 s, jobs wait  C ← 1.05 C      what it can do is a guess
 *           b ≥ half a second             C ← C + (1 − e^(−1 s/τ))·(n/(b − 0.3 (b − f)) − C)
 *         and what ctl/capacity finds besides.
 * SYMBOLS C estimate, per second; τ 3 s.
 * METHOD  Counters, looked at once a second. O(jobs) a period.
 * DIFFERS From ctl/capacity alone, which learns while the window is full: tokens that are too few keep
 *         it from being so, and it would never be known that there is more. And which leaves an
 *         estimate between n/b and n/f alone: tokens empty a slot now and then in a server that is
 *         hardly less busy for it, so that the two are far apart. What a free slot costs is
 *         taken as 30 % of its time. A period in which the server stood idle does not count.
 * EXAMPLE A server of 1000, taken for 700: 5 % more each second, 985 after seven of them; soon it is
 *         full, and n/b is 1000.
 */
#include "ctl/adaptbf-impl.h"
#include <math.h>

#define SETTLE       (3 * WEIR_SEC)  /* a wrong guess is halved in 2 s */
#define PROBE        WEIR_SEC        /* long enough that a fast moment is no reason to grow */
#define GROWTH       1.01            /* slow: by chance it comes, and must be undone */
#define GROWTH_GUESS 1.05            /* 30 % in 6 s */
#define DOUBT        (10 * WEIR_SEC) /* what was not seen for so long is not known */
#define USED         0.95            /* of the tokens: all, but for the last fractions */
#define FULL         0.5             /* of the time: below that the server was not the limit */
#define ROOM         0.3             /* of the time with a free slot was idle */
#define BUSY         0.6             /* of a period: it was */

void adaptbf_learn_init(struct adaptbf *a)
{
	struct capacity_config config = {.settle = SETTLE};

	capacity_init(&a->capacity, &config);
	a->capacity.rate[0] = a->config.rate;
}

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
	double *rate = &a->capacity.rate[0], span = (double)(now - p->since);
	bool all = (double)p->used >= USED * (double)p->tokens;
	bool guess = now - p->full_at > DOUBT;

	if ((double)p->full < FULL * span && (all || (p->waited && guess)))
		*rate *= guess ? GROWTH_GUESS : GROWTH;
	if (2 * p->busy >= now - p->since && p->served > 0) {
		double room = ROOM * (double)(p->busy - p->busy_full);
		double did = (double)p->served * WEIR_SEC / ((double)p->busy - room);

		*rate += (1 - exp(-span / SETTLE)) * (did - *rate);
		p->full_at = now;
	}
}

static void begin(struct adaptbf_probe *p, weir_time now)
{
	*p = (struct adaptbf_probe){.since = now,
		.waited = true,
		.full_at = p->full_at,
		.last = p->last,
		.last_at = p->last_at};
}

static void add(struct adaptbf *a, weir_time now, const struct capacity_totals *totals)
{
	struct adaptbf_probe *p = &a->probe;
	weir_time span = now - p->last_at, full = totals->full - p->last.full;
	bool waits;

	p->tokens += a->state.tokens;
	p->used += used(a, &waits);
	p->waited = p->waited && waits;
	p->full += full;
	if ((double)full >= BUSY * (double)span) {
		p->busy += span;
		p->busy_full += full < span ? full : span;
		p->served += totals->requests - p->last.requests;
	}
}

void adaptbf_learn(
	struct adaptbf *a, weir_time now, const struct adaptbf_driver_ops *ops, void *driver)
{
	struct adaptbf_probe *p = &a->probe;
	struct capacity_totals totals;

	if (!a->config.learn || !ops->totals || ops->totals(driver, now, &totals))
		return;
	capacity_step(&a->capacity, now, &totals);
	if (a->first) {
		p->full_at = now - DOUBT - 1; /* a guess */
		begin(p, now);
	} else {
		add(a, now, &totals);
		if (now - p->since >= PROBE) {
			judge(a, now);
			begin(p, now);
		}
	}
	p->last = totals;
	p->last_at = now;
	a->state.rate = a->capacity.rate[0];
}
