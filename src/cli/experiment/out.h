/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out: the files that `weir experiment run --out DIR` writes.
 *
 *   DIR/results.md                  the claims of every experiment run, with its pictures
 *   DIR/index.html, page.css        the same for a browser
 *   DIR/pictures/ID-NAME.svg .png   and the .gp and .csv from which they are made
 *   DIR/data/ID/RUN/values.csv      every value of a run
 *   DIR/data/ID/RUN/SERIES.csv      every series of a run
 */
#pragma once

#include "sim/experiment/experiment.h"
#include <stdio.h>

struct experiment_out {
	const char *dir;
	/* in memory until the end: results.md, and of index.html its table of contents and its sections */
	struct experiment_out_text {
		FILE *file;
		char *text;
		size_t len;
	} report, contents, sections;
	char command[64]; /* by which it was made */
	bool no_gnuplot;  /* gnuplot is missing, which was reported */
};

/* All return 0, or a negative errno with a message. */
int experiment_out_open(struct experiment_out *o, const char *dir, uint64_t seed, unsigned seeds,
	bool live, struct weir_err *err);
int experiment_out_add(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, struct weir_err *err);
/* Write results.md and index.html if `whole`: a report cut off by an error is not written. */
int experiment_out_close(struct experiment_out *o, bool whole, struct weir_err *err);
