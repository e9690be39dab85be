/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * formats: one reader per format, a line at a time.
 *
 * SOURCE  weir: weir-trace(5). compactor, mqsim: the traces published with those projects. msr: the
 *         README of the MSR Cambridge traces (SNIA IOTTA). fio: HOWTO, 'Trace file format'.
 *         blkparse: blkparse(1) and the kernel's RWBS letters (blk_fill_rwbs).
 * DIFFERS fio v2's `wait`: the manual says microseconds since the last wait, ignored if below 100;
 *         fio 3's replay takes milliseconds since its own start. Weir follows the manual, and adds up
 *         all waits, since a trace is not a replay; lines between two waits arrive at once.
 *         v3's timestamps have no unit in the manual; fio writes and replays microseconds.
 */
#include "model/trace/line.h"
#include <string.h>

#define MAX_TICK ((uint64_t)INT64_MAX)

/* ---- weir: arrival_ns op offset|- bytes [stream] */

const char trace_weir_header[] = "# weir-trace ";

static enum trace_verdict read_weir_header(struct trace_line *l)
{
	uint64_t version;
	l->p += strlen(trace_weir_header);
	if (!trace_take_number(l, "version", UINT64_MAX, &version) || !trace_take_end(l))
		return l->verdict;
	if (version != 1)
		trace_line_bad(l, "version %llu of the format is not known, only 1 is",
			(unsigned long long)version);
	return l->verdict == TRACE_LINE_RECORD ? TRACE_LINE_OTHER : l->verdict;
}

static int weir_op(const char *word, size_t len)
{
	static const char letters[] = "RWFT"; /* in the order of enum trace_op */
	const char *at = len == 1 ? memchr(letters, *word, 4) : NULL;
	return at ? (int)(at - letters) : -1;
}

/* Return true at a "-", an unknown offset. */
static bool weir_dash(const struct trace_line *l)
{
	size_t left = (size_t)(l->end - l->p);
	return left > 0 && *l->p == '-' && (left == 1 || l->p[1] == ' ' || l->p[1] == '\t');
}

static enum trace_verdict read_weir(struct trace_line *l, struct trace_memory *m)
{
	if (*l->p == '#' && trace_line_starts(l, trace_weir_header))
		return read_weir_header(l);
	size_t len;
	uint64_t offset = 0, bytes, stream;
	struct trace_shown buf;
	const char *word;
	if (!trace_take_number(l, "arrival", MAX_TICK, &l->tick) ||
		!trace_take_word(l, "op", &word, &len))
		return l->verdict;
	int op = weir_op(word, len);
	if (op < 0) {
		trace_line_alien(l, "op: '%s' is not R, W, F or T", trace_show(word, l->end, &buf));
		return l->verdict;
	}
	l->has_offset = !weir_dash(l);
	if (!l->has_offset && !trace_take_word(l, "offset", &word, &len))
		return l->verdict;
	if (l->has_offset && !trace_take_number(l, "offset", UINT64_MAX, &offset))
		return l->verdict;
	if (!trace_take_number(l, "bytes", UINT64_MAX, &bytes))
		return l->verdict;
	if (l->p < l->end) {
		l->key = l->p;
		if (!trace_take_number(l, "stream", UINT64_MAX, &stream))
			return l->verdict;
		l->key_len = (size_t)(l->taken - l->key);
	}
	if (!trace_take_end(l))
		return l->verdict;
	if (op == TRACE_FLUSH && (offset != 0 || bytes != 0))
		trace_line_bad(l, "a flush has offset 0 (or -) and bytes 0");
	return trace_line_extent(l, (uint8_t)op, offset, bytes);
}

/* ---- compactor: arrival_ns,hex_bytes,DiskRead|DiskWrite */

static enum trace_verdict read_compactor(struct trace_line *l, struct trace_memory *m)
{
	uint64_t bytes;
	const char *word;
	size_t len;
	if (!trace_take_number(l, "arrival", MAX_TICK, &l->tick) || !trace_take_comma(l) ||
		!trace_take_hex(l, "bytes", UINT64_MAX, &bytes) || !trace_take_comma(l) ||
		!trace_take_cell(l, "type", &word, &len) || !trace_take_end(l))
		return l->verdict;
	if (trace_word_is(word, len, "DiskRead"))
		return trace_line_extent(l, TRACE_READ, 0, bytes);
	if (trace_word_is(word, len, "DiskWrite"))
		return trace_line_extent(l, TRACE_WRITE, 0, bytes);
	trace_line_alien(l, "type: neither DiskRead nor DiskWrite");
	return l->verdict;
}

/* ---- mqsim: arrival_ns device sector sectors op */

static enum trace_verdict read_mqsim(struct trace_line *l, struct trace_memory *m)
{
	uint64_t device, sector, sectors, op;
	if (!trace_take_number(l, "arrival", MAX_TICK, &l->tick))
		return l->verdict;
	l->key = l->p;
	if (!trace_take_number(l, "device", UINT64_MAX, &device))
		return l->verdict;
	l->key_len = (size_t)(l->taken - l->key);
	if (!trace_take_number(l, "sector", UINT64_MAX, &sector) ||
		!trace_take_number(l, "sectors", UINT64_MAX, &sectors) ||
		!trace_take_number(l, "op", UINT64_MAX, &op) || !trace_take_end(l))
		return l->verdict;
	if (op > 1)
		trace_line_bad(
			l, "op: %llu is neither 1 (read) nor 0 (write)", (unsigned long long)op);
	l->has_offset = true;
	return trace_line_sectors(l, op == 1 ? TRACE_READ : TRACE_WRITE, sector, sectors);
}

