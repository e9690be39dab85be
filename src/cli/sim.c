/* SPDX-License-Identifier: BSD-3-Clause */
/* weir sim: run a scenario in virtual time; write the values, the series and their pictures. */
#include "cli/common/files.h"
#include "cli/view/out.h"
#include "cli/view/progress.h"
#include "cli/common/verb.h"
#include "cli/sim-policy.h"
#include "sim/experiment/plot.h"
#include "sim/experiment/report.h"
#include "sim/sim.h"
#include "sim/scenario/scenario.h"
#include <weir/units.h>
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED, OUT, SET, POLICY, DEVICE, LOAD, DURATION, JSON, QUIET, OPTIONS };
static const struct opt options[] = {
	[SEED] = {"seed", 's', "N", "the seed of all random numbers (the scenario's)"},
	[OUT] = {"out", 'o', "DIR", "write values, series and pictures to DIR"},
	[SET] = {"set", 0, "PATH=VALUE", "change the scenario first; may be repeated"},
	[POLICY] = {"policy", 'p', "FILE", "run a policy file instead of a scenario"},
	[DEVICE] = {"device", 0, "MODEL", "with --policy: as NAME=model:ssd; may be repeated"},
	[LOAD] = {"load", 0, "LOAD", "with --policy: as prod/db:outstanding=8; may be repeated"},
	[DURATION] = {"duration", 'd', "TIME", "run for TIME instead (virtual time)"},
	[JSON] = {"json", 0, NULL, "write the values as JSON instead of a table"},
	[QUIET] = {"quiet", 'q', NULL, "write no table"},
	[OPTIONS] = {NULL, 0, NULL, NULL},
};
static int sim_main(const char *const *values, char **operands, int n);
const struct verb verb_sim = {
	.name = "sim",
	.summary = "run a scenario on the simulator",
	.usage = "[OPTION]... SCENARIO\n       weir sim [OPTION]... --policy FILE --load "
		 "TENANT:KEY=VALUE,...",
	.options = options,
	.run = sim_main,
};

#define PICTURE_LINES 12 /* more cannot be distinguished */

/* ---- the command line */

struct asked {
	const char *const *values;
	struct scenario_set *sets;
	size_t n_sets;
	const char **set_texts, **devices, **loads;
	size_t n_devices, n_loads;
	struct sim_options run;
};

/* Return 0, or 2 with the reason printed. */
static int gather_all(struct asked *a)
{
	a->set_texts = opts_all(SET, &a->n_sets);
	a->devices = opts_all(DEVICE, &a->n_devices);
	a->loads = opts_all(LOAD, &a->n_loads);
	a->sets = calloc(a->n_sets + 1, sizeof(*a->sets));
	if (!a->set_texts || !a->devices || !a->loads || !a->sets)
		return opts_fail(&verb_sim, "out of memory");
	for (size_t i = 0; i < a->n_sets; i++) {
		char *set = strdup(a->set_texts[i]), *equals = set ? strchr(set, '=') : NULL;

		a->sets[i].path = set;
		if (!equals || equals == set)
			return opts_fail(&verb_sim,
				"--set: give PATH=VALUE, as in hosts[0].policy.depth=16");
		*equals = '\0';
		a->sets[i].value = equals + 1;
	}
	return 0;
}

static int read_numbers(struct asked *a)
{
	struct weir_err err;

	if (opts_seed(&verb_sim, a->values[SEED], &a->run.seed))
		return 2;
	a->run.seed_set = a->values[SEED] != NULL;
	if (a->values[DURATION]) {
		if (weir_units_time(a->values[DURATION], &a->run.duration, &err))
			return opts_fail(&verb_sim, "--duration: %s", err.text);
		if (a->run.duration <= 0)
			return opts_fail(&verb_sim, "--duration: must be more than 0");
	}
	return 0;
}

static void free_asked(struct asked *a)
{
	for (size_t i = 0; a->sets && i < a->n_sets; i++)
		free((char *)a->sets[i].path);
	free(a->sets);
	free(a->set_texts);
	free(a->devices);
	free(a->loads);
}

