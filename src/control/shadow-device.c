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
 *         mean times of the levels (W, from FINE on in quarters of an octave). Its likelihood is the product of
 *         - levels: k requests with mean time t count as k exponential times; k levels off at
 *           LEVEL_MOST, because no device follows the law exactly;
 *         - single requests, the SHADOW_LIGHT with the least inside: the only evidence about small
 *           W if a queue grew at once. A device that reorders may have delayed one until later
 *           requests were finished, so with probability DELAYED its W is the work finished
 *           meanwhile, not the work inside;
 *         - the order in which requests end: in one queue a request overtakes no more than the
 *           other parts have in service, however long the queue is, and each of these is equally
 *           likely to end next.
 *         The curve is the mean of log T over all hypotheses, weighted by likelihood; its variance
 *         is theirs. It is then moved toward the times seen at levels nearby.
 *         Classes share the curve. Each has two factors, for the part of the time in service and
 *         the part in queues.
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
#include "control/shadow-device.h"
#include <math.h>

#define FINE        16u  /* work up to which each unit has a level; from there 4 an octave */
#define RENEW       4096 /* requests between two fits; an eighth of them while there are few */
#define RECENT      (1.0 / 256)  /* least weight of a request in moving averages */
#define ORDER       (1.0 / 1024) /* the same, for the order in which requests end */
#define FIRST       10    /* overtaking all but one in so many requests counts as being first */
#define REORDER     1024  /* requests over which the largest overtaking is kept */
#define LEVEL_LEAST 8     /* requests that a level needs for a mean */
#define LEVEL_FEW   64    /* requests of a level that are evaluated one by one */
#define LEVEL_MOST  256.0 /* requests for which a level counts at most */
#define LEVEL_KEEP  4096  /* requests of a level after which old ones count half */
#define TRUST       256.0 /* weight of the law against nearby levels, in requests */
#define NEAR        0.7   /* weight of the next level */
#define CLASS_TRUST 4.0   /* requests until a class counts as different from the others */
#define RATIO_MOST  8.0   /* a time counts as at most so many times the expected one */
#define BUSY        0.5   /* a device is busy if less than that part of a time is not queueing */
#define ERROR       0.07  /* of the law itself */
#define DISK_ERROR  0.17  /* the same, of disks */
#define DISK_LEAST  0.12  /* of disks, where times were seen: they depend on what arrives later */
#define SURE        2.0   /* standard deviations of the range */
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
#define LEAST_OVER 200. /* against a time alone below the shortest time, per factor e */
/* The density of single times over the expected one: log-logistic with a cubic tail. */
#define MEDIAN  1.05
#define EXPON   0.3  /* part that is exponential in one queue */
#define DELAYED 0.05 /* part of the single requests that later ones delayed */
/* requests inside up to which a disk's single time counts in full: with more, newcomers go first */
#define LIGHT 4.0

/* ---- observing */

/* Return the level of so much work, with a fraction. */
static double place_of(double work)
{
	double place = work < FINE ? fmax(work, 0) : FINE + 4 * log2(work / FINE);

	return fmin(place, SHADOW_LEVELS - 1.001);
}

static double work_at(unsigned level)
{
	return level < FINE ? level : FINE * exp2((level - FINE) / 4.0);
}

static double work_of(const struct shadow_device *d, const struct shadow_work *w)
{
	return shadow_cost_of(&d->cost, w);
}

static void add_level(struct shadow_level *l, const struct shadow_work *inside, double ns)
{
	l->n += 1;
	l->time += ns;
	l->inside.requests += inside->requests;
	l->inside.pages += inside->pages;
	if (l->n > LEVEL_KEEP) {
		l->n /= 2;
		l->time /= 2;
		l->inside.requests /= 2;
		l->inside.pages /= 2;
	}
}

