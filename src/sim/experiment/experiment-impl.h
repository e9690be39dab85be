/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-impl: what reading an experiment's file is made of. */
#ifndef WEIR_SIM_EXPERIMENT_EXPERIMENT_IMPL_H
#define WEIR_SIM_EXPERIMENT_EXPERIMENT_IMPL_H

#include "base/yamldoc.h"
#include "sim/experiment/experiment.h"

struct experiment_reader {
	struct experiment *e;
	struct weir_err *err;
	const char *x; /* what $x stands for; NULL: nothing */
};

/* Zeroed memory, which is the experiment's; NULL: there is none. */
void *experiment_keep(struct experiment *e, size_t bytes);

/* A copy of `text`, which is the experiment's, with `x` in the place of every "$x"; NULL text gives NULL. */
int experiment_expand(struct experiment *e, const char *text, const char *x, const char **ret,
	struct weir_err *err);

/* A string of the map, expanded. Absent: NULL, or an error if it is needed. */
int experiment_text_of(struct experiment_reader *r, yamldoc_node map, const char *key, bool needed,
	const char **ret);
/* The same, which must be an expression. */
int experiment_expr_of(struct experiment_reader *r, yamldoc_node map, const char *key, bool needed,
	const char **ret);

/* Reads root[key], a list of maps, each as often as its `for` says, into an array of `size`d
 * entries. */
typedef int experiment_read_entry(struct experiment_reader *r, yamldoc_node map, void *entry);
int experiment_entries(struct experiment_reader *r, yamldoc_node root, const char *key, size_t size,
	experiment_read_entry *read, void **ret, size_t *ret_n);

/* map.set into *ret, with room for `more` behind them. */
int experiment_sets(struct experiment_reader *r, yamldoc_node map, size_t more,
	struct scenario_set **ret, size_t *ret_n);

/* `without` of the file, when runs and claims have been read. */
int experiment_read_without(struct experiment_reader *r, yamldoc_node root);

#endif
