/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     time = least(class) + f(W), W the work that the device finishes while the request is inside, its own
 *         too. Served in order, that is what was inside before it; in any other order and a steady state it is
 *         what is inside, by Little's law; and while more and more comes inside, f(W)/W is still the device's
 *         speed. Between two bins that were seen f is linear; below the first and beyond the last it
 *         is in proportion to W, which is a device that is always busy.
 *         Where requests went in beside as much work before, their mean time is known and nothing has to be inferred.
 * METHOD  Bins of W, four an octave, each with the mean of the first 64 samples and then a moving one; and the same by the work
 *         inside when a request went in. Requests that overlap in time say the same: only those that do not,
 *         the passes of a bin, count as evidence. What was seen in passing, while a burst came or went, is not what is
 *         seen when all is steady: a queue grows because the device is slow at the moment.
 *         A bin of few passes is taken together with the pace of full bins above it, as if that were eight passes more;
 *         and no time is shorter than at that pace: a device is not faster with less inside. A bin by the work inside
 *         counts for passes/64. Where more was finished than was inside, more came later: its time is taken in proportion.
 *         Low and high: a mean of k samples is off by 1/√k of what a single one is, about a half. With less
 *         inside than usual, parts of the device may be idle: then the time lies between that of a device
 *         that is always busy, in proportion to W, and one that takes as long for less. And a device that orders what is
 *         inside is slower with less, at any depth: the time may be as of W^(1 − ORDER).
 * EXAMPLE A server of 1 ms: 20 inside, 20 ms. With a window of 8 shadows take 8 ms each: 1,000 a second.
 */
#include "ctl/shadow-device.h"
#include <math.h>

#define SAMPLES    64
#define PROPORTION 8    /* passes that the pace is worth */
#define NEARER     0.84 /* of the weight of the bin before: half an octave on */
#define PARALLEL   24   /* requests that a device may serve at once */
#define ORDER      0.35 /* the time may be as of W^(1 - ORDER), however much is inside */

static unsigned bin_of(double work)
{
	double at = 4 * log2(1 + fmax(work, 0));

	return at < SHADOW_BINS - 1 ? (unsigned)at : SHADOW_BINS - 1;
}

static double expect(
	const struct shadow_device *d, unsigned class_, double work, bool alone, double *ret_off);

static void note_recent(struct shadow_device *d, double ratio)
{
	float *r = &d->recent[d->at++ % SHADOW_RECENT];

	d->sum += ratio - *r;
	*r = (float)ratio;
}

struct sample {
	weir_time from, to;
	double ns;       /* beyond the least */
	double finished; /* work, meanwhile */
};

static void add_sample(struct shadow_bin *b, double work, const struct sample *s)
{
	double weight;

	if (b->n < SAMPLES)
		b->n++;
	if (s->from >= b->until) {
		b->passes += b->passes < SAMPLES;
		b->until = s->to;
	}
	weight = 1.0 / b->n;
	b->work += weight * (work - b->work);
	b->ns += weight * (s->ns - b->ns);
	b->finished += weight * (s->finished - b->finished);
}

void shadow_device_learn(struct shadow_device *d, weir_time now, unsigned class_, double inside,
	double work, weir_time ns)
{
	double *least = &d->least[class_], time = (double)(ns > 1 ? ns : 1), off;
	struct sample s = {.from = now - ns, .to = now, .finished = work};

	if (d->beside[bin_of(inside)].n >= SAMPLES / 4)
		note_recent(d, fmin(time / fmax(expect(d, class_, inside, false, &off), 1), 8));
	if (*least <= 0 || time < *least)
		*least = time;
	s.ns = time - *least;
	add_sample(&d->bin[bin_of(work)], work, &s);
	add_sample(&d->beside[bin_of(inside)], inside, &s);
}

/* The nearest bins that were seen, at or below `work` and above; -1: none. */
static void neighbours(const struct shadow_bin *bin, double work, int *ret_low, int *ret_high)
{
	int b = (int)bin_of(work), low = b, high;

	if (bin[b].n && bin[b].work > work)
		low--;
	high = low + 1;
	while (low >= 0 && !bin[low].n)
		low--;
	while (high < SHADOW_BINS && !bin[high].n)
		high++;
	*ret_low = low;
	*ret_high = high < SHADOW_BINS ? high : -1;
}

/* How long a device that is always busy takes per work, by the full bins above `work`, the nearest and those of two octaves
 * beyond it; nearer ones count for more, since some devices are faster with more inside. 0: there are none. */
static double busy_pace(const struct shadow_device *d, unsigned class_, double work)
{
	double sum = 0, weights = 0, weight = 1;

	for (int b = (int)bin_of(work); b < SHADOW_BINS && weight > 0.2; b++) {
		const struct shadow_bin *bin = &d->bin[b];

		if (bin->n == SAMPLES && bin->work > work) {
			sum += weight * (d->least[class_] + bin->ns) / bin->work;
			weights += weight;
		}
		if (weights > 0)
			weight *= NEARER;
	}
	return weights > 0 ? sum / weights : 0;
}

