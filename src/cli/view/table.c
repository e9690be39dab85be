/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/view/table.h"
#include "base/utf8.h"

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

void table_begin(struct table *t, const char *const *heads, unsigned right)
{
	*t = (struct table){.right = right};
	while (heads[t->cells.columns])
		report_cell(&t->cells, "%s", heads[t->cells.columns++]);
}

void table_cell(struct table *t, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = report_vcell(&t->cells, fmt, args);
	va_end(args);
	if (text)
		clean_text(text);
}

void table_put_text(const char *text, FILE *to)
{
	const unsigned char *from = (const unsigned char *)text;

	while (*from) {
		size_t n = utf8_shown(from);

		fwrite(n ? from : (const unsigned char *)"?", 1, n ? n : 1, to);
		from += n ? n : 1;
	}
}

void table_end(struct table *t, FILE *to)
{
	fputc(TABLE_HEAD, to);
	report_table_aligned(&t->cells, 0, &t->right, to);
}

void table_print(struct table *t)
{
	report_table_aligned(&t->cells, 0, &t->right, stdout);
}

void table_print_plain(const char *text)
{
	for (; *text; text++)
		if (*text != TABLE_HEAD)
			putchar(*text);
}

size_t table_cut(const char *line, size_t columns)
{
	size_t n = 0;

	for (; line[n] && line[n] != '\n'; n++)
		if (((unsigned char)line[n] & 0xc0) != 0x80 && columns-- == 0)
			break;
	return n;
}
