/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report: what a run measured, as text for people and for programs.
 *
 * Everything returns text; the caller writes it. The text is malloc'ed and the caller's to free.
 * Functions return 0 or -ENOMEM.
 */
#ifndef WEIR_SIM_EXPERIMENT_REPORT_H
#define WEIR_SIM_EXPERIMENT_REPORT_H

#include "sim/metrics.h"
#include <stddef.h>

/* ---- a table with aligned columns */

struct report_table;
int report_table_new(size_t columns, struct report_table **ret);
void report_table_free(struct report_table *t);
/* The next cell, left to right and top to bottom; the first row is the head. */
int report_cell(struct report_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A column whose cells (the head apart) are all numbers, with or without a unit, is set to the
 * right. `indent` spaces stand before each line. Cells are measured as a terminal shows them: a
 * UTF-8 character is one column. The last row is filled up if it is short. */
int report_table_text(const struct report_table *t, unsigned indent, char **ret);
int report_table_markdown(const struct report_table *t, char **ret);

/* A number as a person wants it: three or four digits that mean something: "3362", "37.2", "0.981",
 * "0.0012", "1.2e-05"; a dash for NaN. At least 32 bytes. */
char *report_number(double x, char *buf, size_t len);

/* ---- a run */

/* One table for each kind of thing measured (metrics named KIND.PATH.WHAT: a row for each PATH, a
 * column for each WHAT, with its unit), then the values that stand alone. Series are left out. The
 * kinds that a simulation has (tenant, inside, wait …) have a caption, and the columns in an order
 * and under heads for people; counts that the rates imply are left out. */
int report_summary(const struct metrics *m, char **ret);

/* "name,unit,value" and a line for each value, in order, with all its digits; NaN: empty. */
int report_values_csv(const struct metrics *m, char **ret);

/* "t_s,NAME_UNIT" and a line for each point. */
int report_series_csv(const struct metrics_entry *series, char **ret);

#endif
