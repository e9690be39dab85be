/* SPDX-License-Identifier: BSD-3-Clause */
#include "prog/experiment-out.h"
#include "prog/files.h"
#include "sim/report.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int no_memory(struct weir_err *err)
{
	return weir_err_set(err, -ENOMEM, "out of memory");
}

int experiment_out_open(
	struct experiment_out *o, const char *dir, uint64_t seed, struct weir_err *err)
{
	char path[PATH_MAX];
	int r;

	*o = (struct experiment_out){.dir = dir};
	if (snprintf(path, sizeof(path), "%s/pictures", dir) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", dir);
	r = files_make_dir(path, err);
	if (r < 0)
		return r;
	o->report = open_memstream(&o->text, &o->len);
	if (!o->report)
		return no_memory(err);
	fprintf(o->report,
		"# Results\n\n"
		"What the experiments claim and what came out, made by\n"
		"`weir experiment run all --seed %llu --out DIR` of Weir %s. A band is meant for "
		"any\n"
		"seed; the verdicts and the column *ours* are this one's. Where the paper's column "
		"is\n"
		"empty the claim is ours.\n",
		(unsigned long long)seed, WEIR_VERSION);
	return 0;
}

static int write_text(const char *dir, const char *name, char *text, struct weir_err *err)
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

static int write_run(const char *dir, const struct metrics *m, struct weir_err *err)
{
	char *text;
	int r = files_make_dir(dir, err);

	if (r < 0)
		return r;
	if (report_values_csv(m, &text) < 0)
		return no_memory(err);
	r = write_text(dir, "values", text, err);
	for (size_t i = 0; r == 0 && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);

		if (!e.is_series)
			continue;
		if (report_series_csv(&e, &text) < 0)
			return no_memory(err);
		r = write_text(dir, e.name, text, err);
	}
	return r;
}

static int draw(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, size_t plot, struct weir_err *err)
{
	char dir[PATH_MAX], stem[256];
	int code;

	snprintf(dir, sizeof(dir), "%s/pictures", o->dir);
	code = experiment_plot(e, r, plot, dir, err);
	if (code < 0 || o->no_gnuplot)
		return code;
	code = plot_draw(dir, experiment_stem(e, plot, stem, sizeof(stem)), err);
	if (code != -ENOENT)
		return code;
	o->no_gnuplot = true;
	fprintf(stderr, "weir: experiment: %s, so no pictures; %s/*.gp and .csv are there\n",
		err->text, dir);
	return 0;
}

int experiment_out_add(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, struct weir_err *err)
{
	char dir[PATH_MAX], *text;
	int code = 0;

	for (size_t i = 0; code == 0 && i < e->n_runs; i++) {
		if (snprintf(dir, sizeof(dir), "%s/data/%s/%s", o->dir, e->id, e->runs[i].name) >=
			(int)sizeof(dir))
			return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", o->dir);
		code = write_run(dir, r->runs[i], err);
	}
	for (size_t i = 0; code == 0 && i < e->n_plots; i++)
		code = draw(o, e, r, i, err);
	if (code < 0)
		return code;
	if (experiment_markdown(e, r, o->no_gnuplot ? NULL : "pictures", &text) < 0)
		return no_memory(err);
	fprintf(o->report, "\n%s", text);
	free(text);
	return 0;
}

int experiment_out_close(struct experiment_out *o, bool whole, struct weir_err *err)
{
	char path[PATH_MAX];
	bool bad = ferror(o->report) != 0;
	int r = 0;

	bad |= fclose(o->report) != 0;
	if (bad)
		r = no_memory(err);
	snprintf(path, sizeof(path), "%s/results.md", o->dir);
	if (r == 0 && whole)
		r = files_write(path, o->text, o->len, err);
	free(o->text);
	return r;
}
