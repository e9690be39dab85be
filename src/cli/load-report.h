/* SPDX-License-Identifier: BSD-3-Clause */
/* load-report: run jobs and report the results, for `weir load` and `weir replay`. */
#pragma once

#include "load/load.h"
#include "cli/common/verb.h"

struct load_report {
	const struct verb *verb;
	bool json;
	bool late;          /* also report the lateness of the load itself */
	bool allow_errors;  /* errors returned by the server do not count as failure */
	const char *series; /* file, or NULL */
	unsigned threads;
};

/*
 * Options common to both verbs: how to reach servers, and what to report. For the enum of a verb's
 * options, and the rows of its table; those of the first group, WARM_UP and STRUCTURED are keys of
 * load.h.
 */
#define LOAD_REPORT_REACH RECONNECT, TIMEOUT, TLS_CA, TLS_CERT, TLS_KEY, TLS_PSK
#define LOAD_REPORT_SAY   SERIES, JSON, ALLOW_ERRORS
#define LOAD_REPORT_ROWS                                                                           \
	[WARM_UP] = {"warm-up", 0, "TIME", "do not count requests of this time"},                  \
	[STRUCTURED] = {"structured", 0, NULL, "ask for structured replies"},                      \
	[RECONNECT] = {"reconnect", 0, "TIME", "reconnect for this long after a loss"},            \
	[TIMEOUT] = {"timeout", 0, "TIME", "drop a connection after TIME without a reply (30s)"},  \
	[TLS_CA] = {"tls-ca", 0, "FILE", "nbds: authorities whose certificates are trusted"},      \
	[TLS_CERT] = {"tls-cert", 0, "FILE", "nbds: the client's certificate"},                    \
	[TLS_KEY] = {"tls-key", 0, "FILE", "nbds: the client's private key"},                      \
	[TLS_PSK] = {"tls-psk", 0, "FILE", "nbds: a pre-shared key, NAME:HEX"},                    \
	[SERIES] = {"series", 0, "FILE", "write CSV, a line for each job every 100 ms"},           \
	[JSON] = {"json", 0, NULL, "JSON instead of a table"},                                     \
	[ALLOW_ERRORS] = {                                                                         \
		"allow-errors", 0, NULL, "errors returned by the server are not a failure"}

/* Set the verb's options from … to - 1, named as in load.h, in the job. Return -1, or the exit
 * status. */
int load_report_keys(
	const struct verb *v, const char *const *values, int from, int to, struct load_job *job);

/* Run until the jobs are done or the program is interrupted. Return the exit status. */
int load_report_run(const struct load_report *o, const struct load_job *jobs, size_t n);
