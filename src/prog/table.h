/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table: columns as wide as their widest cell.
 *
 * What stands in a cell may come from anywhere (a client chose its export's name), and be shown on a
 * terminal: control characters and broken UTF-8 become '?'.
 */
#ifndef WEIR_PROG_TABLE_H
#define WEIR_PROG_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_HEAD '\1' /* stands before a heading's line, for who wants to show it otherwise */

struct table {
	const char *const *heads; /* ends with NULL */
	size_t columns;
	unsigned right; /* columns of numbers: a bit each */
	char *text;     /* the cells, one behind the other, each with a 0 behind it */
	size_t used, room;
	size_t n; /* cells */
};

void table_begin(struct table *t, const char *const *heads, unsigned right);
/* The next cell, from left to right, row by row. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_end(struct table *t, FILE *to); /* prints and frees it */

/* A line with its TABLE_HEAD taken off, cut to so many columns; characters count, not bytes. Returns
 * how many bytes of `line` (without its newline) fit. */
size_t table_cut(const char *line, size_t columns);

#endif
