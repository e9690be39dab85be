/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: recorded IO, in several formats.
 *
 * Read from memory; the caller gives the format, or the first lines determine it. A bad line is
 * either an error that names the line ("t.csv:17: …") or skipped and counted, as the caller wishes.
 *
 * The formats, field by field, are in weir-trace(5). Common to all: one record a line; CR LF, blank
 * lines, lines that start with '#' and a UTF-8 byte order mark are accepted; numbers are decimal,
 * not negative, and have no sign; a read, write or trim has at least one byte and at most 2³² − 1;
 * its end is below 2⁶³; a flush has neither offset nor bytes (both are 0 in its record).
 */
#pragma once

#include <weir/clock.h>
#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>

enum trace_format {
	TRACE_AUTO,
	TRACE_WEIR,      /* "# weir-trace 1" then "arrival_ns op offset bytes stream" */
	TRACE_COMPACTOR, /* arrival_ns,0xbytes,DiskRead|DiskWrite */
	TRACE_MQSIM,     /* arrival_ns device sector sectors op, 1 = read */
	TRACE_MSR, /* Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime; 100 ns ticks */
	TRACE_FIO, /* iolog v2 and v3 */
	TRACE_BLKPARSE, /* blkparse's default text; queue (Q) events, else D, else C */
	TRACE_FORMATS
};
extern const char *const trace_format_names[TRACE_FORMATS + 1]; /* "auto", "weir", …, NULL */

enum trace_op { /* enum weir_op's values: model does not depend on gate */
	TRACE_READ = 0,
	TRACE_WRITE = 1,
	TRACE_FLUSH = 2,
	TRACE_TRIM = 3
};

struct trace_record {
	weir_time at;    /* relative to the trace's first record, which is 0 */
	uint64_t offset; /* bytes; 0 if the format has none */
	uint32_t bytes;
	uint16_t stream; /* device, disk or file, numbered in order of appearance */
	uint8_t op;      /* enum weir_op's values */
};

struct trace {
	struct trace_record *records; /* in order of `at` (sorted stably if the file was not) */
	size_t n;
	enum trace_format format;
	weir_time start; /* the first arrival as it was written, if that is below 2⁶³ ns; else 0 */
	bool has_offsets, was_sorted;
	size_t bad_lines;
	char first_bad[160]; /* the error of the first one ("line 17: …"); "" if none */
};

/* `skip_bad`: count bad lines instead of failing. A text without a good line is refused, and one
 * whose arrivals are more than 2⁶³ ns apart. Return 0, -EINVAL with a message, -ENOMEM, or, for
 * TRACE_AUTO, -ENOMSG: text, but no line of any known format. */
int trace_read(const char *text, size_t len, const char *name, enum trace_format format,
	bool skip_bad, struct trace *ret, struct weir_err *err);
void trace_free(struct trace *t);

/* The same, calling `watch` (may be NULL) every few thousand lines with the bytes processed, so
 * that a program can show progress. */
typedef void (*trace_watch)(void *user, size_t done);
int trace_read_watch(const char *text, size_t len, const char *name, enum trace_format format,
	bool skip_bad, trace_watch watch, void *user, struct trace *ret, struct weir_err *err);

struct trace_summary {
	size_t n;
	weir_time span; /* from the first arrival to the last */
	uint64_t bytes;
	double read_share,
		sequential_share; /* of IOs; sequential: starts where the stream's last IO ended */
	double rate;              /* IOs per second: (n − 1) / span, 0 if all arrive at once */
	double ca2;               /* squared coefficient of variation of inter-arrivals */
	uint32_t min_bytes, max_bytes; /* of reads, writes and trims; 0 if none */
	uint64_t extent;               /* highest end offset; 0 without offsets */
	unsigned streams;
	double peak_rate; /* most IOs in any one aligned second */
};
/* sequential_share is 0 without offsets, and NAN if out of memory. */
void trace_summarise(const struct trace *t, struct trace_summary *ret);

/* Keep the records with from ≤ at < until (WEIR_NEVER: to the end); the first kept is at 0 again.
 * The result may be empty. */
void trace_slice(struct trace *t, weir_time from, weir_time until);

/* Divide every arrival time by `speed`: 2 is twice as fast. speed > 0, finite. Return -ERANGE, with
 * nothing changed, if an arrival would exceed 2⁶³ ns. */
int trace_speed(struct trace *t, double speed);

/* Return the properties of a record that a writable `format` cannot express, as a mask; 0: nothing
 * is lost. */
enum {
	TRACE_LOSS_OP = 1,      /* no such operation: the record cannot be written */
	TRACE_LOSS_SECTORS = 2, /* counts 512-byte sectors: the record cannot be written */
	TRACE_LOSS_OFFSET = 4,  /* no offsets: written without */
	TRACE_LOSS_STREAM = 8,  /* no streams: written without (stream 0 is no loss) */
	TRACE_LOSS_TIME = 16,   /* a coarser clock: rounded down */
};
unsigned trace_loss(const struct trace *t, size_t index, enum trace_format format);
bool trace_can_write(enum trace_format format);

/* Write one record in `format` (WEIR, COMPACTOR, MQSIM, MSR, FIO as iolog v3) as a line with its
 * newline; before index 0 comes the format's header (for FIO it adds and opens all streams: two
 * lines each). Return the length, or -ENOSPC (call again with a larger buffer), -EINVAL (the format
 * cannot be written) or -EOPNOTSUPP (the format cannot hold the record: TRACE_LOSS_OP or
 * TRACE_LOSS_SECTORS). Not NUL-terminated. */
int trace_format_record(
	const struct trace *t, size_t index, enum trace_format format, char *buf, size_t len);
