/* SPDX-License-Identifier: BSD-3-Clause */
/* out: write the measurements of a run to files in a folder, for the verbs that have --out. */
#pragma once

#include "cli/common/verb.h"
#include <weir/err.h>
#include "sim/metrics.h"

/*
 * Write every value to DIR/VALUES.csv and every series to DIR/SERIES.csv. The folder is created if
 * it is missing. Return 0, or a negative errno with a message that names the file.
 */
int out_run(const char *dir, const char *values, const struct metrics *m, struct weir_err *err);

/*
 * Draw STEM.svg and STEM.png from STEM.gp and STEM.csv in the folder. If gnuplot is missing, print
 * that once to standard error, set *no_gnuplot, and draw nothing from then on; this is not an
 * error, since the pictures can be drawn later.
 */
int out_draw(const struct verb *v, const char *dir, const char *stem, bool *no_gnuplot,
	struct weir_err *err);
