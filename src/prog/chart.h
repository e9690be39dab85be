/* SPDX-License-Identifier: BSD-3-Clause */
/* chart: a line over time, drawn with characters. */
#ifndef WEIR_PROG_CHART_H
#define WEIR_PROG_CHART_H

#include "sim/metrics.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct chart {
	const char *title;
	const struct metrics_point *points; /* in order of t */
	size_t n;
	bool log;                 /* the y axis is logarithmic; values ≤ 0 are left out */
	double mark;              /* a vertical line at this t; NAN: none */
	const char *left, *right; /* what stands below, on either side of the mark */
	unsigned columns, rows;   /* of the drawing itself: 8 … 200, 2 … 40 */
	bool ascii;               /* '*' instead of Braille dots */
	bool colour; /* what is right of the mark in another colour, with ANSI sequences */
};

void chart_draw(FILE *to, const struct chart *c);

/* Does the user's locale say UTF-8 (or nothing at all)? */
bool chart_utf8(void);
/* May colours be used on `f`: a terminal, and neither NO_COLOR nor TERM=dumb is set? */
bool chart_colour(FILE *f);

#endif
