/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own.
 * LAW     C, what the server can do, is learned from what it does while it is full; where tokens keep it from
 *         being full, from giving out more. In a period Δ a job waits if it used up its tokens and has requests
 *         queued (limits aside, its own and above it); the server is idle if it was full for less than half of Δ.
 *           it waits, the server is idle, C is a guess:   C ← C·min(2, e^(Δ/0.45 s))     each period
 *         and over a second, in which it was full for f and served n meanwhile:
 *           a job waited throughout, the server was idle: C ← 1.01 C
 *           C ← C + g·(n/f − C),  g = max(1 − e^(−f/τ), f/(f + F))
 *         A guess grows to twice what was used and asked for at most.
 *         C is a guess until the server has been full, and again when it was not for a second.
 *           K = C·(1 + headroom)                                              tokens a second
 *         Where tokens hold, what a job has and will not use (eq. 7 gives every job part of the surplus) would be
 *         lost, and the server idle for so long. It is let to those that wait and have nothing to spare, or if there are
 *         none to all that have nothing to spare, in proportion to their tokens: the rate of such a rule is α/Δ·(1 + x/Σα), Σ over them, x = Σ max(0, α − e) over all. e
 *         is what a job is expected to use: its demand, or, if it waits, twice what it used and its queue. That
 *         is no loan: it may still use what it has, and the server's window decides then.
 * SYMBOLS C, K per second; τ 3 s of being full; F for how long it has been full since C was a guess; α tokens of a
 *         job.
 * METHOD  Counters. O(jobs) a period.
 * DIFFERS From control/capacity, which learns from intervals that are full as a whole: tokens empty a slot
 *         now and then, and where they are too few the server would never be full, and it would
 *         never be known that there is more.
 * EXAMPLE A server of 1000, taken for 700: 875 after one period, 1094 after two; then it is full, and n/f is 1000.
 */
#include "control/adaptbf/impl.h"
#include <math.h>

#define SETTLE  (3 * WEIR_SEC) /* of being full: a wrong estimate is halved in 2 s of it */
#define PROBE   WEIR_SEC       /* long enough that a fast moment is no reason to grow */
#define GROWTH  1.01           /* slow: by chance it comes, and must be undone */
#define GUESS   0.45           /* s: 25 % in 100 ms, 70,000-fold in 5 s */
#define GUESS_2 2.0            /* in one period at most */
#define DOUBT   (1 * WEIR_SEC) /* what was not seen for so long is not known */
#define USED    0.95           /* of the tokens: all, but for the last fractions */
#define HELD    0.25 /* of the time: longer than one or two requests wait for their tokens by chance */
#define MOST    0.9 /* of the tokens: a server does not serve its headroom */
#define FULL    0.5 /* of the time: below that the server was not the limit */
#define SEEN    0.1 /* of the time: enough to tell what it can do */

bool adaptbf_waits(const struct adaptbf *a, const struct adaptbf_slot *s)
{
	if ((double)s->holds >= HELD * (double)a->config.period)
		return true;
	if (s->queued == ADAPTBF_UNKNOWN)
		return s->tokens > 0 && (double)s->serves >= USED * (double)s->tokens;
	return s->queued > 0 && (double)s->serves + (double)s->queued >= MOST * (double)s->tokens;
}

/* Whether a job that had tokens waits for more, and not for a limit; and how many were used or asked for. */
static bool survey(const struct adaptbf *a, double *ret_asked)
{
	bool waits = false;

	*ret_asked = 0;
	for (uint32_t i = 0; i < a->n_slots; i++) {
		const struct adaptbf_slot *s = &a->slots[i];

		if (s->step <= a->state.steps)
			continue;
		*ret_asked += (double)s->serves + fmax((double)s->queued, 0);
		waits |= s->tokens > 0 && s->most <= 0 && !s->above && adaptbf_waits(a, s);
	}
	return waits;
}

/* Over a second. */
static void judge(struct adaptbf *a, weir_time now)
{
	struct adaptbf_probe *p = &a->probe;
	double *rate = &a->state.rate, span = (double)(now - p->since), full = (double)p->full;

	if (full < FULL * span && p->waited)
		*rate *= GROWTH;
	if (full > 0 && p->served > 0) {
		double gain = 1 - exp(-full / SETTLE);

		if (full >= SEEN * span)
			gain = fmax(gain, full / (full + (double)p->known));
		*rate += gain * ((double)p->served * WEIR_SEC / full - *rate);
		p->known += p->full;
	}
	if (full >= SEEN * span)
		p->full_at = now;
}

static void begin(struct adaptbf_probe *p, weir_time now)
{
	p->since = now;
	p->waited = true;
	p->full = 0;
	p->served = 0;
}

/* One period. */
static void add(struct adaptbf *a, weir_time now, const struct adaptbf_totals *totals)
{
	struct adaptbf_probe *p = &a->probe;
	weir_time full = totals->full - p->last.full, length = now - p->at;
	double seconds = (double)length / WEIR_SEC;
	double asked;
	bool waits = survey(a, &asked), idle = (double)full < FULL * (double)length;

	if (!idle)
		p->full_at = now;
	if (waits && idle && now - p->full_at > DOUBT) {
		double more = a->state.rate * fmin(exp(seconds / GUESS), GUESS_2);

		a->state.rate = fmax(a->state.rate, fmin(more, 2 * asked / seconds));
		p->known = 0;
	}
	p->waited = p->waited && waits;
	p->full += full;
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
		*p = (struct adaptbf_probe){.full_at = now - DOUBT - 1}; /* a guess */
		begin(p, now);
	} else {
		add(a, now, &totals);
		if (now - p->since >= PROBE) {
			judge(a, now);
			begin(p, now);
		}
	}
	p->at = now;
	p->last = totals;
}

double adaptbf_supply(const struct adaptbf *a)
{
	return a->state.rate * (a->config.learn ? 1 + a->config.headroom : 1);
}

/* What a job will not use of its tokens: of one that waits nobody knows, but it hardly uses more than twice as many as
 * before. */
static double spare(const struct adaptbf_slot *s, int64_t tokens)
{
	double use =
		s->waits ? 2.0 * (double)s->serves + fmax((double)s->queued, 0) : (double)s->demand;

	return fmax(0, (double)tokens - use);
}

double adaptbf_boost(struct adaptbf *a, size_t n)
{
	const struct adaptbf_arrays *x = &a->active;
	double spared = 0,
	       taken[2] = {0}; /* tokens of those that will use all, and do not wait, or do */
	bool waiting;

	for (size_t k = 0; k < n; k++) {
		struct adaptbf_slot *s = &a->slots[x->slot[k]];
		double some = spare(s, x->tokens[k]);

		s->wants = some <= 0;
		spared += some;
		if (s->wants)
			taken[s->waits] += (double)x->tokens[k];
	}
	waiting = taken[true] > 0;
	for (size_t k = 0; k < n; k++)
		a->slots[x->slot[k]].wants &= a->slots[x->slot[k]].waits == waiting;
	return a->config.learn && a->config.hold && taken[waiting] > 0 ? 1 + spared / taken[waiting]
								       : 1;
}
