/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace: read text into records (lines, streams, order), and detect the format.
 *
 * METHOD  One pass: each line goes to the format's reader (formats.c), its stream's name to a
 *         small hash table that points into the text. Arrivals stay in the format's own ticks until
 *         the first is known (MSR's, in ns since 1601, would not fit 63 bits). An unsorted text is
 *         merge-sorted, in O(n) if it was nearly sorted.
 */
#include "base/hash.h"
#include "model/trace/line.h"
#include "base/array.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STREAMS  65536 /* trace_record.stream has 16 bits */
#define WATCH_LINES  8192  /* lines between two calls of `watch`: about a millisecond */
#define DETECT_HITS  64    /* lines that match some format before the decision */
#define DETECT_LINES 4096  /* most lines examined for the decision */

const char *const trace_format_names[TRACE_FORMATS + 1] = {
	"auto", "weir", "compactor", "mqsim", "msr", "fio", "blkparse", NULL};
#define FORMATS_IN_WORDS "weir, compactor, mqsim, msr, fio or blkparse"

/* ---- lines */

struct text {
	const char *p, *end;
	size_t line; /* of the last line returned, from 1 */
};

static struct text text_start(const char *text, size_t len)
{
	static const char bom[] = "\xef\xbb\xbf";
	size_t skip = len >= 3 && memcmp(text, bom, 3) == 0 ? 3 : 0;
	return (struct text){text + skip, text + len, 0};
}

/* Return the next line that is neither blank nor a comment, trimmed. */
static bool text_next(struct text *t, struct trace_line *l)
{
	while (t->p < t->end) {
		const char *p = t->p, *q = memchr(p, '\n', (size_t)(t->end - p));
		if (!q)
			q = t->end;
		t->p = q < t->end ? q + 1 : q;
		t->line++;
		while (q > p && (q[-1] == '\r' || q[-1] == ' ' || q[-1] == '\t'))
			q--;
		while (p < q && (*p == ' ' || *p == '\t'))
			p++;
		*l = (struct trace_line){.p = p, .end = q, .why = ""};
		if (p < q && (*p != '#' || trace_line_starts(l, trace_weir_header)))
			return true;
	}
	return false;
}

/* ---- streams: names to numbers, in order of appearance */

struct stream {
	const char *key; /* NULL: free */
	uint32_t len;
	uint32_t id;
};

struct streams {
	struct stream *slots;
	size_t room, n;     /* room: a power of two */
	struct stream last; /* most lines have the stream of the line before */
};

static size_t stream_hash(const char *key, size_t len)
{
	uint64_t h = hash_more(HASH_BEGIN, key, len);

	return (size_t)(h ^ h >> 32);
}

static struct stream *streams_slot(const struct streams *s, const char *key, size_t len)
{
	size_t i = stream_hash(key, len) & (s->room - 1);
	while (s->slots[i].key &&
		(s->slots[i].len != len || memcmp(s->slots[i].key, key, len) != 0))
		i = (i + 1) & (s->room - 1);
	return &s->slots[i];
}

static int streams_grow(struct streams *s)
{
	struct streams bigger = {.room = s->room ? 2 * s->room : 64, .n = s->n};
	bigger.slots = calloc(bigger.room, sizeof *bigger.slots);
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < s->room; i++)
		if (s->slots[i].key)
			*streams_slot(&bigger, s->slots[i].key, s->slots[i].len) = s->slots[i];
	free(s->slots);
	*s = bigger;
	return 0;
}

/* Return the stream's number, -ENOMEM, or -E2BIG if there are too many. */
static int streams_find(struct streams *s, const char *key, size_t len)
{
	if (!key || len > UINT32_MAX)
		key = "", len = 0;
	if (s->last.key && s->last.len == len && memcmp(s->last.key, key, len) == 0)
		return (int)s->last.id;
	if (2 * s->n >= s->room && streams_grow(s) != 0)
		return -ENOMEM;
	struct stream *slot = streams_slot(s, key, len);
	if (!slot->key) {
		if (s->n == MAX_STREAMS)
			return -E2BIG;
		*slot = (struct stream){key, (uint32_t)len, (uint32_t)s->n++};
	}
	s->last = *slot;
	return (int)slot->id;
}

static void streams_clear(struct streams *s)
{
	free(s->slots);
	*s = (struct streams){0};
}

/* ---- records */

struct reading {
	struct trace t;
	size_t room;
	struct streams streams;
	uint8_t rank;
	bool skip_bad;
};

static int push_record(struct reading *r, const struct trace_record *record)
{
	if (array_grow(&r->t.records, &r->room, r->t.n + 1) < 0)
		return -ENOMEM;
	if (r->t.n > 0 && record->at < r->t.records[r->t.n - 1].at)
		r->t.was_sorted = false;
	r->t.records[r->t.n++] = *record;
	return 0;
}

