/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-impl: shared by the files that read an experiment. */
#ifndef WEIR_SIM_EXPERIMENT_EXPERIMENT_IMPL_H
#define WEIR_SIM_EXPERIMENT_EXPERIMENT_IMPL_H

#include "base/yamldoc.h"
#include "sim/experiment/experiment.h"

struct experiment_reader {
	struct experiment *e;
	struct weir_err *err;
	const char *x; /* value of $x; NULL: none */
};

/* Return zeroed memory that the experiment owns; NULL without memory. */
void *experiment_keep(struct experiment *e, size_t bytes);

/* Copy `text` to memory of the experiment, with `x` in place of every "$x"; NULL text gives
 * NULL. */
int experiment_expand(struct experiment *e, const char *text, const char *x, const char **ret,
	struct weir_err *err);

/* Get a string of the map, expanded. Absent: NULL, or an error if it is needed. */
int experiment_text_of(struct experiment_reader *r, yamldoc_node map, const char *key, bool needed,
	const char **ret);
/* The same for an expression, whose syntax is checked. */
int experiment_expr_of(struct experiment_reader *r, yamldoc_node map, const char *key, bool needed,
	const char **ret);

/* Read root[key], a list of maps, each as often as its `for` says, into an array of entries of
 * `size` bytes. */
typedef int experiment_read_entry(struct experiment_reader *r, yamldoc_node map, void *entry);
int experiment_entries(struct experiment_reader *r, yamldoc_node root, const char *key, size_t size,
	experiment_read_entry *read, void **ret, size_t *ret_n);

/* Read map.set into *ret, with room for `more` further entries. */
int experiment_sets(struct experiment_reader *r, yamldoc_node map, size_t more,
	struct scenario_set **ret, size_t *ret_n);

/* Read `without` of the file, after runs and claims. */
int experiment_read_without(struct experiment_reader *r, yamldoc_node root);

#endif
