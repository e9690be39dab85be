/* SPDX-License-Identifier: BSD-3-Clause */
#include "prog/table.h"
#include "base/utf8.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void clean(char *text)
{
	unsigned char *from = (unsigned char *)text, *to = from;

	while (*from) {
		size_t n = utf8_shown(from);
		if (!n) {
			*to++ = '?';
			from++;
		}
		while (n--)
			*to++ = *from++;
	}
	*to = 0;
}

static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void table_begin(struct table *t, const char *const *heads, unsigned right)
{
	*t = (struct table){.heads = heads, .right = right};
	while (heads[t->columns])
		t->columns++;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list args;
	char *text = NULL;

	if (t->n == t->room) {
		size_t room = t->room ? 2 * t->room : 64;
		char **more = realloc(t->cells, room * sizeof(*more));
		if (!more)
			return;
		t->cells = more;
		t->room = room;
	}
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	if (text)
		clean(text);
	t->cells[t->n++] = text;
}

static const char *cell(const struct table *t, size_t row, size_t column)
{
	size_t at = row * t->columns + column;

	return at < t->n && t->cells[at] ? t->cells[at] : "";
}

static void print_cell(
	const struct table *t, const char *text, size_t column, size_t wide, FILE *to)
{
	bool last = column + 1 == t->columns;
	int pad = (int)(wide - width(text));

	if (t->right >> column & 1)
		fprintf(to, "%*s%s%s", pad, "", text, last ? "" : "  ");
	else
		fprintf(to, "%s%*s", text, last ? 0 : pad + 2, "");
}

void table_end(struct table *t, FILE *to)
{
	size_t rows = (t->n + t->columns - 1) / t->columns;
	size_t *wide = calloc(t->columns, sizeof(*wide));

	for (size_t c = 0; wide && c < t->columns; c++) {
		wide[c] = width(t->heads[c]);
		for (size_t r = 0; r < rows; r++)
			if (width(cell(t, r, c)) > wide[c])
				wide[c] = width(cell(t, r, c));
	}
	if (wide) {
		fputc(TABLE_HEAD, to);
		for (size_t c = 0; c < t->columns; c++)
			print_cell(t, t->heads[c], c, wide[c], to);
		fputc('\n', to);
		for (size_t r = 0; r < rows; r++) {
			for (size_t c = 0; c < t->columns; c++)
				print_cell(t, cell(t, r, c), c, wide[c], to);
			fputc('\n', to);
		}
	}
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	free(wide);
	*t = (struct table){0};
}

size_t table_cut(const char *line, size_t columns)
{
	size_t n = 0;

	for (; line[n] && line[n] != '\n'; n++)
		if (((unsigned char)line[n] & 0xc0) != 0x80 && columns-- == 0)
			break;
	return n;
}
