/* SPDX-License-Identifier: BSD-3-Clause */
/* report: tables and CSV of a run's metrics; see report.h. Tables themselves are in
 * report-table.c. */
#include "sim/experiment/report.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Split KIND.PATH.WHAT: set where PATH and WHAT start; return false if there are not three
 * parts. */
static bool split_name(const char *name, size_t *path, size_t *what)
{
	const char *first = strchr(name, '.'), *last = strrchr(name, '.');

	if (!first || first == last)
		return false;
	*path = (size_t)(first - name) + 1;
	*what = (size_t)(last - name) + 1;
	return true;
}

/* Strings borrowed from metrics, each once, in order of appearance. */
struct names {
	const char **start;
	size_t *len;
	size_t n;
};

static int names_new(struct names *s, size_t room)
{
	*s = (struct names){
		.start = calloc(room + 1, sizeof(char *)), .len = calloc(room + 1, sizeof(size_t))};
	return s->start && s->len ? 0 : -ENOMEM;
}

static void names_free(struct names *s)
{
	free(s->start);
	free(s->len);
}

/* Add a name. Names of one run come in blocks, so the search starts at the end: O(1) nearly
 * always. */
static size_t names_add(struct names *s, const char *start, size_t len)
{
	for (size_t i = s->n; i-- > 0;)
		if (s->len[i] == len && memcmp(s->start[i], start, len) == 0)
			return i;
	s->start[s->n] = start;
	s->len[s->n] = len;
	return s->n++;
}

static bool of_kind(const struct metrics_entry *e, const char *kind, size_t kind_len, size_t *path,
	size_t *what)
{
	return !e->is_series && split_name(e->name, path, what) && *path - 1 == kind_len &&
	       strncmp(e->name, kind, kind_len) == 0;
}

/* Return a unit as shown, and the divisor for its values. Counts have none. */
static const char *shown_unit(const char *unit, double *ret_scale)
{
	bool bytes = strcmp(unit, "B/s") == 0;

	*ret_scale = bytes ? 1e6 : 1;
	return bytes ? "MB/s" : strcmp(unit, "requests") == 0 ? "" : unit;
}

/* Tables for the kinds that a simulation measures: a caption, and the most useful columns. The CSV
 * and JSON have the others. Widths are meant for 80 columns. */
struct view {
	const char *kind, *caption;
	struct {
		const char *what, *head;
	} columns[12];
};

#define LATENCY                                                                                    \
	{"mean", "mean"}, {"p50", "p50"}, {"p95", "p95"}, {"p99", "p99"}, {"p99_9", "p99.9"},      \
		{"p99_99", "p99.99"},                                                              \
	{                                                                                          \
		"max", "max"                                                                       \
	}
#define FLOW                                                                                       \
	{"iops", "IOPS"}, {"bytes", "MB/s"}, {"in_flight", "in flight"},                           \
	{                                                                                          \
		"mean", "mean [ms]"                                                                \
	}

static const struct view views[] = {
	{"tenant", "Tenants: throughput, and time from arrival to completion [ms]",
		{{"iops", "IOPS"}, {"bytes", "MB/s"}, {"share", "share"}, LATENCY}},
	{"inside", "The part of it beyond the gate, in links and devices [ms]", {LATENCY}},
	{"wait", "The part of it in the gate, by cause: means [ms]",
		{{"mean", "in the gate"}, {"max", "own max"}, {"above", "max above"},
			{"tokens", "tokens"}, {"window", "window"}, {"turn", "turn"},
			{"queued", "queue length"}}},
	{"slo", "Percentile of the slo over its bound: over 1 is a miss", {{"ratio", "ratio"}}},
	{"burst", "Bursts, from the first arrival to the last completion",
		{{"finished", "finished"}, {"unfinished", "unfinished"}, {"mean", "mean [ms]"}}},
	{"host", "Hosts: from arrival to completion", {FLOW, {"window_end", "window at the end"}}},
	{"device", "Devices: throughput, and the time inside them",
		{FLOW, {"capacity_iops", "learned IOPS"}, {"capacity_bytes", "learned MB/s"}}},
	{"link", "Links: throughput, and the time to the other end",
		{FLOW, {"drops", "drops"}, {"marks", "marks"}}},
};

static const struct view *view_of(const char *kind, size_t kind_len)
{
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++)
		if (strlen(views[i].kind) == kind_len && memcmp(views[i].kind, kind, kind_len) == 0)
			return &views[i];
	return NULL;
}

static const char *view_head(const struct view *v, const char *what)
{
	for (size_t i = 0; v && v->columns[i].what; i++)
		if (strcmp(v->columns[i].what, what) == 0)
			return v->columns[i].head;
	return NULL;
}

/* Keep only the columns of the view, in its order. */
static void view_order(const struct view *v, struct names *columns)
{
	struct names had = *columns;
	size_t n = 0;

	for (size_t i = 0; v->columns[i].what; i++) {
		size_t len = strlen(v->columns[i].what);

		for (size_t c = n; c < had.n; c++) {
			const char *start = had.start[c];

			if (had.len[c] != len || memcmp(start, v->columns[i].what, len) != 0)
				continue;
			memmove(&had.start[n + 1], &had.start[n], (c - n) * sizeof(*had.start));
			memmove(&had.len[n + 1], &had.len[n], (c - n) * sizeof(*had.len));
			had.start[n] = start;
			had.len[n++] = len;
		}
	}
	columns->n = n;
}

