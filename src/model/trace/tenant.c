/* SPDX-License-Identifier: BSD-3-Clause */
#include "model/trace/tenant.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS (UINT16_MAX + 1ul)

static const char *line_end(const char *line, const char *end)
{
	const char *newline = memchr(line, '\n', (size_t)(end - line));

	return newline ? newline : end;
}

/* Read decimal digits up to STREAMS; *at: behind them. STREAMS: there is no such number. */
static unsigned long number(const char **at, const char *end)
{
	const char *first = *at;
	unsigned long n = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		n = n < STREAMS ? 10 * n + (unsigned long)(**at - '0') : n;
	return *at > first && n < STREAMS ? n : STREAMS;
}

bool trace_name_of(const char *line, const char *end, struct trace_name *ret)
{
	static const char head[] = "# stream ", on[] = " on ";
	const size_t n = sizeof(head) - 1;
	const char *last = NULL;

	if ((size_t)(end - line) < n || memcmp(line, head, n) != 0)
		return false;
	line += n;
	ret->stream = number(&line, end);
	if (ret->stream == STREAMS || end - line < 2 || line[0] != ':' || line[1] != ' ')
		return false;
	line += 2;
	for (const char *at = line; end - at >= 4; at++) /* a tenant's name may have one, too */
		last = memcmp(at, on, 4) == 0 ? at : last;
	if (!last)
		return false;
	ret->tenant = line;
	ret->len = (size_t)(last - line);
	ret->resource = last + 4;
	ret->resource_len = (size_t)(end - last - 4);
	return true;
}

bool trace_name_next(const char **at, const char *end, struct trace_name *ret)
{
	while (*at < end) {
		const char *line = *at, *stop = line_end(line, end);

		*at = stop < end ? stop + 1 : end;
		if (trace_name_of(line, stop, ret))
			return true;
	}
	return false;
}

/* Return the stream of a request's line, its last number; STREAMS: it has none. */
static unsigned long stream_of(const char *line, const char *end)
{
	const char *at;
	unsigned long n;

	while (end > line && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
		end--;
	for (at = end; at > line && at[-1] >= '0' && at[-1] <= '9';)
		at--;
	n = number(&at, end);
	return line[0] == '#' ? STREAMS : n;
}

static bool is(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(text, word, len) == 0;
}

/* Mark the streams of a tenant, on a resource or on all (NULL); return their number. */
static int mark(const char *at, const char *end, const char *tenant, const char *resource, bool *to)
{
	struct trace_name name;
	int n = 0;

	while (trace_name_next(&at, end, &name))
		if (is(name.tenant, name.len, tenant) &&
			(!resource || is(name.resource, name.resource_len, resource))) {
			n += !to[name.stream];
			to[name.stream] = true;
		}
	return n;
}

int trace_keep_tenant(char *text, size_t len, const char *tenant, const char *resource)
{
	const char *end = text + len;
	bool *keep = calloc(STREAMS + 1, sizeof(*keep));
	int n;

	if (!keep)
		return -ENOMEM;
	n = resource ? mark(text, end, tenant, resource, keep) : 0;
	n = n ? n : mark(text, end, tenant, NULL, keep);
	keep[STREAMS] = true; /* not a request: the reader says so */
	for (char *line = text; n && line < end;) {
		char *stop = text + (line_end(line, end) - text);

		if (stop > line && !keep[stream_of(line, stop)])
			*line = '#';
		line = stop + 1;
	}
	free(keep);
	return n;
}
