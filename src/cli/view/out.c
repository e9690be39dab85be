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

/* Write the CSV of a series, or (NULL) of all values. */
static int write_csv(const char *dir, const char *name, const struct metrics *m,
	const struct metrics_entry *series, struct weir_err *err)
{
	char path[PATH_MAX], *text = NULL;
	size_t len;
	FILE *f;
	int r;

	if (snprintf(path, sizeof(path), "%s/%s.csv", dir, name) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", dir);
	f = open_memstream(&text, &len);
	if (f && series)
		report_series_csv(series, f);
	else if (f)
		report_values_csv(m, f);
	r = f && fclose(f) == 0 ? files_write(path, text, len, err) : no_memory(err);
	free(text);
	return r;
}

int out_run(const char *dir, const char *values, const struct metrics *m, struct weir_err *err)
{
	int r = files_make_dir(dir, err);

	if (r == 0)
		r = write_csv(dir, values, m, NULL, err);
	for (size_t i = 0; r == 0 && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);

		if (e.is_series)
			r = write_csv(dir, e.name, m, &e, err);
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