static void put_head(struct report_table *t, const struct metrics *m, const char *kind,
	size_t kind_len, const struct names *columns)
{
	const struct view *v = view_of(kind, kind_len);

	report_cell(t, "%.*s", v ? 0 : (int)kind_len, kind);
	for (size_t c = 0; c < columns->n; c++) {
		const char *unit = "", *head = view_head(v, columns->start[c]);
		size_t path, what;
		double scale;

		for (size_t i = 0; i < metrics_count(m) && !*unit; i++) {
			struct metrics_entry e = metrics_at(m, i);

			if (of_kind(&e, kind, kind_len, &path, &what) &&
				strlen(e.name + what) == columns->len[c] &&
				strcmp(e.name + what, columns->start[c]) == 0)
				unit = e.unit;
		}
		unit = shown_unit(unit, &scale);
		if (head)
			report_cell(t, "%s", head);
		else if (*unit && strcmp(unit, columns->start[c]) != 0)
			report_cell(t, "%s [%s]", columns->start[c], unit);
		else
			report_cell(t, "%s", columns->start[c]);
	}
}

static void put_rows(struct report_table *t, const struct metrics *m, const char *kind,
	size_t kind_len, const struct names *paths, const struct names *columns)
{
	char name[512], buf[32];

	for (size_t i = 0; i < paths->n; i++) {
		report_cell(t, "%.*s", (int)paths->len[i], paths->start[i]);
		for (size_t c = 0; c < columns->n; c++) {
			struct metrics_entry e;
			double scale;

			snprintf(name, sizeof(name), "%.*s.%.*s.%s", (int)kind_len, kind,
				(int)paths->len[i], paths->start[i], columns->start[c]);
			if (!metrics_find(m, name, &e) || e.is_series) {
				report_cell(t, "–");
				continue;
			}
			shown_unit(e.unit, &scale);
			if (strcmp(columns->start[c], "window_end") == 0 &&
				e.value >= POLICY_DEPTH_OPEN)
				report_cell(t, "none");
			else
				report_cell(
					t, "%s", report_number(e.value / scale, buf, sizeof(buf)));
		}
	}
}

static int put_kind(FILE *f, const struct metrics *m, const char *kind, size_t kind_len)
{
	struct names paths = {0}, columns = {0};
	const struct view *v = view_of(kind, kind_len);
	struct report_table t = {0};
	int r = names_new(&paths, metrics_count(m));

	if (r == 0)
		r = names_new(&columns, metrics_count(m));
	for (size_t i = 0; r == 0 && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		size_t path, what;

		if (!of_kind(&e, kind, kind_len, &path, &what))
			continue;
		names_add(&paths, e.name + path, what - path - 1);
		names_add(&columns, e.name + what, strlen(e.name + what));
	}
	if (r == 0 && v)
		view_order(v, &columns);
	if (r == 0) {
		t.columns = columns.n + 1;
		put_head(&t, m, kind, kind_len, &columns);
		put_rows(&t, m, kind, kind_len, &paths, &columns);
		fprintf(f, "%s%s", v ? v->caption : "", v ? "\n" : "");
		r = report_table_text(&t, v ? 2 : 0, f);
		fputc('\n', f);
	}
	names_free(&paths);
	names_free(&columns);
	return r;
}

static int put_alone(FILE *f, const struct metrics *m)
{
	struct report_table t = {.columns = 3};
	size_t path, what;

	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		const char *unit;
		double scale;
		char buf[32];

		if (e.is_series || split_name(e.name, &path, &what))
			continue;
		unit = shown_unit(e.unit, &scale);
		report_cell(&t, "%s", e.name);
		report_cell(&t, "%s", report_number(e.value / scale, buf, sizeof(buf)));
		report_cell(&t, "%s", unit);
	}
	return report_table_text(&t, 0, f);
}

int report_summary(const struct metrics *m, FILE *to)
{
	struct names kinds;
	int r = names_new(&kinds, metrics_count(m));

	for (size_t i = 0; r == 0 && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		size_t path, what;

		if (!e.is_series && split_name(e.name, &path, &what))
			names_add(&kinds, e.name, path - 1);
	}
	for (size_t i = 0; r == 0 && i < kinds.n; i++)
		r = put_kind(to, m, kinds.start[i], kinds.len[i]);
	if (r == 0)
		r = put_alone(to, m);
	names_free(&kinds);
	return r;
}

void report_values_csv(const struct metrics *m, FILE *to)
{
	fputs("name,unit,value\n", to);
	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);

		if (e.is_series)
			continue;
		fprintf(to, "%s,%s,", e.name, e.unit);
		if (!isnan(e.value))
			fprintf(to, "%.12g", e.value);
		fputc('\n', to);
	}
}

void report_series_csv(const struct metrics_entry *series, FILE *to)
{
	fprintf(to, "t_s,%s%s%s\n", series->name, *series->unit ? "_" : "", series->unit);
	for (size_t i = 0; i < series->n; i++)
		fprintf(to, "%.9g,%.12g\n", series->points[i].t, series->points[i].value);
}
