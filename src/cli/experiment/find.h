/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * find: find the folder of experiments, and read the file of one. Errors are printed to
 * stderr.
 */
#pragma once

#include "sim/experiment/experiment.h"
#include <dirent.h>
#include <limits.h>

extern const struct verb verb_experiment; /* experiment.c */

struct experiment_ids {
	const char *dir;
	struct dirent **entries; /* folders that hold an experiment.yaml, sorted */
	int n;
};
struct experiment_parameter_set { /* the value of --set; path "": none */
	char path[128], value[PATH_MAX];
};

/* Return the folder that was given, or the first of the usual places that exists. NULL: none. */
const char *experiment_find_dir(const char *asked);
/* List the experiments. Return 0, or 2; call experiment_find_free in either case. */
int experiment_find_ids(const char *dir, struct experiment_ids *ret);
void experiment_find_free(struct experiment_ids *ids);
/* Print that there is no such experiment, with a similar name. Return 2. */
int experiment_find_unknown(const struct experiment_ids *ids, const char *id);

/*
 * Parse NAME=VALUE (NULL: none). The path of a file or folder is relative to the current one.
 * Return 0 or 2.
 */
int experiment_find_set(const char *text, struct experiment_parameter_set *ret);
/* Read and parse the file of one experiment; set NULL: without changes. Return 0 or 2. */
int experiment_find_load(const char *dir, const char *id,
	const struct experiment_parameter_set *set, struct experiment **ret);
