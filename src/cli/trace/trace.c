/* SPDX-License-Identifier: BSD-3-Clause */
/* trace: `weir trace`, describe, convert and record traces. */
#include "cli/trace/trace.h"
#include "cli/common/files.h"
#include "cli/view/progress.h"
#include "cli/common/remote.h"
#include <weir/units.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FORMAT,
	TO,
	SKIP_BAD,
	DROP,
	SPEED,
	FROM,
	UNTIL,
	JSON,
	PROFILE,
	WORK,
	LINK,
	OVERHEAD,
	PAIRS,
	PERCENTILE,
	OUT,
	REQUESTS,
	DURATION,
	SOCKET,
	URL,
	TOKEN,
	TLS,
	N_OPTIONS
};
static const struct opt options[] = {
	[FORMAT] = {"format", 'f', "FORMAT", "read as FORMAT (auto: detect)"},
	[TO] = {"to", 't', "FORMAT", "convert: write FORMAT (weir)"},
	[SKIP_BAD] = {"skip-bad", 0, NULL,
		"skip and count bad lines instead of refusing the trace"},
	[DROP] = {"drop-unsupported", 0, NULL,
		"convert: leave out IOs and fields that the format cannot hold"},
	[SPEED] = {"speed", 0, "X", "convert: X times as fast (1)"},
	[FROM] = {"from", 0, "TIME", "convert: only IOs at TIME or later"},
	[UNTIL] = {"until", 0, "TIME", "convert: only IOs before TIME"},
	[JSON] = {"json", 0, NULL, "info, analyze: JSON instead of a table"},
	[PROFILE] = {"profile", 0, "FILE", "analyze: work as in a profile of the device"},
	[WORK] = {"work", 0, "WORK", "analyze: of a request and of its bytes, as 100us+1GB/s"},
	[LINK] = {"link", 0, "RATE", "analyze: bytes in each direction of a link of RATE, too"},
	[OVERHEAD] = {"overhead", 0, "SIZE",
		"analyze: on the link with each request and reply (128)"},
	[PAIRS] = {"pairs", 'k', "N", "analyze: at most N token buckets (4)"},
	[PERCENTILE] = {"percentile", 0, "P",
		"analyze: warn if the trace is too short for P (99.9)"},
	[OUT] = {"out", 'o', "DIR", "analyze: draw the borders into DIR"},
	[REQUESTS] = {"requests", 'n', "N", "record: at most N requests (100M)"},
	[DURATION] = {"duration", 'd', "TIME", "record: for TIME; else until interrupted"},
	REMOTE_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"info", "convert", "record", "analyze", NULL};

/* The subverbs that accept each option, as bits. */
enum { INFO = 1, CONVERT = 2, RECORD = 4, ANALYZE = 8 };
static const unsigned goes_with[N_OPTIONS] = {
	[FORMAT] = INFO | CONVERT | ANALYZE,
	[TO] = CONVERT,
	[SKIP_BAD] = INFO | CONVERT | ANALYZE,
	[DROP] = CONVERT,
	[SPEED] = CONVERT,
	[FROM] = CONVERT,
	[UNTIL] = CONVERT,
	[JSON] = INFO | ANALYZE,
	[PROFILE] = ANALYZE,
	[WORK] = ANALYZE,
	[LINK] = ANALYZE,
	[OVERHEAD] = ANALYZE,
	[PAIRS] = ANALYZE,
	[PERCENTILE] = ANALYZE,
	[OUT] = ANALYZE,
	[REQUESTS] = RECORD,
	[DURATION] = RECORD,
	[SOCKET] = RECORD,
	[URL] = RECORD,
	[TOKEN] = RECORD,
	[TLS] = RECORD,
};

/* ---- reading */

static void tick_progress(void *user, size_t done)
{
	progress_tick(user, (double)done);
}

int trace_load(
	const char *path, const struct trace_request *q, struct trace *ret, struct weir_err *err)
{
	char *text = NULL;
	size_t len = 0;
	struct progress p;
	int code = files_read_trace(path, &text, &len, err);
	if (code < 0)
		return code;
	progress_start(&p, path, (double)len);
	code = trace_read_watch(text, len, strcmp(path, "-") == 0 ? "standard input" : path,
		q->format, q->skip_bad, tick_progress, &p, ret, err);
	progress_end(&p);
	free(text);
	return code;
}

/* ---- the command line */

char *trace_formats(bool written, const char *between, char *buf, size_t len)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int f = TRACE_AUTO; f < TRACE_FORMATS && n < len; f++)
		if (!written || trace_can_write((enum trace_format)f))
			n += (size_t)snprintf(
				buf + n, len - n, "%s%s", n ? between : "", trace_format_names[f]);
	return buf;
}

