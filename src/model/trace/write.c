/* SPDX-License-Identifier: BSD-3-Clause */
/* trace-write: write a record as a line of a format, and tell which properties the format loses. */
#include "model/trace/line.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
	bool written;
	bool sectors, offsets, streams, flush_trim;
} writers[TRACE_FORMATS] = {
	[TRACE_WEIR] = {.written = true, .offsets = true, .streams = true, .flush_trim = true},
	[TRACE_COMPACTOR] = {.written = true},
	[TRACE_MQSIM] = {.written = true, .sectors = true, .offsets = true, .streams = true},
	[TRACE_MSR] = {.written = true, .offsets = true, .streams = true},
	[TRACE_FIO] = {.written = true, .offsets = true, .streams = true, .flush_trim = true},
};

bool trace_can_write(enum trace_format format)
{
	return format > TRACE_AUTO && format < TRACE_FORMATS && writers[format].written;
}

unsigned trace_loss(const struct trace *t, size_t index, enum trace_format format)
{
	const struct trace_record *r = &t->records[index];
	unsigned loss = 0;
	if (r->op >= TRACE_FLUSH && !writers[format].flush_trim)
		loss |= TRACE_LOSS_OP;
	if (writers[format].sectors && (r->offset % 512 != 0 || r->bytes % 512 != 0))
		loss |= TRACE_LOSS_SECTORS;
	if (t->has_offsets && r->op != TRACE_FLUSH && !writers[format].offsets)
		loss |= TRACE_LOSS_OFFSET;
	if (r->stream != 0 && !writers[format].streams)
		loss |= TRACE_LOSS_STREAM;
	if (r->at % trace_readers[format].tick_ns != 0)
		loss |= TRACE_LOSS_TIME;
	return loss;
}

/* Output into a caller's buffer; `full` replaces an error check at every step. */
struct out {
	char *buf;
	size_t len, used;
	bool full;
};

__attribute__((format(printf, 2, 3))) static void put_text(struct out *o, const char *fmt, ...)
{
	va_list ap;
	if (o->full)
		return;
	va_start(ap, fmt);
	int n = vsnprintf(o->buf + o->used, o->len - o->used, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= o->len - o->used) /* snprintf needs room for its NUL */
		o->full = true;
	else
		o->used += (size_t)n;
}

static void put_header(struct out *o, const struct trace *t, enum trace_format format)
{
	if (format == TRACE_WEIR)
		put_text(o, "%s1\n# arrival_ns op offset bytes stream\n", trace_weir_header);
	if (format != TRACE_FIO)
		return;
	put_text(o, "fio version 3 iolog\n");
	unsigned streams = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->records[i].stream >= streams)
			streams = t->records[i].stream + 1u;
	for (unsigned s = 0; s < streams && !o->full; s++)
		put_text(o, "0 stream%u add\n0 stream%u open\n", s, s);
}

static void put_weir(struct out *o, const struct trace *t, const struct trace_record *r)
{
	long long at = (long long)r->at;
	char op = "RWFT"[r->op & 3];
	if (t->has_offsets || r->op == TRACE_FLUSH)
		put_text(o, "%lld %c %llu %u %u\n", at, op, (unsigned long long)r->offset, r->bytes,
			r->stream);
	else
		put_text(o, "%lld %c - %u %u\n", at, op, r->bytes, r->stream);
}

static void put_record(struct out *o, const struct trace *t, const struct trace_record *r,
	enum trace_format format)
{
	static const char *const fio[] = {"read", "write", "sync", "trim"};
	unsigned long long offset = r->offset;
	unsigned long long tick = (unsigned long long)r->at / trace_readers[format].tick_ns;
	bool read = r->op == TRACE_READ;
	switch (format) {
	case TRACE_COMPACTOR:
		put_text(o, "%llu,0x%08x,%s\n", tick, r->bytes, read ? "DiskRead" : "DiskWrite");
		break;
	case TRACE_MQSIM:
		put_text(o, "%llu %u %llu %u %d\n", tick, r->stream, offset / 512, r->bytes / 512,
			read);
		break;
	case TRACE_MSR:
		put_text(o, "%llu,weir,%u,%s,%llu,%u,0\n", tick, r->stream, read ? "Read" : "Write",
			offset, r->bytes);
		break;
	case TRACE_FIO:
		put_text(o, "%llu stream%u %s %llu %u\n", tick, r->stream, fio[r->op & 3], offset,
			r->bytes);
		break;
	default:
		put_weir(o, t, r);
		break;
	}
}

int trace_format_record(
	const struct trace *t, size_t index, enum trace_format format, char *buf, size_t len)
{
	if (!trace_can_write(format) || index >= t->n)
		return -EINVAL;
	if (trace_loss(t, index, format) & (TRACE_LOSS_OP | TRACE_LOSS_SECTORS))
		return -EOPNOTSUPP;
	struct out o = {buf, len, 0, len == 0};
	if (index == 0)
		put_header(&o, t, format);
	put_record(&o, t, &t->records[index], format);
	return o.full ? -ENOSPC : (int)o.used;
}
