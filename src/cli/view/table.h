/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table: columns as wide as their widest cell.
 *
 * Cells may contain foreign text (a client chose its export's name) and go to a terminal: control
 * characters and invalid UTF-8 become '?'.
 */
#pragma once

#include "sim/experiment/report.h"
#include <stddef.h>
#include <stdio.h>

#define TABLE_HEAD '\1' /* precedes the heading's line, so that a caller can highlight it */

struct table {
	struct report_table cells;
	unsigned right; /* bit mask of right-aligned columns (numbers) */
};

void table_begin(struct table *t, const char *const *heads, unsigned right);
/* Add the next cell, from left to right, row by row. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_end(struct table *t, FILE *to); /* print and free the table */
void table_print(struct table *t);         /* the same to stdout, without TABLE_HEAD */

/* Print foreign text outside of a table, with a '?' for what must not go to a terminal. */
void table_put_text(const char *text, FILE *to);

/* Print lines without the marks of headings. */
void table_print_plain(const char *text);

/* Return how many bytes of `line` (without its newline) fit `columns`; characters count, not bytes.
 * The line must not begin with TABLE_HEAD. */
size_t table_cut(const char *line, size_t columns);
