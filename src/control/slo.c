/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/slo.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUIET (60 * WEIR_SEC) /* a miss is over after so long without one */

static const weir_time slot_length[SLO_WINDOWS] = {5 * WEIR_SEC, 300 * WEIR_SEC};

struct slot {
	uint64_t good, total;
	weir_time max;
};

struct window {
	int64_t now; /* number of the current slot; slot n is slots[n % SLO_SLOTS] */
	struct slot slots[SLO_SLOTS], sum;
	uint32_t (
		*buckets)[SLO_BUCKETS]; /* SLO_SLOTS of them, then their sum; NULL: no histograms */
	uint64_t counted;               /* requests in the sum's buckets */
	bool said;                      /* slo_changed reported a miss */
	weir_time missed;               /* last time it was missed */
};

struct slo {
	double percentile;
	weir_time bound;
	uint64_t good, total;
	uint64_t waiting;       /* beyond the bound */
	weir_time longest;      /* of them */
	uint32_t *wait_buckets; /* SLO_BUCKETS of them; NULL: none waited yet */
	struct window windows[SLO_WINDOWS];
};

/* ---- a batch */

static unsigned bucket_of(weir_time latency)
{
	uint64_t v = latency > 0 ? (uint64_t)latency : 0;
	unsigned bits;

	if (v < UINT64_C(1) << SLO_LOW)
		return 0;
	bits = 63 - (unsigned)__builtin_clzll(v);
	if (bits >= SLO_LOW + SLO_OCTAVES)
		return SLO_BUCKETS - 1;
	return 1 + 16 * (bits - SLO_LOW) + (unsigned)(v >> (bits - 4) & 15);
}

/* Return the middle of a bucket, ns; of the first and last bucket the inner end. */
static weir_time middle(unsigned bucket)
{
	unsigned octave = (bucket - 1) / 16, part = (bucket - 1) % 16;

	if (bucket == 0)
		return WEIR_US << 2;
	if (bucket == SLO_BUCKETS - 1)
		return INT64_C(1) << (SLO_LOW + SLO_OCTAVES);
	return (weir_time)(33 + 2 * part) << (SLO_LOW - 5 + octave);
}

void slo_record(struct slo_batch *b, weir_time latency, weir_time bound)
{
	b->good += latency <= bound;
	b->total++;
	b->bucket[bucket_of(latency)]++;
	if (latency > b->max)
		b->max = latency;
}

/* ---- windows */

static void clear_slot(struct window *w, struct slot *s)
{
	uint32_t *sum = w->buckets ? w->buckets[SLO_SLOTS] : NULL;
	uint32_t *old = w->buckets ? w->buckets[s - w->slots] : NULL;

	w->sum.good -= s->good;
	w->sum.total -= s->total;
	for (unsigned i = 0; old && s->total && i < SLO_BUCKETS; i++) {
		w->counted -= old[i];
		sum[i] -= old[i];
		old[i] = 0;
	}
	*s = (struct slot){0};
}

static void slide(struct window *w, weir_time now, weir_time length)
{
	int64_t slot = now / length, steps = slot - w->now;

	if (steps <= 0)
		return;
	for (int64_t i = 0; i < (steps < SLO_SLOTS ? steps : SLO_SLOTS); i++)
		clear_slot(w, &w->slots[(slot - i) % SLO_SLOTS]);
	w->now = slot;
	w->sum.max = 0;
	for (unsigned i = 0; i < SLO_SLOTS; i++)
		if (w->slots[i].max > w->sum.max)
			w->sum.max = w->slots[i].max;
	if (w->sum.total == 0) { /* idle tenant: free the histograms */
		free(w->buckets);
		w->buckets = NULL;
	}
}

static void slide_all(struct slo *s, weir_time now)
{
	for (int i = 0; i < SLO_WINDOWS; i++)
		slide(&s->windows[i], now, slot_length[i]);
}

static void add_to(struct window *w, const struct slo_batch *b, bool histograms)
{
	struct slot *s = &w->slots[w->now % SLO_SLOTS];

	s->good += b->good;
	s->total += b->total;
	w->sum.good += b->good;
	w->sum.total += b->total;
	s->max = b->max > s->max ? b->max : s->max;
	w->sum.max = b->max > w->sum.max ? b->max : w->sum.max;
	if (!w->buckets && histograms)
		w->buckets = calloc(SLO_SLOTS + 1, sizeof(*w->buckets));
	for (unsigned i = 0; w->buckets && i < SLO_BUCKETS; i++) {
		w->buckets[w->now % SLO_SLOTS][i] += b->bucket[i];
		w->buckets[SLO_SLOTS][i] += b->bucket[i];
		w->counted += b->bucket[i];
	}
}

