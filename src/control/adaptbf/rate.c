/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own.
 * LAW     C, what the server can do, is learned from what it does while it is full; where tokens keep it from
 *         being full, by giving out more. In a period Δ a job waits if it used up its tokens and has requests
 *         queued, and neither a limit of its own that is below its rate nor one above it holds them; the server is idle if it
 *         was full for less than three quarters of Δ. Over a second, of whose periods those that were not idle
 *         add up to a time f of being full, in which n tokens were used, and m in the whole second:
 *           a job waited throughout, f < 0.75 s:          C ← 1.01 C
 *           f > 0:                                        C ← C + g·(max(n/f, m/1 s) − C),
 *                                                         g = max(1 − e^(−f/τ), f/(f + F))
 *         C is a guess until the server was not idle in a period, and again when it was not for a second.
 *           a job waits, the server is idle, C is a guess: C ← C·min(2, 1 + γ·Δ), γ ← γ·e^(Δ/0.25 s)   each period
 *         from γ = 1/s on; up to twice what was used and asked for.
 *           K = C·(1 + headroom)                                              tokens a second
 *         Where tokens hold, what a job has and will not use (eq. 7 gives every job part of the surplus) would be
 *         lost, and the server idle for so long. It is let to those that wait and have nothing to spare, or if there are
 *         none to all that have nothing to spare, in proportion to their tokens: the rate of such a rule is
 *         α/Δ·(1 + x/Σα), Σ over them, x = Σ max(0, α − e) over all. e is what a job is expected to use: its demand,
 *         or, if it waits, twice what it used and its queue.
 *         Jobs that stop in the middle of a period cannot be foreseen. So each rule allows ℓ more, found by control, and
 *         a job has used up its tokens only when it used those, too:
 *           a job waits, the server was full for less than Δ/4:  ℓ ← min(C·Δ, ℓ + (C·Δ − used)/2)
 *           it was for longer:                                   ℓ ← ℓ·e^(−Δ/1 s)
 *         To let is not to lend: the others may still use what they have, and the server's window decides then,
 *         by tokens (control/adaptbf/gate).
 * SYMBOLS C, K tokens per second; τ 3 s of being full; F for how long it has been full since C was a guess; α tokens of a
 *         job; γ growth per second.
 * METHOD  Counters. O(jobs) a period.
 * DIFFERS From control/capacity, which learns from intervals that are full as a whole: tokens empty a slot
 *         now and then, and where they are too few the server would never be full, and it would
 *         never be known that there is more. A moment of being full says nothing: where buckets
 *         fill together, requests find the server empty and fill it, and until the first of them
 *         is done none is counted. On a server of 8 this looked like a third of what it could do.
 * EXAMPLE A server of 1000, taken for 700: 770 after one period, 885 after two, 1083 after three; then it is full, and n/f
 *         is 1000.
 */
#include "control/adaptbf/impl.h"
#include <math.h>

#define SETTLE (3 * WEIR_SEC) /* of being full: a wrong estimate is halved in 2 s of it */
#define PROBE  WEIR_SEC       /* long enough that a fast moment is no reason to grow */
#define GROWTH 1.01           /* slow: by chance it comes, and must be undone */

#define GUESS_FIRST 1.0  /* a second: 10 % in the first 100 ms, */
#define GUESS_TIME  0.25 /* s: e-fold as much after that, 49 % more in each 100 ms, */
#define GUESS_MOST  2.0  /* in one period at most: 500,000-fold in 2.5 s */
#define LOSS        0.5  /* of what was lost in a period */
#define LOST        0.25 /* of the time: being full for less, tokens were lost */
#define LOSS_TIME   1.0  /* s of being full */

#define DOUBT (1 * WEIR_SEC) /* what was not seen for so long is not known */
#define USED  0.95           /* of the tokens: all, but for the last fractions */
#define HELD  0.25 /* of the time: longer than one or two requests wait for their tokens by chance */
#define MOST  0.9  /* of the tokens: a server does not serve its headroom */
#define FULL  0.75 /* of the time: below that the server was not the limit */

