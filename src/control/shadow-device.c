/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     time = max(‖alone, (W − own) · pace‖_p, W · pace), with W the work inside, the request's own too; alone, its time
 *         with nothing else inside; pace, the time per work of a busy device; and ‖a, b‖_p = (a^p + b^p)^(1/p).
 *         - With little inside a device is not busy: with a window of W it does W / alone, whatever it does with hundreds
 *           inside. With much inside it does 1 / pace. These are the asymptotic bounds of any closed network of queues
 *           (Lazowska et al., Quantitative System Performance, chapter 5); p says how fast it goes from one to the other.
 *         - Parts (servers, dies, disks) behind one queue: none is idle while a request waits, p = ∞. A queue for each part:
 *           some are idle while requests wait elsewhere, p = 1 for exponential times (balanced job bounds) and 1.2 to 1.3 on
 *           the models of an SSD and an array.
 *         Times seen near W correct the law: with n passes seen, it counts as TRUST passes.
 * METHOD  alone: of the requests of the class with the least beside them, also of the first few before a queue grew.
 *         pace: of levels, W in steps of a quarter of an octave, each with the mean time of requests that went in at it; deeper
 *         and nearer ones count for more.
 *         p: in one queue, a request is passed only by those in service: the work finished while it was inside differs from what
 *         was inside when it went in by less than the work in service, alone / pace, however long the queue. With a queue
 *         for each part it differs by about the root of the product of both. Where no more than three times the work in service
 *         is inside, both look alike: p lies between, unless times do not grow with W at all, which is one queue.
 *         In one queue the parts are also known from the most that a request passed.
 *         Both are bounded by levels that were passed: no level is faster than the pace, at none a request takes less than alone.
 *         low and high: the law with p and alone as far off as they may be, less the more passes were seen near W.
 * LIMITS  alone must have been seen: a device that was never less than full while it was observed shows no more than that it is at
 *         most the least time. It is known from a handful of requests if the queue grew at once, so that with W below alone / pace
 *         the time is known no better than the mean of those. A device on which all requests take exactly as long falls
 *         into step with clients in a closed loop; the law knows of no such steps.
 * EXAMPLE Four dies of 1 ms, 128 requests inside, 4,000 a second: 32 ms each. With a window of 4 the law says 1.6 ms: 2,500 a
 *         second. One queue for the four: 1 ms, 4,000 a second.
 */
#include "control/shadow-device.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PASSES      128.0       /* of a level that count */
#define TRUST       16.0        /* passes that the law is worth */
#define NEAR_RATIO  0.7         /* weight of the next level: for the correction of the law */
#define NEAR_SEEN   0.4         /* the same, for how much is known about it */
#define NEAR_PACE   0.92        /* the same, for the pace */
#define RECENT      (1.0 / 256) /* weight of a request in moving averages */
#define RENEW       256         /* requests after which the law is fitted anew */
#define REORDER     1024        /* requests among which the most that one passed is looked for */
#define DEEP        3           /* times the work in service: then the queues can be told apart */
#define FLAT        0.1         /* time grows with less than this power of the work: not at all */
#define LEAST_LIGHT 3           /* requests that count as light if there are no others */
/* Exponents of the norm. */
#define NORM_QUEUES 1.22
#define NORM_DOUBT  2.2
#define NORM_ONE    64.0 /* and more: ∞ */

static unsigned level_of(double work)
{
	double at = 4 * log2(1 + fmax(work, 0));

	return at < SHADOW_LEVELS - 1 ? (unsigned)at : SHADOW_LEVELS - 1;
}

/* ---- the norm and its inverse */

static double norm(double p, double a, double b)
{
	double most = fmax(a, b), less = fmin(a, b);

	if (p >= NORM_ONE || most <= 0)
		return most;
	return most * pow(1 + pow(less / most, p), 1 / p);
}

