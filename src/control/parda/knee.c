/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Our own; PARDA (Gulati et al., FAST 2009, §3.2) names it as future work: "automatic
 *         techniques for setting this parameter based on long-term observations of latency and
 *         throughput". The fit is Ayer et al.'s (Ann. Math. Stat. 26, 1955): pool adjacent
 *         violators.
 * LAW     With N requests inside, a resource serves X(N) a second, and each takes L(N) = N / X(N).
 *         X does not fall with N. The knee is L(N*), N* the least N with X(N) ≥ p · max X.
 * SYMBOLS N requests; X per second; L ns; p a part, 0.95.
 * METHOD  The curve is kept over N, which windows set; X and L follow from it. (Over L it is no
 *         curve: at a sharp knee, one latency goes with any throughput below it. And a disturbance
 *         makes X less and L more at the same N: over L that is a point far off, over N one to be
 *         averaged.) N is binned, 12 % a bin, with the weighted means of X and L. An interval
 *         weighs 1 / (1 + (d / CHANGE)²), where d is the change of N since the previous interval,
 *         and its distance from the windows, as logarithms: measurements while load moves are not
 *         of one moment at all hosts, and if demand comes and goes, throughput is below the
 *         maximum. A bin's weight halves in HALF intervals.
 *         The bins' rates are fitted by the nearest curve that does not fall; so the maximum is the
 *         mean of a plateau and not its luckiest bin. The maximum is the highest value of the curve
 *         less its standard error, and a bin is below the knee if it is so by more than its own:
 *         the error of an interval is learned, that of a mean is it / √weight. Between the last bin
 *         below p · max X and the first above, the knee is interpolated; L does not fall with N
 *         either.
 *         The latency to ask for: as long as nothing is known below the knee, 3/4 of it, so that
 *         the search goes down from `most`. Then, in turns, 4/3 of the knee, just above it, a
 *         little below it; and again, with 3/4 at the end: the curve stays fresh on both sides, and
 *         near by. (After a look below comes one above, since windows that have become small grow
 *         soonest for a distant latency.) A look below ends when it has cost more than chance
 *         would.
 *         A resource that has changed: if windows are full and throughput is below that at the knee
 *         for a whole turn, the search goes up, by a third each turn; if that does not help, or if
 *         intervals are far from well-known bins, all is forgotten. O(bins) an interval.
 * DIFFERS From the upper edge of the observations at each latency, which follows every measurement
 *         error: 5 % too much in one interval moved the knee by a half. From the point of greatest
 *         power X/L, which on an array gives up a quarter of the throughput.
 * EXAMPLE A resource that serves N/5 ms up to 3200 a second: 95 % are reached with 15.2 inside: the
 *         knee is 5 ms.
 */
#include "control/parda/knee.h"
#include <math.h>
#include <string.h>

#define ENOUGH 0.25 /* weight of a bin that counts: a few intervals while load moved slowly */
#define KEPT   1.0  /* weight that does not fade: old knowledge stays, and gives way first */
/* change that halves an interval's weight: with it, hosts' sums were off by 2 % */
#define CHANGE     0.1
#define HALF       64.0 /* intervals: a round and a third */
#define NOISE      0.02 /* error of an interval's rate, until it is learned; … */
#define NOISE_MOST 0.1  /* … in one step, no more than this: the rest is no noise */
#define SURE       2.0  /* weight of a bin that is well known: … */
#define OTHER      0.2  /* … an interval so far from it is of another resource, … */
#define OTHERS     3    /* … if so many intervals at rest are, in a row */
#define UPS        3    /* turns up in a row without effect: then the knowledge is useless, too */
#define LOOK_COSTS 0.1  /* part of an interval's throughput at the knee that ends a look, … */
#define CHANCE     5.0  /* … and so many deviations more */
#define FULL       0.75 /* part of the windows: inside if they are the limit, and not demand */
#define ABOVE      1.06 /* half a bin: at a sharp knee, less latency is not possible at all */
#define UP         (4.0 / 3)
#define CLOSE      0.9 /* a bin below: the one that decides */
#define DOWN       0.75
#define TURNS      8
#define FIRST      0x1p-4 /* requests: the lower edge of bin 0 */

void knee_init(struct knee *k, const struct knee_config *config)
{
	memset(k, 0, sizeof(*k));
	if (config)
		k->config = *config;
	if (!(k->config.part > 0))
		k->config.part = 0.95;
	if (!(k->config.least > 0))
		k->config.least = 100.0 * WEIR_US;
	if (!(k->config.most > 0))
		k->config.most = 100.0 * WEIR_MS;
	if (k->config.dwell == 0)
		k->config.dwell = 6;
	if (k->config.memory == 0)
		k->config.memory = 1800; /* an hour of PARDA's periods */
	k->asked = k->config.most;
	k->variance = NOISE * NOISE;
}

/* ---- the curve */

static double weight_of(const struct knee_seen *s, const struct knee_seen *before)
{
	double change = fabs(log(s->inside / before->inside)) + fabs(log(s->inside / s->windows));

	change /= CHANGE;
	return 1 / (1 + change * change);
}

static double faded(const struct knee_bin *b, uint64_t now)
{
	return fmax(fmin(b->weight, KEPT), b->weight * exp2(-(double)(now - b->seen) / HALF));
}

static bool is_something(const struct knee_seen *s)
{
	return s->inside > 0 && s->windows > 0 && s->rate > 0 && s->latency > 0 &&
	       isfinite(s->inside + s->windows + s->rate + s->latency);
}

static bool known(const struct knee_bin *b)
{
	return b->weight >= ENOUGH;
}

static void forget_all(struct knee *k)
{
	memset(k->bins, 0, sizeof(k->bins));
	k->others = k->ups = 0;
}

