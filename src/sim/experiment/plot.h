/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plot: a line chart, drawn by gnuplot.
 *
 * plot_write creates STEM.csv (the data: one x column, one column per line) and STEM.gp (the
 * script) in a folder; plot_draw runs gnuplot to create STEM.svg and STEM.png. The script is
 * self-contained, so without gnuplot the chart can be drawn elsewhere: `gnuplot STEM.gp`.
 */
#pragma once

#include <weir/err.h>
#include "sim/metrics.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PLOT_TITLE 92 /* characters: more do not fit over the picture */

enum plot_style {
	PLOT_LINE,
	PLOT_POINTS, /* a line with a mark at every point: for few points */
	PLOT_DASHED, /* a bound or a target: grey */
};

struct plot_line {
	const char *label;
	enum plot_style style;
	const struct metrics_point *points; /* x in t; sorted by t */
	size_t n;
};

struct plot {
	const char *title;
	const char *x_label, *y_label; /* with the unit: "latency [ms]" */
	bool log_x, log_y;             /* else the y axis starts at 0, or below it */
	bool panels; /* a panel for each line, stacked: for lines that would hide each other */
	const struct plot_line *lines;
	size_t n_lines;
	double mark; /* x of a vertical line, labelled at the top; mark_label NULL: none */
	const char *mark_label;
};

/* Write a whole file: 0, or a negative errno with a message that names it. */
typedef int plot_put(const char *path, const char *text, size_t len, struct weir_err *err);

/* The folder must exist. Return 0, or the error of `put`. */
int plot_write(const struct plot *p, const char *dir, const char *stem, plot_put *put,
	struct weir_err *err);

/* Return 0; -ENOENT: gnuplot is not installed; -EIO: it failed. */
int plot_draw(const char *dir, const char *stem, struct weir_err *err);

/* Write the two texts, as plot_write does. */
void plot_csv(const struct plot *p, const char *stem, FILE *to);
void plot_script(const struct plot *p, const char *stem, FILE *to);