/* a of norm(p, a, b) = c; 0 if c ≤ b. */
static double unnorm(double p, double c, double b)
{
	if (c <= b)
		return 0;
	if (p >= NORM_ONE)
		return c;
	return c * pow(1 - pow(b / c, p), 1 / p);
}

/* By the law. */
static double time_of(double p, double alone, double own, double work, double pace)
{
	double others = fmax(work - own, 0);

	return fmax(norm(p, alone, others * pace), work * pace);
}

static double norm_of(enum shadow_queues q)
{
	return q == SHADOW_ONE ? NORM_ONE : q == SHADOW_EACH ? NORM_QUEUES : NORM_DOUBT;
}

/* ---- observing */

static void add_level(struct shadow_level *l, const struct shadow_sample *s, double ns)
{
	l->n += 1;
	l->time += ns;
	l->inside += s->inside;
	l->passes += s->own / s->inside;
	if (l->passes > 2 * PASSES) {
		l->n /= 2;
		l->time /= 2;
		l->inside /= 2;
		l->passes /= 2;
	}
}

static void add_light(struct shadow_class *c, double others, double ns)
{
	struct shadow_light *most = &c->light[c->n_light];

	if (c->n_light < SHADOW_LIGHT) {
		c->n_light++;
	} else {
		/* From another one on each time: of equals each is replaced in turn. */
		most = &c->light[c->next];
		for (unsigned i = 1; i < SHADOW_LIGHT; i++)
			if (c->light[(c->next + i) % SHADOW_LIGHT].others > most->others)
				most = &c->light[(c->next + i) % SHADOW_LIGHT];
		c->next = (c->next + 1) % SHADOW_LIGHT;
		if (others > most->others)
			return;
	}
	*most = (struct shadow_light){others, ns};
}

static void note_recent(struct shadow_device *d, double ratio)
{
	float *r = &d->recent[d->at++ % SHADOW_RECENT];

	d->sum += ratio - *r;
	*r = (float)ratio;
}

static void average(struct shadow_device *d, const struct shadow_sample *s)
{
	double weight = fmax(1.0 / (double)d->learned, RECENT), off;

	d->own += weight * (s->own - d->own);
	d->own2 += weight * (s->own * s->own - d->own2);
	d->inside += weight * (s->inside - d->inside);
	if (d->learned % REORDER == 0) {
		d->passed[1] = d->passed[0];
		d->passed[0] = 0;
	}
	d->passed[0] = fmax(d->passed[0], s->inside - s->work);
	off = s->work - s->inside - d->ahead;
	d->ahead += weight * off;
	d->vary += weight * (off * off - d->vary);
}

/* ---- fitting */

static int by_others(const void *a, const void *b)
{
	double x = ((const struct shadow_light *)a)->others,
	       y = ((const struct shadow_light *)b)->others;

	return (x > y) - (x < y);
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct shadow_light *)a)->ns, y = ((const struct shadow_light *)b)->ns;

	return (x > y) - (x < y);
}

/* The value at a place of n in order, between two of them. */
static double value_at(const struct shadow_light *l, unsigned n, double at)
{
	unsigned i = at > 0 ? (unsigned)at : 0;

	if (i + 1 >= n)
		return l[n - 1].ns;
	return l[i].ns + (l[i + 1].ns - l[i].ns) * fmax(at - i, 0);
}

/* Whether the n-th lightest request of a class had less than `work` beside it; the first few may have more. */
static bool is_light(
	const struct shadow_light *l, unsigned n, const struct shadow_class *c, double work)
{
	return n < c->n_light && (l->others < work || (n < LEAST_LIGHT && l->others < 2 * work));
}

static void set_alone(struct shadow_class *c, double alone, double off)
{
	c->alone = fmax(alone, c->least);
	c->low = fmax(alone / (1 + off), c->least);
	c->high = alone * (1 + off);
}

/* One queue: requests that found a part free. The device has as many parts as it was seen to reorder among, as far as that
 * agrees with these. */
