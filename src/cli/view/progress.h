/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress: a line on a terminal that shows the progress of long work.
 *
 * It is shown on standard error, only if that is a terminal and only after 2 s of work; it is
 * redrawn at most five times a second and cleared at the end. A tick reads the clock (25 ns): call
 * it every few thousand steps of a hot loop.
 */
#pragma once

#include <weir/clock.h>
#include <stdbool.h>

struct progress {
	const char *what; /* borrowed: "reading" */
	double total;     /* of progress_tick's `done`; 0: not known */
	weir_time started, drawn;
	bool terminal;
};

void progress_start(struct progress *p, const char *what, double total);
void progress_tick(struct progress *p, double done);
void progress_end(struct progress *p); /* may be called twice */
