/* SPDX-License-Identifier: BSD-3-Clause */
/* weir experiment: the papers' figures and tables, run and checked. */
#include "bench/bench.h"
#include "cli/experiment/find.h"
#include "cli/experiment/out.h"
#include "cli/common/files.h"
#include "cli/live/live.h"
#include "cli/view/progress.h"
#include "cli/common/verb.h"
#include "sim/experiment/experiment.h"
#include "sim/experiment/report.h"
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEED, OUT, JSON, DIR_, LIVE, WITHOUT, SET, OPTIONS };
static const struct opt options[] = {
	[SEED] = {"seed", 's', "N", "the seed of all random numbers (1)"},
	[OUT] = {"out", 'o', "DIR", "write data, pictures and results.md to DIR"},
	[JSON] = {"json", 0, NULL, "write the claims as JSON instead"},
	[DIR_] = {"dir", 'd', "DIR", "the folder of the experiments"},
	[LIVE] = {"live", 0, NULL, "run on real gateways instead of the simulator"},
	[WITHOUT] = {"without", 'w', NULL, "switch off mechanisms: their claims must be missed"},
	[SET] = {"set", 0, "NAME=VALUE", "a parameter of the experiment, as in traces=FOLDER"},
	[OPTIONS] = {NULL, 0, NULL, NULL},
};
static const char *const subverbs[] = {"list", "run", NULL};
static int experiment_main(const char *const *values, char **operands, int n);
const struct verb verb_experiment = {
	.name = "experiment",
	.summary = "run the papers' experiments and check their claims",
	.usage = "list [OPTION]...\n       weir experiment run ID...|all [OPTION]...",
	.options = options,
	.subverbs = subverbs,
	.run = experiment_main,
};

/* ---- list */

static int list_experiments(const struct experiment_ids *ids)
{
	static const char *const head[] = {"id", "source", "live", "title"};
	struct report_table t = {.columns = 4};
	int status = 0;

	report_cells(&t, head, t.columns);
	for (int i = 0; status == 0 && i < ids->n; i++) {
		struct experiment *e;

		status = experiment_find_load(ids->dir, ids->entries[i]->d_name, NULL, &e);
		if (status)
			break;
		report_cells(&t,
			(const char *const[]){e->id, e->source, e->live ? "yes" : "", e->title},
			t.columns);
		experiment_free(e);
	}
	t.failed |= status != 0; /* then nothing is written */
	if (report_table_text(&t, 0, stdout) < 0 && !status)
		return opts_fail(&verb_experiment, "out of memory");
	return status;
}

/* ---- run */

#define SKIPPED 77 /* exit status, when nothing could be run */

struct job { /* of one command line */
	const struct experiment_ids *ids;
	uint64_t seed;
	const char *out; /* NULL: none */
	bool json, live;
	bool without; /* mechanisms are switched off */
	bool each;    /* all experiments, none named */
	json_t *all;  /* with json */
	struct experiment_out files;
	size_t claims, missed, held, skipped;
	struct experiment_sets sets;
	const char *id; /* of the experiment that runs */
	char what[256]; /* it and its current run */
	struct progress progress;
};

static int read_beside(
	const char *path, void *arg, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	const struct job *j = arg;
	char full[PATH_MAX];

	if (path[0] == '/')
		return files_read_named(path, ret_text, ret_len, err);
	snprintf(full, sizeof(full), "%s/%s/%s", j->ids->dir, j->id, path);
	return files_read_named(full, ret_text, ret_len, err);
}

static int show_progress(double fraction, const char *run, void *arg)
{
	struct job *j = arg;

	snprintf(j->what, sizeof(j->what), "%s, run %s", j->id, run);
	progress_tick(&j->progress, fraction);
	return 0;
}

/* Return true if a file that the experiment needs does not exist: print that, and skip it. */
static bool skip_experiment(struct job *j, const struct experiment *e)
{
	char full[PATH_MAX];

	if (!e->needs || j->sets.n) /* a file that the user names must exist */
		return false;
	if (e->needs[0] == '/')
		snprintf(full, sizeof(full), "%s", e->needs);
	else
		snprintf(full, sizeof(full), "%s/%s/%s", j->ids->dir, e->id, e->needs);
	if (access(full, R_OK) == 0)
		return false;
	j->skipped++;
	fprintf(j->json ? stderr : stdout, "skipped: %s needs %s, which does not exist\n", e->id,
		full);
	return true;
}

