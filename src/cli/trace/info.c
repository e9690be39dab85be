/* SPDX-License-Identifier: BSD-3-Clause */
/* info: `weir trace info`, one row per trace. The row of an unreadable file says why. */
#include "cli/trace/trace.h"
#include "cli/view/progress.h"
#include "base/array.h"
#include <weir/units.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct row {
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

struct rows {
	struct row *row;
	size_t n, room;
};

/* Store the message without the name at its start, which the row shows: "line 17: …". */
static void set_why(struct row *r, const char *message)
{
	const char *shown = strcmp(r->name, "-") == 0 ? "standard input" : r->name;
	size_t n = strlen(shown);
	bool named = strncmp(message, shown, n) == 0 && message[n] == ':';
	const char *rest = named ? message + n + 1 : message;
	r->failed = true;
	snprintf(r->why, sizeof r->why, "%s%s", named && *rest != ' ' ? "line " : "",
		rest + strspn(rest, " "));
}

static struct row *add_row(struct rows *rows, const char *name)
{
	if (array_grow(&rows->row, &rows->room, rows->n + 1) < 0)
		return NULL;
	struct row *r = &rows->row[rows->n];
	*r = (struct row){.name = strdup(name)};
	rows->n += r->name != NULL;
	return r->name ? r : NULL;
}

/* ---- names, and files in folders */

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int add_found(struct rows *rows, const char *path)
{
	struct row *r = add_row(rows, path);
	if (r)
		r->found = true;
	return r ? 0 : -ENOMEM;
}

/* Add every file in the folder, by name, and in its subfolders; links to folders are not followed,
 * to avoid cycles. */
static int add_folder(struct rows *rows, const char *folder)
{
	struct dirent **list;
	size_t before = rows->n;
	int n = scandir(folder, &list, is_visible, alphasort), code = 0;
	if (n < 0) {
		struct row *r = add_row(rows, folder);
		if (r)
			set_why(r, strerror(errno));
		return r ? 0 : -ENOMEM;
	}
	for (int i = 0; i < n; i++) {
		char *path = NULL;
		struct stat st;
		const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
		if (code == 0 && asprintf(&path, "%s%s%s", folder, slash, list[i]->d_name) < 0)
			code = -ENOMEM;
		if (code == 0 && lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			code = add_folder(rows, path);
		else if (code == 0 && !(stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
			code = add_found(rows, path);
		free(path);
		free(list[i]);
	}
	free(list);
	if (code == 0 && rows->n == before) {
		struct row *r = add_row(rows, folder);
		if (!r)
			return -ENOMEM;
		set_why(r, "contains no file");
	}
	return code;
}

static int add_names(struct rows *rows, char **paths, int n)
{
	for (int i = 0; i < n; i++) {
		struct stat st;
		bool folder = strcmp(paths[i], "-") != 0 && stat(paths[i], &st) == 0 &&
			      S_ISDIR(st.st_mode);
		int code = folder                    ? add_folder(rows, paths[i])
			   : add_row(rows, paths[i]) ? 0
						     : -ENOMEM;
		if (code < 0)
			return code;
	}
	return 0;
}

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

static void fill_cells(const struct row *r, struct cells *c)
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

/* Return the length of the common prefix of all names, up to a slash: it is printed once, above the
 * table. */
static size_t common_prefix(const struct rows *rows)
{
	const char *first = rows->n > 1 ? rows->row[0].name : "";
	size_t n = strlen(first);
	for (size_t i = 1; i < rows->n; i++) {
		size_t same = 0;
		while (same < n && rows->row[i].name[same] == first[same])
			same++;
		n = same;
	}
	while (n > 0 && first[n - 1] != '/')
		n--;
	return n;
}

static void print_rows(const struct rows *rows, size_t skip, const int width[COLUMNS])
{
	print_row(heads.text[NAME], &heads, width);
	for (size_t i = 0; i < rows->n; i++) {
		const struct row *r = &rows->row[i];
		struct cells c;
		if (r->failed) {
			const char *start = r->alien ? strstr(r->why, "it starts") : NULL;
			printf("%-*s  %s: %s\n", width[NAME], r->name + skip,
				r->alien ? "no trace" : "not read", start ? start : r->why);
			continue;
		}
		fill_cells(r, &c);
		print_row(r->name + skip, &c, width);
	}
}

static void print_table(const struct rows *rows)
{
	int width[COLUMNS] = {[NAME] = (int)strlen(heads.text[NAME]), [FORMAT] = 6};
	size_t skip = common_prefix(rows);
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
		const struct row *r = &rows->row[i];
		if (r->bad_lines > 0)
			printf("%s: %zu bad line%s skipped, the first: %s\n", r->name, r->bad_lines,
				r->bad_lines > 1 ? "s" : "", r->first_bad);
		if (!r->failed && !r->was_sorted)
			printf("%s: was not in order of arrival\n", r->name);
	}
}

/* ---- JSON */

static json_t *row_json(const struct row *r)
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

static int print_json(const struct rows *rows)
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

static void read_row(struct row *r, const struct trace_request *q)
{
	struct trace t;
	struct weir_err err;
	if (r->failed)
		return;
	int code = trace_load(r->name, q, &t, &err);
	if (code < 0) {
		set_why(r, err.text);
		r->alien = r->found && code == -ENOMSG;
		return;
	}
	trace_summarise(&t, &r->s);
	r->has_offsets = t.has_offsets;
	r->was_sorted = t.was_sorted;
	r->format = t.format;
	r->bad_lines = t.bad_lines;
	memcpy(r->first_bad, t.first_bad, sizeof r->first_bad);
	trace_free(&t);
}

int trace_info(const struct trace_request *q, char **paths, int n)
{
	struct rows rows = {0};
	struct progress p;
	size_t failed = 0, alien = 0;
	int status = 0;
	if (add_names(&rows, paths, n) < 0) {
		opts_no_memory(&verb_trace);
		status = 1;
	}
	progress_start(&p, "traces", (double)rows.n);
	for (size_t i = 0; i < rows.n && !status; i++) {
		read_row(&rows.row[i], q);
		failed += rows.row[i].failed;
		alien += rows.row[i].alien;
		progress_tick(&p, (double)i + 1);
	}
	progress_end(&p);
	if (!status && q->json)
		status = print_json(&rows) ? 1 : 0;
	else if (!status)
		print_table(&rows);
	if (failed) {
		fflush(stdout);
		opts_fail(&verb_trace, "%zu of %zu %s", failed, rows.n,
			failed > alien ? "not read" : "are not traces");
	}
	if (failed > alien || (failed && failed == rows.n))
		status = 1;
	for (size_t i = 0; i < rows.n; i++)
		free(rows.row[i].name);
	free(rows.row);
	return status;
}
