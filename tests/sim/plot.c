/* SPDX-License-Identifier: BSD-3-Clause */
/* plot: lines with different x values in one CSV, and a script that no title can break. */
#include "sim/experiment/plot.h"
#include "test.h"
#include <errno.h>

static const struct metrics_point a[] = {{0, 1}, {1, 2}, {1, 3}, {3, 4}};
static const struct metrics_point b[] = {{1, 10}, {2, 20}};
static const struct plot_line lines[] = {{"one, \"two\"", PLOT_LINE, a, 4},
	{"b", PLOT_DASHED, b, 2}, {"none", PLOT_POINTS, NULL, 0}};
static const struct plot plot = {.title = "a \"title\" \\ here",
	.x_label = "time [s]",
	.y_label = "latency [ms]",
	.lines = lines,
	.n_lines = 3};

static void test_csv(void)
{
	char *text;

	WRITE_TEXT(text, plot_csv(&plot, "stem", to));
	CHECK_STR(text, "time [s],\"one, \"\"two\"\"\",b,none\n"
			"0,1,,\n"
			"1,2,10,\n"
			"1,3,,\n"
			"2,,20,\n"
			"3,4,,\n");
	free(text);
}

static void test_script(void)
{
	struct plot log = plot;
	char *text;

	WRITE_TEXT(text, plot_script(&plot, "stem", to));
	CHECK(strstr(text, "\"a \\\"title\\\" \\\\ here\""));
	CHECK(strstr(text, "'stem.csv' using 1:2 with lines"));
	CHECK(strstr(text, "'stem.csv' using 1:4 with linespoints"));
	CHECK(strstr(text, "stem.svg") && strstr(text, "stem.png"));
	CHECK(strstr(text, "yrange [0:*]") && !strstr(text, "logscale"));
	free(text);
	log.log_y = true;
	WRITE_TEXT(text, plot_script(&log, "stem", to));
	CHECK(strstr(text, "logscale y") && !strstr(text, "yrange [0:"));
	CHECK(strstr(text, "set ytics (1, 2, 5, 10, 20)\n")); /* from 1 to 20 */
	CHECK(!strstr(text, "set arrow"));
	free(text);
	log.mark = 1.5;
	log.mark_label = "here \"it\" starts";
	WRITE_TEXT(text, plot_script(&log, "stem", to));
	CHECK(strstr(text, "set arrow from 1.5, graph 0 to 1.5, graph 1"));
	CHECK(strstr(text, "\"here \\\"it\\\" starts\" at 1.5"));
	free(text);
}