static void fit_one_queue(
	struct shadow_class *c, const struct shadow_light *l, double pace, double parts)
{
	double sum = 0, square = 0, mean, off;
	unsigned n = 0;

	for (; is_light(&l[n], n, c, parts); n++) {
		sum += l[n].ns;
		square += l[n].ns * l[n].ns;
	}
	if (!n)
		return;
	mean = sum / n;
	off = fmax(2 * sqrt(fmax(square / n - mean * mean, 0) / n) / mean, 1.0 / n / n);
	/* What it passes is seen all the time, these only now and then. */
	set_alone(c, fmax(fmin(parts * pace, mean * (1 + 2 * off)), mean / (1 + 2 * off)), off / 2);
}

/* A queue for each part: some of the requests waited, the more the more were inside; the others took least. The median of
 * those: a few may wait for long. */
static void fit_queues(
	struct shadow_class *c, const struct shadow_light *l, double parts, bool doubt)
{
	struct shadow_light some[SHADOW_LIGHT];
	double idle = 0, sum = 0, median, middle;
	unsigned n = 0;

	for (; is_light(&l[n], n, c, 0.6 * parts); n++) {
		some[n] = l[n];
		sum += l[n].ns;
		idle += exp(-l[n].others / parts);
	}
	if (!n)
		return;
	qsort(some, n, sizeof(*some), by_time);
	median = value_at(some, n, idle / 2 - 0.5);
	middle = value_at(some, n, idle * 0.75 - 0.5) - value_at(some, n, idle * 0.25 - 0.5);
	set_alone(c, median, fmax(2 * middle / median / sqrt(idle), 0.5 / n));
	if (doubt) /* perhaps none of them waited */
		c->high = fmax(c->high, sum / n);
}

/* The time alone of a class, by the requests with least beside them. */
static void fit_class(
	struct shadow_class *c, enum shadow_queues queues, double pace, double own, double passed)
{
	struct shadow_light l[SHADOW_LIGHT];

	c->alone = pace > 0 ? fmin(c->least, own * pace) : c->least;
	c->low = 0;
	c->high = c->least;
	memcpy(l, c->light, sizeof(l));
	qsort(l, c->n_light, sizeof(*l), by_others);
	if (queues == SHADOW_ONE) {
		fit_one_queue(c, l, pace, own + passed);
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		fit_queues(c, l, pace > 0 ? fmax(c->alone / pace, own) : HUGE_VAL,
			queues == SHADOW_DOUBT);
}

struct fit {
	double p, own, alone; /* of the mix */
	/* Of levels that were passed: the least time per work inside, and the least time. */
	double fastest, shortest;
	double sum[SHADOW_LEVELS], weight[SHADOW_LEVELS];
};

/* Adds to each what all others have, the less the farther they are. */
static void spread(double *x, double nearer)
{
	double below = 0, above[SHADOW_LEVELS + 1];

	above[SHADOW_LEVELS] = 0;
	for (int i = SHADOW_LEVELS - 1; i >= 0; i--)
		above[i] = nearer * (above[i + 1] + x[i]);
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		double own = x[i];

		x[i] += nearer * below + (i + 1 < SHADOW_LEVELS ? above[i + 1] : 0);
		below = nearer * below + own;
	}
}

static void fit_pace(struct shadow_device *d, struct fit *f)
{
	memset(f->sum, 0, sizeof(f->sum));
	memset(f->weight, 0, sizeof(f->weight));
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		const struct shadow_level *l = &d->level[i];
		double work, time, queue, deep, pace, weight;

		if (l->passes <= 0)
			continue;
		work = l->inside / l->n;
		time = l->time / l->n;
		queue = unnorm(f->p, time, f->alone);
		pace = fmin(work > f->own ? queue / (work - f->own) : 0, l->time / l->inside);
		/* While the first come, much is begun and little finished. */
		deep = fmax(1 - f->alone / time, 0.05);
		weight = l->n * l->passes / (l->passes + 1) * pow(deep * queue / time, 2);
		f->sum[level_of(work)] += weight * pace;
		f->weight[level_of(work)] += weight;
	}
	spread(f->sum, NEAR_PACE);
	spread(f->weight, NEAR_PACE);
	for (int i = 0; i < SHADOW_LEVELS; i++)
		d->law[i].pace = f->weight[i] > 0 ? fmin(f->sum[i] / f->weight[i], f->fastest) : 0;
}

