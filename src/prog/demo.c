/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir demo: a noisy neighbour, and its end, on embedded scenarios.
 *
 * Two runs of one machine and one demand: first with nothing in front of the array, then with a
 * gate and a policy. Nothing is read from outside; what is shown is what the simulator measured.
 */
#include "prog/chart.h"
#include "prog/files.h"
#include "prog/out.h"
#include "prog/progress.h"
#include "prog/verb.h"
#include "sim/metrics.h"
#include "sim/plot.h"
#include "sim/report.h"
#include "sim/sim.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char before_text[] =
#include "demo-before.inc"
	;
static const char after_text[] =
#include "demo-after.inc"
	;

enum { OUT, SEED, OPTIONS };
static const struct opt options[] = {
	[OUT] = {"out", 'o', "DIR", "where the pictures and scenarios go (weir-demo)"},
	[SEED] = {"seed", 's', "N", "the seed of everything random (1)"},
	[OPTIONS] = {NULL, 0, NULL, NULL},
};
static int verb_run(int argc, char **argv);
const struct verb verb_demo = {
	.name = "demo",
	.summary = "show a noisy neighbour, and its end",
	.usage = "[OPTION]...",
	.options = options,
	.run = verb_run,
};

static const char *const tenants[] = {"db", "web", "backup"};
#define TENANTS (sizeof(tenants) / sizeof(*tenants))
#define COLUMNS 5 /* of the table */

/* ---- the runs */

static int tick(double fraction, void *arg)
{
	progress_tick(arg, fraction);
	return 0;
}

static int run(const char *text, const char *name, uint64_t seed, struct metrics **ret,
	struct weir_err *err)
{
	struct progress p;
	struct sim_options o = {.seed = seed, .seed_set = 1, .progress = tick, .progress_arg = &p};
	struct scenario *s;
	int r = scenario_parse(text, strlen(text), name, NULL, 0, &s, err);

	if (r < 0)
		return r;
	progress_start(&p, name, 1);
	r = sim_run(s, &o, ret, NULL, err);
	progress_end(&p);
	scenario_free(s);
	return r;
}

static double get(const struct metrics *m, const char *kind, const char *tenant, const char *what)
{
	char name[128];
	double x = NAN;

	snprintf(name, sizeof(name), "%s.host.%s.%s", kind, tenant, what);
	metrics_get(m, name, &x);
	return x;
}

/* ---- the table */

/* Where the largest part of a tenant's latency is spent. */
static void place(const struct metrics *m, const char *tenant, char *buf, size_t len)
{
	static const struct {
		const char *kind, *what, *said;
	} parts[] = {{"inside", "mean", "in the array"}, {"wait", "turn", "for its turn"},
		{"wait", "window", "for the window"}, {"wait", "max", "for its max"},
		{"wait", "above", "for a parent's max"}, {"wait", "tokens", "for tokens"}};
	const char *said = "";
	double most = 0;
	char number[32];

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		double x = get(m, parts[i].kind, tenant, parts[i].what);

		if (x > most) {
			most = x;
			said = parts[i].said;
		}
	}
	snprintf(buf, len, "%s ms %s", report_number(most, number, sizeof(number)), said);
}

/* "before → after", the arrows below each other. */
static int cell_pair(struct report_table *t, double before, double after)
{
	char a[32], b[32];

	return report_cell(t, "%5s → %-5s", report_number(before, a, sizeof(a)),
		report_number(after, b, sizeof(b)));
}

