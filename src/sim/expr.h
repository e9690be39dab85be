/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expr: the arithmetic of an experiment's claims.
 *
 *   spread(a.tenant.*.iops)            max(w64.tenant.hi.p99 / 70ms, 1)
 *   mean(a.tenant.db.latency, 10s, 30s) - 5ms
 *
 * LANGUAGE
 *   number    30, 1.5, 5k, 40%, 30ms, 2s, 16KiB. A time is in milliseconds, as metrics give it; a
 *             size in bytes; k, M, G are powers of 1000.
 *   name      RUN.METRIC, or a value defined before by the experiment, or METRIC when there is one
 *             run only. A part of a name may be `*`: every value that fits, in order; such a name
 *             stands only as an argument. A '-' with no space before it, inside a name, belongs to
 *             the name.
 *   + - * /   as usual, and ( )
 *   min max mean sum spread jain      of their arguments. spread: (max − min) / mean; jain:
 *             (Σx)² / (n Σx²), 1 when all are equal
 *   min max mean (SERIES [, FROM, TO])   over the points with FROM ≤ t ≤ TO; both need a unit (10s)
 *   last(SERIES)   abs(X)   ratio(X, Y) = X / Y   median(X, …)
 *   below(X, Y)    1 if X < Y, else 0: for claims that are made only where something holds
 *
 * Errors name the column of the text. Dividing by zero is one, and so is anything that comes out
 * as not a finite number.
 */
#ifndef WEIR_SIM_EXPR_H
#define WEIR_SIM_EXPR_H

#include "base/err.h"
#include "sim/metrics.h"
#include <stddef.h>

struct expr_run {
	const char *name; /* of the run */
	const struct metrics *metrics;
};

struct expr_scope {
	const struct expr_run *runs;
	size_t n_runs;
	const struct metrics *defined; /* names without a run before them; NULL: none */
};

/* 0; -EINVAL: not the language; -ENOENT: no such name (the near one is suggested); -EDOM: divided
 * by zero, or over an empty list or span. */
int expr_eval(
	const char *text, const struct expr_scope *scope, double *ret_value, struct weir_err *err);

/* The grammar only, with no names looked up: 0 or -EINVAL. */
int expr_check(const char *text, struct weir_err *err);

/* A name (not an expression) as a series: for plots. 0, -ENOENT, -EINVAL (a value). */
int expr_series(const char *name, const struct expr_scope *scope, struct metrics_entry *ret,
	struct weir_err *err);

#endif
