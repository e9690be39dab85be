/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/view/out.h"
#include "cli/common/files.h"
#include "sim/experiment/plot.h"
#include "sim/experiment/report.h"
#include "base/no-memory.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int write_csv(const char *dir, const char *name, char *text, struct weir_err *err)
{
	char path[PATH_MAX];
	int r;

	if (snprintf(path, sizeof(path), "%s/%s.csv", dir, name) >= (int)sizeof(path))
		r = weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", dir);
	else
		r = files_write(path, text, strlen(text), err);
	free(text);
	return r;
}

int out_run(const char *dir, const char *values, const struct metrics *m, struct weir_err *err)
{
	char *text;
	int r = files_make_dir(dir, err);

	if (r < 0)
		return r;
	if (report_values_csv(m, &text) < 0)
		return no_memory(err);
	r = write_csv(dir, values, text, err);
	for (size_t i = 0; r == 0 && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);

		if (!e.is_series)
			continue;
		if (report_series_csv(&e, &text) < 0)
			return no_memory(err);
		r = write_csv(dir, e.name, text, err);
	}
	return r;
}

int out_draw(const struct verb *v, const char *dir, const char *stem, bool *no_gnuplot,
	struct weir_err *err)
{
	int r = *no_gnuplot ? 0 : plot_draw(dir, stem, err);

	if (r != -ENOENT)
		return r;
	*no_gnuplot = true;
	opts_fail(v,
		"%s, so there are no pictures; %s has the .gp and .csv files to make them from",
		err->text, dir);
	return 0;
}