/* ---- msr: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime */

static enum trace_verdict read_msr(struct trace_line *l, struct trace_memory *m)
{
	uint64_t disk, offset, bytes, response;
	const char *word;
	size_t len;
	if (!m->seen && l->end - l->p > 9 && trace_word_is(l->p, 9, "Timestamp"))
		return TRACE_LINE_OTHER;
	if (!trace_take_number(l, "timestamp", MAX_TICK, &l->tick) || !trace_take_comma(l) ||
		!trace_take_cell(l, "hostname", &word, &len) || !trace_take_comma(l))
		return l->verdict;
	l->key = word; /* host and disk together name the stream */
	if (!trace_take_number(l, "disk number", UINT64_MAX, &disk))
		return l->verdict;
	l->key_len = (size_t)(l->taken - l->key);
	if (!trace_take_comma(l) || !trace_take_cell(l, "type", &word, &len) ||
		!trace_take_comma(l) || !trace_take_number(l, "offset", UINT64_MAX, &offset) ||
		!trace_take_comma(l) || !trace_take_number(l, "size", UINT64_MAX, &bytes) ||
		!trace_take_comma(l) ||
		!trace_take_number(l, "response time", UINT64_MAX, &response) || !trace_take_end(l))
		return l->verdict;
	bool read = trace_word_is(word, len, "Read");
	if (!read && !trace_word_is(word, len, "Write")) {
		trace_line_alien(l, "type: neither Read nor Write");
		return l->verdict;
	}
	l->has_offset = true;
	return trace_line_extent(l, read ? TRACE_READ : TRACE_WRITE, offset, bytes);
}

/* ---- fio: [µs] file action [offset bytes], after a header with the version */

static const struct {
	const char *name;
	uint8_t op;
	bool file; /* an action on the file, no IO: no offset and length follow */
} fio_actions[] = {
	{"read", TRACE_READ, false},
	{"write", TRACE_WRITE, false},
	{"trim", TRACE_TRIM, false},
	{"sync", TRACE_FLUSH, false},
	{"datasync", TRACE_FLUSH, false},
	{"sync_file_range", TRACE_FLUSH, false},
	{"wait", 0, false},
	{"add", 0, true},
	{"open", 0, true},
	{"close", 0, true},
};

static enum trace_verdict read_fio_header(struct trace_line *l, struct trace_memory *m)
{
	size_t len = (size_t)(l->end - l->p);
	if (trace_word_is(l->p, len, "fio version 2 iolog"))
		m->fio_version = 2;
	else if (trace_word_is(l->p, len, "fio version 3 iolog"))
		m->fio_version = 3;
	else
		trace_line_alien(
			l, "no header 'fio version 2 iolog' or 'fio version 3 iolog' before it");
	return m->fio_version ? TRACE_LINE_OTHER : l->verdict;
}

static enum trace_verdict fio_wait(struct trace_line *l, struct trace_memory *m, uint64_t us)
{
	if (m->fio_version == 3)
		trace_line_bad(l, "version 3 has no wait");
	else if (__builtin_add_overflow(m->fio_waited, us, &us) || us > MAX_TICK)
		trace_line_bad(l, "the waits add up to more than 2^63 microseconds");
	if (l->verdict != TRACE_LINE_RECORD)
		return l->verdict;
	m->fio_waited = us;
	return TRACE_LINE_OTHER;
}

static enum trace_verdict read_fio(struct trace_line *l, struct trace_memory *m)
{
	const size_t n = sizeof fio_actions / sizeof *fio_actions;
	struct trace_shown buf;
	const char *word;
	size_t len, i;
	uint64_t offset, bytes;
	if (m->fio_version == 0)
		return read_fio_header(l, m);
	l->tick = m->fio_waited;
	if (m->fio_version == 3 && !trace_take_number(l, "timestamp", MAX_TICK, &l->tick))
		return l->verdict;
	if (!trace_take_word(l, "file", &l->key, &l->key_len) ||
		!trace_take_word(l, "action", &word, &len))
		return l->verdict;
	for (i = 0; i < n && !trace_word_is(word, len, fio_actions[i].name); i++)
		;
	if (i == n) {
		trace_line_alien(l, "action '%s' is not known", trace_show(word, l->end, &buf));
		return l->verdict;
	}
	if (fio_actions[i].file) {
		trace_take_end(l);
		return l->verdict == TRACE_LINE_RECORD ? TRACE_LINE_OTHER : l->verdict;
	}
	if (!trace_take_number(l, "offset", UINT64_MAX, &offset))
		return l->verdict;
	/* the length of a wait has no meaning and may be missing */
	bool wait = fio_actions[i].name[0] == 'w' && fio_actions[i].name[1] == 'a';
	if (wait && l->p == l->end)
		return fio_wait(l, m, offset);
	if (!trace_take_number(l, "length", UINT64_MAX, &bytes) || !trace_take_end(l))
		return l->verdict;
	l->has_offset = true;
	return wait ? fio_wait(l, m, offset)
		    : trace_line_extent(l, fio_actions[i].op, offset, bytes);
}

const struct trace_reader trace_readers[TRACE_FORMATS] = {
	[TRACE_WEIR] = {1, read_weir},
	[TRACE_COMPACTOR] = {1, read_compactor},
	[TRACE_MQSIM] = {1, read_mqsim},
	[TRACE_MSR] = {100, read_msr},
	[TRACE_FIO] = {1000, read_fio},
	[TRACE_BLKPARSE] = {1, trace_blkparse},
};