/* ---- the scenario */

/* Read a trace; its path is relative to the scenario's folder. */
static int read_beside(
	const char *path, void *scenario, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	const char *slash = strrchr(scenario, '/');
	char full[PATH_MAX];

	if (path[0] == '/' || !slash)
		return files_read_named(path, ret_text, ret_len, err);
	if (snprintf(full, sizeof(full), "%.*s/%s", (int)(slash - (const char *)scenario),
		    (const char *)scenario, path) >= (int)sizeof(full))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	return files_read_named(full, ret_text, ret_len, err);
}

static int load_scenario(const struct asked *a, char *path, struct scenario **ret)
{
	struct sim_policy policy = {
		path, a->values[DURATION], a->devices, a->n_devices, a->loads, a->n_loads};
	const char *slash = strrchr(path, '/');
	struct weir_err err;
	char *text,
		made[PATH_MAX]; /* what messages call the text that was made, beside the policy */
	size_t len;
	int r = a->values[POLICY] ? sim_policy_text(&policy, &text, &err)
				  : files_read(path, FILES_WRITTEN, &text, &len, &err);

	snprintf(made, sizeof(made), "%.*s(command line)", slash ? (int)(slash + 1 - path) : 0,
		path);
	if (r == 0) {
		len = a->values[POLICY] ? strlen(text) : len;
		r = scenario_parse_files(text, len, a->values[POLICY] ? made : path, a->sets,
			a->n_sets, files_read_beside, NULL, ret, &err);
		free(text);
	}
	if (r)
		return opts_fail(&verb_sim, "%s", err.text);
	if (a->run.seed_set)
		(*ret)->seed = a->run.seed;
	if (scenario_load(*ret, read_beside, path, &err)) {
		scenario_free(*ret);
		return opts_fail(&verb_sim, "%s", err.text);
	}
	return 0;
}

static int tick_progress(double fraction, void *arg)
{
	progress_tick(arg, fraction);
	return 0;
}

/* ---- output */

struct picture { /* of the series KIND.*.WHAT */
	const char *kind, *what;
	const char *title; /* after the scenario's name */
	const char *y_label;
};

/* Return true if the series belongs to the picture; its label is the text between KIND and WHAT. */
static bool is_in_picture(
	const struct picture *c, const struct metrics_entry *e, char *label, size_t label_len)
{
	size_t len = strlen(e->name), kind = strlen(c->kind), what = strlen(c->what);

	if (!e->is_series || e->n == 0 || len < kind + what + 2)
		return false;
	if (strncmp(e->name, c->kind, kind) != 0 || e->name[kind] != '.' ||
		e->name[len - what - 1] != '.' || strcmp(e->name + len - what, c->what) != 0)
		return false;
	snprintf(label, label_len, "%.*s", (int)(len - kind - what - 2), e->name + kind + 1);
	return true;
}

/* Draw one picture. Return 0 also if there is no series for it. */
static int draw_picture(const struct picture *c, const char *dir, const char *scenario,
	const struct metrics *m, bool *no_gnuplot, struct weir_err *err)
{
	struct plot_line lines[PICTURE_LINES] = {0};
	char stem[64], title[256], labels[PICTURE_LINES][256];
	struct plot p = {
		.title = title, .x_label = "time [s]", .y_label = c->y_label, .lines = lines};
	size_t all = 0;
	int r;

	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		char label[256];

		if (!is_in_picture(c, &e, label, sizeof(label)) || all++ >= PICTURE_LINES)
			continue;
		memcpy(labels[p.n_lines], label, sizeof(label));
		lines[p.n_lines] = (struct plot_line){
			.label = labels[p.n_lines], .points = e.points, .n = e.n};
		p.n_lines++;
	}
	if (p.n_lines == 0)
		return 0;
	snprintf(title, sizeof(title), "%s: %s", scenario, c->title);
	if (all > p.n_lines)
		snprintf(title, sizeof(title), "%s: %s, the first %zu of %zu", scenario, c->title,
			p.n_lines, all);
	snprintf(stem, sizeof(stem), "%s-%s", c->kind, c->what);
	r = plot_write(&p, dir, stem, files_write, err);
	return r ? r : out_draw(&verb_sim, dir, stem, no_gnuplot, err);
}

