/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: recorded IO, whatever it was recorded with.
 *
 * Read from memory; the format is told or found from the first lines. A bad line is named
 * ("t.csv:17: …") and either refused (the whole trace is) or skipped and counted, as asked.
 */
#ifndef WEIR_MODEL_TRACE_H
#define WEIR_MODEL_TRACE_H

#include "base/clock.h"
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

enum trace_format {
	TRACE_AUTO,
	TRACE_WEIR,      /* ours: "# weir-trace 1" then "arrival_ns op offset bytes stream" */
	TRACE_COMPACTOR, /* arrival_ns,0xbytes,DiskRead|DiskWrite */
	TRACE_MQSIM,     /* arrival_ns device sector sectors op, 1 = read */
	TRACE_MSR,       /* Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime; 100 ns ticks */
	TRACE_FIO,       /* iolog v2 and v3 */
	TRACE_BLKPARSE,  /* blkparse's default text; queue (Q) events */
	TRACE_FORMATS
};
extern const char *const trace_format_names[TRACE_FORMATS + 1]; /* "auto", "weir", …, NULL */

struct trace_record {
	weir_time at;    /* from the trace's first record on: the first is 0 */
	uint64_t offset; /* bytes; 0 where the format has none */
	uint32_t bytes;
	uint16_t stream; /* device, disk or file, numbered in order of appearance */
	uint8_t op;      /* enum weir_op's values */
};

struct trace {
	struct trace_record *records; /* in order of `at` (sorted stably if the file was not) */
	size_t n;
	enum trace_format format;
	bool has_offsets, was_sorted;
	size_t bad_lines;
	char first_bad[160]; /* what was wrong with the first, with its line; "" if none */
};

/* `skip_bad`: count bad lines instead of refusing. A text with no good line is refused. */
int trace_read(const char *text, size_t len, const char *name, enum trace_format format,
	bool skip_bad, struct trace *ret, struct weir_err *err);
void trace_free(struct trace *t);

struct trace_summary {
	size_t n;
	weir_time span;
	uint64_t bytes;
	double read_share, sequential_share; /* of IOs; sequential: starts where its stream's last ended */
	double rate;                         /* IOs per second */
	double ca2;                          /* squared coefficient of variation of inter-arrivals */
	uint32_t min_bytes, max_bytes;
	uint64_t extent; /* highest end offset */
	unsigned streams;
	double peak_rate; /* most IOs in any one aligned second */
};
void trace_summarise(const struct trace *t, struct trace_summary *ret);

/* One record in `format` (WEIR, COMPACTOR, MQSIM, MSR, FIO v2-style iolog v3) as a line with its
 * newline; index 0 is preceded by the format's header. Returns the length, or -ENOSPC / -EINVAL
 * (a format that cannot be written). */
int trace_format_record(const struct trace *t, size_t index, enum trace_format format, char *buf,
	size_t len);

#endif
