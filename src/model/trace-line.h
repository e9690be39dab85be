/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace-line: one line of text to one record; what trace.c's loop and each format's reader agree on.
 * Private to the trace readers.
 */
#ifndef WEIR_MODEL_TRACE_LINE_H
#define WEIR_MODEL_TRACE_LINE_H

#include "model/trace.h"

enum trace_verdict {
	TRACE_LINE_RECORD, /* an IO */
	TRACE_LINE_OTHER,  /* the format's own, but no IO: a header, "open", a plug event */
	TRACE_LINE_BAD,    /* has the format's shape, but a value is wrong: `why` */
	TRACE_LINE_ALIEN,  /* has not the format's shape: `why` */
};

struct trace_line {
	const char *p, *end; /* what is left of the line: no newline, no CR, no blanks in front */
	const char *taken;   /* where the last number or word ended: blanks behind it are skipped */
	enum trace_verdict verdict; /* RECORD until something fails */
	/* what a reader leaves for a RECORD */
	uint64_t tick; /* arrival, in the format's unit */
	uint64_t offset;
	uint32_t bytes;
	uint8_t op;
	uint8_t rank; /* a record of a higher rank makes all of lower ranks void (blkparse) */
	bool has_offset;
	const char *key; /* the stream's name, in the text; NULL: the only one */
	size_t key_len;
	char why[120]; /* for BAD and ALIEN */
};

/* What a reader remembers from line to line; zero at the start. */
struct trace_memory {
	unsigned fio_version;  /* 0: no header seen yet */
	uint64_t fio_waited;   /* v2: the waits so far, µs */
	bool blkparse_events;  /* an event came before */
	bool blkparse_summary; /* the tables behind the events have begun */
	bool seen;             /* a line came before (only the first may be a CSV header) */
};

struct trace_reader {
	uint32_t tick_ns; /* the unit of `tick` */
	enum trace_verdict (*line)(struct trace_line *l, struct trace_memory *m);
};
extern const char trace_weir_header[]; /* "# weir-trace ", then the version */
extern const struct trace_reader trace_readers[TRACE_FORMATS]; /* [TRACE_AUTO] is empty */
enum trace_verdict trace_blkparse(struct trace_line *l, struct trace_memory *m);

/*
 * trace-line.c: the pieces of a line.
 *
 * A wrong value (a number that is negative or too large, no bytes) makes the line BAD, and reading
 * goes on, since only the rest tells whether the line has this format's shape at all; a wrong shape
 * makes it ALIEN, and reading ends. So the functions return false for a wrong shape only, and a
 * reader says `if (!trace_take_…) return l->verdict;`.
 */
bool trace_line_alien(struct trace_line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* false */
void trace_line_bad(struct trace_line *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* only the first is kept */

/* The field at p for a message: cut, and with what cannot be printed as '?'. Returns buf->text. */
struct trace_shown {
	char text[36];
};
const char *trace_show(const char *p, const char *end, struct trace_shown *buf);

/* A number up to a blank, a comma or the line's end; blanks behind it are skipped. 0 for a BAD one. */
bool trace_take_number(struct trace_line *l, const char *field, uint64_t max, uint64_t *ret);
bool trace_take_hex(
	struct trace_line *l, const char *field, uint64_t max, uint64_t *ret); /* 0x or not */
/* A word up to a blank, or a cell of a CSV line up to a comma, blanks around it apart; not empty. */
bool trace_take_word(struct trace_line *l, const char *field, const char **ret, size_t *ret_len);
bool trace_take_cell(struct trace_line *l, const char *field, const char **ret, size_t *ret_len);
bool trace_take_comma(struct trace_line *l); /* and the blanks behind it */
bool trace_take_end(struct trace_line *l);
bool trace_word_is(const char *word, size_t len, const char *what); /* ignoring case */

bool trace_line_starts(const struct trace_line *l, const char *with);

/* The last step of a reader: the record's op, offset and bytes, within their bounds. */
enum trace_verdict trace_line_extent(
	struct trace_line *l, uint8_t op, uint64_t offset, uint64_t bytes);
/* The same from 512-byte sectors. */
enum trace_verdict trace_line_sectors(
	struct trace_line *l, uint8_t op, uint64_t sector, uint64_t sectors);

#endif
