/* SPDX-License-Identifier: BSD-3-Clause */
/* trace: shared by the parts of `weir trace`. trace.c has the command line. */
#pragma once

#include "model/trace/trace.h"
#include "cli/common/verb.h"

struct trace_request {
	enum trace_format format; /* of the input */
	bool skip_bad;
	bool json;            /* info */
	enum trace_format to; /* convert: from here on */
	bool drop_unsupported;
	double speed;
	weir_time from, until;
	struct trace_stages { /* analyze, as written; NULL if not given */
		const char *profile, *work, *link, *overhead, *pairs, *percentile, *out;
	} stages;
};

extern const struct verb verb_trace;

/* Write the names of the formats that can be read ("auto" first), or written, separated by
 * `between`; cut at `len`. Return buf. */
#define TRACE_FORMATS_ROOM 128 /* enough for all of them */
char *trace_formats(bool written, const char *between, char *buf, size_t len);

/* Parse --format or, for formats that can be written, --to; *ret is unchanged if word is NULL. Return
 * 0, or the exit status with the reason printed. */
int trace_parse_format(
	const struct verb *v, const char *option, const char *word, enum trace_format *ret);

/* Read a trace from a file or, for "-", from standard input; with progress. Files of a size or kind
 * that cannot be a trace are refused before they are read. */
int trace_load(
	const char *path, const struct trace_request *q, struct trace *ret, struct weir_err *err);

/* Return the exit status. */
int trace_info(const struct trace_request *q, char **paths, int n);
int trace_analyze(const struct trace_request *q, char **paths, int n);
int trace_convert(const struct trace_request *q, const char *in, const char *out);

/* Record until the limit, the end of the time, or SIGINT, SIGTERM or SIGHUP. The limits are as
 * written, NULL if not given; `at`: the gateway, as in remote_of_options. Return the exit status. */
int trace_record_run(
	const char *file, const char *requests, const char *duration, const char *const *at);
/* Start a recording; it ends when the gateway is not asked for it for 10 s. Return -1 and the path of its file, malloc'ed, or the exit
 * status with the reason printed. */
struct remote;
int trace_record_start(struct remote *r, const char *name, const char *requests,
	const char *duration, char **ret_file);