/* The time of a bin. Where more was finished meanwhile than was inside, more came later. If it went first, the request waited for
 * it, and with no such would have taken as long as its part of the work; `alone`: it is taken not to have waited. */
static double time_of(const struct shadow_bin *b, bool alone)
{
	return alone || b->finished <= 0 ? b->ns : b->ns * b->work / b->finished;
}

/* f(work) by linear interpolation between bins; *ret_n: passes that it rests on. */
static double interpolate(const struct shadow_bin *bin, double work, bool alone, double *ret_n)
{
	double from = 0, f = 0, n = 0;
	int low, high;

	neighbours(bin, work, &low, &high);
	if (low >= 0) {
		from = bin[low].work;
		f = time_of(&bin[low], alone);
		n = bin[low].passes;
	}
	if (high >= 0) {
		double to = bin[high].work, part = to > from ? (work - from) / (to - from) : 1;

		f += (time_of(&bin[high], alone) - f) * part;
		n += (bin[high].passes - n) * part;
	} else if (from > 0) {
		f *= work / from;
	}
	*ret_n = n;
	return f;
}

/* *ret_off: by what part it may be off because of few samples. */
static double expect(
	const struct shadow_device *d, unsigned class_, double work, bool alone, double *ret_off)
{
	double n, f = interpolate(d->bin, work, alone, &n), pace = busy_pace(d, class_, work);
	double m = d->beside[bin_of(work)].passes, of_all, seen;

	if (pace > 0) {
		double least = d->least[class_], busy = fmax(pace * work - least, 0);

		f += (busy - f) * PROPORTION / (n + PROPORTION);
		f = fmax(f, busy);
	}
	/* As much was inside before: no need to infer. */
	seen = interpolate(d->beside, work, alone, &of_all);
	f += (seen - f) * m / SAMPLES;
	n = fmax(d->bin[bin_of(work)].n + (pace > 0 ? PROPORTION : 0), m);
	*ret_off = 0.5 / sqrt(fmax(n, 1));
	return d->least[class_] + f;
}

/* At most how long a request takes with `work` inside: parts of the device may be idle, but with less inside it is not slower
 * than in the nearest passes with as much or more. */
static double longest(
	const struct shadow_device *d, unsigned class_, double own, double work, double mean)
{
	double passes = 0, ns = 0, usual = 0;

	for (unsigned b = bin_of(work); b < SHADOW_BINS && passes < PROPORTION; b++) {
		passes += d->beside[b].passes;
		ns += d->beside[b].passes * d->beside[b].ns;
		usual = d->beside[b].work;
	}
	if (passes < PROPORTION)
		return mean;
	ns = d->least[class_] + ns / passes * (1 + 2 / sqrt(passes));
	return fmin(ns, mean * fmax(fmin(usual, PARALLEL * own) / work, 1));
}

/* By what factor a request may take longer because a device orders less work less well (an elevator does). */
static double less_inside(const struct shadow_device *d, double work)
{
	unsigned b = bin_of(work), usual = b;
	double share = PROPORTION / (PROPORTION + (double)d->beside[b].n);

	while (usual < SHADOW_BINS && d->beside[usual].n < SAMPLES)
		usual++;
	return usual < SHADOW_BINS ? exp2((usual - b) / 4.0 * ORDER * share) : 1;
}

/* A class that was never seen takes what the nearest one does; -1: none was. */
static int seen_class(const struct shadow_device *d, unsigned class_)
{
	for (int off = 0; off < SHADOW_CLASSES; off++) {
		int below = (int)class_ - off, above = (int)class_ + off;

		if (below >= 0 && d->least[below] > 0)
			return below;
		if (above < SHADOW_CLASSES && d->least[above] > 0)
			return above;
	}
	return -1;
}

bool shadow_device_expect(const struct shadow_device *d, unsigned class_, double own, double work,
	struct shadow_time *ret)
{
	int known = seen_class(d, class_);
	double off;

	if (known < 0)
		return false;
	ret->high = expect(d, (unsigned)known, work, true, &off);
	ret->mean = expect(d, (unsigned)known, work, false, &off);
	ret->low = ret->mean / (1 + off);
	ret->high = fmax(ret->high, longest(d, (unsigned)known, own, work, ret->mean));
	ret->high = fmax(ret->high, ret->mean * less_inside(d, work));
	ret->high = fmax(ret->high, ret->mean) * (1 + off);
	return true;
}

weir_time shadow_device_draw(struct shadow_device *d, double mean)
{
	/* One after the other: a ratio that is drawn again until the next is learned would be drawn the more often the shorter
	 * the times that it makes. */
	double ratio = d->at >= SHADOW_RECENT ? d->recent[d->drawn++ % SHADOW_RECENT] : 1;
	double all = d->at >= SHADOW_RECENT ? d->sum / SHADOW_RECENT : 1;

	return (weir_time)fmax(mean * (all > 0 ? ratio / all : 1), 1000);
}
