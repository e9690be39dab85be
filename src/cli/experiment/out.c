/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/experiment/out.h"
#include "cli/common/files.h"
#include "cli/view/out.h"
#include "base/no-memory.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

extern const struct verb verb_experiment;

int experiment_out_open(
	struct experiment_out *o, const char *dir, uint64_t seed, bool live, struct weir_err *err)
{
	char path[PATH_MAX];
	int r;

	*o = (struct experiment_out){.dir = dir};
	if (snprintf(path, sizeof(path), "%s/pictures", dir) >= (int)sizeof(path))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", dir);
	r = files_make_dir(dir, err);
	if (r == 0)
		r = files_make_dir(path, err);
	if (r < 0)
		return r;
	o->report = open_memstream(&o->text, &o->len);
	if (!o->report)
		return no_memory(err);
	fprintf(o->report,
		"# Results\n\n"
		"The claims of the experiments and their results, written by\n"
		"`weir experiment run all --seed %llu%s --out DIR` of Weir %s. A band holds for "
		"any\n"
		"seed; the verdicts and the column *ours* are those of this seed. If the column "
		"*paper*\n"
		"is empty, the claim is Weir's own.\n",
		(unsigned long long)seed, live ? " --live" : "", WEIR_VERSION);
	return 0;
}

static int draw_plot(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, size_t plot, struct weir_err *err)
{
	char dir[PATH_MAX], stem[256];
	int code;

	snprintf(dir, sizeof(dir), "%s/pictures", o->dir);
	code = experiment_plot(e, r, plot, dir, files_write, err);
	if (code < 0)
		return code;
	return out_draw(&verb_experiment, dir, experiment_stem(e, plot, stem, sizeof(stem)),
		&o->no_gnuplot, err);
}

int experiment_out_add(struct experiment_out *o, const struct experiment *e,
	const struct experiment_result *r, struct weir_err *err)
{
	char dir[PATH_MAX];
	int code = 0;

	for (size_t i = 0; code == 0 && i < e->n_runs; i++) {
		if (!r->runs[i])
			continue;
		if (snprintf(dir, sizeof(dir), "%s/data/%s/%s", o->dir, e->id, e->runs[i].name) >=
			(int)sizeof(dir))
			return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", o->dir);
		code = out_run(dir, "values", r->runs[i], err);
	}
	for (size_t i = 0; code == 0 && i < e->n_plots; i++)
		code = draw_plot(o, e, r, i, err);
	if (code < 0)
		return code;
	fputc('\n', o->report);
	return experiment_markdown(e, r, o->no_gnuplot ? NULL : "pictures", o->report) < 0
		       ? no_memory(err)
		       : 0;
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
