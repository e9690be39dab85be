/* SPDX-License-Identifier: BSD-3-Clause */
/* report-table: tables with aligned columns, and formatted numbers; see report.h. */
#include "sim/experiment/report-impl.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct report_table {
	size_t columns;
	char **cells; /* row by row */
	size_t n, room;
};

int report_table_new(size_t columns, struct report_table **ret)
{
	struct report_table *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->columns = columns;
	*ret = t;
	return 0;
}

void report_table_free(struct report_table *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	free(t);
}

int report_cell(struct report_table *t, const char *fmt, ...)
{
	va_list ap;
	char *text;
	int n;

	if (t->n == t->room) {
		size_t room = t->room ? t->room * 2 : 64;
		char **cells = realloc(t->cells, room * sizeof(*cells));

		if (!cells)
			return -ENOMEM;
		t->cells = cells;
		t->room = room;
	}
	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -ENOMEM;
	t->cells[t->n++] = text;
	return 0;
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

int report_finish(FILE *f, char **text, char **ret)
{
	bool bad = ferror(f) != 0;

	if (fclose(f) != 0 || bad) {
		free(*text);
		return -ENOMEM;
	}
	*ret = *text;
	return 0;
}

int report_table_text(const struct report_table *t, unsigned indent, char **ret)
{
	struct layout *layout = calloc(t->columns + 1, sizeof(*layout));
	char *text = NULL;
	size_t len;
	FILE *f = layout ? open_memstream(&text, &len) : NULL;

	if (!f) {
		free(layout);
		return -ENOMEM;
	}
	for (size_t c = 0; c < t->columns; c++)
		layout[c] = (struct layout){column_width(t, c), column_right(t, c)};
	for (size_t r = 0; r < count_rows(t); r++)
		put_row(f, t, layout, r, indent);
	free(layout);
	return report_finish(f, &text, ret);
}

static void put_markdown_cell(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			fputc('\\', f);
		fputc(*text, f);
	}
}

int report_table_markdown(const struct report_table *t, char **ret)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return -ENOMEM;
	for (size_t r = 0; r < count_rows(t); r++) {
		for (size_t c = 0; c < t->columns; c++) {
			fputs(c ? " | " : "| ", f);
			put_markdown_cell(f, cell_text(t, r, c));
		}
		fputs(" |\n", f);
		for (size_t c = 0; r == 0 && c < t->columns; c++)
			fputs(column_right(t, c) ? "|--:" : "|---", f);
		if (r == 0)
			fputs("|\n", f);
	}
	return report_finish(f, &text, ret);
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
