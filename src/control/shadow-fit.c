/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  The asymptotic bounds of a closed network of queues: Lazowska et al., Quantitative System
 *         Performance, chapter 5.
 * LAW     T(W) = pace · max(‖parts, W − own‖_p, W), with ‖a, b‖_p = (a^p + b^p)^(1/p).
 * SYMBOLS T      mean time of a request, ns
 *         W      work inside, with the request's own; own, the work of a request
 *         pace   time per work of a busy device, ns
 *         parts  work in service at once, so that parts · pace is the time of a request alone
 *         p      how the device goes from idle to busy. One queue before all parts (servers): none
 *                is idle while a request waits, p = ∞. A queue for each part (dies, disks): some are
 *                idle while requests wait elsewhere, p = 1 for exponential times and 1.3 on the
 *                models of an SSD and an array.
 *         Work is counted in requests of one page; how much a further page adds is learned
 *         (control/shadow-cost.h), and its error widens the range of other mixes than were seen.
 * METHOD  Every p and every number of parts on a grid is a hypothesis. Its pace follows from the
 *         mean times of the levels (W, from SHADOW_FINE on in quarters of an octave). Its likelihood is the product of
 *         - levels: k requests with mean time t count as k exponential times; k levels off at
 *           SHADOW_LEVEL_MOST, because no device follows the law exactly;
 *         - single requests, the SHADOW_LIGHT with the least inside: the only evidence about small
 *           W if a queue grew at once. A device that reorders may have delayed one until later
 *           requests were finished, so with probability DELAYED its W is the work finished
 *           meanwhile, not the work inside;
 *         - the order in which requests end: in one queue a request overtakes no more than the
 *           other parts have in service, however long the queue is, and each of these is equally
 *           likely to end next.
 *         The curve is the mean of log T over all hypotheses, weighted by likelihood; its variance
 *         is theirs. It is then moved toward the times seen at levels nearby.
 * LIMITS  A device that was only seen overloaded does not show its time at a small depth. Example:
 *         ten disks whose controller lets 68 requests in and orders them, and a server of 68 parts
 *         with exponential times, both with 128 requests inside and 3,500 a second. In both a
 *         request takes 37 ms, 68 end in random order, and 60 wait in line. With a depth of 4 the
 *         disks take 4 ms each, 1,000 a second, and the server 68 / 3,500 s = 19 ms, 200 a second.
 *         No estimator can distinguish them with 128 inside. They differ in the first requests,
 *         before the queue grew; if few were seen, the range is wide. A device declared rotational
 *         is never taken for one queue.
 *         How few: an array of ten disks that is overloaded at once serves one request a disk
 *         without a queue. Their times vary by a third, so that their mean is known to 11 %, and
 *         15 % is missed one time in six even if all else were known. For disks the figure at a
 *         depth that was never visited is therefore an estimate with a range, for open loops too.
 *         Disks also serve a newcomer before others, so that a request's time depends on later
 *         arrivals: while a queue grows, times are longer than with that much inside for long. So
 *         the range of disks is never less than DISK_LEAST.
 *         Other estimators do not do better on arrays, over three seeds of all mixes: the rate of ends by the number inside
 *         (Little's law per level), levels by the mean number inside during a request, and p = 1 with a line before
 *         the disks' queues. At a depth of 4 the deviation is 0.13 to 0.14 with each of them, near the 0.11
 *         above. A range that is too wide to be of use is not shown (SHADOW_TELLS).
 *         A fit takes about half a millisecond, once in RENEW requests.
 * EXAMPLE Four dies of 1 ms, 128 requests inside, 4,000 a second: 32 ms each. With a window of 4
 *         the law gives 1.5 ms: 2,700 a second. One queue for the four: 1 ms, 4,000 a second.
 */
#include "control/shadow-impl.h"

#define LEVEL_LEAST 8     /* requests that a level needs for a mean */
#define LEVEL_FEW   64    /* requests of a level that are evaluated one by one */
#define TRUST       256.0 /* weight of the law against nearby levels, in requests */
#define NEAR        0.7   /* weight of the next level */
#define ERROR       0.07  /* of the law itself */
#define DISK_ERROR  0.17  /* the same, of disks */
#define DISK_LEAST  0.12  /* of disks, where times were seen: they depend on what arrives later */
/* The grid of hypotheses. */
#define STEP    4     /* an octave of parts */
#define UNLIKE  20.0  /* below the best in log likelihood: not looked at */
#define MANY    1.3   /* p of a queue for each part */
#define INFTY   1000. /* p of one queue */
#define GUESSES 160
/* Log likelihoods. */
#define ONE_ORDER  20.0 /* against one queue, by the order in which requests end */
#define EACH_ORDER 10.0 /* the same, against a queue for each part */
#define ONE_MORE   15.0 /* against more parts in one queue than were seen at work, per factor e */
/* against a time alone below the shortest time, per factor e: at most, see alone() */
#define LEAST_OVER 200.
/* The density of single times over the expected one: log-logistic with a cubic tail. */
#define MEDIAN  1.05
#define EXPON   0.3  /* part that is exponential in one queue */
#define DELAYED 0.05 /* part of the single requests that later ones delayed */
/* requests inside up to which a disk's single time counts in full: with more, newcomers go first */
#define LIGHT 4.0

struct guess { /* a hypothesis */
	double p, parts, pace;
	double score; /* log likelihood */
};

struct fit {
	const struct shadow_device *device;
	double own; /* work of a request */
	/* the most that one request overtook, plus its own: in one queue, the parts seen at work */
	double passed;
	double high; /* work inside, often */
	bool disks;  /* shadow_order's */
	double one,
		each; /* how strongly the order of requests indicates one queue, and many, 0 to 1 */
	double most;  /* work inside, at a level that has a mean */
	/* levels that have a mean: for how many requests they count, work inside, time */
	double n[SHADOW_LEVELS], inside[SHADOW_LEVELS], time[SHADOW_LEVELS];
	unsigned levels;
	struct guess guess[GUESSES];
	unsigned guesses;
	double best; /* score */
};

/* T(W) / pace. */
static double shape(const struct guess *g, double own, double work)
{
	double others = fmax(work - own, 0), most = fmax(g->parts, others);

	if (g->p < INFTY)
		most *= pow(1 + pow(fmin(g->parts, others) / most, g->p), 1 / g->p);
	return fmax(most, work);
}

/* Return the position of x between two bounds, from 0 to 1. */
static double between(double x, double low, double high)
{
	return fmin(fmax((x - low) / (high - low), 0), 1);
}

/* Judge by the order in which requests end whether there is one queue or many. */
static void judge_order(struct fit *f, const struct shadow_order *o)
{
	f->one = f->each = 0;
	if (shadow_overtook(o) < 1) { /* none overtook: equal times in one queue, or one part */
		f->one = between(f->high / f->own, 1.05, 1.25);
	} else {
		f->one = between(o->first, 0.5 * o->random, 0.8 * o->random);
		f->each = 1 - f->one;
	}
}

static void gather(struct fit *f, const struct shadow_device *d, const struct shadow_order *o)
{
	f->device = d;
	f->own = d->own2 / d->own;
	f->passed = d->own * (1 + shadow_overtook(o));
	f->high = d->inside + sqrt(fmax(d->inside2 - d->inside * d->inside, 0));
	f->most = fmax(f->high, f->own);
	f->disks = o->disks;
	judge_order(f, o);
	f->levels = f->guesses = 0;
	f->best = -HUGE_VAL;
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		const struct shadow_level *l = &d->level[i];

		if (l->n < LEVEL_LEAST)
			continue;
		f->n[f->levels] = l->n / (1 + l->n / SHADOW_LEVEL_MOST);
		f->inside[f->levels] = shadow_work_of(d, &l->inside) / l->n;
		f->time[f->levels] = fmax(l->time / l->n, d->least);
		f->most = fmax(f->most, f->inside[f->levels]);
		f->levels++;
	}
}

