/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * find: find the folder of experiments, and read the file of one. Errors are printed to
 * stderr.
 */
#pragma once

#include "sim/experiment/experiment.h"
#include <dirent.h>
#include <stddef.h>

extern const struct verb verb_experiment; /* experiment.c */

struct experiment_ids {
	const char *dir;
	struct dirent **entries; /* folders that hold an experiment.yaml, sorted */
	int n;
};
struct experiment_sets { /* the values of all --set */
	struct scenario_set *all;
	size_t n;
};

/* Return the folder that was given, or the first of the usual places that exists. NULL: none. */
const char *experiment_find_dir(const char *asked);
/* List the experiments. Return 0, or 2; call experiment_find_free in either case. */
int experiment_find_ids(const char *dir, struct experiment_ids *ret);
void experiment_find_free(struct experiment_ids *ids);
/* Print that there is no such experiment, with a similar name. Return 2. */
int experiment_find_unknown(const struct experiment_ids *ids, const char *id);

/*
 * Parse n texts NAME=VALUE; of the same name the last one holds. The path of a file or folder is
 * relative to the current one. Return 0, or 2; call experiment_find_sets_free in either case.
 */
int experiment_find_sets(const char *const *texts, size_t n, struct experiment_sets *ret);
void experiment_find_sets_free(struct experiment_sets *sets);
/* Read and parse the file of one experiment; sets NULL: without changes. Return 0 or 2. */
int experiment_find_load(const char *dir, const char *id, const struct experiment_sets *sets,
	struct experiment **ret);
