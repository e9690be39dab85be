/* SPDX-License-Identifier: BSD-3-Clause */
/* Read any text as a trace, with the format and the treatment of bad lines chosen by its first
 * byte: it is refused with a message, or its requests are in order and stay the same after
 * writing them in our own format and reading them back. */
#include "model/trace/trace.h"
#include "fuzz.h"
#include <string.h>

static void read_back(const struct trace *t)
{
	struct weir_err err = {""};
	struct trace again;
	size_t len = 0, room = 256 + t->n * 128;
	char *text = malloc(room);

	MUST(text);
	for (size_t i = 0; i < t->n; i++) {
		int n = trace_format_record(t, i, TRACE_WEIR, text + len, room - len);

		MUST(n > 0);
		len += (size_t)n;
	}
	if (trace_read(text, len, "again", TRACE_WEIR, false, &again, &err) < 0) {
		fprintf(stderr, "%s\n%.*s", err.text, (int)len, text);
		abort();
	}
	MUST(again.n == t->n);
	for (size_t i = 0; i < t->n; i++) {
		const struct trace_record *a = &t->records[i], *b = &again.records[i];

		MUST(a->at == b->at && a->offset == b->offset && a->bytes == b->bytes);
		MUST(a->op == b->op && a->stream == b->stream);
	}
	trace_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct weir_err err = {""};
	struct trace_summary summary;
	struct trace t;

	if (len == 0)
		return 0;
	if (trace_read((const char *)data + 1, len - 1, "fuzz", data[0] % TRACE_FORMATS,
		    data[0] & 0x80, &t, &err) < 0) {
		MUST(err.text[0]);
		return 0;
	}
	MUST(t.n > 0 && t.records[0].at == 0);
	for (size_t i = 1; i < t.n; i++)
		MUST(t.records[i - 1].at <= t.records[i].at);
	trace_summarise(&t, &summary);
	MUST(summary.n == t.n && summary.span >= 0);
	read_back(&t);
	trace_free(&t);
	return 0;
}
