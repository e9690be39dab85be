/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/experiment/find.h"
#include "cli/common/files.h"
#include "cli/common/verb.h"
#include "sim/scenario/scenario.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef WEIR_DATADIR /* where `make install` installs the program's data */
#define WEIR_DATADIR "/usr/local/share/weir"
#endif

static bool is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/*
 * Return the folder of experiments relative to the program: of a build folder in the source, or of
 * a tree with bin and share. NULL: neither.
 */
static const char *find_beside(void)
{
	static const char *const places[] = {"../experiments", "../share/weir/experiments"};
	static char path[PATH_MAX + 32];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *end;

	if (n <= 0 || n >= PATH_MAX)
		return NULL;
	path[n] = '\0';
	end = strrchr(path, '/');
	for (size_t i = 0; end && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(end + 1, sizeof(path) - (size_t)(end + 1 - path), "%s", places[i]);
		if (is_dir(path))
			return path;
	}
	return NULL;
}

const char *experiment_find_dir(const char *asked)
{
	const char *from_env = getenv("WEIR_EXPERIMENTS"), *found;
	const char *named = asked ? asked : from_env && *from_env ? from_env : NULL;

	if (named) {
		if (is_dir(named))
			return named;
		opts_fail(&verb_experiment, "%s: no such folder (%s)", named,
			asked ? "--dir" : "$WEIR_EXPERIMENTS");
		return NULL;
	}
	if (is_dir("experiments"))
		return "experiments";
	found = find_beside();
	if (!found && is_dir(WEIR_DATADIR "/experiments"))
		found = WEIR_DATADIR "/experiments";
	if (!found)
		opts_fail(&verb_experiment,
			"no experiments in ./experiments, beside the program, or in "
			"%s/experiments; give --dir or set $WEIR_EXPERIMENTS",
			WEIR_DATADIR);
	return found;
}

int experiment_find_ids(const char *dir, struct experiment_ids *ret)
{
	char path[PATH_MAX];
	struct stat st;
	int n, kept = 0;

	n = scandir(dir, &ret->entries, NULL, alphasort);
	if (n < 0)
		return opts_fail(&verb_experiment, "%s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		struct dirent *d = ret->entries[i];

		snprintf(path, sizeof(path), "%s/%s/experiment.yaml", dir, d->d_name);
		if (d->d_name[0] != '.' && stat(path, &st) == 0)
			ret->entries[kept++] = d;
		else
			free(d);
	}
	ret->dir = dir;
	ret->n = kept;
	return kept ? 0 : opts_fail(&verb_experiment, "%s: contains no experiment", dir);
}

void experiment_find_free(struct experiment_ids *ids)
{
	for (int i = 0; i < ids->n; i++)
		free(ids->entries[i]);
	free(ids->entries);
}

int experiment_find_unknown(const struct experiment_ids *ids, const char *id)
{
	const char **names = calloc((size_t)ids->n + 1, sizeof(*names)), *near = NULL;

	for (int i = 0; names && i < ids->n; i++)
		names[i] = ids->entries[i]->d_name;
	if (names)
		near = weir_err_near(id, names);
	free(names);
	if (near)
		return opts_fail(
			&verb_experiment, "no experiment '%s' (did you mean '%s'?)", id, near);
	return opts_fail(&verb_experiment,
		"no experiment '%s' in %s; weir experiment list shows them", id, ids->dir);
}

static int read_set(const char *text, struct scenario_set *ret)
{
	const char *equals = strchr(text, '=');
	char *path, *value;

	if (!equals || equals == text)
		return opts_fail(&verb_experiment, "--set: give NAME=VALUE, as in traces=FOLDER");
	if (asprintf(&path, "parameters.%.*s", (int)(equals - text), text) < 0)
		return opts_no_memory(&verb_experiment);
	ret->path = path;
	value = realpath(equals + 1, NULL);
	ret->value = value ? value : strdup(equals + 1);
	return ret->value ? 0 : opts_no_memory(&verb_experiment);
}

int experiment_find_sets(const char *const *texts, size_t n, struct experiment_sets *ret)
{
	int status = 0;

	*ret = (struct experiment_sets){.all = calloc(n + 1, sizeof(*ret->all)), .n = n};
	if (!ret->all || !texts) {
		ret->n = 0;
		return opts_no_memory(&verb_experiment);
	}
	for (size_t i = 0; status == 0 && i < n; i++)
		status = read_set(texts[i], &ret->all[i]);
	return status;
}

void experiment_find_sets_free(struct experiment_sets *sets)
{
	for (size_t i = 0; i < sets->n; i++) {
		free((char *)sets->all[i].path);
		free((char *)sets->all[i].value);
	}
	free(sets->all);
}

static int parse_with_sets(const char *text, size_t len, const char *path,
	const struct experiment_sets *sets, struct experiment **ret, struct weir_err *err)
{
	char *changed;
	int r;

	if (!sets || sets->n == 0)
		return experiment_parse(text, len, path, ret, err);
	r = scenario_override(text, len, path, sets->all, sets->n, &changed, &len, err);
	if (r < 0)
		return r;
	r = experiment_parse(changed, len, path, ret, err);
	free(changed);
	return r;
}

int experiment_find_load(const char *dir, const char *id, const struct experiment_sets *sets,
	struct experiment **ret)
{
	struct weir_err err;
	char path[PATH_MAX], *text;
	size_t len;
	int r;

	snprintf(path, sizeof(path), "%s/%s/experiment.yaml", dir, id);
	r = files_read(path, FILES_WRITTEN, &text, &len, &err);
	if (r == 0) {
		r = parse_with_sets(text, len, path, sets, ret, &err);
		free(text);
	}
	if (r < 0)
		return opts_fail(&verb_experiment, "%s", err.text);
	if (strcmp((*ret)->id, id) != 0) {
		opts_fail(
			&verb_experiment, "%s: id is '%s', its folder '%s'", path, (*ret)->id, id);
		experiment_free(*ret);
		return 2;
	}
	return 0;
}