/* Add a record. Return 0, -ENOMEM, or -E2BIG with the line's `why`. */
static int add_record(struct reading *r, struct trace_line *l)
{
	if (l->rank < r->rank)
		return 0;
	if (l->rank > r->rank) {
		r->rank = l->rank;
		r->t.n = 0;
		r->t.has_offsets = false;
		r->t.was_sorted = true;
		streams_clear(&r->streams);
	}
	int stream = streams_find(&r->streams, l->key, l->key_len);
	if (stream == -E2BIG)
		trace_line_bad(l, "more than %d streams", MAX_STREAMS);
	if (stream < 0)
		return stream;
	r->t.has_offsets |= l->has_offset && l->op != TRACE_FLUSH;
	return push_record(r, &(struct trace_record){(weir_time)l->tick, l->offset, l->bytes,
				      (uint16_t)stream, l->op});
}

static int handle_bad(struct reading *r, const struct trace_line *l, const char *name, size_t line,
	struct weir_err *err)
{
	struct weir_place at = {name, (unsigned)line, 0};
	if (!r->skip_bad)
		return weir_err_at(err, -EINVAL, at, "%s", l->why);
	if (r->t.bad_lines++ == 0)
		snprintf(r->t.first_bad, sizeof r->t.first_bad, "line %zu: %s", line, l->why);
	return 0;
}

static int read_lines(struct reading *r, struct text text, const char *name, trace_watch watch,
	void *user, struct weir_err *err)
{
	const struct trace_reader *reader = &trace_readers[r->t.format];
	const char *start = text.p;
	struct trace_memory memory = {0};
	struct trace_line l;
	for (size_t lines = 1; text_next(&text, &l); lines++) {
		enum trace_verdict v = reader->line(&l, &memory);
		memory.seen = true;
		int bad = 0;
		if (v == TRACE_LINE_RECORD)
			bad = add_record(r, &l);
		if (bad == -ENOMEM)
			return weir_err_set(err, bad, "%s: out of memory", name);
		if (bad < 0 || v == TRACE_LINE_BAD || v == TRACE_LINE_ALIEN)
			bad = handle_bad(r, &l, name, text.line, err);
		if (bad < 0)
			return bad;
		if (watch && lines % WATCH_LINES == 0)
			watch(user, (size_t)(text.p - start));
	}
	if (r->t.n > 0)
		return 0;
	if (r->t.bad_lines > 0)
		return weir_err_set(err, -EINVAL, "%s: no good line; %zu bad, the first: %s", name,
			r->t.bad_lines, r->t.first_bad);
	return weir_err_set(err, -EINVAL, "%s: contains no IO", name);
}

/* Sort stably; halves already in order cost one comparison. `spare` holds n / 2. */
static void sort_records(struct trace_record *a, size_t n, struct trace_record *spare)
{
	size_t half = n / 2, i = 0, j = half, k = 0;
	if (n < 2)
		return;
	sort_records(a, half, spare);
	sort_records(a + half, n - half, spare);
	if (a[half - 1].at <= a[half].at)
		return;
	memcpy(spare, a, half * sizeof *a);
	while (i < half && j < n)
		a[k++] = a[j].at < spare[i].at ? a[j++] : spare[i++];
	memcpy(a + k, spare + i, (half - i) * sizeof *a);
}

/* Number the streams in order of appearance again, after sorting. */
static int renumber(struct trace *t)
{
	uint32_t *number = calloc(MAX_STREAMS, sizeof *number), next = 0; /* 0: none yet */
	if (!number)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++) {
		struct trace_record *r = &t->records[i];
		if (number[r->stream] == 0)
			number[r->stream] = ++next;
		r->stream = (uint16_t)(number[r->stream] - 1);
	}
	free(number);
	return 0;
}

/* Sort the records, and convert their ticks to ns since the first. */
static int sort_and_scale(struct trace *t, const char *name, struct weir_err *err)
{
	int64_t tick_ns = trace_readers[t->format].tick_ns;
	if (!t->was_sorted) {
		struct trace_record *spare = malloc((t->n / 2 + 1) * sizeof *spare);
		if (spare)
			sort_records(t->records, t->n, spare);
		free(spare);
		if (!spare || renumber(t) != 0)
			return weir_err_set(err, -ENOMEM, "%s: out of memory", name);
	}
	int64_t first = t->records[0].at; /* ticks are not negative: no overflow below */
	if (t->records[t->n - 1].at - first > INT64_MAX / tick_ns)
		return weir_err_set(err, -EINVAL,
			"%s: the first and the last arrival are more than 292 years apart", name);
	t->start = first <= INT64_MAX / tick_ns ? first * tick_ns : 0;
	for (size_t i = 0; i < t->n; i++)
		t->records[i].at = (t->records[i].at - first) * tick_ns;
	struct trace_record *fit = realloc(t->records, t->n * sizeof *fit);
	if (fit)
		t->records = fit;
	return 0;
}

