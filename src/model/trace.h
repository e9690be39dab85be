/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: recorded IO, whatever it was recorded with.
 *
 * Read from memory; the format is told or found from the first lines. A bad line is named
 * ("t.csv:17: …") and either refused (the whole trace is) or skipped and counted, as asked.
 *
 * The formats, field by field, are in weir-trace(5). What holds for all of them: one record a line;
 * CR LF, blank lines, lines that start with '#' and a UTF-8 byte order mark are let pass; numbers are
 * decimal, not negative, and have no sign; a read, write or trim has at least one byte and at most
 * 2³² − 1; its end lies below 2⁶³; a flush has neither offset nor bytes (both are 0 in its record).
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
	TRACE_MSR, /* Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime; 100 ns ticks */
	TRACE_FIO, /* iolog v2 and v3 */
	TRACE_BLKPARSE, /* blkparse's default text; queue (Q) events, else D, else C */
	TRACE_FORMATS
};
extern const char *const trace_format_names[TRACE_FORMATS + 1]; /* "auto", "weir", …, NULL */

enum trace_op { /* enum weir_op's values: model does not know gate */
	TRACE_READ = 0,
	TRACE_WRITE = 1,
	TRACE_FLUSH = 2,
	TRACE_TRIM = 3
};

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
	char first_bad[160]; /* what was wrong with the first ("line 17: …"); "" if none */
};

/* `skip_bad`: count bad lines instead of refusing. A text with no good line is refused, as is one
 * whose arrivals lie more than 2⁶³ ns apart. 0, -EINVAL with a message, -ENOMEM, or, for TRACE_AUTO,
 * -ENOMSG: text, but none of its lines is of any format. */
int trace_read(const char *text, size_t len, const char *name, enum trace_format format,
	bool skip_bad, struct trace *ret, struct weir_err *err);
void trace_free(struct trace *t);

/* The same, telling `watch` (may be NULL) every few thousand lines how many of the text's bytes are
 * done, so that a program may show progress. */
typedef void (*trace_watch)(void *user, size_t done);
int trace_read_watch(const char *text, size_t len, const char *name, enum trace_format format,
	bool skip_bad, trace_watch watch, void *user, struct trace *ret, struct weir_err *err);

struct trace_summary {
	size_t n;
	weir_time span; /* from the first arrival to the last */
	uint64_t bytes;
	double read_share,
		sequential_share; /* of IOs; sequential: starts where its stream's last ended */
	double rate;              /* IOs per second: (n − 1) / span, 0 if all are at once */
	double ca2;               /* squared coefficient of variation of inter-arrivals */
	uint32_t min_bytes, max_bytes; /* of reads, writes and trims; 0 if there is none */
	uint64_t extent;               /* highest end offset; 0 without offsets */
	unsigned streams;
	double peak_rate; /* most IOs in any one aligned second */
};
/* sequential_share is 0 without offsets, and NAN if memory for it could not be had. */
void trace_summarise(const struct trace *t, struct trace_summary *ret);

/* Keeps the records with from ≤ at < until (WEIR_NEVER: to the end); the first kept is at 0 again.
 * May leave none. */
void trace_slice(struct trace *t, weir_time from, weir_time until);

/* Every arrival at 1/speed of its time: 2 is twice as fast. speed > 0, finite. -ERANGE, and nothing
 * changed, if an arrival would pass 2⁶³ ns. */
int trace_speed(struct trace *t, double speed);

/* What `format`, one that can be written, cannot say of a record, as a mask; 0: nothing is lost. */
enum {
	TRACE_LOSS_OP = 1,      /* it has no such operation: the record cannot be written */
	TRACE_LOSS_SECTORS = 2, /* it counts in 512-byte sectors: the record cannot be written */
	TRACE_LOSS_OFFSET = 4,  /* it has no offsets: written without */
	TRACE_LOSS_STREAM = 8,  /* it has no streams: written without (stream 0 is not missed) */
	TRACE_LOSS_TIME = 16,   /* its clock is coarser: written rounded down */
};
unsigned trace_loss(const struct trace *t, size_t index, enum trace_format format);
bool trace_can_write(enum trace_format format);

/* One record in `format` (WEIR, COMPACTOR, MQSIM, MSR, FIO as iolog v3) as a line with its
 * newline; index 0 is preceded by the format's header (for FIO that adds and opens all streams: two
 * lines each). Returns the length, or -ENOSPC (grow the buffer and ask again), -EINVAL (a format that
 * cannot be written) or -EOPNOTSUPP (a record that the format cannot hold: TRACE_LOSS_OP or
 * TRACE_LOSS_SECTORS). Not NUL-terminated. */
int trace_format_record(
	const struct trace *t, size_t index, enum trace_format format, char *buf, size_t len);

#endif
