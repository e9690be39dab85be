/* SPDX-License-Identifier: BSD-3-Clause */
/* chart: draw a line over time with characters. */
#pragma once

#include "sim/metrics.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct chart {
	const char *title;
	const struct metrics_point *points; /* in order of t */
	size_t n;
	bool log;                 /* the y axis is logarithmic; values ≤ 0 are omitted */
	double mark;              /* a vertical line at this t; NAN: none */
	const char *left, *right; /* texts below, on either side of the mark */
	unsigned columns, rows;   /* of the drawing itself: 8 … 200, 2 … 40 */
	bool ascii;               /* '*' instead of Braille dots */
	bool colour;              /* another colour right of the mark, with ANSI sequences */
};

void chart_draw(FILE *to, const struct chart *c);

/* Return true if the user's locale says UTF-8 (or is not set). */
bool chart_utf8(void);
/* Return true if colours may be used on `f`: a terminal, with neither NO_COLOR nor TERM=dumb. */
bool chart_colour(FILE *f);
