/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/view/table.h"
#include "base/utf8.h"
#include "base/array.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void clean_text(char *text)
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

/* Make room for `more` bytes. */
static bool has_room(struct table *t, size_t more)
{
	return array_grow(&t->text, &t->room, t->used + more) == 0;
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char *at;
	va_list args;
	int n = 64; /* enough for most */

	for (int tries = 0; tries < 2; tries++) {
		size_t had = (size_t)n + 1;

		if (!has_room(t, had))
			return;
		at = t->text + t->used;
		va_start(args, fmt);
		n = vsnprintf(at, had, fmt, args);
		va_end(args);
		if (n < 0)
			return;
		if ((size_t)n < had)
			break;
	}
	clean_text(at);
	t->used += strlen(at) + 1;
	t->n++;
}

static void pad(size_t n, FILE *to)
{
	while (n-- > 0)
		putc_unlocked(' ', to);
}

static void print_cell(
	const struct table *t, const char *text, size_t column, size_t wide, FILE *to)
{
	bool last = column + 1 == t->columns, right = t->right >> column & 1;
	size_t blank = wide - width(text);

	if (right)
		pad(blank, to);
	fputs(text, to);
	if (!last)
		pad(right ? 2 : blank + 2, to);
}

/* Missing cells of the last row are empty. */
static void print_rows(const struct table *t, const size_t *wide, FILE *to)
{
	const char *text = t->text;

	for (size_t i = 0; i < t->n || i % t->columns; i++) {
		print_cell(t, i < t->n ? text : "", i % t->columns, wide[i % t->columns], to);
		text += i < t->n ? strlen(text) + 1 : 0;
		if ((i + 1) % t->columns == 0)
			fputc('\n', to);
	}
}

static void widen(const struct table *t, size_t *wide)
{
	const char *text = t->text;

	for (size_t c = 0; c < t->columns; c++)
		wide[c] = width(t->heads[c]);
	for (size_t i = 0; i < t->n; i++, text += strlen(text) + 1)
		if (width(text) > wide[i % t->columns])
			wide[i % t->columns] = width(text);
}

void table_end(struct table *t, FILE *to)
{
	size_t *wide = calloc(t->columns, sizeof(*wide));

	if (wide) {
		widen(t, wide);
		fputc(TABLE_HEAD, to);
		for (size_t c = 0; c < t->columns; c++)
			print_cell(t, t->heads[c], c, wide[c], to);
		fputc('\n', to);
		print_rows(t, wide, to);
	}
	free(t->text);
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
