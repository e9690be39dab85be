/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * analyze: `weir trace analyze`, the load of traces on the stages that they pass, and the token buckets that they fit.
 *
 * A stage is the storage, in device time, each direction of a link, in bytes, or, if neither is given, in requests.
 */
#include "cli/trace/rows.h"
#include "base/no-memory.h"
#include "cli/common/files.h"
#include "cli/view/out.h"
#include "cli/view/table.h"
#include "control/meister/frontier.h"
#include "model/estimate.h"
#include "plan/planning.h"
#include "sim/experiment/plot.h"
#include <weir/units.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STAGES 3
#define PEAKS  3
#define BEYOND 10 /* requests beyond a percentile, without which it means little */

static const double windows[PEAKS] = {0.01, 1, 60};

struct stage {
	const char *name;
	enum { STORAGE, TO_SERVER, FROM_SERVER, REQUESTS } kind;
	double rate; /* work per second; 0: not known, in requests */
};

struct result { /* of one trace at one stage */
	bool done;
	double load; /* work per second */
	double peak[PEAKS];
	int n; /* pairs; negative: out of memory */
	struct meister_pair pair[MEISTER_PAIRS];
	double loss;
	struct meister_frontier frontier;
};

struct analysis {
	struct estimate estimate;
	struct stage stage[STAGES];
	size_t n_stages, pairs;
	uint64_t overhead; /* bytes on the link with each request and each reply */
	double percentile;
	struct trace_rows rows;
	struct result *result; /* STAGES for each row */
};

/* ---- options */

static int read_profile(const char *path, struct estimate *ret)
{
	struct weir_err err;
	char *text;
	size_t len;
	int rc = files_read(path, FILES_WRITTEN, &text, &len, &err);

	if (rc == 0) {
		rc = estimate_read(text, len, path, ret, &err);
		free(text);
	}
	return rc < 0 ? opts_fail(&verb_trace, "--profile: %s", err.text) : 0;
}

static int read_link(const struct trace_stages *s, struct analysis *a)
{
	struct weir_rate rate;
	struct weir_err err;

	if (weir_units_rate(s->link, &rate, &err) < 0)
		return opts_fail(&verb_trace, "--link: %s", err.text);
	if (rate.unit != WEIR_UNIT_BYTES || !(rate.per_second > 0))
		return opts_fail(
			&verb_trace, "--link: '%s' is not a rate of bytes or bits", s->link);
	if (s->overhead && weir_units_size(s->overhead, &a->overhead, &err) < 0)
		return opts_fail(&verb_trace, "--overhead: %s", err.text);
	a->stage[a->n_stages++] = (struct stage){"to server", TO_SERVER, rate.per_second};
	a->stage[a->n_stages++] = (struct stage){"from server", FROM_SERVER, rate.per_second};
	return 0;
}

static int read_number(const char *name, const char *word, double least, double most, double *ret)
{
	char *end;
	double x;

	if (!word)
		return 0;
	x = strtod(word, &end);
	if (end == word || *end || !(x >= least && x <= most))
		return opts_fail(&verb_trace, "--%s: '%s' is not a number from %g to %g", name,
			word, least, most);
	*ret = x;
	return 0;
}

static int read_stages(const struct trace_stages *s, struct analysis *a)
{
	struct weir_err err;
	double pairs = 4;
	int status = 0;

	*a = (struct analysis){.overhead = 128, .percentile = 99.9};
	if (s->profile && s->work)
		return opts_fail(&verb_trace, "--profile and --work exclude each other");
	if (s->overhead && !s->link)
		return opts_fail(&verb_trace, "--overhead needs --link");
	if (s->profile)
		status = read_profile(s->profile, &a->estimate);
	else if (s->work)
		status = planning_work(s->work, &a->estimate, &err) < 0
				 ? opts_fail(&verb_trace, "--work: %s", err.text)
				 : 0;
	if (s->profile || s->work)
		a->stage[a->n_stages++] = (struct stage){"storage", STORAGE, 1};
	if (!status && s->link)
		status = read_link(s, a);
	if (!a->n_stages)
		a->stage[a->n_stages++] = (struct stage){"requests", REQUESTS, 0};
	if (!status)
		status = read_number("pairs", s->pairs, 1, MEISTER_PAIRS, &pairs);
	if (!status)
		status = read_number("percentile", s->percentile, 1, 99.9999, &a->percentile);
	if (!status && pairs != floor(pairs))
		status = opts_fail(&verb_trace, "--pairs: '%s' is not a whole number", s->pairs);
	a->pairs = (size_t)pairs;
	return status;
}

