/* SPDX-License-Identifier: BSD-3-Clause */
/* experiment-impl: shared by the files that read an experiment. */
#pragma once

#include "base/yamldoc.h"
#include "sim/experiment/experiment.h"

struct experiment_reader {
	struct experiment *e;
	const char *file; /* its name, for places in messages that outlive the document */
	struct weir_err *err;
	const char *x; /* value of $x; NULL: none */
	/* The first error. When there is one, nothing is read any more: all functions below return
	 * at once, with NULL or 0. */
	int code;
};

/* Set the first error, at a node. */
#define experiment_refuse(r, node, ...)                                                            \
	((r)->code = (r)->code ? (r)->code : yamldoc_error((node), (r)->err, __VA_ARGS__))

/* Return zeroed memory for n objects that the experiment owns, or NULL. */
void *experiment_keep(struct experiment_reader *r, size_t n, size_t size);

/* Return a copy of the text, with values in place of "$x" and parameters; NULL text gives NULL. */
const char *experiment_expand(struct experiment_reader *r, const char *text);

enum experiment_type {
	EXPERIMENT_TEXT, /* const char *; absent: NULL */
	EXPERIMENT_NEED, /* the same, but it must be there */
	EXPERIMENT_NAME, /* likewise; for expressions and names of files */
	EXPERIMENT_EXPR, /* likewise; an expression, whose syntax is checked */
	EXPERIMENT_FLAG, /* bool */
	EXPERIMENT_PART, /* read by another function */
};
struct experiment_field {
	const char *key;
	enum experiment_type type;
	size_t offset; /* in the entry */
};
/* Read the fields of a map, which has no others; a field without a key ends them. */
void experiment_fields(struct experiment_reader *r, yamldoc_node map,
	const struct experiment_field *fields, void *entry);
/* Return one text of the map, expanded; NULL: absent. */
const char *experiment_text_of(
	struct experiment_reader *r, yamldoc_node map, const char *key, enum experiment_type type);
struct weir_place experiment_place(const struct experiment_reader *r, yamldoc_node n);

/* Read root[key], a list of maps, each as often as its `for` says, into an array of entries of
 * `size` bytes, which is returned. */
typedef void experiment_read_entry(struct experiment_reader *r, yamldoc_node map, void *entry);
void *experiment_entries(struct experiment_reader *r, yamldoc_node root, const char *key,
	size_t size, experiment_read_entry *read, size_t *ret_n);

/* Return the entries of map.set, with room for `more` further ones. */
struct scenario_set *experiment_sets(
	struct experiment_reader *r, yamldoc_node map, size_t more, size_t *ret_n);

/* Read `without` of the file, after runs and claims. */
void experiment_read_without(struct experiment_reader *r, yamldoc_node root);
