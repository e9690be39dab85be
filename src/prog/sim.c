/* SPDX-License-Identifier: BSD-3-Clause */
/* weir sim: one scenario in virtual time; the numbers, the series and their pictures. */
#include "prog/files.h"
#include "prog/progress.h"
#include "prog/verb.h"
#include "sim/plot.h"
#include "sim/report.h"
#include "sim/sim.h"
#include "base/units.h"
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED, OUT, SET, DURATION, JSON, QUIET, OPTIONS };
static const struct opt options[] = {
	[SEED] = {"seed", 's', "N", "the seed of everything random (the scenario's)"},
	[OUT] = {"out", 'o', "DIR", "leave values, series and pictures there"},
	[SET] = {"set", 0, "PATH=VALUE", "change the scenario first; may be repeated"},
	[DURATION] = {"duration", 'd', "TIME", "run for so long instead (virtual time)"},
	[JSON] = {"json", 0, NULL, "write the values as JSON instead of a table"},
	[QUIET] = {"quiet", 'q', NULL, "write no table"},
	[OPTIONS] = {NULL, 0, NULL, NULL},
};
static int verb_run(int argc, char **argv);
const struct verb verb_sim = {
	.name = "sim",
	.summary = "run a scenario on the simulator",
	.usage = "[OPTION]... SCENARIO",
	.options = options,
	.run = verb_run,
};

#define PICTURE_LINES 12 /* more cannot be told apart */

/* ---- what is asked for */

struct asked {
	const char *values[OPTIONS];
	struct scenario_set *sets;
	size_t n_sets;
	struct sim_options run;
};

/* Whether an argument is an option that takes the next one as its value. */
static bool takes_next(const char *arg)
{
	if (arg[0] != '-' || strchr(arg, '='))
		return false;
	for (const struct opt *o = options; o->name; o++) {
		if (!o->argument)
			continue;
		if (arg[1] == '-' ? strcmp(arg + 2, o->name) == 0
				  : arg[1] == o->letter && o->letter && !arg[2])
			return true;
	}
	return false;
}

/* Every --set, in order (opts_parse keeps the last only). 0, or 2 with the reason said. */
static int gather_sets(struct asked *a, int argc, char **argv)
{
	a->sets = calloc((size_t)argc + 1, sizeof(*a->sets));
	if (!a->sets)
		return opts_fail(&verb_sim, "out of memory");
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		char *set = NULL, *equals;

		if (strncmp(argv[i], "--set=", 6) == 0)
			set = argv[i] + 6;
		else if (strcmp(argv[i], "--set") == 0 && i + 1 < argc)
			set = argv[++i];
		else if (takes_next(argv[i]))
			i++;
		if (!set)
			continue;
		set = strdup(set);
		equals = set ? strchr(set, '=') : NULL;
		if (!equals || equals == set) {
			free(set);
			return opts_fail(
				&verb_sim, "--set: give PATH=VALUE, as in hosts[0].window=16");
		}
		*equals = '\0';
		a->sets[a->n_sets++] = (struct scenario_set){set, equals + 1};
	}
	return 0;
}

static int read_numbers(struct asked *a)
{
	struct weir_err err;

	if (a->values[SEED]) {
		char *end;
		errno = 0;
		a->run.seed = strtoull(a->values[SEED], &end, 10);
		a->run.seed_set = 1;
		if (errno || end == a->values[SEED] || *end || a->values[SEED][0] == '-')
			return opts_fail(
				&verb_sim, "--seed: '%s' is not a whole number", a->values[SEED]);
	}
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
	for (size_t i = 0; i < a->n_sets; i++)
		free((char *)a->sets[i].path);
	free(a->sets);
}

/* ---- the scenario */

/* A trace stands where the scenario says, seen from the scenario's own folder. */
static int read_beside(
	const char *path, void *scenario, char **ret_text, size_t *ret_len, struct weir_err *err)
{
	const char *slash = strrchr(scenario, '/');
	char full[PATH_MAX];

	if (path[0] == '/' || !slash)
		return files_read(path, ret_text, ret_len, err);
	if (snprintf(full, sizeof(full), "%.*s/%s", (int)(slash - (const char *)scenario),
		    (const char *)scenario, path) >= (int)sizeof(full))
		return weir_err_set(err, -ENAMETOOLONG, "%s: the name is too long", path);
	return files_read(full, ret_text, ret_len, err);
}

static int load(const struct asked *a, char *path, struct scenario **ret)
{
	struct weir_err err;
	char *text;
	size_t len;
	int r = files_read(path, &text, &len, &err);

	if (r == 0) {
		r = scenario_parse(text, len, path, a->sets, a->n_sets, ret, &err);
		free(text);
	}
	if (r)
		return opts_fail(&verb_sim, "%s", err.text);
	if (scenario_load(*ret, read_beside, path, &err)) {
		scenario_free(*ret);
		return opts_fail(&verb_sim, "%s", err.text);
	}
	return 0;
}

static int tick(double fraction, void *arg)
{
	progress_tick(arg, fraction);
	return 0;
}