/* Find the pace of a hypothesis, and the likelihood of the levels. */
static void score_levels(const struct fit *f, struct guess *g)
{
	const struct shadow_device *d = f->device;
	double n = 0, sum = 0;

	g->score = 0;
	for (unsigned i = 0; i < f->levels; i++) {
		double work = shape(g, f->own, f->inside[i]);

		n += f->n[i];
		sum += f->n[i] * f->time[i] / work;
		g->score -= f->n[i] * log(work);
	}
	for (unsigned i = 0; i < d->n_light && !f->levels; i++) {
		n += 1;
		sum += d->light[i].ns / shape(g, f->own, shadow_work_of(d, &d->light[i].beside));
	}
	g->pace = sum / n;
	if (f->levels)
		g->score -= n * log(g->pace);
}

/* Return the density of a single time with so much inside. */
static double density(const struct fit *f, const struct guess *g, double inside, double ns)
{
	double work = shape(g, f->own, inside), time = g->pace * work;
	double x = ns / time / MEDIAN, tail = 1 + x * x * x;
	double is = 3 / MEDIAN * x * x / (tail * tail);
	double part = g->p < INFTY ? 0 : EXPON * g->parts / work; /* of the time, in service */

	if (part > 0)
		is += part * (exp(-x * MEDIAN) - is);
	return is / time;
}

