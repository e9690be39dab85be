/* SPDX-License-Identifier: BSD-3-Clause */
/* info: `weir trace info`, one row per trace. The row of an unreadable file says why. */
#include "cli/trace/rows.h"
#include <weir/units.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the table */

enum { NAME, FORMAT, IOS, SPAN, RATE, PEAK, READS, SEQ, SIZES, CA2, EXTENT, BAD, COLUMNS };
struct cells {
	char text[COLUMNS][64];
};

static const struct cells heads = {{"trace", "format", "IOs", "span", "IOPS", "peak", "reads",
	"seq.", "sizes", "CA2", "extent", "bad"}};

/* A rate without its unit, which is in the heading. */
static void fill_rate(double rate, char *buf, size_t len)
{
	char *space;
	weir_units_show_rate((struct weir_rate){rate, WEIR_UNIT_REQUESTS}, buf, len);
	space = strchr(buf, ' ');
	if (space)
		*space = '\0';
}

static void fill_sizes(const struct trace_summary *s, char *buf, size_t len)
{
	char low[32], high[32];
	weir_units_show_size(s->min_bytes, low, sizeof low);
	weir_units_show_size(s->max_bytes, high, sizeof high);
	if (s->max_bytes == 0)
		snprintf(buf, len, "-");
	else if (s->min_bytes == s->max_bytes)
		snprintf(buf, len, "%s", low);
	else
		snprintf(buf, len, "%s-%s", low, high);
}

static void fill_cells(const struct trace_row *r, struct cells *c)
{
	const struct trace_summary *s = &r->s;
	const size_t len = sizeof c->text[0];
	snprintf(c->text[FORMAT], len, "%s", trace_format_names[r->format]);
	snprintf(c->text[IOS], len, "%zu", s->n);
	weir_units_show_time(s->span, c->text[SPAN], len);
	if (s->span > 0)
		fill_rate(s->rate, c->text[RATE], len);
	else
		strcpy(c->text[RATE], "-");
	fill_rate(s->peak_rate, c->text[PEAK], len);
	snprintf(c->text[READS], len, "%.1f %%", 100 * s->read_share);
	fill_sizes(s, c->text[SIZES], len);
	snprintf(c->text[CA2], len, s->ca2 < 100 ? "%.2f" : "%.0f", s->ca2);
	snprintf(c->text[BAD], len, "%zu", r->bad_lines);
	strcpy(c->text[SEQ], "-");
	strcpy(c->text[EXTENT], "-");
	if (r->has_offsets && !isnan(s->sequential_share))
		snprintf(c->text[SEQ], len, "%.1f %%", 100 * s->sequential_share);
	if (r->has_offsets)
		weir_units_show_size(s->extent, c->text[EXTENT], len);
}

/* Columns without values keep a width of 0 and are not shown. */
static void widen(int width[COLUMNS], const struct cells *c)
{
	for (int i = NAME + 1; i < COLUMNS; i++) {
		int n = (int)strlen(c->text[i]), least = (int)strlen(heads.text[i]);
		if (strcmp(c->text[i], "-") == 0 || (i == BAD && strcmp(c->text[i], "0") == 0))
			continue;
		n = n > least ? n : least;
		if (n > width[i])
			width[i] = n;
	}
}

static void print_row(const char *name, const struct cells *c, const int width[COLUMNS])
{
	printf("%-*s  %-*s", width[NAME], name, width[FORMAT], c->text[FORMAT]);
	for (int i = FORMAT + 1; i < COLUMNS; i++)
		if (width[i] > 0)
			printf("  %*s", width[i], c->text[i]);
	putchar('\n');
}

static void print_rows(const struct trace_rows *rows, size_t skip, const int width[COLUMNS])
{
	print_row(heads.text[NAME], &heads, width);
	for (size_t i = 0; i < rows->n; i++) {
		const struct trace_row *r = &rows->row[i];
		struct cells c;
		if (r->failed) {
			printf("%-*s  %s: %s\n", width[NAME], r->name + skip,
				r->alien ? "no trace" : "not read", trace_row_failure(r));
			continue;
		}
		fill_cells(r, &c);
		print_row(r->name + skip, &c, width);
	}
}

static void print_table(const struct trace_rows *rows)
{
	int width[COLUMNS] = {[NAME] = (int)strlen(heads.text[NAME]), [FORMAT] = 6};
	size_t skip = trace_rows_prefix(rows);
	for (size_t i = 0; i < rows->n; i++) {
		struct cells c;
		int n = (int)strlen(rows->row[i].name + skip);
		width[NAME] = n > width[NAME] ? n : width[NAME];
		if (rows->row[i].failed)
			continue;
		fill_cells(&rows->row[i], &c);
		widen(width, &c);
	}
	if (skip > 0)
		printf("In %.*s\n", (int)skip, rows->row[0].name);
	print_rows(rows, skip, width);
	for (size_t i = 0; i < rows->n; i++) {
		const struct trace_row *r = &rows->row[i];
		if (r->bad_lines > 0)
			printf("%s: %zu bad line%s skipped, the first: %s\n", r->name, r->bad_lines,
				r->bad_lines > 1 ? "s" : "", r->first_bad);
		if (!r->failed && !r->was_sorted)
			printf("%s: was not in order of arrival\n", r->name);
	}
}

/* ---- JSON */

static json_t *row_json(const struct trace_row *r)
{
	const struct trace_summary *s = &r->s;
	if (r->failed)
		return json_pack("{s:s%, s:s}", "file", r->name, strlen(r->name), "error", r->why);
	bool share = r->has_offsets && !isnan(s->sequential_share);
	return json_pack(
		"{s:s%, s:s, s:I, s:f, s:f, s:f, s:f, s:o, s:I, s:I, s:I, s:f, s:o, s:i, s:b, "
		"s:I, s:s}",
		"file", r->name, strlen(r->name), "format", trace_format_names[r->format], "ios",
		(json_int_t)s->n, "span_s", (double)s->span / (double)WEIR_SEC, "rate", s->rate,
		"peak_rate", s->peak_rate, "read_share", s->read_share, "sequential_share",
		share ? json_real(s->sequential_share) : json_null(), "bytes", (json_int_t)s->bytes,
		"min_bytes", (json_int_t)s->min_bytes, "max_bytes", (json_int_t)s->max_bytes, "ca2",
		s->ca2, "extent",
		r->has_offsets ? json_integer((json_int_t)s->extent) : json_null(), "streams",
		(int)s->streams, "sorted", r->was_sorted, "bad_lines", (json_int_t)r->bad_lines,
		"first_bad", r->first_bad);
}

static int print_json(const struct trace_rows *rows)
{
	json_t *list = json_array();
	int bad = 0;
	for (size_t i = 0; i < rows->n && !bad; i++) {
		json_t *one = row_json(&rows->row[i]); /* NULL for a name that is not UTF-8 */
		if (!one)
			one = json_pack(
				"{s:s, s:s}", "file", "?", "error", "its name is not UTF-8");
		bad = json_array_append_new(list, one);
	}
	bad |= json_dumpf(list, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(list);
	return bad;
}

/* ---- the verb */

int trace_info(const struct trace_request *q, char **paths, int n)
{
	struct trace_rows rows;
	int bad = 0;
	if (trace_rows_find(paths, n, &rows) < 0)
		return opts_no_memory(&verb_trace);
	trace_rows_read(&rows, q, NULL, NULL);
	if (q->json)
		bad = print_json(&rows);
	else
		print_table(&rows);
	return trace_rows_end(&rows) || bad ? 1 : 0;
}
