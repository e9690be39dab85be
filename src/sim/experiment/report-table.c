/* SPDX-License-Identifier: BSD-3-Clause */
/* report-table: tables with aligned columns, and formatted numbers; see report.h. */
#include "sim/experiment/report.h"
#include "base/array.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

char *report_vcell(struct report_table *t, const char *fmt, va_list ap)
{
	int n = 64; /* enough for most */

	for (int tries = 0; tries < 2; tries++) {
		size_t had = (size_t)n + 1;
		char *at;
		va_list args;

		if (array_grow(&t->text, &t->room, t->used + had) < 0)
			break;
		at = t->text + t->used;
		va_copy(args, ap);
		n = vsnprintf(at, had, fmt, args);
		va_end(args);
		if (n < 0)
			break;
		if ((size_t)n < had) {
			t->used += (size_t)n + 1;
			t->n++;
			return at;
		}
	}
	t->failed = true;
	return NULL;
}

void report_cell(struct report_table *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report_vcell(t, fmt, ap);
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

	free(t->text);
	*t = (struct report_table){0};
	return r;
}

/* ---- layout */

/* Return the columns of a text on a terminal: bytes that do not continue a UTF-8 character. */
static size_t text_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Return true for an empty text, a dash, or a text that starts like a number. */
static bool is_numeric(const char *text)
{
	if (*text == '-' || *text == '+' || *text == '<')
		text++;
	return !*text || isdigit((unsigned char)*text) || strcmp(text, "–") == 0;
}

struct layout { /* of one column */
	size_t width;
	bool right;
};

/* Return the layout of all columns; NULL and t->failed: out of memory. right NULL: see report.h. */
static struct layout *make_layout(struct report_table *t, const unsigned *right)
{
	struct layout *l = t->failed ? NULL : calloc(t->columns + 1, sizeof(*l));
	const char *text = t->text;

	t->failed |= !l;
	for (size_t c = 0; l && c < t->columns; c++)
		l[c].right = right ? *right >> c & 1 : c && t->n > t->columns;
	for (size_t i = 0; l && i < t->n; i++, text += strlen(text) + 1) {
		struct layout *to =
			&l[i % t->columns]; /* NOLINT(clang-analyzer-core.DivideZero): n > 0 */
		size_t width = text_width(text);

		to->width = width > to->width ? width : to->width;
		to->right &= right || i < t->columns || is_numeric(text);
	}
	return l;
}

int report_table_aligned(struct report_table *t, unsigned indent, const unsigned *right, FILE *to)
{
	struct layout *layout = make_layout(t, right);
	const char *text = t->text;
	size_t pending = 0; /* spaces not written yet, so that none end a line */

	for (size_t i = 0; layout && (i < t->n || i % t->columns); i++) {
		const struct layout *l = &layout[i % t->columns];
		size_t pad = l->width - (i < t->n ? text_width(text) : 0);

		pending = i % t->columns ? pending : indent;
		pending += l->right ? pad : 0;
		if (i < t->n && *text) {
			fprintf(to, "%*s%s", (int)pending, "", text);
			pending = 0;
		}
		pending += (l->right ? 0 : pad) + 2;
		text += i < t->n ? strlen(text) + 1 : 0;
		if ((i + 1) % t->columns == 0)
			fputc('\n', to);
	}
	free(layout);
	return free_table(t);
}

int report_table_text(struct report_table *t, unsigned indent, FILE *to)
{
	return report_table_aligned(t, indent, NULL, to);
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
	struct layout *layout = make_layout(t, NULL);
	const char *text = t->text;

	for (size_t i = 0; layout && (i < t->n || i % t->columns); i++) {
		fputs(i % t->columns ? " | " : "| ", to);
		put_markdown_cell(to, i < t->n ? text : "");
		text += i < t->n ? strlen(text) + 1 : 0;
		if ((i + 1) % t->columns)
			continue;
		fputs(" |\n", to);
		for (size_t c = 0; i < t->columns && c < t->columns; c++)
			fputs(layout[c].right ? "|--:" : "|---", to);
		fputs(i < t->columns ? "|\n" : "", to);
	}
	free(layout);
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