static json_t *json_number(double x)
{
	return x < -1e300 || x > 1e300 ? json_null() : json_real(x);
}

static void add_json(struct job *j, const struct experiment *e, const struct experiment_result *r)
{
	json_t *claims = json_array();

	for (size_t i = 0; i < e->n_claims; i++) {
		const struct experiment_claim *c = &e->claims[i];
		const struct experiment_outcome *o = &r->outcomes[i];
		json_t *claim;

		if (!o->judged)
			continue;
		claim = json_pack("{s:s, s:s, s:s, s:b}", "what", c->what, "paper", c->paper,
			"unit", c->unit, "ok", o->ok);
		if (o->known) {
			json_object_set_new(claim, "value", json_real(o->value));
			json_object_set_new(claim, "lo", json_number(o->lo));
			json_object_set_new(claim, "hi", json_number(o->hi));
		} else {
			json_object_set_new(claim, "reason", json_string(o->reason.text));
		}
		json_array_append_new(claims, claim);
	}
	json_array_append_new(
		j->all, json_pack("{s:s, s:s, s:s, s:I, s:b, s:s*, s:I, s:o}", "id", e->id, "title",
				e->title, "source", e->source, "seed", (json_int_t)j->seed, "live",
				j->live, "without", r->without ? r->without->mechanism : NULL,
				"missed", (json_int_t)r->missed, "claims", claims));
}

static int print_result(
	struct job *j, const struct experiment *e, const struct experiment_result *r)
{
	if (j->json) {
		add_json(j, e, r);
		return 0;
	}
	if (experiment_text(e, r, stdout) < 0)
		return opts_fail(&verb_experiment, "out of memory");
	putchar('\n');
	fflush(stdout);
	return 0;
}

static int fail_output(const struct weir_err *err)
{
	opts_fail(&verb_experiment, "%s", err->text);
	return 1;
}

/* Run an experiment once, unchanged or with one mechanism switched off. */
static int run_experiment(
	struct job *j, const struct experiment *e, const struct experiment_without *without)
{
	struct experiment_options o = {.seed = j->seed,
		.without = without,
		.live = j->live ? live_run : NULL,
		.read = read_beside,
		.read_arg = j,
		.bench = bench_metrics,
		.progress = show_progress,
		.progress_arg = j};
	struct experiment_result *r;
	struct weir_err err;
	int status;

	j->id = e->id;
	snprintf(j->what, sizeof(j->what), "%s", e->id);
	progress_start(&j->progress, j->what, 1);
	status = experiment_run(e, &o, &r, &err);
	progress_end(&j->progress);
	if (status < 0) {
		opts_fail(&verb_experiment, "%s", err.text);
		return status == -ECANCELED ? 130 : status == -ECHILD ? 1 : 2;
	}
	status = print_result(j, e, r);
	if (status == 0 && j->out && experiment_out_add(&j->files, e, r, &err) < 0)
		status = fail_output(&err);
	j->claims += r->judged;
	j->missed += r->missed;
	j->held += r->held;
	experiment_result_free(e, r);
	return status;
}

static int run_without(struct job *j, const struct experiment *e)
{
	int status = 0;

	for (size_t i = 0; status == 0 && i < e->n_without; i++)
		if (!j->live || e->without[i].live)
			status = run_experiment(j, e, &e->without[i]);
	if (!j->json && e->no_mechanism)
		printf("%s: no mechanism to switch off: %s\n", e->id, e->no_mechanism);
	return status;
}

static int run_one(struct job *j, const char *id)
{
	struct experiment *e;
	int status = experiment_find_load(j->ids->dir, id, &j->sets, &e);

	if (status)
		return status;
	if ((j->live && !e->live) ||
		skip_experiment(j, e)) /* check_one refuses it if it was named */
		status = 0;
	else
		status = j->without ? run_without(j, e) : run_experiment(j, e, NULL);
	experiment_free(e);
	return status;
}

static bool can_switch_off(const struct job *j, const struct experiment *e)
{
	bool has = e->no_mechanism != NULL;

	for (size_t i = 0; i < e->n_without; i++)
		has |= !j->live || e->without[i].live;
	return has;
}