static void add_light(struct shadow_device *d, const struct shadow_sample *s)
{
	bool delayed = s->finished.requests > s->inside.requests;
	struct shadow_light *most = &d->light[d->n_light];

	if (d->n_light < SHADOW_LIGHT) {
		d->n_light++;
	} else {
		/* Start at another one each time, so that equal ones are replaced in turn. */
		most = &d->light[d->next];
		for (unsigned i = 1; i < SHADOW_LIGHT; i++)
			if (d->light[(d->next + i) % SHADOW_LIGHT].inside.requests >
				most->inside.requests)
				most = &d->light[(d->next + i) % SHADOW_LIGHT];
		d->next = (d->next + 1) % SHADOW_LIGHT;
		if (s->inside.requests > most->inside.requests)
			return;
	}
	*most = (struct shadow_light){s->inside, delayed ? s->finished : s->inside, (double)s->ns};
}

/* Return the most requests that one request overtook. */
static double overtook(const struct shadow_order *o)
{
	return fmax(o->passed[0], o->passed[1]);
}

/* Parts that serve one queue, each for an exponential time, are equally likely to end next: among n
 * in service, a request that just began ends before the k-th of the others with probability
 * 1 - (1 - 1/n)^k. */
static void order(struct shadow_order *o, double inside, double finished)
{
	double others, may, first;

	if (o->n++ % REORDER == 0) {
		o->passed[1] = o->passed[0];
		o->passed[0] = 0;
	}
	o->passed[0] = fmax(o->passed[0], inside - finished);
	others = fmin(inside, 1 + overtook(o)) - 1; /* in service */
	if (others < 1)
		return;
	may = floor(others / FIRST) + 1; /* so many of them may end before */
	first = inside - finished > others - may + 0.5;
	o->first += ORDER * (first - o->first);
	o->random += ORDER * (1 - pow(1 - 1 / (others + 1), may) - o->random);
}

static void average(struct shadow_device *d, double own, double inside)
{
	double weight = fmax(1.0 / (double)d->learned, RECENT);

	d->own += weight * (own - d->own);
	d->own2 += weight * (own * own - d->own2);
	d->inside += weight * (inside - d->inside);
	d->inside2 += weight * (inside * inside - d->inside2);
}

/* ---- fitting */

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
	if (overtook(o) < 1) { /* none overtook: equal times in one queue, or one part */
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
	f->passed = d->own * (1 + overtook(o));
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
		f->n[f->levels] = l->n / (1 + l->n / LEVEL_MOST);
		f->inside[f->levels] = work_of(d, &l->inside) / l->n;
		f->time[f->levels] = l->time / l->n;
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
		sum += d->light[i].ns / shape(g, f->own, work_of(d, &d->light[i].beside));
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
		double inside = work_of(d, &l->inside), beside = work_of(d, &l->beside);
		double likely =
			density(f, g, inside, l->ns) + DELAYED * density(f, g, beside, l->ns);
		double weight = f->disks ? fmin(1, LIGHT * f->own / inside) : 1;

		if (d->level[(unsigned)place_of(inside)].n < LEVEL_FEW)
			g->score += weight * log(fmax(likely, 1e-300));
	}
}