void slo_add(struct slo *s, weir_time now, const struct slo_batch *b, bool histograms)
{
	slide_all(s, now);
	s->good += b->good;
	s->total += b->total;
	for (int i = 0; i < SLO_WINDOWS && b->total; i++)
		add_to(&s->windows[i], b, histograms);
}

bool slo_has_histograms(const struct slo *s)
{
	return s->windows[SLO_HOUR].buckets != NULL;
}

void slo_waits(struct slo *s, const struct slo_batch *waits)
{
	if (!waits) {
		if (s->waiting && s->wait_buckets)
			memset(s->wait_buckets, 0, SLO_BUCKETS * sizeof(*s->wait_buckets));
		s->waiting = 0;
		s->longest = 0;
		return;
	}
	s->waiting += waits->total;
	s->longest = waits->max > s->longest ? waits->max : s->longest;
	if (!s->wait_buckets)
		s->wait_buckets = calloc(SLO_BUCKETS, sizeof(*s->wait_buckets));
	for (unsigned i = 0; s->wait_buckets && i < SLO_BUCKETS; i++)
		s->wait_buckets[i] += waits->bucket[i];
}

/* ---- looking */

/* Return true if `good` of `total` are enough. The slack allows for rounding: neither 99.9 nor the
 * product is exact in binary. */
static bool enough(double percentile, uint64_t good, uint64_t total)
{
	double need = percentile / 100 * (double)total;

	return (double)good >= need - need * 1e-12;
}

static weir_time percentile_of(const struct slo *s, const struct window *w, bool met)
{
	const uint32_t *done = w->buckets ? w->buckets[SLO_SLOTS] : NULL;
	const uint32_t *wait = s->waiting ? s->wait_buckets : NULL;
	double rank = ceil(s->percentile / 100 * (double)(w->counted + s->waiting) * (1 - 1e-12));
	weir_time value, max = s->longest > w->sum.max ? s->longest : w->sum.max;
	uint64_t seen = 0;
	unsigned i = 0;

	if ((w->sum.total && !w->counted) || (s->waiting && !wait) || (!done && !wait))
		return -1;
	while (i < SLO_BUCKETS - 1 &&
		(double)(seen += (done ? done[i] : 0) + (wait ? wait[i] : 0)) < rank)
		i++;
	value = i == SLO_BUCKETS - 1 ? max : middle(i);
	value = value < max ? value : max;
	/* The counters are exact: keep a bucket's middle from contradicting them. */
	if (met && value > s->bound)
		return s->bound;
	if (!met && value <= s->bound)
		return s->bound + 1;
	return value;
}

/* The same as slo_look without the percentile's value, which takes most of the time. */
static void slo_judge(struct slo *s, weir_time now, enum slo_window which, struct slo_view *ret)
{
	const struct window *w = &s->windows[which];
	uint64_t total;

	slide_all(s, now);
	total = w->sum.total + s->waiting;
	*ret = (struct slo_view){.good = w->sum.good,
		.total = total,
		.value = -1,
		.known = total > 0,
		.met = enough(s->percentile, w->sum.good, total)};
}

void slo_look(struct slo *s, weir_time now, enum slo_window which, struct slo_view *ret)
{
	const struct window *w = &s->windows[which];

	slo_judge(s, now, which, ret);
	if (ret->known)
		ret->value = percentile_of(s, w, ret->met);
}

void slo_totals(const struct slo *s, uint64_t *ret_good, uint64_t *ret_total)
{
	*ret_good = s->good;
	*ret_total = s->total;
}

bool slo_changed(struct slo *s, weir_time now, enum slo_window which, bool *ret_missed)
{
	struct window *w = &s->windows[which];
	struct slo_view v;
	bool missed;

	slo_judge(s, now, which, &v);
	missed = v.known && !v.met;
	if (missed)
		w->missed = now;
	if (missed == w->said || (!missed && now - w->missed < QUIET))
		return false;
	w->said = *ret_missed = missed;
	return true;
}

/* ---- from start to end */

static void clear(struct slo *s)
{
	for (int i = 0; i < SLO_WINDOWS; i++) {
		free(s->windows[i].buckets);
		s->windows[i] = (struct window){0};
	}
	slo_waits(s, NULL);
}

int slo_new(double percentile, weir_time bound, struct slo **ret_slo)
{
	struct slo *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->percentile = percentile;
	s->bound = bound;
	*ret_slo = s;
	return 0;
}

void slo_free(struct slo *s)
{
	if (!s)
		return;
	clear(s);
	free(s->wait_buckets);
	free(s);
}

void slo_set(struct slo *s, double percentile, weir_time bound)
{
	if (s->percentile == percentile && s->bound == bound)
		return;
	clear(s);
	s->percentile = percentile;
	s->bound = bound;
}
