/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expr: the arithmetic of an experiment's claims.
 *
 *   spread(a.tenant.*.iops)            max(w64.tenant.hi.p99 / 70ms, 1)
 *   mean(a.tenant.db.latency, 10s, 30s) - 5ms
 *
 * LANGUAGE
 *   number    30, 1.5, 5k, 40%, 30ms, 2s, 16KiB. A time is in milliseconds, as in the metrics; a
 *             size in bytes; k, M, G are powers of 1000.
 *   name      RUN.METRIC, or a value defined earlier by the experiment, or METRIC if there is only
 *             one run. A part of a name may be `*`: every value that matches, in order; such a name
 *             is allowed only as an argument. A '-' with no space before it, inside a name, belongs
 *             to the name.
 *   + - * /   as usual, and ( )
 *   min max mean sum spread jain      of their arguments. spread: (max − min) / mean; jain:
 *             (Σx)² / (n Σx²), 1 if all are equal
 *   min max mean (SERIES [, FROM, TO])   over the points with FROM ≤ t ≤ TO; both need a unit (10s)
 *   last(SERIES)   abs(X)   ratio(X, Y) = X / Y   median(X, …)
 *   below(X, Y)    1 if X < Y, else 0: for claims that are made only where something holds
 *
 * Errors name the column of the text. Division by zero and results that are not finite are errors.
 */
#pragma once

#include <weir/err.h>
#include "sim/metrics.h"
#include <stddef.h>

struct expr_run {
	const char *name; /* of the run */
	const struct metrics *metrics;
};

struct expr_scope {
	const struct expr_run *runs;
	size_t n_runs;
	const struct metrics *defined; /* names without a run's name; NULL: none */
};

/* Return 0; -EINVAL: syntax error; -ENOENT: no such name (the nearest is suggested); -EDOM:
 * division by zero, or an empty list or span. */
int expr_eval(
	const char *text, const struct expr_scope *scope, double *ret_value, struct weir_err *err);

/* Check the grammar without looking up names. Return 0 or -EINVAL. */
int expr_check(const char *text, struct weir_err *err);

/* Call `visit` with each name in a text that expr_check accepts. */
void expr_names(const char *text, void (*visit)(const char *name, void *arg), void *arg);

/* Look up a name (not an expression) as a series, for plots. Return 0, -ENOENT, -EINVAL (a
 * value). */
int expr_series(const char *name, const struct expr_scope *scope, struct metrics_entry *ret,
	struct weir_err *err);
