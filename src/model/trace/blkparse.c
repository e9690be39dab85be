/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blkparse: a line of blkparse's default output.
 *
 *   8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
 *   device cpu sequence   seconds       pid  action flags sector + sectors [process]
 *
 * SOURCE  blkparse(1); the flags are the kernel's: F (flush before) or not, then the kind (R read,
 *         W write, D discard, F flush, N nothing), then F (through the cache), A, S, M … in any order.
 * METHOD  Q (queued) events are arrivals. For a trace without any (blktrace -a issue) the D (issued)
 *         events are used, else the C (completed) ones: ranks 3, 2, 1. All other actions, the tables
 *         at the end, and SCSI commands without sectors are valid, but no IO. A write that flushes
 *         before (FW) is a write; without sectors it is a flush.
 */
#include "model/trace/line.h"
#include <string.h>

#define MAX_SECONDS (UINT64_C(9223372036)) /* INT64_MAX ns */

/* Parse digits up to `stop`, and skip it. */
static bool take_part(
	struct trace_line *l, const char *field, char stop, uint64_t max, uint64_t *ret)
{
	const char *p = l->p;
	uint64_t v = 0;
	for (; p < l->end && *p >= '0' && *p <= '9'; p++)
		v = v > UINT64_MAX / 10 - 1 ? UINT64_MAX / 10 : v * 10 + (uint64_t)(*p - '0');
	if (p == l->p || p == l->end || *p != stop)
		return trace_line_alien(l, "no %s", field);
	if (v > max)
		trace_line_bad(l, "%s: over %llu", field, (unsigned long long)max);
	*ret = v > max ? 0 : v;
	l->p = p + 1;
	return true;
}

static bool take_time(struct trace_line *l)
{
	uint64_t seconds = 0, fraction = 0;
	if (!take_part(l, "seconds", '.', MAX_SECONDS - 1, &seconds))
		return false;
	const char *start = l->p;
	if (!trace_take_number(l, "nanoseconds", UINT64_MAX, &fraction))
		return false;
	ptrdiff_t digits = l->taken - start;
	if (digits > 9)
		return trace_line_alien(l, "the time has more than nine decimals");
	for (; digits < 9; digits++)
		fraction *= 10;
	l->tick = seconds * UINT64_C(1000000000) + fraction;
	return true;
}

/* Return true for an action of blkparse(1); the list is separated by blanks. */
static bool is_known_action(const char *word, size_t len)
{
	static const char known[] = " A B C D F G I M P Q R S T U UT X m ";
	char sought[6] = " ";
	if (len < 1 || len > 2 || memchr(word, 0, len))
		return false;
	memcpy(sought + 1, word, len);
	sought[len + 1] = ' ';
	return strstr(known, sought) != NULL;
}

struct flags {
	int op;     /* enum trace_op; -1: no IO; -2: unknown */
	bool flush; /* first, or alone */
};

static struct flags parse_flags(const char *word, size_t len)
{
	struct flags f = {-2, false};
	for (size_t i = 0; i < len; i++)
		if (word[i] < 'A' || word[i] > 'Z')
			return f;
	f.flush = word[0] == 'F';
	if (f.flush && len > 1)
		word++, len--;
	switch (word[0]) {
	case 'R':
		f.op = TRACE_READ;
		break;
	case 'W':
		f.op = TRACE_WRITE;
		break;
	case 'D':
		f.op = TRACE_TRIM;
		break;
	case 'F':
		f.op = TRACE_FLUSH;
		break;
	case 'N':
		f.op = f.flush ? TRACE_FLUSH : -1;
		break;
	case 'Z': /* zones: ZA appends, the others only manage */
		f.op = len > 1 && word[1] == 'A' ? TRACE_WRITE : -1;
		break;
	}
	return f;
}

/* Parse the rest after the flags: "sector + sectors", or anything else. */
static enum trace_verdict read_extent(struct trace_line *l, struct flags f)
{
	uint64_t sector = 0, sectors = 0;
	bool extent = false;
	if (l->p < l->end && ((*l->p >= '0' && *l->p <= '9') || *l->p == '-')) {
		if (!trace_take_number(l, "sector", UINT64_MAX, &sector))
			return l->verdict;
		extent = l->end - l->p >= 2 && l->p[0] == '+' && l->p[1] == ' ';
	}
	if (extent) {
		l->p += 2;
		if (!trace_take_number(l, "sectors", UINT64_MAX, &sectors))
			return l->verdict;
	} else if (l->p < l->end && *l->p == '(') {
		return TRACE_LINE_OTHER; /* a SCSI command: "36 (12 00 00 …)" */
	}
	if (f.op == TRACE_FLUSH || (f.flush && sectors == 0 && l->verdict == TRACE_LINE_RECORD))
		return trace_line_extent(l, TRACE_FLUSH, 0, 0);
	if (!extent && l->rank == 1)
		return TRACE_LINE_OTHER; /* the end of a flush also appears as an empty write */
	if (!extent)
		trace_line_bad(l, "no 'sector + sectors' after the flags");
	return trace_line_sectors(l, (uint8_t)f.op, sector, sectors);
}

/* Parse a line that is no event: "Input file … added", or the tables at the end, each under a
 * heading such as "CPU0 (sda):" or "fio (4711)". */
static enum trace_verdict read_words(struct trace_line *l, struct trace_memory *m)
{
	if (trace_line_starts(l, "Input file "))
		return TRACE_LINE_OTHER;
	const char *last = l->end - (l->end[-1] == ':');
	if (m->blkparse_events && last > l->p && last[-1] == ')')
		m->blkparse_summary = true;
	if (m->blkparse_summary)
		return TRACE_LINE_OTHER;
	trace_line_alien(l, "not an event");
	return l->verdict;
}

enum trace_verdict trace_blkparse(struct trace_line *l, struct trace_memory *m)
{
	uint64_t skipped;
	const char *action, *word;
	size_t action_len, len;
	if (*l->p < '0' || *l->p > '9')
		return read_words(l, m);
	l->key = l->p;
	if (!take_part(l, "device", ',', UINT32_MAX, &skipped) ||
		!trace_take_number(l, "device", UINT32_MAX, &skipped))
		return l->verdict;
	l->key_len = (size_t)(l->taken - l->key);
	if (!trace_take_number(l, "cpu", UINT64_MAX, &skipped) ||
		!trace_take_number(l, "sequence", UINT64_MAX, &skipped) || !take_time(l) ||
		!trace_take_number(l, "pid", UINT64_MAX, &skipped) ||
		!trace_take_word(l, "action", &action, &action_len))
		return l->verdict;
	if (!is_known_action(action, action_len)) {
		struct trace_shown buf;
		trace_line_alien(l, "action '%s' is not known", trace_show(action, l->end, &buf));
		return l->verdict;
	}
	m->blkparse_events = true;
	if (action_len != 1 || !strchr("QDC", *action))
		return l->verdict == TRACE_LINE_RECORD ? TRACE_LINE_OTHER : l->verdict;
	l->rank = *action == 'Q' ? 3 : *action == 'D' ? 2 : 1;
	if (!trace_take_word(l, "flags", &word, &len))
		return l->verdict;
	struct flags f = parse_flags(word, len);
	if (f.op == -1)
		return l->verdict == TRACE_LINE_RECORD ? TRACE_LINE_OTHER : l->verdict;
	if (f.op == -2) {
		struct trace_shown buf;
		trace_line_alien(l, "flags '%s' are not known", trace_show(word, l->end, &buf));
		return l->verdict;
	}
	l->has_offset = true;
	return read_extent(l, f);
}