/* Update the error: an interval's rate differed by `off` from its bin's, relative. */
static void compare(struct knee *k, const struct knee_bin *b, double weight, double off)
{
	double noise = fmin(fabs(off), NOISE_MOST);

	k->variance += (noise * noise - k->variance) * weight / HALF;
	if (b->weight >= SURE)
		k->others = fabs(off) > OTHER ? k->others + (weight > 0.5) : 0;
}

static void observe(struct knee *k, const struct knee_seen *s)
{
	double place = floor(log2(s->inside / FIRST) * KNEE_OCTAVE), weight;
	struct knee_bin *b;

	if (!is_something(s) || !is_something(&k->before) || !(place >= 0) || place >= KNEE_BINS)
		return;
	b = &k->bins[(int)place];
	weight = weight_of(s, &k->before);
	if (known(b))
		compare(k, b, weight, s->rate / b->rate - 1);
	if (k->others >= OTHERS)
		forget_all(k);
	b->weight = faded(b, k->now) + weight;
	b->rate += (s->rate - b->rate) * weight / b->weight;
	b->latency += (s->latency - b->latency) * weight / b->weight;
	b->seen = k->now;
}

static void forget(struct knee *k)
{
	for (int i = 0; i < KNEE_BINS; i++) {
		if (k->bins[i].weight > 0 && k->now - k->bins[i].seen > k->config.memory)
			k->bins[i] = (struct knee_bin){0};
	}
}

/* Return the relative error of a mean of this weight. */
static double error(const struct knee *k, double weight)
{
	return sqrt(k->variance / weight);
}

/* Fit the nearest rates that do not fall. Return the largest of them; 0: nothing is known. */
static double fit(struct knee *k)
{
	struct block { /* bins with one rate */
		double rate, weight;
		double seen; /* weight, when it was */
		int end;
	} blocks[KNEE_BINS];
	int n = 0, at = 0;
	double most = 0;

	for (int i = 0; i < KNEE_BINS; i++) {
		if (!known(&k->bins[i]))
			continue;
		blocks[n++] = (struct block){
			k->bins[i].rate, faded(&k->bins[i], k->now), k->bins[i].weight, i + 1};
		for (; n > 1 && blocks[n - 2].rate >= blocks[n - 1].rate; n--) {
			struct block *a = &blocks[n - 2], *b = &blocks[n - 1];

			a->rate += (b->rate - a->rate) * b->weight / (a->weight + b->weight);
			a->weight += b->weight;
			a->seen += b->seen;
			a->end = b->end;
		}
	}
	for (int i = 0; i < n; i++) {
		for (; at < blocks[i].end; at++)
			k->bins[at].fitted = blocks[i].rate;
		most = fmax(most, blocks[i].rate * (1 - error(k, blocks[i].seen)));
	}
	return most;
}

/* Return the knee, from above; *ret_below: something is known below it. Less inside never takes
 * longer: a bin that contradicts this was disturbed. */
static double find(const struct knee *k, double most, bool *ret_below)
{
	double wanted = k->config.part * most, fitted = 0;
	double latency = 0; /* of the last bin that is not below */

	*ret_below = false;
	for (int i = KNEE_BINS - 1; i >= 0 && !*ret_below; i--) {
		const struct knee_bin *b = &k->bins[i];
		double here = latency > 0 ? fmin(b->latency, latency) : b->latency;

		if (!known(b))
			continue;
		*ret_below = b->fitted * (1 + error(k, b->weight)) < wanted;
		if (!*ret_below) {
			latency = here;
			fitted = b->fitted;
		} else if (fitted > wanted) {
			latency = here +
				  (latency - here) * (wanted - b->fitted) / (fitted - b->fitted);
		}
	}
	return latency;
}

/* ---- what to ask for */

static void ask(struct knee *k, double latency)
{
	k->asked = fmax(k->config.least, fmin(latency, k->config.most));
	k->dwelt = k->missed = 0;
	k->lost = 0;
}

static void next_turn(struct knee *k, const struct knee_seen *s, bool below)
{
	static const double turns[] = {UP, ABOVE, ABOVE, CLOSE, UP, ABOVE, ABOVE, DOWN};

	if (k->missed >= k->config.dwell && k->asked >= k->knee) {
		if (++k->ups >= UPS)
			forget_all(k);
		ask(k, UP * fmax(k->asked, s->latency));
	} else if (k->knee > 0) {
		k->ups = 0;
		k->phase = below ? (k->phase + 1) % TURNS : TURNS - 1;
		ask(k, k->knee * turns[k->phase]);
	}
}

/* Count the throughput lost since `asked` was asked for, compared with the knee, unless demand is
 * the reason. */
static void count_loss(struct knee *k, const struct knee_seen *s, double most)
{
	double part = most > 0 ? s->rate / (k->config.part * most) : 1;

	if (!(s->inside > 0) || s->inside < FULL * s->windows)
		part = 1;
	k->lost = fmax(0, k->lost + 1 - part);
	k->missed += part < 1 - LOOK_COSTS;
}

double knee_step(struct knee *k, const struct knee_seen *seen)
{
	bool below;
	double most;

	k->now++;
	k->dwelt++;
	observe(k, seen);
	k->before = *seen;
	forget(k);
	most = fit(k);
	k->knee = find(k, most, &below);
	count_loss(k, seen, most);
	/* A look below costs throughput: end it as soon as that is certain. */
	if (k->asked < k->knee && k->lost > LOOK_COSTS + CHANCE * sqrt(k->variance))
		next_turn(k, seen, true);
	else if (k->dwelt >= k->config.dwell)
		next_turn(k, seen, below);
	return k->asked;
}
