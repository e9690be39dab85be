/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/meter.h"
#include <math.h>
#include <string.h>

#define SECONDS 64
static const weir_time spans[2] = {10 * WEIR_MS, 100 * WEIR_MS};

void meister_meter_start(struct meister_meter *m, const struct weir_bucket_spec *pairs, unsigned n,
	weir_time slack, weir_time now)
{
	*m = (struct meister_meter){.pairs = pairs,
		.n = n,
		.slack = (double)slack / WEIR_SEC,
		.last = now,
		.second = now / WEIR_SEC};
	for (unsigned i = 0; i < 2; i++)
		m->bins[i].at = now - now % spans[i];
	for (unsigned i = 0; i < n; i++) {
		m->level[i] = pairs[i].size;
		m->full_at[i] = now;
	}
}

static double curve(const struct meister_meter *m, unsigned i, weir_time span)
{
	return m->pairs[i].rate * ((double)span / WEIR_SEC + m->slack) + m->pairs[i].size;
}

static void note_ratio(struct meister_meter *m, double ratio, weir_time span)
{
	if (ratio > m->excess) {
		m->excess = ratio;
		m->over = span;
	}
}

/* Compare the work of a span with the planned curve. */
static void compare(struct meister_meter *m, double work, weir_time span)
{
	double planned = INFINITY;

	for (unsigned i = 0; i < m->n; i++)
		planned = fmin(planned, curve(m, i, span));
	note_ratio(m, work / planned, span);
}

/* The seconds before the one of `now` are complete. */
static void roll_seconds(struct meister_meter *m, weir_time now)
{
	static const unsigned lengths[] = {1, 10, 60};
	int64_t second;
	double work = 0;
	unsigned k = 0;

	if (now < (m->second + 1) * WEIR_SEC)
		return;
	second = now / WEIR_SEC;
	for (unsigned i = 1; i <= 60 && m->since; i++) {
		work += m->seconds[(uint64_t)(m->second - i + 1) % SECONDS];
		if (i == lengths[k])
			compare(m, work, lengths[k++] * WEIR_SEC);
	}
	if (second - m->second >= SECONDS)
		memset(m->seconds, 0, sizeof(m->seconds));
	else
		while (m->second < second)
			m->seconds[(uint64_t)++m->second % SECONDS] = 0;
	m->second = second;
}

/* Time has gone on to `now`: complete the spans that it leaves. */
static void roll(struct meister_meter *m, weir_time now)
{
	roll_seconds(m, now);
	for (unsigned i = 0; i < 2; i++) {
		struct meter_bin *b = &m->bins[i];

		if (now - b->at < spans[i])
			continue;
		if (m->since)
			compare(m, b->work, spans[i]);
		*b = (struct meter_bin){now - now % spans[i], 0};
	}
}

/* Refill the buckets up to `now`. */
static void refill(struct meister_meter *m, weir_time now)
{
	double span = (double)(now - m->last) / WEIR_SEC;

	m->last = now;
	for (unsigned i = 0; i < m->n; i++) {
		m->level[i] += m->pairs[i].rate * span;
		if (m->level[i] < m->pairs[i].size)
			continue;
		m->level[i] = m->pairs[i].size;
		m->full_at[i] = now;
		m->work[i] = 0;
	}
}

static double least(double a, double b) /* fmin is a call */
{
	return a < b ? a : b;
}

/* Count work of the time as of which the levels are. */
static void count(struct meister_meter *m, double work)
{
	for (unsigned i = 0; i < m->n; i++)
		m->work[i] += work;
	m->seconds[(uint64_t)m->second % SECONDS] += (float)work;
	m->bins[0].work += work;
	m->bins[1].work += work;
}

/* Let the buckets pay what was added up. */
static void settle(struct meister_meter *m)
{
	if (m->pending > 0) {
		for (unsigned i = 0; i < m->n; i++)
			m->level[i] -= m->pending;
		count(m, m->pending);
	}
	m->pending = 0;
	m->room = 0;
}

/* Return the first pair that does not hold a cost within the slack, or never does, or n. */
static unsigned broken(const struct meister_meter *m, double cost)
{
	unsigned i = 0;

	while (i < m->n && cost <= m->pairs[i].size &&
		m->level[i] + m->pairs[i].rate * m->slack >= cost)
		i++;
	return i;
}

static void note_broken(struct meister_meter *m, unsigned broke)
{
	weir_time span = m->last - m->full_at[broke];

	m->out++;
	m->out_at = m->last;
	if (!m->since) {
		m->since = m->last;
		m->broke = broke;
		m->excess = 1;
		m->over = 0;
		m->said = false;
	}
	if (span < WEIR_SEC)
		note_ratio(m, m->work[broke] / curve(m, broke, span), span);
}

void meister_meter_add_slow(struct meister_meter *m, weir_time now, double cost)
{
	unsigned broke;

	settle(m);
	if (now > m->last) {
		refill(m, now);
		roll(m, now);
	}
	broke = broken(m, cost);
	count(m, cost);
	if (broke < m->n) {
		note_broken(m, broke);
		return;
	}
	m->in++;
	m->room = m->n ? INFINITY : 0;
	for (unsigned i = 0; i < m->n; i++) {
		m->level[i] -= cost;
		m->room = least(m->room, m->level[i]);
	}
}

int meister_meter_tick(struct meister_meter *m, weir_time now)
{
	bool said = m->said;

	settle(m);
	roll_seconds(m, now);
	if (!m->since)
		return 0;
	if (now - m->out_at >= METER_CALM) {
		m->since = 0;
		m->said = false;
		return said ? -1 : 0;
	}
	/* not before a whole second of it is known */
	m->said |= now / WEIR_SEC > m->since / WEIR_SEC + 1;
	return m->said && !said;
}
