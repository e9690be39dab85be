/* SPDX-License-Identifier: BSD-3-Clause */
/* out: what a run measured, as files in a folder, for the verbs that have --out. */
#ifndef WEIR_CLI_VIEW_OUT_H
#define WEIR_CLI_VIEW_OUT_H

#include "cli/common/verb.h"
#include <weir/err.h>
#include "sim/metrics.h"

/* Every value into DIR/VALUES.csv and every series into DIR/SERIES.csv. The folder is made if it is
 * missing. 0, or a negative errno with a message that names the file. */
int out_run(const char *dir, const char *values, const struct metrics *m, struct weir_err *err);

/* STEM.svg and STEM.png of the STEM.gp and STEM.csv in the folder. Where gnuplot is missing that is
 * said once, on standard error, *no_gnuplot set, and nothing drawn from then on: 0 all the same,
 * since whoever has the folder can draw later. */
int out_draw(const struct verb *v, const char *dir, const char *stem, bool *no_gnuplot,
	struct weir_err *err);

#endif
