/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own.
 * LAW     C, the server's capacity, is learned from its rate while it is full; if tokens keep it
 *         from being full, by giving out more. In a period Δ a job waits if it used up its tokens
 *         and has requests queued, and neither a limit of its own that is below its rate nor one
 *         above it holds them; the server is idle if it was full for less than three quarters of Δ.
 *         Over a second, of which the periods that were not idle add up to a time f of being full,
 *         in which n tokens were used, and m in the whole second:
 *           a job waited throughout, f < 0.75 s:          C ← 1.01 C
 *           f > 0:                                        C ← C + g·(max(n/f, m/1 s) − C),
 *                                                         g = max(1 − e^(−f/τ), f/(f + F))
 *         C is a guess until the first period in which the server was not idle, and again after an
 *         idle second.
 *           a job waits, the server is idle, C is a guess, each period:
 *                                                         C ← C·min(2, 1 + γ·Δ),
 *                                                         γ ← γ·e^(Δ/0.25 s)
 *         from γ = 1/s on; up to twice the tokens used and demanded.
 *           K = C·(1 + headroom)                                              tokens a second
 *         With hold, tokens that a job will not use (eq. 7 gives every job part of the surplus)
 *         would be lost, and the server idle for so long. They are let to jobs that wait and have
 *         nothing to spare, or if there are none to all that have nothing to spare, in proportion
 *         to their tokens: the rate of such a rule is α/Δ·(1 + x/Σα), Σ over them, x = Σ max(0,
 *         α − e) over all. e is the expected use of a job: its demand, or, if it waits, twice its
 *         last use plus its queue.
 *         Jobs that stop in the middle of a period cannot be foreseen. So each rule allows ℓ more,
 *         found by feedback, and a job has used up its tokens only when it used those, too:
 *           a job waits, the server was full for less than Δ/4:  ℓ ← min(C·Δ, ℓ + (C·Δ − used)/2)
 *           it was for longer:                                   ℓ ← ℓ·e^(−Δ/1 s)
 *         Letting is not lending: the owners may still use their tokens, and then the server's
 *         window decides, by tokens (control/adaptbf/gate.c).
 * SYMBOLS C, K tokens per second; τ 3 s of being full; F time of being full since C was a guess; α
 *         tokens of a job; γ growth per second.
 * METHOD  Counters. O(jobs) a period.
 * DIFFERS From control/capacity.c, which learns from intervals that are full as a whole: tokens
 *         empty a slot now and then, and if they are too few the server would never be full, and
 *         its capacity never be known. A moment of being full shows nothing: if buckets fill
 *         together, requests find the server empty and fill it, and until the first of them is done
 *         none is counted. On a server of 8 this looked like a third of its capacity.
 * EXAMPLE A server of 1000, guessed at 700: 770 after one period, 885 after two, 1083 after three;
 *         then it is full, and n/f is 1000.
 */
#include "control/lend/impl.h"
#include <math.h>

#define SETTLE (3 * WEIR_SEC) /* time of being full: halves a wrong estimate in 2 s */
#define PROBE  WEIR_SEC       /* long enough that a fast moment does not cause growth */
#define GROWTH 1.01           /* slow, because chance may cause it and it must be undone */

#define GUESS_FIRST 1.0  /* a second: 10 % in the first 100 ms, */
#define GUESS_TIME  0.25 /* s: e-fold growth after that, 49 % more in each 100 ms, */
#define GUESS_MOST  2.0  /* limit in one period: 500,000-fold in 2.5 s */
#define LOSS        0.5  /* part of a period's loss */
#define LOST        0.25 /* of the time: being full for less, tokens were lost */
#define LOSS_TIME   1.0  /* s of being full */

#define DOUBT (1 * WEIR_SEC) /* after so long without a full period C is a guess */
#define USED  0.95           /* of the tokens: all, but for the last fractions */
/* part of the time: longer than one or two requests wait for their tokens by chance */
#define HELD 0.25
#define MOST 0.9  /* part of the tokens: a server does not serve its headroom */
#define FULL 0.75 /* part of the time: below that the server was not the limit */

/* Return true if a limit of its own, or one above it, keeps the job from more. */
static bool limited(const struct lend_slot *s)
{
	return s->above || (s->most > 0 && s->rate >= s->most);
}

bool lend_waits(const struct lend *a, const struct lend_slot *s)
{
	if ((double)s->holds >= HELD * (double)a->config.period)
		return true;
	if (s->queued == LEND_UNKNOWN)
		return s->tokens > 0 && (double)s->serves >= USED * (double)s->tokens;
	return s->queued > 0 &&
	       (double)s->serves + (double)s->queued >= MOST * ((double)s->tokens + s->more);
}

bool lend_waits_for_tokens(const struct lend *a, const struct lend_slot *s)
{
	return !limited(s) && lend_waits(a, s);
}

/* Sums over the jobs in the last period, in tokens. */
struct survey {
	bool waits;    /* a job with a rule waits for more tokens, and not for a limit */
	double served; /* by all jobs */
	double asked;  /* served or queued */
};

