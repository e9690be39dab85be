/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/view/chart.h"
#include "sim/experiment/report.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COLUMNS_MAX 200
#define ROWS_MAX    40

/* A character cell is 2 dots wide and 4 high in Braille, 1 by 1 in ASCII. */
struct canvas {
	unsigned columns, rows, dots_x, dots_y;
	unsigned char cell[ROWS_MAX][COLUMNS_MAX]; /* Braille's 8 bits, or 1 */
	double t0, t1, lo, hi;                     /* the axes' ends; lo and hi after log */
	bool log;
};

bool chart_utf8(void)
{
	const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < 3; i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return strcasestr(v, "utf-8") || strcasestr(v, "utf8");
	}
	return true; /* not set, as in containers, whose terminals are UTF-8 nevertheless */
}

bool chart_colour(FILE *f)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(f)) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

static double to_axis(const struct canvas *v, double y)
{
	return v->log ? log10(y) : y;
}

static bool is_shown(const struct canvas *v, const struct metrics_point *p)
{
	return isfinite(p->value) && (!v->log || p->value > 0);
}

/* Return the next value of 1, 2, 5 times a power of ten, at or above (below) y. */
static double round_to(double y, bool up)
{
	static const double steps[] = {1, 2, 5, 10};
	double power = pow(10, floor(log10(y)));

	if (up) {
		for (size_t i = 0; i < 4; i++)
			if (steps[i] * power >= y * (1 - 1e-9))
				return steps[i] * power;
	} else {
		for (size_t i = 4; i-- > 0;)
			if (steps[i] * power <= y * (1 + 1e-9))
				return steps[i] * power;
	}
	return y;
}

static void scale_axes(struct canvas *v, const struct chart *c)
{
	double lo = INFINITY, hi = -INFINITY;

	v->log = c->log;
	v->t0 = c->n ? c->points[0].t : 0;
	v->t1 = c->n ? c->points[c->n - 1].t : 1;
	for (size_t i = 0; i < c->n; i++) {
		if (!is_shown(v, &c->points[i]))
			continue;
		lo = fmin(lo, c->points[i].value);
		hi = fmax(hi, c->points[i].value);
	}
	if (!(hi > 0))
		hi = 1;
	v->hi = to_axis(v, round_to(hi, true));
	v->lo = v->log ? to_axis(v, round_to(isfinite(lo) ? lo : hi / 10, false)) : 0;
	if (!(v->hi > v->lo))
		v->hi = v->lo + 1;
	if (!(v->t1 > v->t0))
		v->t1 = v->t0 + 1;
}

static void set_dot(struct canvas *v, unsigned x, unsigned y)
{
	static const unsigned char bit[4][2] = {
		{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
	unsigned w = v->dots_x / v->columns, h = v->dots_y / v->rows;
	unsigned row = v->rows - 1 - y / h; /* y counts from below */

	if (w == 1)
		v->cell[row][x] = 1;
	else
		v->cell[row][x / w] |= bit[h - 1 - y % h][x % w];
}

static double place_x(const struct canvas *v, double t)
{
	return (t - v->t0) / (v->t1 - v->t0) * (v->dots_x - 1);
}

static double place_y(const struct canvas *v, double y)
{
	double p = (to_axis(v, y) - v->lo) / (v->hi - v->lo) * (v->dots_y - 1);

	return fmin(fmax(p, 0), v->dots_y - 1);
}

static void draw_line(struct canvas *v, const struct chart *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct metrics_point *b = &c->points[i], *a = i ? &c->points[i - 1] : b;
		double x0, y0, x1, y1;
		unsigned steps;

		if (!is_shown(v, b))
			continue;
		if (!is_shown(v, a))
			a = b;
		x0 = place_x(v, a->t), x1 = place_x(v, b->t);
		y0 = place_y(v, a->value), y1 = place_y(v, b->value);
		steps = (unsigned)fmax(fabs(x1 - x0), fabs(y1 - y0)) + 1;
		for (unsigned k = 0; k <= steps; k++)
			set_dot(v, (unsigned)lrint(x0 + (x1 - x0) * k / steps),
				(unsigned)lrint(y0 + (y1 - y0) * k / steps));
	}
}

/* Get the label of a row: round values on a logarithmic axis, else top, middle and bottom. */
static bool row_label(const struct canvas *v, unsigned row, double *ret)
{
	double step = (v->hi - v->lo) / (v->rows - 1), y = v->hi - step * row;

	if (v->log) {
		*ret = round_to(pow(10, y - step / 2), true);
		return log10(*ret) < y + step / 2;
	}
	*ret = y;
	return row == 0 || row == v->rows - 1 || (v->rows % 2 && row == v->rows / 2);
}

static void put_label(FILE *to, const struct canvas *v, unsigned row, bool ascii)
{
	char number[32] = "";
	double y;

	if (row_label(v, row, &y))
		report_number(y, number, sizeof(number));
	fprintf(to, "%8s %s", number, ascii ? "|" : *number ? "┤" : "│");
}

static void put_cell(FILE *to, unsigned char cell, bool mark, bool ascii)
{
	if (ascii) {
		fputc(cell ? '*' : mark ? ':' : ' ', to);
	} else if (cell) {
		unsigned code = 0x2800u + cell;

		fprintf(to, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 0x3f)),
			(int)(0x80 | (code & 0x3f)));
	} else {
		fputs(mark ? "┊" : " ", to);
	}
}

static void put_row(
	FILE *to, const struct canvas *v, const struct chart *c, unsigned row, unsigned mark)
{
	unsigned end = v->columns;

	put_label(to, v, row, c->ascii);
	while (end > 0 && !v->cell[row][end - 1] && end - 1 != mark)
		end--; /* no trailing spaces */
	if (c->colour)
		fputs("\033[33m", to);
	for (unsigned x = 0; x < end; x++) {
		if (x == mark && c->colour)
			fputs("\033[32m", to);
		put_cell(to, v->cell[row][x], x == mark, c->ascii);
	}
	fputs(c->colour ? "\033[0m\n" : "\n", to);
}

static void put_foot(FILE *to, const struct canvas *v, const struct chart *c, unsigned mark)
{
	unsigned at = mark < v->columns ? mark : 0;

	fprintf(to, "%8s %s", "", c->ascii ? "+" : "└");
	for (unsigned x = 0; x < v->columns; x++)
		fputs(c->ascii ? "-" : x == mark ? "┴" : "─", to);
	fprintf(to, "\n%10s", "");
	if (c->left && c->right)
		fprintf(to, "%-*s%s", (int)at, c->left, c->right);
	else
		fprintf(to, "%g s%*s%g s", v->t0, (int)v->columns - 8, "", v->t1);
	fputc('\n', to);
}

void chart_draw(FILE *to, const struct chart *c)
{
	struct canvas v = {.columns = c->columns < COLUMNS_MAX ? c->columns : COLUMNS_MAX,
		.rows = c->rows < ROWS_MAX ? c->rows : ROWS_MAX};
	unsigned mark = UINT32_MAX;

	v.dots_x = v.columns * (c->ascii ? 1 : 2);
	v.dots_y = v.rows * (c->ascii ? 1 : 4);
	scale_axes(&v, c);
	draw_line(&v, c);
	if (!isnan(c->mark))
		mark = (unsigned)lrint(place_x(&v, c->mark)) / (c->ascii ? 1 : 2);
	fprintf(to, "%s\n", c->title);
	for (unsigned row = 0; row < v.rows; row++)
		put_row(to, &v, c, row, mark);
	put_foot(to, &v, c, mark);
}
