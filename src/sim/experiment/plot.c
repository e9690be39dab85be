/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/experiment/plot.h"
#include "base/no-memory.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Okabe and Ito's palette: distinguishable with any colour vision, and in grey. */
static const char *const palette[] = {
	"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};
#define PALETTE (sizeof(palette) / sizeof(*palette))

#define X_MARKS 12 /* most marks that fit below a chart */

/* ---- the data */

static void put_field(FILE *f, const char *text)
{
	if (!strpbrk(text, ",\"\n")) {
		fputs(text, f);
		return;
	}
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

/* Find the smallest x not yet written; return false if none is left. */
static bool next_x(const struct plot *p, const size_t *at, double *ret)
{
	bool any = false;

	for (size_t i = 0; i < p->n_lines; i++) {
		if (at[i] >= p->lines[i].n)
			continue;
		if (!any || p->lines[i].points[at[i]].t < *ret)
			*ret = p->lines[i].points[at[i]].t;
		any = true;
	}
	return any;
}

static void put_data(FILE *f, const struct plot *p, size_t *at)
{
	double x = 0;

	while (next_x(p, at, &x)) {
		fprintf(f, "%.9g", x);
		for (size_t i = 0; i < p->n_lines; i++) {
			const struct plot_line *l = &p->lines[i];

			fputc(',', f);
			if (at[i] < l->n && l->points[at[i]].t == x)
				fprintf(f, "%.9g", l->points[at[i]++].value);
		}
		fputc('\n', f);
	}
}

void plot_csv(const struct plot *p, const char *stem, FILE *to)
{
	size_t *at = calloc(p->n_lines + 1, sizeof(*at));

	if (!at)
		return;
	put_field(to, p->x_label);
	for (size_t i = 0; i < p->n_lines; i++) {
		fputc(',', to);
		put_field(to, p->lines[i].label);
	}
	fputc('\n', to);
	put_data(to, p, at);
	free(at);
}

/* ---- the script */

static void put_string(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc(*text == '\n' ? ' ' : *text, f);
	}
	fputc('"', f);
}

/* Return the next of 1, 2, 5, 10, 20 … above x (or below it), or x itself: the marks of a log
 * axis. */
static double next_mark(double x, bool up)
{
	static const double steps[] = {1, 2, 5, 10};
	double decade = pow(10, floor(log10(x))), last = decade;

	for (size_t i = 0; i < 4; i++) {
		double at = steps[i] * decade;

		if (up && at >= x * (1 - 1e-9))
			return at;
		if (!up && at > x * (1 + 1e-9))
			return last;
		last = at;
	}
	return last;
}

/* Return the least and the greatest value above `over`; false: there is none. */
static bool range_of(const struct plot *p, double over, double *ret_lo, double *ret_hi)
{
	double lo = INFINITY, hi = -INFINITY;

	for (size_t i = 0; i < p->n_lines; i++) {
		for (size_t k = 0; k < p->lines[i].n; k++) {
			double y = p->lines[i].points[k].value;

			lo = y > over ? fmin(lo, y) : lo;
			hi = y > over ? fmax(hi, y) : hi;
		}
	}
	*ret_lo = lo;
	*ret_hi = hi;
	return lo <= hi;
}

/* gnuplot's own log axis ends at whole decades and has no numbers between them. */
static void put_log_y(FILE *f, const struct plot *p)
{
	double lo, hi, at;

	fputs("set logscale y\n", f);
	if (!range_of(p, 0, &lo, &hi) || hi > 1e6 * lo) /* none, or decades suffice */
		return;
	lo = next_mark(lo, false);
	hi = next_mark(fmax(hi, 1.01 * lo), true);
	/* slightly wider, else gnuplot omits the marks at both ends */
	fprintf(f, "set yrange [%.9g:%.9g]\nset ytics (%.9g", lo / 1.001, hi * 1.001, lo);
	for (at = lo; at < 0.99 * hi;) {
		at = next_mark(1.01 * at, true);
		fprintf(f, ", %.9g", at);
	}
	fputs(")\n", f);
}

static void put_zero_line(FILE *f)
{
	fputs("set xzeroaxis lc rgb \"#888888\" lw 1 lt 1\n", f);
}

static void put_linear_y(FILE *f, const struct plot *p)
{
	double lo, hi;

	if (range_of(p, -INFINITY, &lo, &hi) && lo < 0) {
		fputs("set yrange [*:*]\nset offsets 0, 0, graph 0.04, graph 0.04\n", f);
		put_zero_line(f);
	} else {
		fputs("set yrange [0:*]\nset offsets 0, 0, graph 0.04, 0\n", f);
	}
}

/* One range for all panels, and two or three marks in each. */
static void put_panels_y(FILE *f, const struct plot *p)
{
	double lo = 0, hi = 1, margin;

	range_of(p, -INFINITY, &lo, &hi);
	lo = fmin(lo, 0);
	hi = fmax(hi, lo < 0 ? 0 : 1e-9);
	margin = 0.04 * (hi - lo);
	fprintf(f, "set yrange [%.9g:%.9g]\nset ytics %.9g\n", lo < 0 ? lo - margin : 0,
		hi + margin, next_mark((hi - lo) / 3, true));
	if (lo < 0)
		put_zero_line(f);
}

/* The axis ends where the data end, and begins where they begin or, if near, at 0. */
static void put_x(FILE *f, const struct plot *p)
{
	double lo = INFINITY, hi = -INFINITY;

	for (size_t i = 0; i < p->n_lines; i++) {
		const struct plot_line *l = &p->lines[i];

		lo = l->n ? fmin(lo, l->points[0].t) : lo;
		hi = l->n ? fmax(hi, l->points[l->n - 1].t) : hi;
	}
	fputs("set autoscale xfix\n", f);
	if (p->log_x && lo > 0 &&
		lo < hi) /* slightly wider, else the marks at both ends are omitted */
		fprintf(f, "set xrange [%.9g:%.9g]\n", lo / 1.001, hi * 1.001);
	else if (lo > 0 && lo < 0.2 * hi)
		fputs("set xrange [0:*]\n", f);
}

/* If there are only a few x values, put the marks there. */
static void put_marks_x(FILE *f, const struct plot *p)
{
	const struct plot_line *l = &p->lines[0];

	for (size_t i = 0; i < p->n_lines; i++) {
		if (p->lines[i].style == PLOT_LINE)
			return;
		l = p->lines[i].n > l->n ? &p->lines[i] : l;
	}
	if (l->n == 0 || l->n > X_MARKS)
		return;
	fputs("set xtics (", f);
	for (size_t i = 0; i < l->n; i++)
		fprintf(f, "%s%.9g", i ? ", " : "", l->points[i].t);
	fputs(")\n", f);
}

static void put_look(FILE *f, const struct plot *p)
{
	fputs("set border 3 lc rgb \"#888888\"\n"
	      "set tics nomirror out scale 0.6 tc rgb \"#333333\"\n"
	      "set grid y lc rgb \"#dddddd\" lw 0.7 lt 1\n",
		f);
	put_x(f, p);
}

static void put_axes(FILE *f, const struct plot *p)
{
	/* gnuplot centres titles; a label can be at the left */
	fputs("set label 1 ", f);
	put_string(f, p->title);
	fputs(" at graph 0,1.07 left noenhanced font ',15'\nset tmargin 3.2\nset xlabel ", f);
	put_string(f, p->x_label);
	fputs(" noenhanced\nset ylabel ", f);
	put_string(f, p->y_label);
	fputs(" noenhanced\n", f);
	put_look(f, p);
	fputs("set key outside right top Left reverse noenhanced samplen 1.6 spacing 1.25\n", f);
	if (p->log_x)
		fputs("set logscale x 2\n", f);
	put_marks_x(f, p);
	if (p->log_y)
		put_log_y(f, p);
	else
		put_linear_y(f, p);
	if (p->mark_label) {
		fprintf(f,
			"set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lc rgb \"#777777\" "
			"dt (6,4)\nset label 2 ",
			p->mark, p->mark);
		put_string(f, p->mark_label);
		fprintf(f, " at %.9g, graph 0.96 offset 0.8,0 left noenhanced\n", p->mark);
	}
}

/* Write the plot command of line `i`, up to its title. */
static void put_line(FILE *f, const struct plot *p, size_t i, const char *stem)
{
	/* dashed lines differ by their dashes */
	static const char *const dashes[] = {"(10,6)", "(3,5)", "(10,5,2,5)"};
	size_t before = 0; /* lines of the same kind */

	for (size_t k = 0; k < i; k++)
		before += (p->lines[k].style == PLOT_DASHED) == (p->lines[i].style == PLOT_DASHED);
	fprintf(f, "'%s.csv' using 1:%zu with ", stem, i + 2);
	if (p->lines[i].style == PLOT_DASHED)
		fprintf(f, "lines lc rgb \"#777777\" lw 1.3 dt %s",
			dashes[before % (sizeof(dashes) / sizeof(*dashes))]);
	else
		fprintf(f, "%s lc rgb \"%s\" lw 1.6",
			p->lines[i].style == PLOT_POINTS ? "linespoints pt 7 ps 0.6" : "lines",
			palette[before % PALETTE]);
}

static void put_plot(FILE *f, const struct plot *p, const char *stem)
{
	for (size_t i = 0; i < p->n_lines; i++) {
		fputs(i ? ", \\\n     " : "plot ", f);
		put_line(f, p, i, stem);
		fputs(" title ", f);
		put_string(f, p->lines[i].label);
	}
	fputc('\n', f);
}

/* Title and axis labels appear once, around all panels; the name of a panel is beside it. */
static void put_panels(FILE *f, const struct plot *p, const char *stem)
{
	fprintf(f,
		"set multiplot layout %zu,1 margins 0.08,0.88,0.14,0.89 spacing 0,0.03\n"
		"set format x ''\nset xlabel\nset label 1 ",
		p->n_lines);
	put_string(f, p->title);
	fputs(" at screen 0.08,0.95 left noenhanced font ',15'\nset label 2 ", f);
	put_string(f, p->y_label);
	fputs(" at screen 0.015,0.5 center rotate noenhanced\nset label 4 ", f);
	put_string(f, p->x_label); /* an xlabel is omitted below explicit margins */
	fputs(" at screen 0.48,0.025 center noenhanced\n", f);
	for (size_t i = 0; i < p->n_lines; i++) {
		if (i + 1 == p->n_lines)
			fputs("set format x\n", f);
		fputs("set label 3 ", f);
		put_string(f, p->lines[i].label);
		fputs(" at graph 1.015,0.5 left noenhanced\nplot ", f);
		put_line(f, p, i, stem);
		fputs(" notitle\n", f);
		if (i == 0)
			fputs("unset label 1\nunset label 2\nunset label 4\n", f);
	}
	fputs("unset multiplot\n", f);
}

static void put_svg(FILE *f, const char *stem)
{
	fprintf(f,
		"set terminal svg size 860,420 dynamic font 'Helvetica,13' background 'white'\n"
		"set output '%s.svg'\n",
		stem);
}

static void put_png(FILE *f, const char *stem)
{
	fprintf(f,
		"set terminal pngcairo size 1290,630 font 'Sans,13' linewidth 1.3 background "
		"'white'\n"
		"set output '%s.png'\n",
		stem);
}

void plot_script(const struct plot *p, const char *stem, FILE *f)
{
	fprintf(f,
		"# gnuplot %s.gp makes %s.svg and %s.png of %s.csv\n"
		"set encoding utf8\n"
		"set datafile separator ','\n"
		"set key autotitle columnhead\n",
		stem, stem, stem, stem);
	if (p->panels) {
		put_look(f, p);
		put_panels_y(f, p);
		put_svg(f, stem);
		put_panels(f, p, stem);
		put_png(f, stem);
		put_panels(f, p, stem);
	} else {
		put_axes(f, p);
		put_svg(f, stem);
		put_plot(f, p, stem);
		put_png(f, stem);
		fputs("replot\n", f);
	}
}

/* ---- files and gnuplot */

static int put_file(const struct plot *p, const char *dir, const char *stem, bool script,
	plot_put *put, struct weir_err *err)
{
	char path[PATH_MAX], *text = NULL;
	size_t len;
	FILE *f;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s.%s", dir, stem, script ? "gp" : "csv") >=
		(int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", dir);
	f = open_memstream(&text, &len);
	if (f)
		(script ? plot_script : plot_csv)(p, stem, f);
	r = f && fclose(f) == 0 && len ? put(path, text, len, err) : no_memory(err);
	free(text);
	return r;
}

int plot_write(const struct plot *p, const char *dir, const char *stem, plot_put *put,
	struct weir_err *err)
{
	int r = put_file(p, dir, stem, false, put, err);

	return r ? r : put_file(p, dir, stem, true, put, err);
}

static int spawn_gnuplot(const char *dir, const char *script, pid_t *ret_pid)
{
	const char *argv[] = {"gnuplot", script, NULL};
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	r = posix_spawn_file_actions_addchdir_np(&actions, dir);
	for (int fd = 0; r == 0 && fd <= 2; fd++) /* its warnings about fonts are useless */
		r = posix_spawn_file_actions_addopen(
			&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	if (r == 0) /* POSIX guarantees that the arguments are not modified, the type does not */
		r = posix_spawnp(
			ret_pid, "gnuplot", &actions, NULL, (char *const *)(void *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int plot_draw(const char *dir, const char *stem, struct weir_err *err)
{
	char script[NAME_MAX + 1];
	pid_t pid = -1;
	int status, r;

	if (snprintf(script, sizeof(script), "%s.gp", stem) >= (int)sizeof(script))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", stem);
	r = spawn_gnuplot(dir, script, &pid);
	if (r == -ENOENT)
		return weir_err_set(err, -ENOENT, "gnuplot is not installed");
	if (r < 0)
		return weir_err_set(err, r, "cannot start gnuplot: %s", strerror(-r));
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return weir_err_set(err, -errno, "gnuplot: %s", strerror(errno));
	/* 127: spawned, but the program was not found */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return weir_err_set(err, -ENOENT, "gnuplot is not installed");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return weir_err_set(err, -EIO, "gnuplot failed on %s/%s", dir, script);
	return 0;
}