static void fit_ratio(struct shadow_device *d, struct fit *f)
{
	double near[SHADOW_LEVELS];

	memset(f->sum, 0, sizeof(f->sum));
	memset(f->weight, 0, sizeof(f->weight));
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		const struct shadow_level *l = &d->level[i];
		double work, law, weight;
		unsigned at;

		if (l->passes <= 0)
			continue;
		work = l->inside / l->n;
		at = level_of(work);
		law = time_of(f->p, f->alone, f->own, work, d->law[at].pace);
		weight = fmin(l->passes, PASSES);
		f->sum[at] += weight * log(l->time / l->n / law);
		f->weight[at] += weight;
	}
	spread(f->sum, NEAR_RATIO);
	memcpy(near, f->weight, sizeof(near));
	spread(near, NEAR_SEEN);
	spread(f->weight, NEAR_RATIO);
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		d->law[i].passes = near[i];
		d->law[i].ratio = exp(f->sum[i] / (f->weight[i] + TRUST));
	}
}

/* Return true if the time was seen not to grow with the work inside: requests do not wait for each other. */
static bool is_flat(const struct shadow_device *d)
{
	double n = 0, x = 0, y = 0, xx = 0, xy = 0, vary;

	for (int i = 0; i < SHADOW_LEVELS; i++) {
		const struct shadow_level *l = &d->level[i];
		double weight = fmin(l->passes, PASSES), work, time;

		if (weight <= 0)
			continue;
		work = log(l->inside / l->n);
		time = log(l->time / l->n);
		n += weight;
		x += weight * work;
		y += weight * time;
		xx += weight * work * work;
		xy += weight * work * time;
	}
	if (n < PASSES)
		return false;
	vary = xx / n - x / n * (x / n);
	return vary > 0.02 && xy / n - x / n * (y / n) < FLAT * vary;
}

/* One queue for the whole device, or one for each of its parts? */
static void fit_queues_of(struct shadow_device *d, const struct fit *f)
{
	double pace = d->law[level_of(d->inside)].pace, parts, deep, spread;

	d->queues = is_flat(d) ? SHADOW_ONE : SHADOW_DOUBT;
	if (pace <= 0 || f->alone <= 0)
		return;
	parts = fmax(f->alone / pace, f->own);
	deep = fmin(d->inside / parts, 16);
	if (deep < DEEP)
		return;
	spread = log(fmax(sqrt(d->vary) / parts, 1)) / log(sqrt(deep));
	d->queues = spread < 0.5 ? SHADOW_ONE : SHADOW_EACH;
}

/* By the law no level is faster than the pace, and at none a request takes less than alone. */
static void fit_bounds(const struct shadow_device *d, struct fit *f)
{
	f->fastest = f->shortest = HUGE_VAL;
	for (int i = 0; i < SHADOW_LEVELS; i++) {
		const struct shadow_level *l = &d->level[i];
		double slack; /* a mean of few may be off */

		if (l->passes < 1)
			continue;
		slack = 1 + 2 / sqrt(l->n);
		f->fastest = fmin(f->fastest, slack * l->time / l->inside);
		f->shortest = fmin(f->shortest, slack * l->time / l->n);
	}
}

