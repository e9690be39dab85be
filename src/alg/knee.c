/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SOURCE  Ours; PARDA (Gulati et al., FAST 2009, §3.2) names it as work to come: "automatic techniques
 *         for setting this parameter based on long-term observations of latency and throughput".
 * LAW     X(L) is the throughput that the resource does at latency L. The knee is the least L with
 *         X(L) ≥ p · max X.
 * SYMBOLS X requests per second; L ns; p a part, 0.95.
 * METHOD  X(L) is kept in bins of L, 12 % wide. An interval's throughput moves its bin up by a third of
 *         the difference, or down by a sixteenth: at a time of little demand less is done than could
 *         be, and the curve is the upper edge of what is seen. Between the last bin below p · max X and
 *         the first above it the knee is interpolated.
 *         What to ask for: as long as nothing is known below the knee, 3/4 of it, so that the search
 *         goes down from `most`. Then two turns just above the knee, one at 3/4 of it, two, one at 4/3: the curve on
 *         both sides stays fresh, and a knee that moved is followed by a third in each round.
 *         O(bins) an interval.
 * DIFFERS From the point of greatest power X/L, which on an array gives up a quarter of the throughput.
 * EXAMPLE A resource that does W/5 ms up to 3200 a second: X(L) = 3200 from 5 ms on: the knee is 5 ms.
 */
#include "alg/knee.h"
#include <math.h>
#include <string.h>

#define SEEN_ENOUGH 3   /* intervals: one may have been a transient */
#define LOOK_COSTS  0.9 /* of what is had at the knee: below it the look is over */
#define ABOVE                                                                                      \
	1.06 /* half a bin: where the knee is sharp, a little less latency cannot be had at all */
#define FIRST 1e3 /* ns: the lower edge of bin 0 */

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
}

static double middle(int bin)
{
	return FIRST * exp2((bin + 0.5) / KNEE_OCTAVE);
}

static void observe(struct knee *k, double latency, double rate)
{
	double place = floor(log2(latency / FIRST) * KNEE_OCTAVE);
	struct knee_bin *b;

	if (!(latency > 0) || !(rate > 0) || !(place >= 0) || place >= KNEE_BINS)
		return;
	b = &k->bins[(int)place];
	if (b->n == 0)
		b->rate = rate;
	b->rate += (rate - b->rate) / (rate > b->rate ? 3 : 16);
	b->n++;
	b->seen = k->now;
}

static bool known(const struct knee_bin *b)
{
	return b->n >= SEEN_ENOUGH;
}

static void forget(struct knee *k)
{
	for (int i = 0; i < KNEE_BINS; i++) {
		if (k->bins[i].n && k->now - k->bins[i].seen > k->config.memory)
			k->bins[i] = (struct knee_bin){0};
	}
}

/* The knee by what is known; *ret_below: something is known to be below it; *ret_most: the most
 * throughput. */
static double find(const struct knee *k, bool *ret_below, double *ret_most)
{
	double most = 0, wanted;
	int last = -1; /* known, and below */

	for (int i = 0; i < KNEE_BINS; i++) {
		if (known(&k->bins[i]))
			most = fmax(most, k->bins[i].rate);
	}
	wanted = k->config.part * most;
	*ret_most = most;
	*ret_below = false;
	for (int i = 0; most > 0 && i < KNEE_BINS; i++) {
		const struct knee_bin *b = &k->bins[i];

		if (!known(b))
			continue;
		if (b->rate < wanted) {
			last = i;
			continue;
		}
		*ret_below = last >= 0;
		if (last < 0)
			return middle(i);
		return middle(last) *
		       pow(middle(i) / middle(last),
			       (wanted - k->bins[last].rate) / (b->rate - k->bins[last].rate));
	}
	return 0;
}

double knee_step(struct knee *k, double latency, double rate)
{
	static const double turns[] = {ABOVE, ABOVE, 0.75, ABOVE, ABOVE, 4.0 / 3};
	double most;
	bool below;

	k->now++;
	observe(k, latency, rate);
	forget(k);
	k->knee = find(k, &below, &most);
	/* A look below costs throughput: no longer than until it is seen that it does. */
	if (k->asked < k->knee && rate < LOOK_COSTS * k->config.part * most)
		k->asked = k->knee * ABOVE;
	if (k->now % k->config.dwell == 0) {
		double factor = below ? turns[k->phase++ % 6] : 0.75;

		if (k->knee > 0)
			k->asked = fmax(k->config.least, fmin(k->knee * factor, k->config.most));
	}
	return k->asked;
}