/* ---- format detection */

/* Refuse a file that starts with the magic of a known binary format. */
static int refuse_binary(const char *text, size_t len, const char *name, struct weir_err *err)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *what;
	} kinds[] = {
		{"\x1f\x8b", 2, "gzip-compressed: unpack it first"},
		{"\x28\xb5\x2f\xfd", 4, "zstd-compressed: unpack it first"},
		{"\xfd"
		 "7zXZ",
			5, "xz-compressed: unpack it first"},
		{"BZh", 3, "bzip2-compressed: unpack it first"},
		{"PK\x03\x04", 4, "a zip archive: unpack it first"},
		{"\x07tae", 4, "blktrace's binary output: run blkparse over it first"},
		{"\xff\xfe", 2, "UTF-16 text: make it UTF-8 first"},
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (len >= kinds[i].len && memcmp(text, kinds[i].magic, kinds[i].len) == 0)
			return weir_err_set(err, -EINVAL, "%s: %s", name, kinds[i].what);
	return 0;
}

static int detect_failed(const char *text, size_t len, const char *name, struct weir_err *err)
{
	struct text t = text_start(text, len);
	struct trace_line l;
	char first[41];
	size_t n = 0;
	if (memchr(text, 0, len < 4096 ? len : 4096))
		return weir_err_set(err, -EINVAL, "%s: binary data, not a trace in text", name);
	if (!text_next(&t, &l))
		return weir_err_set(
			err, -EINVAL, "%s: empty: all lines are blank or comments", name);
	for (; n < sizeof first - 1 && l.p + n < l.end; n++)
		first[n] = l.p[n] >= 0x20 && l.p[n] < 0x7f ? l.p[n] : '?';
	first[n] = '\0';
	return weir_err_set(err, -ENOMSG,
		"%s: not a trace of a known format (" FORMATS_IN_WORDS "); it starts with '%s'",
		name, first);
}

/* Find the one format that the first lines match. */
static int detect_format(const char *text, size_t len, const char *name, enum trace_format *ret,
	struct weir_err *err)
{
	struct text t = text_start(text, len);
	struct trace_memory memory[TRACE_FORMATS] = {0};
	struct trace_line line;
	unsigned hits[TRACE_FORMATS] = {0}, any = 0, fits = 0;
	for (unsigned n = 0; n < DETECT_LINES && any < DETECT_HITS && text_next(&t, &line); n++) {
		bool hit = false;
		for (int f = TRACE_AUTO + 1; f < TRACE_FORMATS; f++) {
			struct trace_line l = line;
			if (trace_readers[f].line(&l, &memory[f]) != TRACE_LINE_ALIEN) {
				hits[f]++;
				hit = true;
			}
			memory[f].seen = true;
		}
		any += hit;
	}
	char list[120] = "";
	for (int f = TRACE_AUTO + 1; f < TRACE_FORMATS; f++) {
		if (hits[f] == 0)
			continue;
		size_t used = strlen(list);
		snprintf(list + used, sizeof list - used, "%s%s (%u of them)", fits++ ? ", " : "",
			trace_format_names[f], hits[f]);
		*ret = (enum trace_format)f;
	}
	if (fits > 1)
		return weir_err_set(err, -EINVAL,
			"%s: ambiguous: its lines look like %s; choose one: --format "
			"with " FORMATS_IN_WORDS,
			name, list);
	return fits == 1 ? 0 : detect_failed(text, len, name, err);
}

/* ---- */

int trace_read_watch(const char *text, size_t len, const char *name, enum trace_format format,
	bool skip_bad, trace_watch watch, void *user, struct trace *ret, struct weir_err *err)
{
	struct reading r = {.t = {.was_sorted = true}, .skip_bad = skip_bad};
	int code = refuse_binary(text, len, name, err);
	if (code == 0 && format == TRACE_AUTO)
		code = detect_format(text, len, name, &format, err);
	if (code < 0)
		return code;
	r.t.format = format;
	code = read_lines(&r, text_start(text, len), name, watch, user, err);
	streams_clear(&r.streams);
	if (code == 0)
		code = sort_and_scale(&r.t, name, err);
	if (code < 0) {
		free(r.t.records);
		return code;
	}
	*ret = r.t;
	return 0;
}

int trace_read(const char *text, size_t len, const char *name, enum trace_format format,
	bool skip_bad, struct trace *ret, struct weir_err *err)
{
	return trace_read_watch(text, len, name, format, skip_bad, NULL, NULL, ret, err);
}

void trace_free(struct trace *t)
{
	free(t->records);
	*t = (struct trace){0};
}