int trace_parse_format(
	const struct verb *v, const char *option, const char *word, enum trace_format *ret)
{
	char formats[TRACE_FORMATS_ROOM];
	bool written = strcmp(option, "to") == 0;

	if (!word)
		return 0;
	trace_formats(written, ", ", formats, sizeof(formats));
	for (int f = written ? TRACE_WEIR : TRACE_AUTO; f < TRACE_FORMATS; f++) {
		if (strcmp(word, trace_format_names[f]) != 0)
			continue;
		*ret = (enum trace_format)f;
		if (written && !trace_can_write(*ret))
			return opts_fail(v, "--to %s: %s can only be read; writable are %s", word,
				word, formats);
		return 0;
	}
	const char *near = weir_err_near(word, trace_format_names);
	return opts_fail(v, "--%s: no format '%s'%s%s%s; valid are %s", option, word,
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", formats);
}

static int parse_time(int option, const char *word, weir_time *ret)
{
	struct weir_err err;
	if (word && weir_units_time(word, ret, &err) != 0)
		return opts_fail(&verb_trace, "--%s: %s", options[option].name, err.text);
	return 0;
}

static int parse_speed(const char *word, double *ret)
{
	char *end;
	if (!word)
		return 0;
	double speed = strtod(word, &end);
	if (end == word || *end || !isfinite(speed) || speed <= 0)
		return opts_fail(&verb_trace, "--speed: '%s' is not a number over 0", word);
	*ret = speed;
	return 0;
}

static int parse_request(const char *const *values, struct trace_request *q)
{
	*q = (struct trace_request){
		.to = TRACE_WEIR,
		.speed = 1,
		.until = WEIR_NEVER,
		.skip_bad = values[SKIP_BAD],
		.drop_unsupported = values[DROP],
		.json = values[JSON],
		.stages = {values[PROFILE], values[WORK], values[LINK], values[OVERHEAD],
			values[PAIRS], values[PERCENTILE], values[OUT]},
	};
	int status = trace_parse_format(&verb_trace, "format", values[FORMAT], &q->format);
	if (!status)
		status = trace_parse_format(&verb_trace, "to", values[TO], &q->to);
	if (!status)
		status = parse_speed(values[SPEED], &q->speed);
	if (!status)
		status = parse_time(FROM, values[FROM], &q->from);
	if (!status)
		status = parse_time(UNTIL, values[UNTIL], &q->until);
	if (!status && q->from >= q->until)
		status = opts_fail(&verb_trace, "--from %s is not before --until %s",
			values[FROM] ? values[FROM] : "0s", values[UNTIL]);
	return status;
}

static int unknown_subverb(int operands, const char *word)
{
	if (operands == 0)
		return opts_fail(&verb_trace,
			"needs info, convert, record or analyze; see weir trace --help");
	const char *near = weir_err_near(word, subverbs);
	return opts_fail(&verb_trace, "no '%s'%s%s%s; use info, convert, record or analyze", word,
		near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* Return 0, or 2 with a message about the first option that does not belong to the subverb. */
static int check_options(const char *const *values, unsigned which)
{
	char names[64] = "";

	for (int i = 0; i < N_OPTIONS; i++) {
		if (!values[i] || goes_with[i] & which)
			continue;
		for (int k = 0; subverbs[k]; k++)
			if (goes_with[i] & 1u << k)
				snprintf(names + strlen(names), sizeof(names) - strlen(names),
					"%s%s", *names ? ", " : "", subverbs[k]);
		return opts_fail(&verb_trace, "--%s is for %s", options[i].name, names);
	}
	return 0;
}

static int trace_main(const char *const *values, char **operands, int n)
{
	struct trace_request q;
	unsigned which = 0;
	int status;

	for (int i = 0; n > 0 && subverbs[i]; i++)
		if (strcmp(operands[0], subverbs[i]) == 0)
			which = 1u << i;
	if (!which)
		return unknown_subverb(n, operands[0]);
	status = check_options(values, which);
	if (status)
		return status;
	if (which == RECORD)
		return n == 2 ? trace_record_run(operands[1], values[REQUESTS], values[DURATION],
					values + SOCKET)
			      : opts_fail(&verb_trace, "record needs one FILE to write");
	status = parse_request(values, &q);
	if (status)
		return status;
	if (which == INFO)
		return n > 1 ? trace_info(&q, operands + 1, n - 1)
			     : opts_fail(&verb_trace, "info needs traces: files, folders or -");
	if (which == ANALYZE)
		return n > 1 ? trace_analyze(&q, operands + 1, n - 1)
			     : opts_fail(&verb_trace, "analyze needs traces: files, folders or -");
	if (n != 3)
		return opts_fail(&verb_trace,
			"convert needs two names, IN and OUT (- for standard input or output)");
	return trace_convert(&q, operands[1], operands[2]);
}

const struct verb verb_trace = {
	.name = "trace",
	.summary = "describe recorded traces, convert one, or record one",
	.usage = "info [OPTION]... FILE|FOLDER...\n       weir trace convert [OPTION]... IN OUT\n"
		 "       weir trace record [OPTION]... FILE\n"
		 "       weir trace analyze [OPTION]... FILE|FOLDER...",
	.options = options,
	.subverbs = subverbs,
	.run = trace_main,
};
