/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-impl: shared by metrics.c, metrics-facts.c, metrics-slo.c and api-plan.c. */
#pragma once

#include "serve/api/api.h"
#include "serve/show/metrics-text.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- a fact: its family is weir_KIND_METRIC */

void metrics_fact_family(FILE *to, const char *kind, const struct fact *f);
void metrics_fact_name(FILE *to, const char *kind, const struct fact *f);
/* Write a sample with one label. */
void metrics_fact(FILE *to, const char *kind, const struct fact *f, const char *label,
	const char *value, const void *row);

/* ---- families with rows that may be many: written a few rows at a time */

struct metrics_rows {
	size_t families;
	size_t (*count)(const struct metrics_cursor *c); /* 0: the family is left out */
	void (*head)(const struct metrics_cursor *c, size_t family, FILE *to);
	/* Return false if it has no line in this family. */
	bool (*row)(const struct metrics_cursor *c, size_t i, size_t family, FILE *to);
};
extern const struct metrics_rows metrics_slos[2]; /* metrics-slo.c */
extern const struct metrics_rows metrics_plan;    /* api-plan.c */

/* ---- metrics-facts.c */

void metrics_facts(const struct snapshot *s, FILE *to); /* all but rows */
/* Rows are the first parts. */
size_t metrics_facts_parts(void);
struct metrics_rows metrics_facts_rows(const struct metrics_cursor *c);
