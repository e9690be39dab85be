/* SPDX-License-Identifier: BSD-3-Clause */
/* load: `weir load`, send requests to NBD servers and report their latency. */
#include <weir/units.h>
#include "cli/load-report.h"
#include <stdlib.h>

extern const struct verb verb_load;

/* Up to THREADS: keys of load.h, which a job may override. */
enum {
	CONNECTIONS,
	DEPTH,
	RATE,
	ARRIVALS,
	SIZE,
	READS,
	FUA,
	ORDER,
	OFFSET,
	LENGTH,
	FLUSH_EVERY,
	THINK,
	START,
	DURATION,
	REQUESTS,
	WARM_UP,
	SEED,
	STRUCTURED,
	VERIFY,
	TABLE,
	LOAD_REPORT_REACH,
	THREADS,
	LOAD_REPORT_SAY,
	N_OPTIONS
};
static const struct opt options[] = {
	[CONNECTIONS] = {"connections", 'c', "N", "connections of a job (1)"},
	[DEPTH] = {"depth", 'd', "N",
		"requests in flight per connection (1; with --rate: at most 1024)"},
	[RATE] = {"rate", 'r', "RATE", "open loop: requests started per second"},
	[ARRIVALS] = {"arrivals", 0, "KIND", "of an open loop: poisson (default) or even"},
	[SIZE] = {"size", 's', "SIZES", "of a request: 4k (default), or a mix, 4k:70,64k:30"},
	[READS] = {"reads", 0, "SHARE", "reads among reads and writes (100%)"},
	[FUA] = {"fua", 0, "SHARE", "writes that are durable when answered (0%)"},
	[ORDER] = {"order", 'o', "ORDER", "random (default), sequential or zipf[:S]"},
	[OFFSET] = {"offset", 0, "SIZE", "start of the range in the export (0)"},
	[LENGTH] = {"length", 0, "SIZE", "length of the range (to the end)"},
	[FLUSH_EVERY] = {"flush-every", 0, "N", "send a flush after N writes"},
	[THINK] = {"think", 0, "TIME", "closed loop: pause between a reply and the next request"},
	[START] = {"start", 0, "TIME", "wait before the first request"},
	[DURATION] = {"duration", 't', "TIME", "length of the run"},
	[REQUESTS] = {"requests", 'n', "N", "send at most N requests"},
	[SEED] = {"seed", 0, "N", "seed of all random choices (1)"},
	[VERIFY] = {"verify", 0, NULL, "write blocks that can be checked, and check them"},
	[TABLE] = {"table", 0, "FILE", "keep the expected contents of the blocks for the next run"},
	[THREADS] = {"threads", 0, "N", "spread the jobs over N threads (1)"},
	LOAD_REPORT_ROWS,
	[N_OPTIONS] = {NULL, 0, NULL, NULL},
};

static int read_defaults(const char *const *values, struct load_job *ret)
{
	load_job_default(ret);
	return load_report_keys(&verb_load, values, 0, THREADS, ret);
}

static int read_threads(const char *text, unsigned *ret)
{
	struct weir_err err;
	int64_t n;

	if (!text)
		return -1;
	if (weir_units_int(text, &n, &err) < 0)
		return opts_fail(&verb_load, "--threads: %s", err.text);
	if (n < 1 || n > 256)
		return opts_fail(&verb_load, "--threads: must be 1 to 256");
	*ret = (unsigned)n;
	return -1;
}

static int load_main(const char *const *values, char **operands, int n)
{
	struct load_report report = {.verb = &verb_load};
	struct load_job defaults, *jobs;
	struct weir_err err;
	int status;

	if (n == 0)
		return opts_fail(&verb_load, "needs a server's URI, such as nbd://HOST/EXPORT");
	status = read_defaults(values, &defaults);
	if (status < 0)
		status = read_threads(values[THREADS], &report.threads);
	if (status >= 0)
		return status;
	report.series = values[SERIES];
	report.json = values[JSON];
	report.allow_errors = values[ALLOW_ERRORS];
	jobs = calloc((size_t)n, sizeof(*jobs));
	if (!jobs)
		return opts_fail(&verb_load, "no memory");
	for (int i = 0; i < n; i++) {
		jobs[i] = defaults;
		if (load_job_parse(&jobs[i], operands[i], &err) < 0) {
			bool named = jobs[i].name != defaults.name;

			status = opts_fail(&verb_load, "%s%s%s", named ? jobs[i].name : "",
				named ? ": " : "", err.text);
			break;
		}
	}
	if (status < 0)
		status = load_report_run(&report, jobs, (size_t)n);
	free(jobs);
	return status;
}

const struct verb verb_load = {
	.name = "load",
	.summary = "send requests to NBD servers and report their latency",
	.usage = "[OPTION]... [NAME=]URI[,KEY=VALUE]...",
	.options = options,
	.run = load_main,
};