static void score_light(const struct fit *f, struct guess *g)
{
	const struct shadow_device *d = f->device;

	for (unsigned i = 0; i < d->n_light; i++) {
		const struct shadow_light *l = &d->light[i];
		double inside = shadow_work_of(d, &l->inside),
		       beside = shadow_work_of(d, &l->beside);
		double likely =
			density(f, g, inside, l->ns) + DELAYED * density(f, g, beside, l->ns);
		double weight = f->disks ? fmin(1, LIGHT * f->own / inside) : 1;

		if (d->level[(unsigned)shadow_place(inside)].n < LEVEL_FEW)
			g->score += weight * log(fmax(likely, 1e-300));
	}
}

/* Return the number of requests by which the shortest time counts. In one queue these are the ones that
 * found a part free: one of them alone may take long by chance. */
static double alone(const struct fit *f, const struct guess *g)
{
	double n = 0;

	if (g->p < INFTY)
		return HUGE_VAL;
	for (unsigned i = 0; i < SHADOW_LEVELS && shadow_work_at(i) <= g->parts; i++)
		n += f->device->level[i].n;
	return n;
}

static void score_order(const struct fit *f, struct guess *g)
{
	double least = f->device->least / g->pace; /* work finished in the shortest time */
	double seen = fmax(f->passed, least);      /* of the parts */

	if (least > g->parts)
		g->score -= fmin(LEAST_OVER, alone(f, g)) * log(least / g->parts);
	if (g->p < INFTY) {
		g->score -= EACH_ORDER * f->one;
		return;
	}
	g->score -= ONE_ORDER * f->each;
	g->score -= ONE_MORE * log(fmax(fmin(g->parts, f->high) / seen, 1));
}

/* Try all hypotheses of one p, from `parts` on. */
static void try_all(struct fit *f, double p, double parts)
{
	double best = -HUGE_VAL;

	for (; parts <= 2 * f->most && f->guesses < GUESSES; parts *= exp2(1.0 / STEP)) {
		struct guess *g = &f->guess[f->guesses];

		*g = (struct guess){.p = p, .parts = parts};
		score_levels(f, g);
		score_light(f, g);
		score_order(f, g);
		best = fmax(best, g->score);
		f->best = fmax(f->best, g->score);
		if (g->score > f->best - UNLIKE)
			f->guesses++;
		else if (g->score < best - 2 * UNLIKE)
			return; /* no improvement */
	}
}

/* Return the law at a point, averaged over all hypotheses. */
static struct shadow_point mean_of(const struct fit *f, double work)
{
	double weight = 0, sum = 0, square = 0, mean, error = f->disks ? DISK_ERROR : ERROR;

	for (unsigned i = 0; i < f->guesses; i++) {
		const struct guess *g = &f->guess[i];
		double likely = exp(g->score - f->best), time;

		if (likely < 1e-3)
			continue;
		time = log(g->pace * shape(g, f->own, fmax(work, f->own)));
		weight += likely;
		sum += likely * time;
		square += likely * time * time;
	}
	mean = sum / weight;
	return (struct shadow_point){
		mean, sqrt(fmax(square / weight - mean * mean, 0) + error * error)};
}

/* Add to each value all others, weighted by nearness. */
static void spread(double *x)
{
	double below = 0, above[SHADOW_LEVELS + 1];

	above[SHADOW_LEVELS] = 0;
	for (int i = SHADOW_LEVELS - 1; i >= 0; i--)
		above[i] = NEAR * above[i + 1] + x[i];
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		below = NEAR * below + x[i];
		x[i] = below + NEAR * above[i + 1];
	}
}

/* Move the curve toward the measured times. */
static void correct(struct shadow_device *d, const struct fit *f)
{
	double off[SHADOW_LEVELS] = {0}, n[SHADOW_LEVELS] = {0};

	for (unsigned i = 0; i < f->levels; i++) {
		unsigned at = (unsigned)shadow_place(f->inside[i]);

		off[at] +=
			f->n[i] * (log(f->time[i]) - shadow_point_at(d->curve, f->inside[i]).time);
		n[at] += f->n[i];
	}
	spread(off);
	spread(n);
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		struct shadow_point *p = &d->curve[i];

		p->time += off[i] / (n[i] + TRUST);
		p->error = fmax(
			sqrt(1 / (1 / (p->error * p->error) + n[i])), f->disks ? DISK_LEAST : 0);
	}
}

void shadow_fit(struct shadow_device *d, const struct shadow_order *o)
{
	struct fit f;

	gather(&f, d, o);
	if (!o->disks)
		try_all(&f, INFTY, f.passed);
	try_all(&f, MANY, f.own);
	for (int i = 0; i < SHADOW_LEVELS; i++)
		d->curve[i] = mean_of(&f, shadow_work_at((unsigned)i));
	correct(d, &f);
	d->renewed = d->learned;
}