/* ---- one trace */

static double work_of(const struct analysis *a, const struct stage *s, struct estimate_past *past,
	const struct trace_record *r)
{
	switch (s->kind) {
	case STORAGE:
		return estimate_work(&a->estimate, past, r->op, r->offset, r->bytes) * 1e-9;
	case TO_SERVER:
		return (double)a->overhead + (r->op == TRACE_WRITE ? r->bytes : 0);
	case FROM_SERVER:
		return (double)a->overhead + (r->op == TRACE_READ ? r->bytes : 0);
	default:
		return 1;
	}
}

static void analyze_stage(const struct analysis *a, const struct stage *s, const struct trace *t,
	struct meister_arrival *arrivals, struct result *ret)
{
	struct estimate_past past = {0};

	for (size_t i = 0; i < t->n; i++)
		arrivals[i] = (struct meister_arrival){(double)t->records[i].at * 1e-9,
			work_of(a, s, t->has_offsets ? &past : NULL, &t->records[i])};
	ret->n = meister_frontier(arrivals, t->n, &ret->frontier);
	if (ret->n < 0)
		return;
	ret->n = meister_frontier_prune(&ret->frontier, a->pairs, ret->pair, &ret->loss);
	ret->load = ret->frontier.mean;
	for (int i = 0; i < PEAKS; i++)
		ret->peak[i] = meister_peak(arrivals, t->n, windows[i]);
	ret->done = ret->n > 0;
}

static void analyze_trace(void *arg, size_t row, const struct trace *t)
{
	struct analysis *a = arg;
	struct meister_arrival *arrivals = calloc(t->n, sizeof(*arrivals));

	for (size_t i = 0; arrivals && i < a->n_stages; i++)
		analyze_stage(a, &a->stage[i], t, arrivals, &a->result[row * STAGES + i]);
	free(arrivals);
}

/* ---- the table */

static void put_work(const struct stage *s, double work, char *buf, size_t len)
{
	if (s->kind == STORAGE)
		weir_units_show_time((weir_time)llround(work * 1e9), buf, len);
	else if (s->kind == REQUESTS)
		weir_units_show_count(work, buf, len);
	else
		weir_units_show_size((uint64_t)llround(work), buf, len);
}

static void put_load(const struct stage *s, double rate, char *buf, size_t len)
{
	if (s->rate > 0)
		snprintf(buf, len, rate >= s->rate ? "%.0f %%" : "%.3g %%", 100 * rate / s->rate);
	else
		weir_units_show_rate((struct weir_rate){rate, WEIR_UNIT_REQUESTS}, buf, len);
}

static void put_pairs(const struct stage *s, const struct result *r, char *buf, size_t len)
{
	size_t at = 0;

	buf[0] = '\0';
	for (int i = 0; i < r->n && at < len; i++) {
		char rate[32], size[32];

		put_load(s, r->pair[i].rate, rate, sizeof(rate));
		put_work(s, r->pair[i].size, size, sizeof(size));
		at += (size_t)snprintf(buf + at, len - at, "%s%s %s", i ? ", " : "", rate, size);
	}
}