/* ---- what comes out */

static int no_memory(struct weir_err *err)
{
	return weir_err_set(err, -ENOMEM, "out of memory");
}

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

static int write_data(const char *dir, const struct metrics *m, struct weir_err *err)
{
	char *text;
	int r = files_make_dir(dir, err);

	if (r)
		return r;
	if (report_values_csv(m, &text))
		return no_memory(err);
	r = write_csv(dir, "summary", text, err);
	for (size_t i = 0; r == 0 && i < metrics_count(m); i++) {
		struct metrics_entry e = metrics_at(m, i);

		if (!e.is_series)
			continue;
		if (report_series_csv(&e, &text))
			return no_memory(err);
		r = write_csv(dir, e.name, text, err);
	}
	return r;
}

/* One picture of the series KIND.*.WHAT. 0 as well when there is none of them. */
static int draw(const char *dir, const struct metrics *m, const char *kind, const char *what,
	const char *y_label, struct weir_err *err)
{
	struct plot_line lines[PICTURE_LINES] = {0};
	struct plot p = {
		.title = y_label, .x_label = "time [s]", .y_label = y_label, .lines = lines};
	char stem[64], labels[PICTURE_LINES][256];
	size_t kind_len = strlen(kind), what_len = strlen(what);
	int r;

	for (size_t i = 0; i < metrics_count(m) && p.n_lines < PICTURE_LINES; i++) {
		struct metrics_entry e = metrics_at(m, i);
		size_t len = strlen(e.name);

		if (!e.is_series || e.n == 0 || len < kind_len + what_len + 2 ||
			strncmp(e.name, kind, kind_len) != 0 || e.name[kind_len] != '.' ||
			e.name[len - what_len - 1] != '.' ||
			strcmp(e.name + len - what_len, what) != 0)
			continue;
		snprintf(labels[p.n_lines], sizeof(labels[0]), "%.*s",
			(int)(len - kind_len - what_len - 2), e.name + kind_len + 1);
		lines[p.n_lines] = (struct plot_line){
			.label = labels[p.n_lines], .points = e.points, .n = e.n};
		p.n_lines++;
	}
	if (p.n_lines == 0)
		return 0;
	snprintf(stem, sizeof(stem), "%s-%s", kind, what);
	r = plot_write(&p, dir, stem, err);
	return r ? r : plot_draw(dir, stem, err);
}

static int write_out(const char *dir, const struct metrics *m)
{
	static const char *const pictures[][3] = {
		{"tenant", "throughput", "throughput of tenants [iops]"},
		{"tenant", "latency", "mean latency of tenants [ms]"},
		{"tenant", "latency_p99", "p99 latency of tenants [ms]"},
		{"host", "window", "window of hosts [requests]"},
		{"device", "throughput", "throughput of devices [iops]"}};
	struct weir_err err;
	int r = write_data(dir, m, &err);

	for (size_t i = 0; r == 0 && i < sizeof(pictures) / sizeof(pictures[0]); i++) {
		r = draw(dir, m, pictures[i][0], pictures[i][1], pictures[i][2], &err);
		if (r == -ENOENT) {
			fprintf(stderr,
				"weir: sim: %s, so no pictures; the .gp and .csv files are in %s\n",
				err.text, dir);
			return 0;
		}
	}
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
			json_object_set_new(values, e.name, json_real(e.value));
	}
	root = json_pack("{s:s, s:o}", "scenario", scenario_name(s), "values", values);
	bad = !root || json_dumpf(root, stdout, JSON_INDENT(2)) != 0;
	putchar('\n');
	json_decref(root);
	return bad ? 1 : 0;
}

static int print_table(const struct scenario *s, const struct metrics *m)
{
	char *text;

	if (report_summary(m, &text))
		return opts_fail(&verb_sim, "out of memory");
	printf("%s%s%s\n\n%s", scenario_name(s), scenario_about(s)[0] ? ": " : "",
		scenario_about(s), text);
	free(text);
	return 0;
}

static int run_scenario(struct asked *a, char *path)
{
	struct progress progress;
	struct metrics *m;
	struct scenario *s = NULL;
	struct weir_err err;
	int r = load(a, path, &s);

	if (r)
		return r;
	progress_start(&progress, "simulating", 1);
	a->run.progress = tick;
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
		r = write_out(a->values[OUT], m);
	metrics_free(m);
	scenario_free(s);
	return r;
}

static int verb_run(int argc, char **argv)
{
	struct asked a = {0};
	int operands, r = gather_sets(&a, argc, argv);

	if (r == 0) {
		r = opts_parse(&verb_sim, argc, argv, a.values, &operands);
		if (r < 0 && operands != 1)
			r = opts_fail(&verb_sim, "give one scenario file");
		if (r < 0)
			r = read_numbers(&a);
		else
			r = r ? r : -1; /* --help was shown */
		if (r == 0)
			r = run_scenario(&a, argv[1]);
	}
	free_asked(&a);
	return r < 0 ? 0 : r;
}