static int write_out(const char *dir, const char *scenario, const struct metrics *m)
{
	static const struct picture pictures[] = {
		{"tenant", "throughput", "throughput of tenants", "throughput [iops]"},
		{"tenant", "latency", "mean latency of tenants", "latency [ms]"},
		{"tenant", "latency_p99", "p99 latency of tenants", "latency [ms]"},
		{"host", "window", "windows of hosts", "window [requests]"},
		{"device", "throughput", "throughput of devices", "throughput [iops]"}};
	struct weir_err err;
	bool no_gnuplot = false;
	int r = out_run(dir, "summary", m, &err);

	for (size_t i = 0; r == 0 && i < sizeof(pictures) / sizeof(pictures[0]); i++)
		r = draw_picture(&pictures[i], dir, scenario, m, &no_gnuplot, &err);
	if (r) {
		opts_fail(&verb_sim, "%s", err.text);
		return 1;
	}
	return 0;
}

static int print_json(const struct scenario *s, const struct metrics *m)
{
	json_t *values = json_object(), *root;
	int bad;

	for (size_t i = 0; i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);
		if (!e.is_series)
			json_object_set_new(
				values, e.name, isnan(e.value) ? json_null() : json_real(e.value));
	}
	root = json_pack("{s:s, s:o}", "scenario", s->name, "values", values);
	bad = !root || json_dumpf(root, stdout, JSON_INDENT(2)) != 0;
	putchar('\n');
	json_decref(root);
	return bad ? 1 : 0;
}

static int print_table(const struct scenario *s, const struct metrics *m)
{
	printf("%s%s%s\n\n", s->name, s->about[0] ? ": " : "", s->about);
	return report_summary(m, stdout) < 0 ? opts_fail(&verb_sim, "out of memory") : 0;
}

static int run_scenario(struct asked *a, char *path)
{
	struct progress progress;
	struct metrics *m;
	struct scenario *s = NULL;
	struct weir_err err;
	int r = load_scenario(a, path, &s);

	if (r)
		return r;
	/* before the run: a long one must not fail at the end */
	if (a->values[OUT] && files_make_dir(a->values[OUT], &err)) {
		opts_fail(&verb_sim, "%s", err.text);
		scenario_free(s);
		return 1;
	}
	progress_start(&progress, "simulating", 1);
	a->run.progress = tick_progress;
	a->run.progress_arg = &progress;
	r = sim_run(s, &a->run, &m, NULL, &err);
	progress_end(&progress);
	if (r) {
		opts_fail(&verb_sim, "%s: %s", path, err.text);
		scenario_free(s);
		return 1;
	}
	if (a->values[JSON])
		r = print_json(s, m);
	else if (!a->values[QUIET])
		r = print_table(s, m);
	if (r == 0 && a->values[OUT])
		r = write_out(a->values[OUT], s->name, m);
	metrics_free(m);
	scenario_free(s);
	return r;
}

/* Return 0, or 2 with the reason printed. */
static int check_operands(const struct asked *a, int operands)
{
	if (a->values[POLICY] && operands)
		return opts_fail(&verb_sim, "give a scenario or --policy, not both");
	if (!a->values[POLICY] && (a->n_devices || a->n_loads))
		return opts_fail(&verb_sim, "--device and --load go with --policy");
	if (!a->values[POLICY] && operands != 1)
		return opts_fail(&verb_sim, "needs one scenario file, or --policy");
	return 0;
}

static int sim_main(const char *const *values, char **operands, int n)
{
	struct asked a = {.values = values};
	int r = gather_all(&a);

	if (r == 0)
		r = check_operands(&a, n);
	if (r == 0)
		r = read_numbers(&a);
	if (r == 0)
		r = run_scenario(&a, values[POLICY] ? (char *)values[POLICY] : operands[0]);
	free_asked(&a);
	return r;
}