/* Check that an experiment can be run. `named`: by the user, not one of all. */
static int check_one(const struct job *j, const char *id, bool named)
{
	struct experiment *e;
	bool known = false;
	int status;

	for (int k = 0; k < j->ids->n; k++)
		known |= strcmp(id, j->ids->entries[k]->d_name) == 0;
	if (!known)
		return experiment_find_unknown(j->ids, id);
	status = experiment_find_load(j->ids->dir, id, &j->sets, &e);
	if (status)
		return status;
	if (named && j->live && !e->live)
		status = opts_fail(&verb_experiment, "%s cannot run live", id);
	else if (named && j->without && !can_switch_off(j, e))
		status = opts_fail(&verb_experiment, "%s: 'without' names no mechanism%s", id,
			j->live ? " that can be switched off live" : "");
	experiment_free(e);
	return status;
}

static const char *id_at(const struct job *j, char **ids, int i)
{
	return j->each ? j->ids->entries[i]->d_name : ids[i];
}

/* Check all experiments first: the last name may be wrong, and those before it take minutes. */
static int check_each(const struct job *j, char **ids, int n)
{
	int status = 0;

	for (int i = 0; status == 0 && i < n; i++)
		status = check_one(j, id_at(j, ids, i), !j->each);
	return status;
}

static int run_each(struct job *j, char **ids, int n)
{
	int status = 0;

	for (int i = 0; status == 0 && i < n; i++)
		status = run_one(j, id_at(j, ids, i));
	return status;
}

static int run_job(struct job *j, char **ids, int n)
{
	struct weir_err err;
	int status = check_each(j, ids, n);

	if (status)
		return status;
	if (j->out && experiment_out_open(&j->files, j->out, j->seed, j->live, &err) < 0)
		return fail_output(&err);
	if (j->json)
		j->all = json_array();
	status = run_each(j, ids, n);
	if (status == 0 && j->skipped && j->claims == 0)
		status = SKIPPED;
	if (j->out && experiment_out_close(&j->files, status == 0, &err) < 0 && status == 0)
		status = fail_output(&err);
	if (status)
		return status;
	if (j->json) {
		json_dumpf(j->all, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
		putchar('\n');
	} else {
		printf("%zu claims, %zu missed%s (seed %llu%s)\n", j->claims,
			j->without ? j->claims - j->held : j->missed,
			j->without ? " as they must be" : "", (unsigned long long)j->seed,
			j->live ? ", live" : "");
	}
	return (j->without ? j->held : j->missed) ? 1 : 0;
}

/* ---- the verb */

static int run_ids(
	const struct experiment_ids *ids, const char *const *values, char **operands, int n)
{
	struct job j = {.ids = ids,
		.seed = 1,
		.out = values[OUT],
		.json = values[JSON] != NULL,
		.live = values[LIVE] != NULL,
		.without = values[WITHOUT] != NULL,
		.each = n == 1 && strcmp(operands[0], "all") == 0};
	const char **texts;
	size_t n_texts;
	int status;

	if (n == 0)
		return opts_fail(&verb_experiment, "run: needs an ID, or all");
	if (j.without && j.out)
		return opts_fail(&verb_experiment, "--out cannot be used with --without");
	if (opts_seed(&verb_experiment, values[SEED], &j.seed))
		return 2;
	texts = opts_all(SET, &n_texts);
	status = experiment_find_sets(texts, n_texts, &j.sets);
	if (status == 0)
		status = run_job(&j, operands, j.each ? ids->n : n);
	experiment_find_sets_free(&j.sets);
	free(texts);
	json_decref(j.all);
	return status;
}

static int experiment_main(const char *const *values, char **operands, int n)
{
	struct experiment_ids ids = {0};
	const char *dir;
	bool runs;
	int status;

	if (n < 1)
		return opts_fail(&verb_experiment, "needs list or run; see weir experiment --help");
	runs = strcmp(operands[0], "run") == 0;
	if (!runs && strcmp(operands[0], "list") != 0)
		return opts_fail(&verb_experiment, "'%s': must be list or run", operands[0]);
	if (!runs && n > 1)
		return opts_fail(&verb_experiment, "list takes no operand");
	dir = experiment_find_dir(values[DIR_]);
	if (!dir)
		return 2;
	status = experiment_find_ids(dir, &ids);
	if (status == 0)
		status = runs ? run_ids(&ids, values, operands + 1, n - 1) : list_experiments(&ids);
	experiment_find_free(&ids);
	return status;
}
