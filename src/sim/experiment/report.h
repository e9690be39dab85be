/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report: a run's metrics as tables and as CSV.
 *
 * Functions write to a stream, whose errors the caller checks; some also return -ENOMEM.
 */
#pragma once

#include "sim/metrics.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* ---- a table with aligned columns */

struct report_table { /* set the number of columns */
	size_t columns;
	char *text; /* the cells, one after the other, each NUL-terminated */
	size_t used, room;
	size_t n;    /* cells */
	bool failed; /* out of memory */
};
/* Add the next cell, left to right and top to bottom; the first row is the head. */
void report_cell(struct report_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The same; return the cell's text, whose length must not change, or NULL. */
char *report_vcell(struct report_table *t, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
/* Add one cell for each text. */
void report_cells(struct report_table *t, const char *const *texts, size_t n);
/* Write the table and free it. Return 0 or -ENOMEM. A column whose cells (except the head) are all
 * numbers, with or without a unit, is aligned to the right. `indent` spaces precede each line. A
 * UTF-8 character counts as one column. A short last row is filled up. */
int report_table_text(struct report_table *t, unsigned indent, FILE *to);
/* The same with a mask of the columns that are aligned to the right. */
int report_table_aligned(struct report_table *t, unsigned indent, const unsigned *right, FILE *to);
int report_table_markdown(struct report_table *t, FILE *to);

/* Format a number with three or four significant digits: "3362", "37.2", "0.981", "0.0012",
 * "1.2e-05"; a dash for NaN. At least 32 bytes. */
char *report_number(double x, char *buf, size_t len);

/* ---- a run */

/* Write one table for each kind of metric (metrics named KIND.PATH.WHAT: a row for each PATH, a
 * column for each WHAT, with its unit), then the values without a kind. Series are left out. The
 * kinds of a simulation (tenant, inside, wait …) have a caption, chosen columns and headings;
 * counts that the rates imply are left out. */
int report_summary(const struct metrics *m, FILE *to);

/* Write "name,unit,value" and a line for each value, in order, with all its digits; NaN: empty. */
void report_values_csv(const struct metrics *m, FILE *to);

/* Write "t_s,NAME_UNIT" and a line for each point. */
void report_series_csv(const struct metrics_entry *series, FILE *to);
