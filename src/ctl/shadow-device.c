/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LAW     time = least(class) + f(W), W the work that the device finishes while the request is inside, its own
 *         too. Served in order, that is what was inside before it; in any other order and a steady state it is
 *         what is inside, by Little's law; and while more and more comes inside, f(W)/W is still the device's
 *         speed. Between two bins that were seen f is linear; below the first and beyond the last it
 *         is in proportion to W, which is a device that is always busy.
 * METHOD  Bins of W, four an octave, each with the mean of the first 64 samples and then a moving one. A bin of
 *         few samples is taken together with the proportion from a bin above that has 64, as if that were
 *         eight samples more: what was seen in passing, while a burst came or went, is not what is seen
 *         when all is steady.
 *         No time is shorter than at the speed of that bin: a device is not faster with less inside.
 *         Low and high: a mean of k samples is off by 1/√k of what a single one is, about a half. With less
 *         inside than usual, parts of the device may be idle: between a device that is always busy, with
 *         times in proportion to W, and one that takes as long for less, the time may be as of W^(1 − IDLE).
 * EXAMPLE A server of 1 ms: 20 inside, 20 ms. With a window of 8 shadows take 8 ms each: 1,000 a second.
 */
#include "ctl/shadow-device.h"
#include <math.h>

#define SAMPLES    64
#define PROPORTION 8 /* samples that the proportion is worth */
#define IDLE       0.35

static unsigned bin_of(double work)
{
	double at = 4 * log2(1 + fmax(work, 0));

	return at < SHADOW_BINS - 1 ? (unsigned)at : SHADOW_BINS - 1;
}

static double expect(const struct shadow_device *d, unsigned class_, double work, double *ret_off);

static void note_recent(struct shadow_device *d, double ratio)
{
	float *r = &d->recent[d->at++ % SHADOW_RECENT];

	d->sum += ratio - *r;
	*r = (float)ratio;
}

void shadow_device_learn(
	struct shadow_device *d, unsigned class_, double inside, double work, weir_time ns)
{
	double *least = &d->least[class_], time = (double)(ns > 1 ? ns : 1), weight, off;
	unsigned b = bin_of(work), beside = bin_of(inside);

	d->bin[beside].inside += d->bin[beside].inside < SAMPLES;
	if (d->bin[b].n >= SAMPLES / 4)
		note_recent(d, fmin(time / fmax(expect(d, class_, work, &off), 1), 8));
	if (*least <= 0 || time < *least)
		*least = time;
	if (d->bin[b].n < SAMPLES)
		d->bin[b].n++;
	weight = 1.0 / d->bin[b].n;
	d->bin[b].work += weight * (work - d->bin[b].work);
	d->bin[b].ns += weight * (time - *least - d->bin[b].ns);
}

/* The nearest bins that were seen, at or below `work` and above; -1: none. */
static void neighbours(const struct shadow_device *d, double work, int *ret_low, int *ret_high)
{
	int b = (int)bin_of(work), low = b, high;

	if (d->bin[b].n && d->bin[b].work > work)
		low--;
	high = low + 1;
	while (low >= 0 && !d->bin[low].n)
		low--;
	while (high < SHADOW_BINS && !d->bin[high].n)
		high++;
	*ret_low = low;
	*ret_high = high < SHADOW_BINS ? high : -1;
}

/* The nearest bin above that is full; -1: none. */
static int full_above(const struct shadow_device *d, double work)
{
	for (int b = (int)bin_of(work); b < SHADOW_BINS; b++)
		if (d->bin[b].n == SAMPLES && d->bin[b].work > work)
			return b;
	return -1;
}

/* *ret_off: by what part it may be off because of few samples. */
static double expect(const struct shadow_device *d, unsigned class_, double work, double *ret_off)
{
	double from = 0, f = 0, n = 0;
	int low, high, full = full_above(d, work);

	neighbours(d, work, &low, &high);
	if (low >= 0) {
		from = d->bin[low].work;
		f = d->bin[low].ns;
		n = d->bin[low].n;
	}
	if (high >= 0) {
		double to = d->bin[high].work, part = to > from ? (work - from) / (to - from) : 1;

		f += (d->bin[high].ns - f) * part;
		n += (d->bin[high].n - n) * part;
	} else if (from > 0) {
		f *= work / from;
	}
	if (full >= 0) {
		double share = PROPORTION / (n + PROPORTION), part = work / d->bin[full].work;

		f += (d->bin[full].ns * part - f) * share;
		f = fmax(f, (d->least[class_] + d->bin[full].ns) * part - d->least[class_]);
		n += PROPORTION;
	}
	*ret_off = 0.5 / sqrt(fmax(n, 1));
	return d->least[class_] + f;
}

/* By what factor a time may be longer because parts of the device are idle. */
static double idle(const struct shadow_device *d, double work)
{
	unsigned b = bin_of(work), usual = b;
	double share = PROPORTION / (PROPORTION + (double)d->bin[b].inside);

	while (usual < SHADOW_BINS && d->bin[usual].inside < SAMPLES)
		usual++;
	return usual < SHADOW_BINS ? exp2((usual - b) / 4.0 * IDLE * share) : 1;
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

bool shadow_device_expect(
	const struct shadow_device *d, unsigned class_, double work, struct shadow_time *ret)
{
	int known = seen_class(d, class_);
	double off;

	if (known < 0)
		return false;
	ret->mean = expect(d, (unsigned)known, work, &off);
	ret->low = ret->mean / (1 + off);
	ret->high = ret->mean * (1 + off) * idle(d, work);
	return true;
}

weir_time shadow_device_draw(struct shadow_device *d, double mean)
{
	double ratio = d->at >= SHADOW_RECENT ? d->recent[d->at % SHADOW_RECENT] : 1;
	double all = d->at >= SHADOW_RECENT ? d->sum / SHADOW_RECENT : 1;

	return (weir_time)fmax(mean * (all > 0 ? ratio / all : 1), 1000);
}