static int fill(struct report_table *t, const struct metrics *before, const struct metrics *after)
{
	static const char *const head[] = {
		"", "    IOPS", "  p50 [ms]", "  p99 [ms]", "most of its time, after"};
	char most[64];
	int r = 0;

	for (size_t i = 0; r == 0 && i < COLUMNS; i++)
		r = report_cell(t, "%s", head[i]);
	for (size_t i = 0; r == 0 && i < TENANTS; i++) {
		const char *name = tenants[i];

		r = report_cell(t, "%s", name);
		if (r == 0)
			r = cell_pair(t, get(before, "tenant", name, "iops"),
				get(after, "tenant", name, "iops"));
		if (r == 0)
			r = cell_pair(t, get(before, "tenant", name, "p50"),
				get(after, "tenant", name, "p50"));
		if (r == 0)
			r = cell_pair(t, get(before, "tenant", name, "p99"),
				get(after, "tenant", name, "p99"));
		place(after, name, most, sizeof(most));
		if (r == 0)
			r = report_cell(t, "%s", most);
	}
	return r;
}

static int show_table(const struct metrics *before, const struct metrics *after)
{
	struct report_table *t;
	char *text = NULL;
	int r = report_table_new(COLUMNS, &t);

	if (r < 0)
		return r;
	r = fill(t, before, after);
	if (r == 0)
		r = report_table_text(t, 2, &text);
	if (r == 0)
		printf("Before → after:\n%s\n", text);
	free(text);
	report_table_free(t);
	return r;
}

static void show_sum(const struct metrics *before, const struct metrics *after)
{
	double was = get(before, "tenant", "db", "p99"), is = get(after, "tenant", "db", "p99");
	double left =
		get(after, "tenant", "backup", "iops") / get(before, "tenant", "backup", "iops");

	printf("The database's slowest 1 %% of reads take %.0f ms instead of %.0f; the backup, "
	       "which\n"
	       "has no hurry, goes at %.0f %% of its speed.\n\n",
		is, was, 100 * left);
}

/* ---- the pictures */

struct joined { /* one series of both runs, one after the other */
	struct metrics_point *points;
	size_t n;
	double mark; /* where the second starts */
};

static int join(const struct metrics *before, const struct metrics *after, const char *tenant,
	const char *what, struct joined *ret)
{
	struct metrics_entry a, b;
	char name[128];

	snprintf(name, sizeof(name), "tenant.host.%s.%s", tenant, what);
	if (!metrics_find(before, name, &a) || !metrics_find(after, name, &b) || !a.n)
		return -ENOENT;
	ret->points = calloc(a.n + b.n, sizeof(*ret->points));
	if (!ret->points)
		return -ENOMEM;
	ret->n = a.n + b.n;
	ret->mark = a.points[a.n - 1].t;
	memcpy(ret->points, a.points, a.n * sizeof(*a.points));
	for (size_t i = 0; i < b.n; i++)
		ret->points[a.n + i] =
			(struct metrics_point){ret->mark + b.points[i].t, b.points[i].value};
	return 0;
}

static void show_chart(const char *title, const struct joined *j, bool log)
{
	struct chart c = {.title = title,
		.points = j->points,
		.n = j->n,
		.log = log,
		.mark = j->mark,
		.left = "nothing between",
		.right = "gate and policy",
		.columns = 64,
		.rows = 7,
		.ascii = !chart_utf8(),
		.colour = chart_colour(stdout)};

	chart_draw(stdout, &c);
	putchar('\n');
}

/* 0: drawn; 1: gnuplot is missing, which has been said. */
static int draw(const char *dir, const struct joined *latency, struct weir_err *err)
{
	struct plot_line lines[TENANTS];
	struct plot p = {.title = "A backup beside a database: without, then with a policy",
		.x_label = "time [s]",
		.y_label = "p99 latency of each half second [ms]",
		.log_y = true,
		.lines = lines,
		.n_lines = TENANTS,
		.mark = latency[0].mark,
		.mark_label = "gate and policy on"};
	bool no_gnuplot = false;
	int r;

	for (size_t i = 0; i < TENANTS; i++)
		lines[i] = (struct plot_line){
			.label = tenants[i], .points = latency[i].points, .n = latency[i].n};
	r = plot_write(&p, dir, "latency", err);
	if (r == 0)
		r = out_draw(&verb_demo, dir, "latency", &no_gnuplot, err);
	return r < 0 ? r : no_gnuplot;
}