static void score_order(const struct fit *f, struct guess *g)
{
	double least = f->device->least / g->pace; /* work finished in the shortest time */
	double seen = fmax(f->passed, least);      /* of the parts */

	if (least > g->parts)
		g->score -= LEAST_OVER * log(least / g->parts);
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

static struct shadow_point point_at(const struct shadow_point *curve, double work)
{
	double place = place_of(work);
	const struct shadow_point *p = &curve[(unsigned)place];

	place -= floor(place);
	return (struct shadow_point){p[0].time + place * (p[1].time - p[0].time),
		p[0].error + place * (p[1].error - p[0].error)};
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
		unsigned at = (unsigned)place_of(f->inside[i]);

		off[at] += f->n[i] * (log(f->time[i]) - point_at(d->curve, f->inside[i]).time);
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

static void fit(struct shadow_device *d, const struct shadow_order *o)
{
	struct fit f;

	gather(&f, d, o);
	if (!o->disks)
		try_all(&f, INFTY, f.passed);
	try_all(&f, MANY, f.own);
	for (int i = 0; i < SHADOW_LEVELS; i++)
		d->curve[i] = mean_of(&f, work_at((unsigned)i));
	correct(d, &f);
	d->renewed = d->learned;
}

/* ---- classes */

/* Return the part of a request's time that is not queueing. */
static double share_of(const struct shadow_device *d, double own, double work)
{
	return fmin(exp(point_at(d->curve, own).time - point_at(d->curve, work).time), 1);
}

static void add_ratio(struct shadow_ratio *r, double weight, double ratio)
{
	r->weight += weight;
	r->sum += weight * ratio;
	if (r->weight > LEVEL_MOST) {
		r->weight /= 2;
		r->sum /= 2;
	}
}

/* Return how much longer a class takes than all, from two averages. */
static double factor_of(const struct shadow_ratio *all, const struct shadow_ratio *c)
{
	double mean = all->weight > 0 ? all->sum / all->weight : 1;

	return (c->sum + CLASS_TRUST * mean) / (c->weight + CLASS_TRUST) / mean;
}

static double time_at(const struct shadow_device *d, unsigned class_, double own, double work)
{
	double share = share_of(d, own, work);

	return exp(point_at(d->curve, work).time) *
	       (share * factor_of(&d->all[0], &d->class_[class_][0]) +
		       (1 - share) * factor_of(&d->all[1], &d->class_[class_][1]));
}

static void compare(struct shadow_device *d, const struct shadow_sample *s)
{
	double own = work_of(d, &s->own), inside = work_of(d, &s->inside), ns = (double)s->ns;
	double share = share_of(d, own, inside), ratio;
	float *r = &d->recent[d->at++ % SHADOW_RECENT];

	d->sum -= *r;
	*r = (float)fmin(ns / time_at(d, s->class_, own, inside), RATIO_MOST);
	d->sum += *r;
	ratio = fmin(ns / exp(point_at(d->curve, inside).time), RATIO_MOST);
	for (int i = 0; i < 2; i++) {
		add_ratio(&d->all[i], i ? 1 - share : share, ratio);
		add_ratio(&d->class_[s->class_][i], i ? 1 - share : share, ratio);
	}
}

/* ---- the interface */

void shadow_device_learn(struct shadow_device *d, const struct shadow_sample *sample)
{
	struct shadow_sample s = *sample;
	double own, inside;

	s.ns = s.ns > 1 ? s.ns : 1;
	own = work_of(d, &s.own);
	inside = work_of(d, &s.inside);
	order(&d->order, s.inside.requests, s.finished.requests);
	if (d->renewed)
		compare(d, &s);
	shadow_cost_learn(&d->cost, s.now, &s.own, d->renewed && share_of(d, own, inside) < BUSY);
	if (d->least <= 0 || (double)s.ns < d->least)
		d->least = (double)s.ns;
	d->learned++;
	add_light(d, &s);
	add_level(&d->level[(unsigned)place_of(inside)], &s.inside, (double)s.ns);
	average(d, own, inside);
	if (d->learned - d->renewed >= RENEW || d->learned - d->renewed > d->learned / 8)
		fit(d, &d->order);
}

bool shadow_device_expect(const struct shadow_device *d, unsigned class_,
	const struct shadow_work *own, const struct shadow_work *inside, struct shadow_time *ret)
{
	double of = work_of(d, own), work = work_of(d, inside), error;

	if (!d->renewed)
		return false;
	ret->mean = fmax(time_at(d, class_, of, work), 1);
	error = exp(SURE * point_at(d->curve, work).error) * shadow_cost_error(&d->cost, inside);
	ret->low = ret->mean / error;
	ret->high = ret->mean * error;
	return true;
}

weir_time shadow_device_draw(struct shadow_device *d, double mean)
{
	double ratio, all;

	if (d->at < SHADOW_RECENT || d->sum <= 0)
		return (weir_time)fmax(mean, 1000);
	/* Draw the ratios in turn: if one ratio were drawn until the next is learned, ratios that
	 * make times short would be drawn more often. */
	ratio = d->recent[d->drawn++ % SHADOW_RECENT];
	all = d->sum / SHADOW_RECENT;
	return (weir_time)fmax(mean * fmin(ratio / all, RATIO_MOST), 1000);
}
