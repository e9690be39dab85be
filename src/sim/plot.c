/* SPDX-License-Identifier: BSD-3-Clause */
/* plot: see plot.h. */
#include "sim/plot.h"
#include "sim/report-impl.h"
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

/* Okabe and Ito's palette: told apart by people with any colour vision, and in grey. */
static const char *const palette[] = {
	"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};
#define PALETTE (sizeof(palette) / sizeof(*palette))

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

/* The smallest x that some line has not shown yet; false when all are through. */
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

int plot_csv(const struct plot *p, char **ret)
{
	size_t *at = calloc(p->n_lines + 1, sizeof(*at)), len;
	char *text = NULL;
	FILE *f = at ? open_memstream(&text, &len) : NULL;

	if (!f) {
		free(at);
		return -ENOMEM;
	}
	put_field(f, p->x_label);
	for (size_t i = 0; i < p->n_lines; i++) {
		fputc(',', f);
		put_field(f, p->lines[i].label);
	}
	fputc('\n', f);
	put_data(f, p, at);
	free(at);
	return report_finish(f, &text, ret);
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

/* The next of 1, 2, 5, 10, 20 … above x (or below it), or x itself: where a log axis has a mark. */
static double step(double x, bool up)
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

/* gnuplot's own log axis ends at whole decades and has no numbers between them. */
static void put_log_y(FILE *f, const struct plot *p)
{
	double lo = INFINITY, hi = 0, at;

	fputs("set logscale y\n", f);
	for (size_t i = 0; i < p->n_lines; i++) {
		for (size_t k = 0; k < p->lines[i].n; k++) {
			double y = p->lines[i].points[k].value;

			lo = y > 0 ? fmin(lo, y) : lo;
			hi = fmax(hi, y);
		}
	}
	if (!(lo < INFINITY) || hi > 1e6 * lo) /* nothing to show; or so much that decades do */
		return;
	lo = step(lo, false);
	hi = step(fmax(hi, 1.01 * lo), true);
	/* a little more at both ends, else gnuplot leaves out the marks there */
	fprintf(f, "set yrange [%.9g:%.9g]\nset ytics (%.9g", lo / 1.001, hi * 1.001, lo);
	for (at = lo; at < 0.99 * hi;) {
		at = step(1.01 * at, true);
		fprintf(f, ", %.9g", at);
	}
	fputs(")\n", f);
}

static void put_axes(FILE *f, const struct plot *p)
{
	/* gnuplot centres titles; a label stands where the eye starts */
	fputs("set label 1 ", f);
	put_string(f, p->title);
	fputs(" at graph 0,1.07 left noenhanced font ',15'\nset tmargin 3.2\nset xlabel ", f);
	put_string(f, p->x_label);
	fputs(" noenhanced\nset ylabel ", f);
	put_string(f, p->y_label);
	fputs(" noenhanced\n"
	      "set border 3 lc rgb \"#888888\"\n"
	      "set tics nomirror out scale 0.6 tc rgb \"#333333\"\n"
	      "set grid y lc rgb \"#dddddd\" lw 0.7 lt 1\n"
	      "set key outside right top Left reverse noenhanced samplen 1.6 spacing 1.25\n",
		f);
	if (p->log_x)
		fputs("set logscale x 2\n", f);
	if (p->log_y)
		put_log_y(f, p);
	else
		fputs("set yrange [0:*]\nset offsets 0, 0, graph 0.04, 0\n", f);
	if (p->mark_label) {
		fprintf(f,
			"set arrow from %.9g, graph 0 to %.9g, graph 1 nohead lc rgb \"#777777\" "
			"dt (6,4)\nset label 2 ",
			p->mark, p->mark);
		put_string(f, p->mark_label);
		fprintf(f, " at %.9g, graph 0.96 offset 0.8,0 left noenhanced\n", p->mark);
	}
}

static void put_plot(FILE *f, const struct plot *p, const char *stem)
{
	/* one dashed line is told from the next by its dashes */
	static const char *const dashes[] = {"(10,6)", "(3,5)", "(10,5,2,5)"};
	size_t colour = 0, dashed = 0;

	for (size_t i = 0; i < p->n_lines; i++) {
		const struct plot_line *l = &p->lines[i];

		fputs(i ? ", \\\n     " : "plot ", f);
		fprintf(f, "'%s.csv' using 1:%zu with ", stem, i + 2);
		if (l->style == PLOT_DASHED) {
			fprintf(f, "lines lc rgb \"#777777\" lw 1.3 dt %s title ",
				dashes[dashed++ % (sizeof(dashes) / sizeof(*dashes))]);
		} else {
			fprintf(f, "%s lc rgb \"%s\" lw 1.6 title ",
				l->style == PLOT_POINTS ? "linespoints pt 7 ps 0.6" : "lines",
				palette[colour % PALETTE]);
			colour++;
		}
		put_string(f, l->label);
	}
	fputc('\n', f);
}

int plot_script(const struct plot *p, const char *stem, char **ret)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	fprintf(f,
		"# gnuplot %s.gp makes %s.svg and %s.png of %s.csv\n"
		"set encoding utf8\n"
		"set datafile separator ','\n"
		"set key autotitle columnhead\n",
		stem, stem, stem, stem);
	put_axes(f, p);
	fprintf(f,
		"set terminal svg size 860,420 dynamic font 'Helvetica,13' background 'white'\n"
		"set output '%s.svg'\n",
		stem);
	put_plot(f, p, stem);
	fprintf(f,
		"set terminal pngcairo size 1290,630 font 'Sans,13' linewidth 1.3 background "
		"'white'\n"
		"set output '%s.png'\nreplot\n",
		stem);
	return report_finish(f, &text, ret);
}

/* ---- files and gnuplot */

static int put_file(const char *dir, const char *stem, const char *end, const char *text,
	plot_put *put, struct weir_err *err)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s.%s", dir, stem, end) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", dir);
	return put(path, text, strlen(text), err);
}

int plot_write(const struct plot *p, const char *dir, const char *stem, plot_put *put,
	struct weir_err *err)
{
	char *csv = NULL, *script = NULL;
	int r = plot_csv(p, &csv);

	if (r == 0)
		r = plot_script(p, stem, &script);
	if (r < 0)
		weir_err_set(err, r, "out of memory");
	if (r == 0)
		r = put_file(dir, stem, "csv", csv, put, err);
	if (r == 0)
		r = put_file(dir, stem, "gp", script, put, err);
	free(csv);
	free(script);
	return r;
}

static int spawn_gnuplot(const char *dir, const char *script, pid_t *ret_pid)
{
	const char *argv[] = {"gnuplot", script, NULL};
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	r = posix_spawn_file_actions_addchdir_np(&actions, dir);
	for (int fd = 0; r == 0 && fd <= 2; fd++) /* its warnings about fonts help nobody */
		r = posix_spawn_file_actions_addopen(
			&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	if (r == 0) /* the arguments are not written to: POSIX says so, the type does not */
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
	/* 127: the C library could spawn, and then found nothing to execute */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return weir_err_set(err, -ENOENT, "gnuplot is not installed");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return weir_err_set(err, -EIO, "gnuplot failed on %s/%s", dir, script);
	return 0;
}