static int show_pictures(const struct metrics *before, const struct metrics *after, const char *dir,
	struct weir_err *err)
{
	struct joined latency[TENANTS] = {{0}};
	int r = 0;

	for (size_t i = 0; r == 0 && i < TENANTS; i++)
		r = join(before, after, tenants[i], "latency_p99", &latency[i]);
	if (r < 0)
		weir_err_set(err, r, "the runs left no series");
	if (r == 0) {
		show_chart(
			"The database's latency, p99 of each half second [ms]", &latency[0], true);
		r = draw(dir, latency, err);
	}
	if (r == 0)
		printf("The picture: %s/latency.svg and .png\n", dir);
	for (size_t i = 0; i < TENANTS; i++)
		free(latency[i].points);
	return r < 0 ? r : 0;
}

/* ---- the words */

/* The policy as it stands in the second scenario: its hosts, without the demand. */
static void show_policy(void)
{
	const char *line = strstr(after_text, "hosts:\n");

	while (line && *line) {
		size_t n = strcspn(line, "\n");

		if (!memmem(line, n, "workloads:", 10))
			printf("    %.*s\n", (int)n, line);
		line += n + (line[n] == '\n');
	}
	putchar('\n');
}

static void show_next(const char *dir)
{
	const char *weir = program_invocation_name;

	printf("Try next: all that was measured; a faster backup; a window alone, all equal.\n"
	       "  %s sim %s/after.yaml\n"
	       "  %s sim %s/after.yaml --set 'hosts[0].tenants[2].max=2k iops'\n"
	       "  %s sim %s/before.yaml --set 'hosts[0].window=12' --set 'hosts[0].order=fair'\n",
		weir, dir, weir, dir, weir, dir);
}

static int save(const char *dir, struct weir_err *err)
{
	char path[PATH_MAX];
	int r = files_make_dir(dir, err);

	snprintf(path, sizeof(path), "%s/before.yaml", dir);
	if (r == 0)
		r = files_write(path, before_text, strlen(before_text), err);
	snprintf(path, sizeof(path), "%s/after.yaml", dir);
	if (r == 0)
		r = files_write(path, after_text, strlen(after_text), err);
	return r;
}

static int show(const char *dir, uint64_t seed, struct weir_err *err)
{
	struct metrics *before = NULL, *after = NULL;
	int r = run(before_text, "demo-before.yaml", seed, &before, err);

	if (r == 0)
		r = run(after_text, "demo-after.yaml", seed, &after, err);
	if (r == 0) {
		printf("One array, and three that share it: a database and web servers, which ask\n"
		       "for little and want it soon, and a backup that keeps 64 large reads\n"
		       "outstanding. First with nothing between them and the array, then with a\n"
		       "gate, a window and this policy:\n\n");
		show_policy();
		r = show_table(before, after);
	}
	if (r == 0)
		show_sum(before, after);
	if (r == 0)
		r = show_pictures(before, after, dir, err);
	if (r == 0)
		show_next(dir);
	metrics_free(before);
	metrics_free(after);
	return r;
}

static int verb_run(int argc, char **argv)
{
	const char *values[OPTIONS] = {NULL}, *dir;
	struct weir_err err = {"out of memory"};
	uint64_t seed = 1;
	int n, status = opts_parse(&verb_demo, argc, argv, values, &n);

	if (status >= 0)
		return status;
	if (n > 0)
		return opts_fail(&verb_demo, "takes no operand, as '%s'", argv[1]);
	if (opts_seed(&verb_demo, values[SEED], &seed))
		return 2;
	dir = values[OUT] ? values[OUT] : "weir-demo";
	if (save(dir, &err) < 0 || show(dir, seed, &err) < 0) {
		opts_fail(&verb_demo, "%s", err.text);
		return 1;
	}
	return 0;
}
