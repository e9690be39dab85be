/* SPDX-License-Identifier: BSD-3-Clause */
/* trace-summary: statistics of a trace, and cutting and speeding it up. */
#include "model/trace/trace.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static unsigned count_streams(const struct trace *t)
{
	unsigned most = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->records[i].stream > most)
			most = t->records[i].stream;
	return t->n ? most + 1 : 0;
}

/* Return the share of IOs that start where the previous one of their stream ended. */
static double sequential(const struct trace *t, unsigned streams)
{
	if (!t->has_offsets || t->n == 0)
		return 0;
	uint64_t *ends = malloc(streams * sizeof *ends);
	if (!ends)
		return NAN;
	memset(ends, 0xff, streams * sizeof *ends); /* matches no IO: ends are below 2⁶³ */
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_record *r = &t->records[i];
		if (r->op == TRACE_FLUSH)
			continue;
		n += r->offset == ends[r->stream];
		ends[r->stream] = r->offset + r->bytes;
	}
	free(ends);
	return (double)n / (double)t->n;
}

/* Return the squared coefficient of variation of the gaps, computed from their mean and then the
 * deviations: plain sums of squares would cancel if ns gaps occur beside hours. */
static double variation(const struct trace *t, weir_time span)
{
	if (t->n < 3 || span == 0)
		return 0;
	double mean = (double)span / (double)(t->n - 1), sum = 0;
	for (size_t i = 1; i < t->n; i++) {
		double d = (double)(t->records[i].at - t->records[i - 1].at) / mean - 1;
		sum += d * d;
	}
	return sum / (double)(t->n - 1);
}

static size_t peak_second(const struct trace *t)
{
	size_t most = 0, here = 0;
	weir_time second = -1;
	for (size_t i = 0; i < t->n; i++) {
		if (t->records[i].at / WEIR_SEC != second) {
			second = t->records[i].at / WEIR_SEC;
			here = 0;
		}
		if (++here > most)
			most = here;
	}
	return most;
}

void trace_summarise(const struct trace *t, struct trace_summary *ret)
{
	struct trace_summary s = {.n = t->n, .streams = count_streams(t)};
	size_t reads = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_record *r = &t->records[i];
		reads += r->op == TRACE_READ;
		if (r->op == TRACE_FLUSH)
			continue;
		s.bytes += r->bytes;
		if (s.min_bytes == 0 || r->bytes < s.min_bytes)
			s.min_bytes = r->bytes;
		if (r->bytes > s.max_bytes)
			s.max_bytes = r->bytes;
		if (t->has_offsets && r->offset + r->bytes > s.extent)
			s.extent = r->offset + r->bytes;
	}
	if (t->n > 0) {
		s.span = t->records[t->n - 1].at - t->records[0].at;
		s.read_share = (double)reads / (double)t->n;
	}
	if (s.span > 0)
		s.rate = (double)(t->n - 1) / ((double)s.span / (double)WEIR_SEC);
	s.sequential_share = sequential(t, s.streams);
	s.ca2 = variation(t, s.span);
	s.peak_rate = (double)peak_second(t);
	*ret = s;
}

void trace_slice(struct trace *t, weir_time from, weir_time until)
{
	size_t first = 0, last;
	while (first < t->n && t->records[first].at < from)
		first++;
	for (last = first; last < t->n && (until == WEIR_NEVER || t->records[last].at < until);
		last++)
		;
	weir_time zero = first < last ? t->records[first].at : 0;
	for (size_t i = first; i < last; i++) {
		t->records[i - first] = t->records[i];
		t->records[i - first].at -= zero;
	}
	t->n = last - first;
}

int trace_speed(struct trace *t, double speed)
{
	if (t->n > 0 && (double)t->records[t->n - 1].at / speed >= 0x1p63)
		return -ERANGE;
	for (size_t i = 0; i < t->n; i++)
		t->records[i].at = (weir_time)((double)t->records[i].at / speed);
	return 0;
}