/* A log axis of no data, zeros, one value, a value between the marks. */
static void test_log_axis(void)
{
	static const struct {
		double y[2];
		const char *tics; /* NULL: the default of gnuplot */
	} cases[] = {{{0, 0}, NULL}, {{-1, 0}, NULL}, {{1e-3, 1e6}, NULL},
		{{0, 3}, "set ytics (2, 5)\n"}, {{5, 5}, "set ytics (5, 10)\n"},
		{{0.03, 1.1}, "set ytics (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)\n"},
		{{999, 1001}, "set ytics (500, 1000, 2000)\n"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct metrics_point points[] = {{0, cases[i].y[0]}, {1, cases[i].y[1]}};
		struct plot_line line = {"y", PLOT_LINE, points, 2};
		struct plot p = plot;
		char *text;

		p.lines = &line;
		p.n_lines = 1;
		p.log_y = true;
		WRITE_TEXT(text, plot_script(&p, "stem", to));
		if (cases[i].tics)
			CHECK(strstr(text, cases[i].tics));
		else
			CHECK(!strstr(text, "ytics ("));
		free(text);
	}
}

/* Values below 0 are shown, with a line at 0. */
static void test_below_zero(void)
{
	static const struct metrics_point points[] = {{0, 3}, {1, -2}};
	struct plot_line line = {"y", PLOT_LINE, points, 2};
	struct plot p = plot;
	char *text;

	p.lines = &line;
	p.n_lines = 1;
	WRITE_TEXT(text, plot_script(&p, "stem", to));
	CHECK(!strstr(text, "yrange [0:*]"));
	CHECK(strstr(text, "set yrange [*:*]") && strstr(text, "set xzeroaxis"));
	free(text);
	p.panels = true;
	WRITE_TEXT(text, plot_script(&p, "stem", to));
	CHECK(strstr(text, "set yrange [-2.2:3.2]") && strstr(text, "set xzeroaxis"));
	free(text);
}

/* The x axis begins at 0 if the data begin near it. */
static void test_x_axis(void)
{
	static const struct metrics_point near[] = {{1, 3}, {9, 2}}, far[] = {{5, 3}, {9, 2}};
	struct plot_line line = {"y", PLOT_LINE, near, 2};
	struct plot p = plot;
	char *text;

	p.lines = &line;
	p.n_lines = 1;
	WRITE_TEXT(text, plot_script(&p, "stem", to));
	CHECK(strstr(text, "set autoscale xfix\nset xrange [0:*]\n"));
	free(text);
	line.points = far;
	WRITE_TEXT(text, plot_script(&p, "stem", to));
	CHECK(strstr(text, "set autoscale xfix\n") && !strstr(text, "xrange"));
	free(text);
	line.points = near;
	p.log_x = true;
	WRITE_TEXT(text, plot_script(&p, "stem", to));
	CHECK(strstr(text, "set logscale x 2\n"));
	CHECK(strstr(text, "set xrange [0.999000999:9.009]\n") && !strstr(text, "xtics"));
	free(text);
	line.style = PLOT_POINTS;
	WRITE_TEXT(text, plot_script(&p, "stem", to));
	CHECK(strstr(text, "set xtics (1, 9)\n")); /* at the measured points */
	free(text);
}

/* One panel per line, stacked, all with one range. */
static void test_panels(void)
{
	struct plot p = plot;
	const char *first, *second;
	char *text;

	p.panels = true;
	WRITE_TEXT(text, plot_script(&p, "stem", to));
	CHECK(strstr(text, "set multiplot layout 3,1"));
	CHECK(strstr(text, "set yrange [0:20.8]\nset ytics 10\n")); /* the most is 20 */
	first = strstr(text, "plot 'stem.csv' using 1:2 with lines");
	CHECK(first && (second = strstr(first, "plot 'stem.csv' using 1:3 with lines")));
	CHECK(strstr(second, "plot 'stem.csv' using 1:4 with linespoints"));
	CHECK(strstr(text, "stem.svg") && strstr(text, "stem.png") && !strstr(text, "replot"));
	free(text);
}

static char put_names[100];
static int put_room; /* number of files that can still be written */

static int write_file(const char *path, const char *text, size_t len, struct weir_err *err)
{
	if (put_room-- == 0)
		return weir_err_set(err, -ENOSPC, "%s: full", path);
	CHECK_INT(strlen(text), len);
	CHECK(len > 0);
	snprintf(put_names + strlen(put_names), sizeof(put_names) - strlen(put_names), "%s ", path);
	return 0;
}

static void test_files(void)
{
	struct weir_err err = {""};

	put_room = 2;
	CHECK_INT(plot_write(&plot, "dir", "p", write_file, &err), 0);
	CHECK_STR(put_names, "dir/p.csv dir/p.gp ");
	put_room = 1;
	CHECK_INT(plot_write(&plot, "dir", "p", write_file, &err), -ENOSPC);
	CHECK_STR(err.text, "dir/p.gp: full");
}

int main(void)
{
	RUN(test_csv);
	RUN(test_script);
	RUN(test_log_axis);
	RUN(test_below_zero);
	RUN(test_x_axis);
	RUN(test_panels);
	RUN(test_files);
	return 0;
}
