/* SPDX-License-Identifier: BSD-3-Clause */
/* line: parse the fields of a trace's lines. One pass, no copies, no locale: a million lines
 * in a fraction of a second. */
#include "model/trace/line.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_OFFSET ((uint64_t)INT64_MAX)

static bool blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool separator(char c)
{
	return blank(c) || c == ',';
}

static void skip_blanks(struct trace_line *l)
{
	while (l->p < l->end && blank(*l->p))
		l->p++;
}

bool trace_line_alien(struct trace_line *l, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(l->why, sizeof l->why, fmt, ap);
	va_end(ap);
	l->verdict = TRACE_LINE_ALIEN;
	return false;
}

void trace_line_bad(struct trace_line *l, const char *fmt, ...)
{
	if (l->verdict == TRACE_LINE_BAD)
		return;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(l->why, sizeof l->why, fmt, ap);
	va_end(ap);
	l->verdict = TRACE_LINE_BAD;
}

const char *trace_show(const char *p, const char *end, struct trace_shown *buf)
{
	const size_t room = sizeof buf->text - 4; /* "..." and the NUL */
	size_t n = 0;
	while (n < room && p + n < end && !separator(p[n])) {
		buf->text[n] = p[n] >= 0x20 && p[n] < 0x7f ? p[n] : '?';
		n++;
	}
	strcpy(buf->text + n, n == room && p + n < end && !separator(p[n]) ? "..." : "");
	return buf->text;
}

/* The slow path of the take functions: say what is wrong with the number at l->p. */
static bool not_number(struct trace_line *l, const char *field)
{
	struct trace_shown buf;
	const char *p = l->p;
	if (p == l->end || *p == ',')
		return trace_line_alien(l, "%s is missing", field);
	if (*p == '-') {
		const char *q = p + 1;
		while (q < l->end && *q >= '0' && *q <= '9')
			q++;
		if (q > p + 1 && (q == l->end || separator(*q))) {
			trace_line_bad(
				l, "%s: '%s' is negative", field, trace_show(p, l->end, &buf));
			l->taken = l->p = q;
			skip_blanks(l);
			return true;
		}
	}
	return trace_line_alien(l, "%s: '%s' is not a number", field, trace_show(p, l->end, &buf));
}

static void too_large(struct trace_line *l, const char *field, const char *start, uint64_t max)
{
	struct trace_shown buf;
	trace_line_bad(l, "%s: '%s' is over %llu", field, trace_show(start, l->end, &buf),
		(unsigned long long)max);
}

bool trace_take_number(struct trace_line *l, const char *field, uint64_t max, uint64_t *ret)
{
	const char *p = l->p, *start = p, *end = l->end;
	uint64_t v = 0;
	bool over = false;
	for (unsigned d; p < end && (d = (unsigned)(unsigned char)*p - '0') <= 9; p++) {
		over |= __builtin_mul_overflow(v, UINT64_C(10), &v);
		over |= __builtin_add_overflow(v, (uint64_t)d, &v);
	}
	*ret = 0;
	if (p == start || (p < end && !separator(*p)))
		return not_number(l, field);
	if (over || v > max)
		too_large(l, field, start, max);
	else
		*ret = v;
	l->taken = l->p = p;
	skip_blanks(l);
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool trace_take_hex(struct trace_line *l, const char *field, uint64_t max, uint64_t *ret)
{
	const char *p = l->p, *start = p, *end = l->end;
	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		start = p += 2;
	uint64_t v = 0;
	bool over = false;
	for (int d; p < end && (d = hex_digit(*p)) >= 0; p++) {
		over |= v >> 60 != 0;
		v = v << 4 | (unsigned)d;
	}
	*ret = 0;
	if (p == start || (p < end && !separator(*p)))
		return not_number(l, field);
	if (over || v > max)
		too_large(l, field, l->p, max);
	else
		*ret = v;
	l->taken = l->p = p;
	skip_blanks(l);
	return true;
}

bool trace_take_word(struct trace_line *l, const char *field, const char **ret, size_t *ret_len)
{
	const char *p = l->p;
	while (p < l->end && !blank(*p))
		p++;
	if (p == l->p)
		return trace_line_alien(l, "%s is missing", field);
	*ret = l->p;
	*ret_len = (size_t)(p - l->p);
	l->taken = l->p = p;
	skip_blanks(l);
	return true;
}

bool trace_take_cell(struct trace_line *l, const char *field, const char **ret, size_t *ret_len)
{
	const char *p = l->p;
	while (p < l->end && *p != ',')
		p++;
	const char *last = p;
	while (last > l->p && blank(last[-1]))
		last--;
	if (last == l->p)
		return trace_line_alien(l, "%s is missing", field);
	*ret = l->p;
	*ret_len = (size_t)(last - l->p);
	l->p = p;
	return true;
}

bool trace_take_comma(struct trace_line *l)
{
	struct trace_shown buf;
	if (l->p == l->end)
		return trace_line_alien(l, "the line ends too early");
	if (*l->p != ',')
		return trace_line_alien(
			l, "a comma, not '%s', was expected", trace_show(l->p, l->end, &buf));
	l->p++;
	skip_blanks(l);
	return true;
}

bool trace_take_end(struct trace_line *l)
{
	struct trace_shown buf;
	if (l->p == l->end)
		return true;
	return trace_line_alien(l, "too many fields, from '%s' on", trace_show(l->p, l->end, &buf));
}

bool trace_word_is(const char *word, size_t len, const char *what)
{
	return strlen(what) == len && strncasecmp(word, what, len) == 0;
}

bool trace_line_starts(const struct trace_line *l, const char *with)
{
	size_t n = strlen(with);
	return (size_t)(l->end - l->p) >= n && memcmp(l->p, with, n) == 0;
}

enum trace_verdict trace_line_extent(
	struct trace_line *l, uint8_t op, uint64_t offset, uint64_t bytes)
{
	if (op == TRACE_FLUSH) {
		offset = bytes = 0;
	} else if (l->verdict == TRACE_LINE_RECORD) { /* else the numbers are invalid */
		if (bytes == 0)
			trace_line_bad(l, "zero bytes");
		else if (bytes > UINT32_MAX)
			trace_line_bad(
				l, "%llu bytes, over %u", (unsigned long long)bytes, UINT32_MAX);
		else if (offset > MAX_OFFSET - bytes)
			trace_line_bad(l, "ends beyond 2^63 bytes");
	}
	l->op = op;
	l->offset = offset;
	l->bytes = (uint32_t)bytes;
	return l->verdict;
}

enum trace_verdict trace_line_sectors(
	struct trace_line *l, uint8_t op, uint64_t sector, uint64_t sectors)
{
	if (sector > MAX_OFFSET / 512)
		trace_line_bad(l, "sector %llu lies beyond 2^63 bytes", (unsigned long long)sector);
	else if (sectors > UINT32_MAX / 512)
		trace_line_bad(
			l, "%llu sectors, over %u bytes", (unsigned long long)sectors, UINT32_MAX);
	return trace_line_extent(l, op, sector * 512, sectors * 512);
}
