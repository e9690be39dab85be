/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/measure-facts.h"
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

static int put_fact(const struct sink *s, const struct fact *f, const void *row, const char *name)
{
	double value = facts_stored(f, row);
	int series;

	if (f->unit == FACTS_SECONDS || f->unit == FACTS_AGO)
		value /= 1e6;
	if (isnan(value))
		return 0;
	if (s->t < 0)
		return metrics_putf(
			s->metrics, unit_name(f), value, "%s.%s.%s", s->kind, name, f->end);
	series = metrics_seriesf(s->metrics, unit_name(f), "%s.%s.%s", s->kind, name, f->series);
	return series < 0 ? series : metrics_append(s->metrics, series, s->t, value);
}

static int put_row(
	const struct sink *s, const struct facts_table *t, const void *row, const char *name)
{
	int r = 0;

	for (const struct fact *f = t->facts; r == 0 && f < t->facts + t->n_facts; f++)
		if (s->t < 0 ? f->end : f->series)
			r = put_fact(s, f, row, name);
	return r;
}

static int put_rows(const struct sink *s, const struct facts *f)
{
	int r = 0;

	for (size_t i = 0; i < FACTS_TABLES && f->kind->tables[i].size; i++)
		for (size_t k = 0; r == 0 && k < f->tables[i].n; k++) {
			const struct facts_table *t = &f->kind->tables[i];
			const struct facts_row *row = facts_row(t, &f->tables[i], k);

			r = put_row(s, t, row, row->key[0]);
		}
	return r;
}

int measure_facts(struct metrics *m, const struct facts *f, const char *self, double t)
{
	struct sink s = {m, f->kind ? f->kind->name : NULL, t};
	int r;

	if (!f->kind)
		return -ENOMEM;
	r = t < 0 ? put_rows(&s, f) : 0;
	if (r == 0)
		r = put_row(&s, &f->kind->self, f->self, self);
	if (r == 0 && t >= 0)
		r = put_rows(&s, f);
	return r;
}
