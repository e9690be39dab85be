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
#include "sim/experiment/spread.h"
#include <weir/units.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEED, SEEDS, OUT, JSON, DIR_, LIVE, WITHOUT, SET, OPTIONS };
static const struct opt options[] = {
	[SEED] = {"seed", 's', "N", "the seed of all random numbers (1)"},
	[SEEDS] = {"seeds", 'n', "N", "run with N seeds, from --seed on: means and 95 % intervals"},
	[OUT] = {"out", 'o', "DIR", "write data, pictures, results.md and index.html to DIR"},
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

#define SKIPPED   77 /* exit status, when nothing could be run */
#define SEEDS_MAX 1000

struct job { /* of one command line */
	const struct experiment_ids *ids;
	uint64_t seed;
	unsigned seeds;
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

static void add_json(
	struct job *j, const struct experiment *e, const struct experiment_result *r, uint64_t seed)
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
				e->title, "source", e->source, "seed", (json_int_t)seed, "live",
				j->live, "without", r->without ? r->without->mechanism : NULL,
				"missed", (json_int_t)r->missed, "claims", claims));
}

/* Run with one seed. Return 0, or the exit status. */
static int run_seed(struct job *j, const struct experiment *e,
	const struct experiment_without *without, uint64_t seed, struct experiment_result **ret)
{
	struct experiment_options o = {.seed = seed,
		.without = without,
		.live = j->live ? live_run : NULL,
		.read = read_beside,
		.read_arg = j,
		.bench = bench_metrics,
		.progress = show_progress,
		.progress_arg = j};
	struct weir_err err;
	int r;

	snprintf(j->what, sizeof(j->what), "%s", e->id);
	progress_start(&j->progress, j->what, 1);
	r = experiment_run(e, &o, ret, &err);
	progress_end(&j->progress);
	if (r == 0)
		return 0;
	opts_fail(&verb_experiment, "%s", err.text);
	return r == -ECANCELED ? 130 : r == -ECHILD ? 1 : 2;
}

static int fail_output(const struct weir_err *err)
{
	opts_fail(&verb_experiment, "%s", err->text);
	return 1;
}

/* Count the outcomes of all seeds, print them, and write the files. */
static int report_result(struct job *j, const struct experiment *e, struct experiment_result *r)
{
	struct weir_err err;

	r->held = 0;
	for (size_t i = 0; i < e->n_claims; i++) {
		const struct spread_claim *c = &r->spread->claims[i];

		j->missed += !experiment_held(r, i);
		r->held += r->without && (c->held || c->n < c->judged);
	}
	j->claims += r->judged;
	j->held += r->held;
	if (!j->json && experiment_text(e, r, stdout) < 0)
		return opts_fail(&verb_experiment, "out of memory");
	if (!j->json)
		putchar('\n');
	fflush(stdout);
	if (j->out && experiment_out_add(&j->files, e, r, &err) < 0)
		return fail_output(&err);
	return 0;
}

/* Run an experiment with each seed, unchanged or with one mechanism switched off. The pictures and data are those of the first
 * seed. */
static int run_experiment(
	struct job *j, const struct experiment *e, const struct experiment_without *without)
{
	struct experiment_spread *spread = spread_new(e);
	struct experiment_result *first = NULL, *r;
	int status = spread ? 0 : opts_no_memory(&verb_experiment);

	j->id = e->id;
	for (unsigned i = 0; status == 0 && i < j->seeds; i++) {
		status = run_seed(j, e, without, j->seed + i, &r);
		if (status)
			break;
		spread_add(spread, r);
		if (j->json)
			add_json(j, e, r, j->seed + i);
		if (first)
			experiment_result_free(e, r);
		else
			first = r;
	}
	if (status == 0) {
		first->spread = spread;
		status = report_result(j, e, first);
	}
	if (first)
		experiment_result_free(e, first);
	free(spread);
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
	if (j->out && experiment_out_open(&j->files, j->out, j->seed, j->seeds, j->live, &err) < 0)
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
		printf("%zu claims, %zu missed%s (seed %llu", j->claims,
			j->without ? j->claims - j->held : j->missed,
			j->without ? " as they must be" : "", (unsigned long long)j->seed);
		if (j->seeds > 1)
			printf(" to %llu", (unsigned long long)(j->seed + j->seeds - 1));
		printf("%s)\n", j->live ? ", live" : "");
	}
	return (j->without ? j->held : j->missed) ? 1 : 0;
}

/* ---- the verb */

static int run_ids(
	const struct experiment_ids *ids, const char *const *values, char **operands, int n)
{
	struct job j = {.ids = ids,
		.seed = 1,
		.seeds = 1,
		.out = values[OUT],
		.json = values[JSON] != NULL,
		.live = values[LIVE] != NULL,
		.without = values[WITHOUT] != NULL,
		.each = n == 1 && strcmp(operands[0], "all") == 0};
	struct weir_err err;
	const char **texts;
	size_t n_texts;
	int64_t seeds = 1;
	int status;

	if (n == 0)
		return opts_fail(&verb_experiment, "run: needs an ID, or all");
	if (j.without && j.out)
		return opts_fail(&verb_experiment, "--out cannot be used with --without");
	if (opts_seed(&verb_experiment, values[SEED], &j.seed))
		return 2;
	if (values[SEEDS] &&
		(weir_units_int(values[SEEDS], &seeds, &err) < 0 || seeds < 1 || seeds > SEEDS_MAX))
		return opts_fail(&verb_experiment, "--seeds: must be from 1 to %d", SEEDS_MAX);
	j.seeds = (unsigned)seeds;
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
