/* SPDX-License-Identifier: BSD-3-Clause */
/* rows: a row of a table for each trace named on the command line or found in a folder. */
#pragma once

#include "cli/trace/trace.h"

struct trace_row {
	char *name;
	bool found;  /* in a folder, not named on the command line */
	bool failed; /* only `why` is set */
	bool alien;  /* failed, and not a trace: a letter or a licence in the folder */
	bool has_offsets, was_sorted;
	enum trace_format format;
	size_t bad_lines;
	char first_bad[160];
	struct trace_summary s;
	char why[400]; /* failed: without the name */
};

struct trace_rows {
	struct trace_row *row;
	size_t n, room;
};

/* Make a row for each file, and for each file in a folder. 0 or -ENOMEM. */
int trace_rows_find(char **paths, int n, struct trace_rows *ret);
/* Read every trace, with progress, and call `fn` (may be NULL) with each that could be read, which is freed afterwards. */
typedef void trace_rows_fn(void *arg, size_t row, const struct trace *t);
void trace_rows_read(
	struct trace_rows *rows, const struct trace_request *q, trace_rows_fn *fn, void *arg);
/* After the rows were printed: print how many could not be read, if any; free them. Return the exit status. */
int trace_rows_end(struct trace_rows *rows);
void trace_rows_free(struct trace_rows *rows);

/* Return the length of the common prefix of all names, up to a slash: it is printed once, above the table. */
size_t trace_rows_prefix(const struct trace_rows *rows);
/* Return the reason of a failed row, as a row of a table says it. */
const char *trace_row_failure(const struct trace_row *r);