/* A limit of its own, or one above it, keeps it from more. */
static bool limited(const struct adaptbf_slot *s)
{
	return s->above || (s->most > 0 && s->rate >= s->most);
}

bool adaptbf_waits(const struct adaptbf *a, const struct adaptbf_slot *s)
{
	if ((double)s->holds >= HELD * (double)a->config.period)
		return true;
	if (s->queued == ADAPTBF_UNKNOWN)
		return s->tokens > 0 && (double)s->serves >= USED * (double)s->tokens;
	return s->queued > 0 &&
	       (double)s->serves + (double)s->queued >= MOST * ((double)s->tokens + s->more);
}

bool adaptbf_waits_for_tokens(const struct adaptbf *a, const struct adaptbf_slot *s)
{
	return !limited(s) && adaptbf_waits(a, s);
}

/* What the last period shows of the jobs, in tokens. */
struct survey {
	bool waits;    /* one that had a rule waits for more tokens, and not for a limit */
	double served; /* all of them */
	double asked;  /* served or queued */
};

static struct survey survey(const struct adaptbf *a)
{
	struct survey ret = {0};

	for (uint32_t i = 0; i < a->n_slots; i++) {
		const struct adaptbf_slot *s = &a->slots[i];

		if (s->step <= a->state.steps)
			continue;
		ret.served += (double)s->serves;
		ret.asked += (double)s->serves + fmax((double)s->queued, 0);
		ret.waits |= s->active && adaptbf_waits_for_tokens(a, s);
	}
	return ret;
}

/* Over a second. */
static void judge(struct adaptbf *a, weir_time now)
{
	struct adaptbf_probe *p = &a->probe;
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

static void begin(struct adaptbf_probe *p, weir_time now)
{
	p->since = now;
	p->waited = true;
	p->full = 0;
	p->served = 0;
	p->all = 0;
}

/* The server is idle and a job waits for tokens: there are too few of them, by how much nobody knows. */
static void guess(struct adaptbf *a, double seconds, double asked)
{
	struct adaptbf_probe *p = &a->probe;
	double more = a->state.rate * fmin(1 + p->growth * seconds, GUESS_MOST);

	a->state.rate = fmax(a->state.rate, fmin(more, 2 * asked / seconds));
	p->growth *= exp(seconds / GUESS_TIME);
	p->known = 0;
}

/* While tokens are lost and a job waits, every rule allows some more. */
static void let(struct adaptbf *a, const struct survey *s, bool lost, double seconds)
{
	double *more = &a->probe.lost, all = a->state.rate * seconds;

	if (!lost)
		*more *= exp(-seconds / LOSS_TIME);
	else if (s->waits)
		*more = fmin(all, *more + LOSS * fmax(0, all - s->served));
}

/* One period. */
static void add(struct adaptbf *a, weir_time now, const struct adaptbf_totals *totals)
{
	struct adaptbf_probe *p = &a->probe;
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

void adaptbf_learn(
	struct adaptbf *a, weir_time now, const struct adaptbf_driver_ops *ops, void *driver)
{
	struct adaptbf_probe *p = &a->probe;
	struct adaptbf_totals totals;

	if (!a->config.learn || !ops->totals || ops->totals(driver, now, &totals))
		return;
	if (a->first) {
		*p = (struct adaptbf_probe){
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

void adaptbf_rates(struct adaptbf *a, size_t n)
{
	const struct adaptbf_arrays *x = &a->active;
	double per = WEIR_SEC / (double)a->config.period, boost = 1;
	double spared = 0,
	       taken[2] = {0}; /* tokens of those that will use all, and do not wait, or do */
	bool lets =
		a->config.learn && a->config.hold && a->config.without != ADAPTBF_WITHOUT_LENDING;
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
	if (lets && taken[waiting] > 0)
		boost += spared / taken[waiting];
	for (size_t k = 0; k < n; k++) {
		struct adaptbf_slot *s = &a->slots[x->slot[k]];

		s->more = lets ? a->probe.lost : 0;
		s->rate = (double)x->tokens[k] * per;
		if (s->wants && s->waits == waiting)
			s->rate *= boost;
		s->rate += s->more * per;
	}
}