static void add_cells(const struct analysis *a, struct table *t, size_t row, size_t i)
{
	const struct result *r = &a->result[row * STAGES + i];
	const struct stage *s = &a->stage[i];
	char text[MEISTER_PAIRS * 72];

	table_cell(t, "%s", s->name);
	put_load(s, r->load, text, sizeof(text));
	table_cell(t, "%s", text);
	for (int k = 0; k < PEAKS; k++) {
		put_load(s, r->peak[k], text, sizeof(text));
		table_cell(t, "%s", text);
	}
	put_pairs(s, r, text, sizeof(text));
	table_cell(t, "%.1f %%", 100 * r->loss);
	table_cell(t, "%s", r->done ? text : "out of memory");
}

static bool is_short(const struct analysis *a, const struct trace_row *r)
{
	return (double)r->s.n * (1 - a->percentile / 100) < BEYOND;
}

/* The cells of a trace, before those of its first stage. */
static void add_trace(struct table *t, const struct trace_row *r, size_t skip)
{
	table_cell(t, "%s", r->name + skip);
	table_cell(t, "%zu", r->s.n);
	table_cell(t, r->s.ca2 < 100 ? "%.2f" : "%.0f", r->s.ca2);
}

static void print_table(const struct analysis *a)
{
	static const char *const heads[] = {"trace", "IOs", "CA2", "stage", "load", "10ms", "1s",
		"60s", "loss", "buckets (rate size)", NULL};
	const struct trace_rows *rows = &a->rows;
	size_t skip = trace_rows_prefix(rows);
	struct table t;

	table_begin(&t, heads, 0x1f6);
	for (size_t row = 0; row < rows->n; row++) {
		const struct trace_row *r = &rows->row[row];

		for (size_t i = 0; !r->failed && i < a->n_stages; i++) {
			if (i == 0)
				add_trace(&t, r, skip);
			else
				for (int k = 0; k < 3; k++)
					table_cell(&t, "%s", "");
			add_cells(a, &t, row, i);
		}
	}
	if (skip > 0)
		printf("In %.*s\n", (int)skip, rows->row[0].name);
	table_print(&t);
	for (size_t row = 0; row < rows->n; row++) {
		const struct trace_row *r = &rows->row[row];

		if (r->failed)
			printf("%s: %s: %s\n", r->name, r->alien ? "no trace" : "not read",
				trace_row_failure(r));
		else if (is_short(a, r))
			printf("%s: %zu IOs are too few for p%g: fewer than %d lie beyond it\n",
				r->name, r->s.n, a->percentile, BEYOND);
	}
}

/* ---- JSON */

static json_t *stage_json(const struct stage *s, const struct result *r)
{
	json_t *pairs = json_array();

	for (int i = 0; i < r->n; i++)
		json_array_append_new(pairs, json_pack("[f, f]", r->pair[i].rate, r->pair[i].size));
	return json_pack("{s:s, s:f, s:f, s:{s:f, s:f, s:f}, s:o, s:f, s:I}", "stage", s->name,
		"rate", s->rate, "load", r->load, "peak", "10ms", r->peak[0], "1s", r->peak[1],
		"60s", r->peak[2], "buckets", pairs, "loss", r->loss, "border",
		(json_int_t)r->frontier.n);
}

static json_t *row_json(const struct analysis *a, size_t row)
{
	const struct trace_row *r = &a->rows.row[row];
	json_t *stages = json_array();

	if (r->failed) {
		json_decref(stages);
		return json_pack("{s:s%, s:s}", "file", r->name, strlen(r->name), "error", r->why);
	}
	for (size_t i = 0; i < a->n_stages; i++)
		json_array_append_new(
			stages, stage_json(&a->stage[i], &a->result[row * STAGES + i]));
	return json_pack("{s:s%, s:I, s:f, s:b, s:o}", "file", r->name, strlen(r->name), "ios",
		(json_int_t)r->s.n, "ca2", r->s.ca2, "too_short", is_short(a, r), "stages", stages);
}

