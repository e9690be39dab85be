/* SPDX-License-Identifier: BSD-3-Clause */
/* report-table: tables with aligned columns, and formatted numbers; see report.h. */
#include "sim/experiment/report.h"
#include "base/array.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void report_cell(struct report_table *t, const char *fmt, ...)
{
	va_list ap;

	if (array_grow(&t->cells, &t->room, t->n + 1) < 0) {
		t->failed = true;
		return;
	}
	va_start(ap, fmt);
	if (vasprintf(&t->cells[t->n], fmt, ap) < 0)
		t->failed = true;
	else
		t->n++;
	va_end(ap);
}

void report_cells(struct report_table *t, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		report_cell(t, "%s", texts[i]);
}

static int free_table(struct report_table *t)
{
	int r = t->failed ? -ENOMEM : 0;

	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct report_table){0};
	return r;
}

/* Return the columns of a text on a terminal: bytes that do not continue a UTF-8 character. */
static size_t text_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static const char *cell_text(const struct report_table *t, size_t row, size_t column)
{
	size_t i = row * t->columns + column;

	return i < t->n ? t->cells[i] : "";
}

static size_t count_rows(const struct report_table *t)
{
	if (t->columns == 0)
		return 0;
	return (t->n + t->columns - 1) / t->columns;
}

/* Return true for an empty text, a dash, or a text that starts like a number. */
static bool is_numeric(const char *text)
{
	if (*text == '-' || *text == '+' || *text == '<')
		text++;
	return !*text || isdigit((unsigned char)*text) || strcmp(text, "–") == 0;
}

static bool column_right(const struct report_table *t, size_t column)
{
	for (size_t r = 1; r < count_rows(t); r++)
		if (!is_numeric(cell_text(t, r, column)))
			return false;
	return count_rows(t) > 1 && column > 0;
}

static size_t column_width(const struct report_table *t, size_t column)
{
	size_t most = 0;

	for (size_t r = 0; r < count_rows(t); r++) {
		size_t w = text_width(cell_text(t, r, column));

		most = w > most ? w : most;
	}
	return most;
}

struct layout { /* of one column */
	size_t width;
	bool right;
};

static void put_row(FILE *f, const struct report_table *t, const struct layout *layout, size_t row,
	unsigned indent)
{
	size_t pending = indent; /* spaces not written yet, so that none end a line */

	for (size_t c = 0; c < t->columns; c++) {
		const char *text = cell_text(t, row, c);
		size_t pad = layout[c].width - text_width(text);

		if (layout[c].right)
			pending += pad;
		if (*text) {
			fprintf(f, "%*s%s", (int)pending, "", text);
			pending = 0;
		}
		pending += (layout[c].right ? 0 : pad) + 2;
	}
	fputc('\n', f);
}

int report_table_text(struct report_table *t, unsigned indent, FILE *to)
{
	struct layout *layout = calloc(t->columns + 1, sizeof(*layout));

	t->failed |= !layout;
	for (size_t c = 0; layout && c < t->columns; c++)
		layout[c] = (struct layout){column_width(t, c), column_right(t, c)};
	for (size_t r = 0; !t->failed && r < count_rows(t); r++)
		put_row(to, t, layout, r, indent);
	free(layout);
	return free_table(t);
}

static void put_markdown_cell(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			fputc('\\', f);
		fputc(*text, f);
	}
}

int report_table_markdown(struct report_table *t, FILE *to)
{
	for (size_t r = 0; !t->failed && r < count_rows(t); r++) {
		for (size_t c = 0; c < t->columns; c++) {
			fputs(c ? " | " : "| ", to);
			put_markdown_cell(to, cell_text(t, r, c));
		}
		fputs(" |\n", to);
		for (size_t c = 0; r == 0 && c < t->columns; c++)
			fputs(column_right(t, c) ? "|--:" : "|---", to);
		if (r == 0)
			fputs("|\n", to);
	}
	return free_table(t);
}

char *report_number(double x, char *buf, size_t len)
{
	double a = fabs(x);

	if (isnan(x))
		snprintf(buf, len, "–");
	else if (a >= 1e15 || !isfinite(x))
		snprintf(buf, len, "%.3g", x);
	else if (a >= 999.5 || x == rint(x))
		snprintf(buf, len, "%.0f", x);
	else if (a < 0.00995)
		snprintf(buf, len, "%.2g", x);
	else
		snprintf(buf, len, "%.*f", a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3, x);
	if (strcmp(buf, "-0") == 0)
		snprintf(buf, len, "0");
	return buf;
}