static struct survey survey(const struct lend *a)
{
	struct survey ret = {0};

	for (uint32_t i = 0; i < a->n_slots; i++) {
		const struct lend_slot *s = &a->slots[i];

		if (s->step <= a->state.steps)
			continue;
		ret.served += (double)s->serves;
		ret.asked += (double)s->serves + fmax((double)s->queued, 0);
		ret.waits |= s->active && lend_waits_for_tokens(a, s);
	}
	return ret;
}

/* Update C after a second. */
static void judge(struct lend *a, weir_time now)
{
	struct lend_probe *p = &a->probe;
	double *rate = &a->state.rate, span = (double)(now - p->since), full = (double)p->full;

	if (full < FULL * span && p->waited)
		*rate *= GROWTH;
	if (full > 0 && p->served > 0) {
		double gain = fmax(1 - exp(-full / SETTLE), full / (full + (double)p->known));
		double seen = fmax((double)p->served / full, p->all / span) * WEIR_SEC;

		*rate += gain * (seen - *rate);
		p->known += p->full;
	}
}

static void begin(struct lend_probe *p, weir_time now)
{
	p->since = now;
	p->waited = true;
	p->full = 0;
	p->served = 0;
	p->all = 0;
}

/* The server is idle and a job waits for tokens: raise the guess. */
static void guess(struct lend *a, double seconds, double asked)
{
	struct lend_probe *p = &a->probe;
	double more = a->state.rate * fmin(1 + p->growth * seconds, GUESS_MOST);

	a->state.rate = fmax(a->state.rate, fmin(more, 2 * asked / seconds));
	p->growth *= exp(seconds / GUESS_TIME);
	p->known = 0;
}

/* While tokens are lost and a job waits, raise the extra tokens of each rule. */
static void let(struct lend *a, const struct survey *s, bool lost, double seconds)
{
	double *more = &a->probe.lost, all = a->state.rate * seconds;

	if (!lost)
		*more *= exp(-seconds / LOSS_TIME);
	else if (s->waits)
		*more = fmin(all, *more + LOSS * fmax(0, all - s->served));
}

/* Add one period. */
static void add(struct lend *a, weir_time now, const struct lend_totals *totals)
{
	struct lend_probe *p = &a->probe;
	weir_time full = totals->full - p->last.full, length = now - p->at;
	double seconds = (double)length / WEIR_SEC;
	struct survey s = survey(a);
	bool idle = (double)full < FULL * (double)length;

	if (!idle) {
		p->full_at = now;
		p->growth = GUESS_FIRST;
		p->full += full;
		p->served += totals->served - p->last.served;
	} else if (s.waits && now - p->full_at > DOUBT) {
		guess(a, seconds, s.asked);
	}
	let(a, &s, (double)full < LOST * (double)length, seconds);
	p->all += s.served;
	p->waited = p->waited && s.waits;
}

void lend_learn(struct lend *a, weir_time now, const struct lend_driver_ops *ops, void *driver)
{
	struct lend_probe *p = &a->probe;
	struct lend_totals totals;

	if (!a->config.learn || !ops->totals || ops->totals(driver, now, &totals))
		return;
	if (a->first) {
		*p = (struct lend_probe){
			.full_at = now - DOUBT - 1, .growth = GUESS_FIRST}; /* a guess */
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

double lend_supply(const struct lend *a)
{
	return a->state.rate * (a->config.learn ? 1 + a->config.headroom : 1);
}

/* Return the tokens that a job will not use. The demand of a job that waits is not known; assume at
 * most twice its last use. */
static double spare(const struct lend_slot *s, int64_t tokens)
{
	double use =
		s->waits ? 2.0 * (double)s->serves + fmax((double)s->queued, 0) : (double)s->demand;

	return fmax(0, (double)tokens - use);
}

void lend_rates(struct lend *a, size_t n)
{
	const struct lend_arrays *x = &a->active;
	double per = WEIR_SEC / (double)a->config.period, boost = 1;
	double spared = 0,
	       taken[2] = {0}; /* tokens of jobs that will use all: without and with waiting */
	bool lets = a->config.learn && a->config.hold && a->config.without != LEND_WITHOUT_LENDING;
	bool waiting;

	for (size_t k = 0; k < n; k++) {
		struct lend_slot *s = &a->slots[x->slot[k]];
		double some = spare(s, x->tokens[k]);

		s->wants = some <= 0;
		spared += some;
		if (s->wants)
			taken[s->waits] += (double)x->tokens[k];
	}
	waiting = taken[true] > 0;
	if (lets && taken[waiting] > 0)
		boost += spared / taken[waiting];
	for (size_t k = 0; k < n; k++) {
		struct lend_slot *s = &a->slots[x->slot[k]];

		s->more = lets ? a->probe.lost : 0;
		s->rate = (double)x->tokens[k] * per;
		if (s->wants && s->waits == waiting)
			s->rate *= boost;
		s->rate += s->more * per;
	}
}
