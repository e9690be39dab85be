/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-impl: what metrics.c, metrics-control.c and lessor-api.c share: the format, and numbers that are one
 * field each. Nobody else includes it. */
#ifndef WEIR_SERVE_API_METRICS_IMPL_H
#define WEIR_SERVE_API_METRICS_IMPL_H

#include "serve/api/api.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- the format */

void metrics_family(FILE *to, const char *name, const char *type, const char *help);
/* "" for no second label. */
void metrics_labels(
	FILE *to, const char *key, const char *value, const char *key2, const char *value2);
void metrics_number(FILE *to, double value);
/* A family of one sample. */
void metrics_single(FILE *to, const char *name, const char *type, const char *help, double value);

/* ---- where a number lies in a struct, and in what unit */

enum metrics_type {
	METRICS_U64,
	METRICS_I64,
	METRICS_U32,
	METRICS_DOUBLE,
	METRICS_TIME,
	METRICS_BOOL
};

struct metrics_field {
	const char *name, *type, *help;
	size_t offset;
	enum metrics_type of;
	bool groups; /* tenants: not only leaves have it */
};

double metrics_value(const void *at, const struct metrics_field *f);

/* ---- families with rows that may be many: written a few rows at a time */

struct metrics_rows {
	size_t families;
	size_t (*count)(const struct metrics_cursor *c); /* 0: the families are left out */
	void (*head)(size_t family, FILE *to);
	/* False: it has no line in this family. */
	bool (*row)(const struct metrics_cursor *c, size_t i, size_t family, FILE *to);
};
extern const struct metrics_rows metrics_slos[2];              /* metrics-slo.c */
extern const struct metrics_rows metrics_jobs, metrics_leases; /* metrics-control.c */

/* ---- metrics-control.c */

void metrics_control(const struct snapshot *s, FILE *to); /* all but jobs and leases */

#endif
