/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics-impl: what metrics.c, metrics-control.c and lessor-api.c share: the format, and numbers that are one
 * field each. Nobody else includes it. */
#ifndef WEIR_PORT_METRICS_IMPL_H
#define WEIR_PORT_METRICS_IMPL_H

#include "port/api.h"

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

/* ---- metrics-slo.c */

void metrics_slo(const struct snapshot *s, FILE *to);

/* ---- metrics-control.c */

void metrics_control(const struct snapshot *s, FILE *to);

#endif
