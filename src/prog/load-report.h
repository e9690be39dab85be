/* SPDX-License-Identifier: BSD-3-Clause */
/* load-report: runs jobs and says what came out, for `weir load` and `weir replay`. */
#ifndef WEIR_PROG_LOAD_REPORT_H
#define WEIR_PROG_LOAD_REPORT_H

#include "port/load.h"
#include "prog/verb.h"

struct load_report {
	const struct verb *verb;
	bool json;
	bool late;          /* also how late the load itself was */
	bool allow_errors;  /* errors that the server returned do not count as failure */
	const char *series; /* file, or NULL */
	unsigned threads;
};

/* What both verbs can be told: how servers are reached, and what is said of it. For the enum of a verb's
 * options, and the rows of its table; the first, and WARM_UP and STRUCTURED, are keys of load.h. */
#define LOAD_REPORT_REACH RECONNECT, TIMEOUT, TLS_CA, TLS_CERT, TLS_KEY, TLS_PSK
#define LOAD_REPORT_SAY   SERIES, JSON, ALLOW_ERRORS
#define LOAD_REPORT_ROWS                                                                           \
	[WARM_UP] = {"warm-up", 0, "TIME", "what is not counted at first"},                        \
	[STRUCTURED] = {"structured", 0, NULL, "ask for structured replies"},                      \
	[RECONNECT] = {"reconnect", 0, "TIME", "try for so long when a connection is lost"},       \
	[TIMEOUT] = {"timeout", 0, "TIME", "without any answer a connection is lost (30s)"},       \
	[TLS_CA] = {"tls-ca", 0, "FILE", "nbds: whose certificates are trusted"},                  \
	[TLS_CERT] = {"tls-cert", 0, "FILE", "nbds: our own certificate"},                         \
	[TLS_KEY] = {"tls-key", 0, "FILE", "nbds: its key"},                                       \
	[TLS_PSK] = {"tls-psk", 0, "FILE", "nbds: a pre-shared key, NAME:HEX"},                    \
	[SERIES] = {"series", 0, "FILE", "write CSV, a line for each job every 100 ms"},           \
	[JSON] = {"json", 0, NULL, "JSON instead of a table"},                                     \
	[ALLOW_ERRORS] = {                                                                         \
		"allow-errors", 0, NULL, "errors that the server returns are no failure"}

/* Options from … to - 1 of the verb, as they are called in load.h, into the job. -1, or the exit status. */
int load_report_keys(
	const struct verb *v, const char *const *values, int from, int to, struct load_job *job);

/* Until the jobs are done or the program is interrupted. The exit status. */
int load_report_run(const struct load_report *o, const struct load_job *jobs, size_t n);

#endif
