/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/parley/waterfill-impl.h"
#include <math.h>
#include <string.h>

#define SAMPLE 64  /* nodes of a sample: its solution takes less than a pass over the level */
#define LARGE  512 /* nodes of a level from which a sample pays off */
/* Half the width of the interval around a sample's level, relative: two standard deviations of a mean
 * of SAMPLE values. A sample that is worse costs time, not accuracy. */
#define WIDTH 0.25
#define STEPS 8    /* of Newton's before halving begins */
#define SLACK 1e-9 /* relative: far more than sums are off by rounding */
/* Relative: a rate is a sum of two numbers, and its node's demand is summed in another order. */
#define ROUNDING 1e-14
#define BEYOND   4 /* of Newton's step: the interval reaches so far above it */

static const struct waterfill_passes *passes(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return &waterfill_passes_avx2;
#endif
	return &waterfill_passes_plain;
}

struct search { /* for λ with full + Σ min(e, λ·w) + λ·dry = rest, over n nodes */
	const struct waterfill_passes *by;
	const double *room, *weight;
	size_t n;
	double rest;
	double full, dry; /* sums over nodes that are settled */
};

/* Return the number in the middle of all floating-point numbers between low and high, both ≥ 0. */
static double halfway(double low, double high)
{
	uint64_t a, b;

	memcpy(&a, &low, sizeof(a));
	memcpy(&b, &high, sizeof(b));
	a += (b - a) / 2;
	memcpy(&low, &a, sizeof(low));
	return low;
}

/* Return λ; HUGE_VAL if all nodes together have less room than the rest. Begin at `level`. */
static double find_level(const struct search *s, double level)
{
	double low = 0, high = HUGE_VAL, ahead = 0; /* ahead: Newton's step from low */

	for (int i = 1;; i++) {
		struct waterfill_sums at = s->by->sums(s->room, s->weight, s->n, level);
		double full = s->full + at.full, dry = s->dry + at.dry, next = HUGE_VAL;
		bool below = dry > 0 ? full + level * dry <= s->rest : full <= s->rest;

		*(below ? &low : &high) = level;
		if (dry > 0)
			next = (s->rest - full) / dry;
		if (below && !(next > level))
			return level; /* no node becomes full between here and the solution */
		if (below)
			ahead = next;
		else if (!(next > ahead))
			next = ahead;
		if ((i > STEPS && i % 2) || !(next > low) || next > high)
			next = halfway(low, high);
		if (next == low || next == high)
			return next;
		level = next;
	}
}

/* Return the level of an evenly spaced sample of nodes; 0 if it tells nothing. */
static double sample_level(const struct search *s)
{
	double room[SAMPLE], weight[SAMPLE], level;
	struct search of = *s;

	for (size_t i = 0; i < SAMPLE; i++) {
		room[i] = s->room[i * s->n / SAMPLE];
		weight[i] = s->weight[i * s->n / SAMPLE];
	}
	of.room = room;
	of.weight = weight;
	of.n = SAMPLE;
	of.rest = s->rest * SAMPLE / (double)s->n;
	level = find_level(&of, 0);
	return level < HUGE_VAL ? level : 0;
}

/* Settle all nodes that do not become full between low and high. Do nothing if λ is not there. */
static void narrow(struct search *s, double low, double high, double *kept)
{
	struct waterfill_sums out;
	size_t k = s->by->between(s->room, s->weight, s->n, low, high, kept, &out);
	double *weight = kept + s->n, full = s->full + out.full, dry = s->dry + out.dry;

	if (full + low * (dry + s->by->sums(kept, weight, k, -1).dry) > s->rest ||
		full + s->by->sums(kept, weight, k, HUGE_VAL).full + high * dry < s->rest)
		return;
	*s = (struct search){s->by, kept, weight, k, s->rest, full, dry};
}

static void finish(struct waterfill *f, double level)
{
	struct waterfill_sums sums = passes()->finish(f, level);

	f->level = level;
	f->scaled = false;
	f->guaranteed = sums.given;
	f->full = sums.full;
	f->dry = sums.dry;
}

