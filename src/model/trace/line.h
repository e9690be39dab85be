/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * line: parse one line of text into one record; the interface between trace.c's loop and the
 * reader of each format. Private to the trace readers.
 */
#pragma once

#include "model/trace/trace.h"

enum trace_verdict {
	TRACE_LINE_RECORD, /* an IO */
	TRACE_LINE_OTHER,  /* valid, but no IO: a header, "open", a plug event */
	TRACE_LINE_BAD,    /* has the format's shape, but a wrong value: `why` */
	TRACE_LINE_ALIEN,  /* does not have the format's shape: `why` */
};

struct trace_line {
	const char *p, *end; /* the rest of the line: no newline, no CR, no leading blanks */
	const char *taken;   /* end of the last number or word, before the blanks that follow */
	enum trace_verdict verdict; /* RECORD until something fails */
	/* the result of a RECORD */
	uint64_t tick; /* arrival, in the format's unit */
	uint64_t offset;
	uint32_t bytes;
	uint8_t op;
	uint8_t rank; /* a record discards all records of lower ranks (blkparse) */
	bool has_offset;
	const char *key; /* the stream's name, in the text; NULL: the only stream */
	size_t key_len;
	char why[120]; /* for BAD and ALIEN */
};

/* A reader's state from line to line; zero at the start. */
struct trace_memory {
	unsigned fio_version;  /* 0: no header seen yet */
	uint64_t fio_waited;   /* v2: sum of the waits, µs */
	bool blkparse_events;  /* an event came before */
	bool blkparse_summary; /* the tables after the events have begun */
	bool seen;             /* a line came before (only the first may be a CSV header) */
};

struct trace_reader {
	uint32_t tick_ns; /* the unit of `tick` */
	enum trace_verdict (*line)(struct trace_line *l, struct trace_memory *m);
};
extern const char trace_weir_header[]; /* "# weir-trace ", followed by the version */
extern const struct trace_reader trace_readers[TRACE_FORMATS]; /* [TRACE_AUTO] is empty */
enum trace_verdict trace_blkparse(struct trace_line *l, struct trace_memory *m);

/*
 * line.c: parse the fields of a line.
 *
 * A wrong value (a negative or too large number, no bytes) makes the line BAD, and parsing
 * continues, since only the rest shows whether the line has this format's shape; a wrong shape
 * makes it ALIEN, and parsing ends. So the functions return false only for a wrong shape, and a
 * reader writes `if (!trace_take_…) return l->verdict;`.
 */
bool trace_line_alien(struct trace_line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* returns false */
void trace_line_bad(struct trace_line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* only the first is kept */

/* Copy the field at p for a message, truncated, with unprintable bytes as '?'. Return buf->text. */
struct trace_shown {
	char text[36];
};
const char *trace_show(const char *p, const char *end, struct trace_shown *buf);

/* Parse a number up to a blank, a comma or the line's end, and skip blanks. 0 if BAD. */
bool trace_take_number(struct trace_line *l, const char *field, uint64_t max, uint64_t *ret);
bool trace_take_hex(
	struct trace_line *l, const char *field, uint64_t max, uint64_t *ret); /* 0x or not */
/* Parse a word up to a blank, or a CSV cell up to a comma, without surrounding blanks; not empty. */
bool trace_take_word(struct trace_line *l, const char *field, const char **ret, size_t *ret_len);
bool trace_take_cell(struct trace_line *l, const char *field, const char **ret, size_t *ret_len);
bool trace_take_comma(struct trace_line *l); /* and skip blanks */
bool trace_take_end(struct trace_line *l);
bool trace_word_is(const char *word, size_t len, const char *what); /* ignoring case */

bool trace_line_starts(const struct trace_line *l, const char *with);

/* The last step of a reader: check and set the record's op, offset and bytes. */
enum trace_verdict trace_line_extent(
	struct trace_line *l, uint8_t op, uint64_t offset, uint64_t bytes);
/* The same from 512-byte sectors. */
enum trace_verdict trace_line_sectors(
	struct trace_line *l, uint8_t op, uint64_t sector, uint64_t sectors);
