/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * out: the files that `weir experiment run --out DIR` writes.
 *
 *   DIR/results.md                  the claims of every experiment run, with its pictures
 *   DIR/pictures/ID-NAME.svg .png   and the .gp and .csv from which they are made
 *   DIR/data/ID/RUN/values.csv      every value of a run
 *   DIR/data/ID/RUN/SERIES.csv      every series of a run
 */
#pragma once

#include "sim/experiment/experiment.h"
#include <stdio.h>

struct experiment_out {
	const char *dir;
	FILE *report; /* in memory until the end */
	char *text;
	size_t len;
	bool no_gnuplot; /* gnuplot is missing, which was reported */
};

/* All return 0, or a negative errno with a message. */
int experiment_out_open(
	struct experiment_out *o, const char *dir, uint64_t seed, bool live, struct weir_err *err);
int experiment_out_add(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, struct weir_err *err);
/* Write results.md if `whole`: a report cut off by an error is not written. */
int experiment_out_close(struct experiment_out *o, bool whole, struct weir_err *err);
