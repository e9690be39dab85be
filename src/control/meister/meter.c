/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/meister/meter.h"
#include <math.h>
#include <string.h>

#define SECONDS 64
static const weir_time spans[2] = {10 * WEIR_MS, 100 * WEIR_MS};

void meister_meter_start(
	struct meister_meter *m, const struct weir_bucket_spec *pairs, unsigned n, weir_time now)
{
	*m = (struct meister_meter){.pairs = pairs, .n = n, .last = now, .second = now / WEIR_SEC};
	for (unsigned i = 0; i < n; i++)
		m->level[i] = pairs[i].size;
}

/* Compare the work of a span with the planned curve. */
static void compare(struct meister_meter *m, double work, weir_time span)
{
	double planned = INFINITY, ratio;

	for (unsigned i = 0; i < m->n; i++)
		planned = fmin(
			planned, m->pairs[i].rate * ((double)span / WEIR_SEC) + m->pairs[i].size);
	ratio = work / planned;
	if (ratio > m->excess) {
		m->excess = ratio;
		m->over = span;
	}
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

static void add_work(struct meister_meter *m, weir_time now, double cost)
{
	roll_seconds(m, now);
	m->seconds[(uint64_t)m->second % SECONDS] += (float)cost;
	for (unsigned i = 0; i < 2; i++) {
		struct meter_bin *b = &m->bins[i];

		if (now >= b->end) {
			if (m->since)
				compare(m, b->work, spans[i]);
			*b = (struct meter_bin){(now / spans[i] + 1) * spans[i], 0};
		}
		b->work += cost;
	}
}

static double least(double a, double b) /* fmin is a call */
{
	return a < b ? a : b;
}

static void fill(struct meister_meter *m, weir_time now)
{
	double span = (double)(now - m->last) / WEIR_SEC;

	for (unsigned i = 0; i < m->n; i++)
		m->level[i] = least(m->pairs[i].size, m->level[i] + m->pairs[i].rate * span);
	m->last = now;
}

void meister_meter_add(struct meister_meter *m, weir_time now, double cost)
{
	unsigned broke = 0;

	if (now > m->last) /* requests of one batch have one time */
		fill(m, now);
	while (broke < m->n && m->level[broke] >= least(cost, m->pairs[broke].size))
		broke++;
	for (unsigned i = 0; broke == m->n && i < m->n; i++)
		m->level[i] -= cost;
	if (broke == m->n) {
		m->in++;
	} else {
		m->out++;
		m->out_at = m->last;
		if (!m->since) {
			m->since = m->last;
			m->broke = broke;
			m->excess = 1;
			m->over = 0;
			m->said = false;
		}
	}
	add_work(m, m->last, cost);
}

int meister_meter_tick(struct meister_meter *m, weir_time now)
{
	bool said = m->said;

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