/* The times alone, by the pace as it was. */
static void fit_classes(struct shadow_device *d, struct fit *f)
{
	double pace = d->law[level_of(f->own)].pace, passed = fmax(d->passed[0], d->passed[1]);
	double work = 0;

	f->alone = 0;
	for (int i = 0; i < SHADOW_CLASSES; i++) {
		struct shadow_class *c = &d->class_[i];

		if (c->least <= 0)
			continue;
		fit_class(c, d->queues, pace, f->own, passed);
		f->alone += c->work * c->alone;
		work += c->work;
		c->work /= 2;
	}
	f->alone = work > 0 ? f->alone / work : 0;
	for (int i = 0; i < SHADOW_CLASSES && f->alone > f->shortest; i++) {
		d->class_[i].alone *= f->shortest / f->alone;
		d->class_[i].low *= f->shortest / f->alone;
		d->class_[i].high *= f->shortest / f->alone;
	}
	f->alone = fmin(f->alone, f->shortest);
}

static void fit(struct shadow_device *d)
{
	struct fit f = {.own = d->own > 0 ? d->own2 / d->own : 0};

	fit_bounds(d, &f);
	fit_classes(d, &f);
	fit_queues_of(d, &f);
	f.p = norm_of(d->queues);
	fit_pace(d, &f);
	fit_ratio(d, &f);
	d->renewed = d->learned;
}

void shadow_device_learn(struct shadow_device *d, const struct shadow_sample *s)
{
	struct shadow_class *c = &d->class_[s->class_];
	double ns = (double)(s->ns > 1 ? s->ns : 1);
	struct shadow_time t;

	if (d->learned >= RENEW / 4 && shadow_device_expect(d, s->class_, s->own, s->inside, &t))
		note_recent(d, fmin(ns / fmax(t.mean, 1), 8));
	if (c->least <= 0 || ns < c->least)
		c->least = ns;
	d->learned++;
	c->work += s->own;
	add_light(c, s->inside - s->own, ns);
	add_level(&d->level[level_of(s->inside)], s, ns);
	average(d, s);
	if (d->learned - d->renewed >= RENEW || d->learned - d->renewed > d->learned / 16)
		fit(d);
}

/* ---- asking */

/* A class that was never seen takes what the nearest one does; -1: none was. */
static int seen_class(const struct shadow_device *d, unsigned class_)
{
	for (int off = 0; off < SHADOW_CLASSES; off++) {
		int below = (int)class_ - off, above = (int)class_ + off;

		if (below >= 0 && d->class_[below].least > 0)
			return below;
		if (above < SHADOW_CLASSES && d->class_[above].least > 0)
			return above;
	}
	return -1;
}

bool shadow_device_expect(const struct shadow_device *d, unsigned class_, double own, double work,
	struct shadow_time *ret)
{
	int known = seen_class(d, class_);
	const struct shadow_law *l = &d->law[level_of(work)];
	const struct shadow_class *c;
	double p = norm_of(d->queues), mean, doubt, fast, slow, off;

	if (known < 0 || !d->renewed)
		return false;
	c = &d->class_[known];
	mean = time_of(p, c->alone, own, work, l->pace);
	fast = time_of(d->queues == SHADOW_EACH ? 1.5 : NORM_ONE, c->low, own, work, l->pace);
	slow = time_of(d->queues == SHADOW_ONE ? 3 : 1.1, c->high, own, work, l->pace);
	doubt = TRUST / (TRUST + l->passes);
	off = 1 + 0.5 / sqrt(TRUST + l->passes);
	ret->mean = fmax(mean * l->ratio, c->least);
	ret->low = ret->mean * pow(fmin(fast / mean, 1), doubt) / off;
	ret->high = ret->mean * pow(fmax(slow / mean, 1), doubt) * off;
	return true;
}

weir_time shadow_device_draw(struct shadow_device *d, double mean)
{
	/* One after the other: a ratio that is drawn again until the next is learned would be drawn the more often the shorter
	 * the times that it makes. */
	double ratio = d->at >= SHADOW_RECENT ? d->recent[d->drawn++ % SHADOW_RECENT] : 1;
	double all = d->at >= SHADOW_RECENT ? d->sum / SHADOW_RECENT : 1;

	return (weir_time)fmax(mean * (all > 0 ? fmin(ratio / all, 8) : 1), 1000);
}