static int print_json(const struct analysis *a)
{
	json_t *list = json_array();
	int bad = 0;

	for (size_t row = 0; row < a->rows.n && !bad; row++)
		bad = json_array_append_new(list, row_json(a, row));
	bad |= json_dumpf(list, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(list);
	return bad;
}

/* ---- pictures */

static const char *const stems[] = {"storage", "to-server", "from-server", "requests"};
static const char *const sizes[] = {"size [ms]", "size [bytes]", "size [bytes]", "size [requests]"};

/* Turn pairs, which have falling rates, into points of growing ones. */
static void put_points(const struct stage *s, const struct meister_pair *pairs, size_t n,
	struct metrics_point *ret)
{
	double per_rate = s->rate > 0 ? 100 / s->rate : 1;
	double per_size = s->kind == STORAGE ? 1e3 : 1;

	for (size_t i = 0; i < n; i++)
		ret[n - 1 - i] =
			(struct metrics_point){pairs[i].rate * per_rate, pairs[i].size * per_size};
}

/* Draw the border of one trace at one stage, size over rate, with the chosen pairs. */
static int draw(const struct analysis *a, const char *dir, size_t row, size_t i, bool *no_gnuplot,
	struct weir_err *err)
{
	const struct result *r = &a->result[row * STAGES + i];
	const struct stage *s = &a->stage[i];
	const char *name = a->rows.row[row].name, *slash = strrchr(name, '/');
	struct metrics_point *all = calloc(r->frontier.n, sizeof(*all)), chosen[MEISTER_PAIRS];
	struct plot_line lines[] = {{"all that the trace fits", PLOT_LINE, all, r->frontier.n},
		{"chosen", PLOT_POINTS, chosen, (size_t)r->n}};
	char stem[64], title[200];
	struct plot p = {.title = title,
		.x_label = s->rate > 0 ? "rate [% of the stage]" : "rate [iops]",
		.y_label = sizes[s->kind],
		.log_x = true,
		.log_y = true,
		.lines = lines,
		.n_lines = 2};
	int rc = all ? 0 : no_memory(err);

	if (rc == 0) {
		put_points(s, r->frontier.pairs, r->frontier.n, all);
		put_points(s, r->pair, (size_t)r->n, chosen);
		snprintf(stem, sizeof(stem), "%zu-%s", row + 1, stems[s->kind]);
		snprintf(
			title, sizeof(title), "Token buckets for %.150s", slash ? slash + 1 : name);
		rc = plot_write(&p, dir, stem, files_write, err);
	}
	if (rc == 0)
		rc = out_draw(&verb_trace, dir, stem, no_gnuplot, err);
	free(all);
	return rc;
}

static int draw_all(const struct analysis *a, const char *dir)
{
	struct weir_err err;
	bool no_gnuplot = false;

	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return opts_fail(&verb_trace, "%s: %s", dir, strerror(errno));
	for (size_t row = 0; row < a->rows.n; row++)
		for (size_t i = 0; i < a->n_stages; i++)
			if (a->result[row * STAGES + i].done &&
				draw(a, dir, row, i, &no_gnuplot, &err) < 0)
				return opts_fail(&verb_trace, "%s", err.text);
	return 0;
}

/* ---- the verb */

int trace_analyze(const struct trace_request *q, char **paths, int n)
{
	struct analysis a;
	int status = read_stages(&q->stages, &a);

	if (status)
		return status;
	if (trace_rows_find(paths, n, &a.rows) < 0)
		return opts_no_memory(&verb_trace);
	a.result = calloc(a.rows.n * STAGES + 1, sizeof(*a.result));
	if (!a.result) {
		trace_rows_free(&a.rows);
		return opts_no_memory(&verb_trace);
	}
	trace_rows_read(&a.rows, q, analyze_trace, &a);
	if (q->json)
		status = print_json(&a) ? 1 : 0;
	else
		print_table(&a);
	if (!status && q->stages.out)
		status = draw_all(&a, q->stages.out);
	for (size_t i = 0; i < a.rows.n * STAGES; i++)
		meister_frontier_free(&a.result[i].frontier);
	free(a.result);
	return trace_rows_end(&a.rows) || status ? 1 : 0;
}
