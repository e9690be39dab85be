/* SPDX-License-Identifier: BSD-3-Clause */
#include <weir/err.h>
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NEAR_MAX = 64 }; /* longer words are not Weir's names; bounds stack and time */

/* Drop an incomplete UTF-8 character at the end of a truncated text, which a terminal would show as
 * garbage. */
static void trim_utf8(char *text)
{
	size_t n = strlen(text), tail = 0;

	while (tail < 3 && tail < n && ((unsigned char)text[n - 1 - tail] & 0xC0) == 0x80)
		tail++;
	if (tail == n)
		return;
	unsigned char lead = (unsigned char)text[n - 1 - tail];
	size_t want = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
	if (want > tail)
		text[n - 1 - tail] = '\0';
}

/* Replace control characters (C0, DEL, C1 as UTF-8) and partial characters by '?': messages quote
 * user input, possibly cut at a byte, are one line, and go to terminals and logs. */
static void replace_controls(char *text)
{
	unsigned char *p = (unsigned char *)text;

	while (*p) {
		size_t n = utf8_shown(p);

		if (n == 0)
			*p = '?';
		p += n ? n : 1;
	}
}

/* Append at `used`, truncated to the room. */
static void append_text(struct weir_err *err, size_t used, const char *fmt, va_list args)
{
	size_t room = sizeof(err->text) - used;
	int n = vsnprintf(err->text + used, room, fmt, args);

	if (n < 0)
		err->text[used] = '\0';
	else if ((size_t)n >= room)
		trim_utf8(err->text);
	replace_controls(err->text);
}

int weir_err_set(struct weir_err *err, int code, const char *fmt, ...)
{
	if (err) {
		va_list args;
		va_start(args, fmt);
		append_text(err, 0, fmt, args);
		va_end(args);
	}
	return code;
}

/* Write "file:line:column: " as far as known, and return its length. */
static size_t put_place(struct weir_err *err, struct weir_place at)
{
	char *buf = err->text;
	int n = 0;

	/* Leave room for the numbers and some of the message after a long name. */
	if (at.file)
		n = snprintf(buf, sizeof(err->text), "%.200s:", at.file);
	if (at.line)
		n += snprintf(buf + n, sizeof(err->text) - (size_t)n, "%u:", at.line);
	if (at.line && at.column)
		n += snprintf(buf + n, sizeof(err->text) - (size_t)n, "%u:", at.column);
	if (n > 0) {
		buf[n++] = ' ';
		buf[n] = '\0';
	}
	return (size_t)n;
}

int weir_err_at(struct weir_err *err, int code, struct weir_place at, const char *fmt, ...)
{
	if (err) {
		va_list args;
		va_start(args, fmt);
		append_text(err, put_place(err, at), fmt, args);
		va_end(args);
	}
	return code;
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;
	return ab < c ? ab : c;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Return twice Damerau's distance in its "optimal string alignment" form: one insertion,
 * deletion, replacement or swap of neighbours costs 2, since swapped letters ("wieght") are the
 * most common typo, and a change of case 1. Three rows of the table, O(|a|·|b|) time. Both
 * lengths ≤ NEAR_MAX. */
static unsigned distance(const char *a, size_t na, const char *b, size_t nb)
{
	unsigned rows[3][NEAR_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= nb; j++)
		last[j] = 2 * (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		row[0] = 2 * (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			char x = a[i - 1], y = b[j - 1];
			unsigned replace = x == y ? 0 : lower(x) == lower(y) ? 1 : 2;
			row[j] = min3(last[j] + 2, row[j - 1] + 2, last[j - 1] + replace);
			if (i > 1 && j > 1 && x == b[j - 2] && a[i - 2] == y &&
				before[j - 2] + 2 < row[j])
				row[j] = before[j - 2] + 2;
		}
		unsigned *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[nb];
}

const char *weir_err_near(const char *word, const char *const *words)
{
	const char *best = NULL;
	size_t n = strlen(word);

	if (n == 0 || n > NEAR_MAX)
		return NULL;
	unsigned limit = 2 * (1 + (unsigned)(n / 4));
	for (; *words; words++) {
		size_t m = strlen(*words);
		if (m > NEAR_MAX)
			continue;
		unsigned d = distance(word, n, *words, m);
		/* Words with nothing in common are not near, however short. */
		if (d <= limit && d < 2 * (n > m ? n : m)) {
			best = *words;
			if (d == 0)
				break;
			limit = d - 1;
		}
	}
	return best;
}
