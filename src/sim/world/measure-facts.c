/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/world/measure-facts.h"
#include <errno.h>
#include <math.h>

static const char *unit_name(const struct fact *f)
{
	switch (f->unit) {
	case FACTS_REQUESTS:
		return "requests";
	case FACTS_SECONDS:
	case FACTS_AGO:
		return "ms";
	case FACTS_BYTES:
		return "B";
	case FACTS_TOKENS:
		return "tokens";
	case FACTS_RATE:
		return "iops";
	case FACTS_TOKEN_RATE:
		return "tokens/s";
	default:
		return "";
	}
}

struct sink {
	struct metrics *metrics;
	const char *kind;
	double t; /* < 0: values at the end */
};

static void put_fact(const struct sink *s, const struct fact *f, const void *row, const char *name)
{
	double value = facts_stored(f, row);

	if (f->unit == FACTS_SECONDS || f->unit == FACTS_AGO)
		value /= 1e6;
	if (isnan(value))
		return;
	if (s->t < 0)
		metrics_putf(s->metrics, unit_name(f), value, "%s.%s.%s", s->kind, name, f->end);
	else
		metrics_append(s->metrics,
			metrics_seriesf(
				s->metrics, unit_name(f), "%s.%s.%s", s->kind, name, f->series),
			s->t, value);
}

static void put_row(
	const struct sink *s, const struct facts_table *t, const void *row, const char *name)
{
	for (const struct fact *f = t->facts; f < t->facts + t->n_facts; f++)
		if (s->t < 0 ? f->end : f->series)
			put_fact(s, f, row, name);
}

static void put_rows(const struct sink *s, const struct facts *f)
{
	for (size_t i = 0; i < FACTS_TABLES && f->kind->tables[i].size; i++)
		for (size_t k = 0; k < f->tables[i].n; k++) {
			const struct facts_table *t = &f->kind->tables[i];
			const struct facts_row *row = facts_row(t, &f->tables[i], k);

			put_row(s, t, row, row->key[0]);
		}
}

int measure_facts(struct metrics *m, const struct facts *f, const char *self, double t)
{
	struct sink s = {m, f->kind ? f->kind->name : NULL, t};

	if (!f->kind)
		return -ENOMEM;
	if (t < 0)
		put_rows(&s, f);
	put_row(&s, &f->kind->self, f->self, self);
	if (t >= 0)
		put_rows(&s, f);
	return metrics_failed(m);
}
