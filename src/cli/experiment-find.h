/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * experiment-find: the folder of experiments, and the file of one of them. What is wrong is said on stderr.
 */
#ifndef WEIR_CLI_EXPERIMENT_FIND_H
#define WEIR_CLI_EXPERIMENT_FIND_H

#include "sim/experiment/experiment.h"
#include <dirent.h>
#include <limits.h>

extern const struct verb verb_experiment; /* experiment.c */

struct experiment_ids {
	const char *dir;
	struct dirent **entries; /* folders that hold an experiment.yaml, sorted */
	int n;
};
struct experiment_parameter_set { /* what --set says; path "": nothing */
	char path[128], value[PATH_MAX];
};

/* The folder that was asked for, or the first of the usual places. NULL: there is none. */
const char *experiment_find_dir(const char *asked);
/* 0, or 2; experiment_find_free in either case. */
int experiment_find_ids(const char *dir, struct experiment_ids *ret);
void experiment_find_free(struct experiment_ids *ids);
/* Says that there is no such experiment, and which name is near. Returns 2. */
int experiment_find_unknown(const struct experiment_ids *ids, const char *id);

/* text: NAME=VALUE, or NULL. A file or folder is seen from the current one. 0 or 2. */
int experiment_find_set(const char *text, struct experiment_parameter_set *ret);
/* One experiment's file, read and parsed; set NULL: as it is. 0 or 2. */
int experiment_find_load(const char *dir, const char *id,
	const struct experiment_parameter_set *set, struct experiment **ret);

#endif
