/* SPDX-License-Identifier: BSD-3-Clause */
/* replay: `weir replay`, send a recorded trace to an NBD server with its timing. */
#include <weir/units.h>
#include "cli/common/files.h"
#include "cli/load-report.h"
#include "cli/trace/trace.h"
#include <stdlib.h>

extern const struct verb verb_replay;

enum {
	FORMAT,
	SKIP_BAD,
	SPEED,
	SCALE_OFFSETS,
	FROM,
	UNTIL,
	KEYS, /* from here to SERIES: keys of load.h */
	CONNECTIONS = KEYS,
	DEPTH,
	WARM_UP,
	SEED,
	STRUCTURED,
	LOAD_REPORT_REACH,
	LOAD_REPORT_SAY,
	N_OPTIONS
};
static const struct opt options[] = {
	[FORMAT] = {"format", 'f', "FORMAT", "format of the trace, if it is not detected"},
	[SKIP_BAD] = {"skip-bad", 0, NULL, "skip and count bad lines"},
	[SPEED] = {"speed", 0, "X", "X times as fast as it was recorded (1)"},
	[SCALE_OFFSETS] = {"scale-offsets", 0, NULL, "stretch or shrink offsets to fit the export"},
	[FROM] = {"from", 0, "TIME", "only requests from this time of the trace on"},
	[UNTIL] = {"until", 0, "TIME", "only requests before this time of the trace"},
	[CONNECTIONS] = {"connections", 'c', "N", "number of connections (1)"},
	[DEPTH] = {"depth", 'd', "N", "most requests in flight per connection (1024)"},
	[SEED] = {"seed", 0, "N", "seed of the offsets, if the trace has none (1)"},
	LOAD_REPORT_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

static int read_speed(const char *text, double *ret)
{
	struct weir_err err;

	if (text && weir_units_count(text, ret, &err) < 0)
		return opts_fail(&verb_replay, "--speed: %s", err.text);
	return *ret > 0 ? -1 : opts_fail(&verb_replay, "--speed: must be above 0");
}

static int read_job(const char *const *values, struct load_job *ret)
{
	int status;

	load_job_default(ret);
	ret->name = "replay";
	status = load_report_keys(&verb_replay, values, KEYS, SERIES, ret);
	if (status >= 0)
		return status;
	ret->scale_offsets = values[SCALE_OFFSETS];
	return read_speed(values[SPEED], &ret->speed);
}

/* Keep the requested part of the trace. */
static int slice_trace(struct trace *t, const char *from, const char *until)
{
	weir_time a = 0, b = WEIR_NEVER;
	struct weir_err err;

	if (from && weir_units_time(from, &a, &err) < 0)
		return opts_fail(&verb_replay, "--from: %s", err.text);
	if (until && weir_units_time(until, &b, &err) < 0)
		return opts_fail(&verb_replay, "--until: %s", err.text);
	if (from || until)
		trace_slice(t, a, b);
	return t->n ? -1 : opts_fail(&verb_replay, "the trace has no request in that time");
}

static int read_trace(const char *path, const char *const *values, struct trace *ret)
{
	enum trace_format format = TRACE_AUTO;
	struct weir_err err;
	char *text;
	size_t len;
	int r, status = trace_parse_format(&verb_replay, "format", values[FORMAT], &format);

	if (status)
		return status;
	if (files_read_trace(path, &text, &len, &err) < 0)
		return opts_fail(&verb_replay, "%s", err.text);
	r = trace_read(text, len, path, format, values[SKIP_BAD] != NULL, ret, &err);
	free(text);
	if (r < 0)
		return opts_fail(&verb_replay, "%s", err.text);
	if (ret->bad_lines)
		fprintf(stderr, "weir: replay: %s: %zu bad lines skipped\n", path, ret->bad_lines);
	status = slice_trace(ret, values[FROM], values[UNTIL]);
	if (status >= 0)
		trace_free(ret);
	return status;
}

static int replay_main(const char *const *values, char **operands, int n)
{
	struct load_report report = {.verb = &verb_replay, .late = true};
	struct load_job job;
	struct trace trace;
	int status;

	if (n != 2)
		return opts_fail(&verb_replay, "needs a TRACE and a URI");
	status = read_job(values, &job);
	if (status < 0)
		status = read_trace(operands[0], values, &trace);
	if (status >= 0)
		return status;
	job.uri = operands[1];
	job.trace = &trace;
	report.series = values[SERIES];
	report.json = values[JSON];
	report.allow_errors = values[ALLOW_ERRORS];
	status = load_report_run(&report, &job, 1);
	trace_free(&trace);
	return status;
}

const struct verb verb_replay = {
	.name = "replay",
	.summary = "send a trace to an NBD server with its recorded timing",
	.usage = "[OPTION]... TRACE URI",
	.options = options,
	.run = replay_main,
};