static void scale(struct waterfill *f, double by)
{
	for (size_t i = 0; i < f->n; i++)
		f->rate[i] = f->base[i] * by;
	f->level = 0;
	f->scaled = true;
}

/* Set the rates from base and room, whose sums are given. */
static void fill(struct waterfill *f, double capacity, double base, double room)
{
	struct search s = {passes(), f->room, f->weight, f->n, capacity - base, 0, 0};
	double level = 0;

	if (base > capacity) {
		scale(f, capacity / base);
		return;
	}
	if (room <= s.rest + ROUNDING * capacity) {
		finish(f, HUGE_VAL);
		return;
	}
	if (f->n >= LARGE && (level = sample_level(&s)) > 0)
		narrow(&s, level * (1 - WIDTH), level * (1 + WIDTH), f->kept);
	finish(f, find_level(&s, s.room == f->room ? 0 : level * (1 - WIDTH)));
}

void waterfill(struct waterfill *f, double capacity)
{
	struct waterfill_sums sums = passes()->prepare(f);

	fill(f, capacity, sums.given, sums.full);
}

/* Take node i as it is now into the arrays and sums. */
static void change(struct waterfill *f, size_t i)
{
	struct waterfill_sums old = {0}, now = {0};

	f->guaranteed -= f->base[i];
	waterfill_count(&old, f->room[i], f->weight[i], f->level);
	waterfill_set(f, i);
	f->guaranteed += f->base[i];
	waterfill_count(&now, f->room[i], f->weight[i], f->level);
	f->full += now.full - old.full;
	f->dry += now.dry - old.dry;
}

void waterfill_again(struct waterfill *f, double capacity, const uint32_t *changed, size_t n)
{
	struct search s = {passes(), f->room, f->weight, f->n, 0, 0, 0};
	double level = f->level, next;

	if (f->scaled || !(level < HUGE_VAL) || !(f->dry > 0)) {
		waterfill(f, capacity);
		return;
	}
	for (size_t i = 0; i < n; i++)
		change(f, changed[i]);
	s.rest = capacity - f->guaranteed;
	next = (s.rest - f->full) / f->dry; /* one of Newton's steps: at or below the solution */
	if (!(f->dry > 0) || !(next > 0) || !(next < HUGE_VAL)) {
		waterfill(f, capacity);
		return;
	}
	if (next < level)
		narrow(&s, next * (1 - SLACK), level * (1 + SLACK), f->kept);
	else
		narrow(&s, level * (1 - SLACK), next * (1 + SLACK) + BEYOND * (next - level),
			f->kept);
	finish(f, find_level(&s, next * (1 - SLACK)));
}

/* Return the level of the children of node i. */
static struct waterfill level_of(const struct waterfill_tree *t, size_t i)
{
	const struct waterfill *all = &t->all;
	size_t at = t->first[i];

	return (struct waterfill){.n = t->many[i],
		.min = t->least + at,
		.max = all->max + at,
		.demand = t->want + at,
		.weight = all->weight + at,
		.rate = all->rate + at,
		.base = all->base + at,
		.room = all->room + at,
		.kept = all->kept + 2 * at};
}

bool waterfill_tree(struct waterfill_tree *t, double capacity)
{
	double *rate = t->all.rate;
	bool scaled = false;

	for (size_t k = t->parents; k-- > 0;) {
		uint32_t i = t->parent[k];
		struct waterfill of = level_of(t, i);
		struct waterfill_sums sums = passes()->prepare(&of);

		t->given[i] = sums.given;
		t->want[i] = sums.given + sums.full;
		t->least[i] = fmax(sums.given, t->min[i]);
	}
	if (t->all.n)
		rate[0] = fmin(capacity, fmin(t->all.max[0], t->want[0]));
	for (size_t k = 0; k < t->parents; k++) {
		uint32_t i = t->parent[k];
		struct waterfill of = level_of(t, i);

		fill(&of, rate[i], t->given[i], t->want[i] - t->given[i]);
		scaled |= of.scaled;
	}
	return scaled;
}
