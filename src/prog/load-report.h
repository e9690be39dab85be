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

/* Until the jobs are done or the program is interrupted. The exit status. */
int load_report_run(const struct load_report *o, const struct load_job *jobs, size_t n);

#endif
