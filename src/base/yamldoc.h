/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yamldoc: a YAML document that knows where everything stood.
 *
 * Parsed from memory by libyaml's document API, which keeps the line and column of every node. All
 * readers of configuration (policy, scenario, experiment) go through here, so that unknown keys,
 * wrong types, duplicate keys and bare numbers are refused in one way, with file:line:column and
 * the path of the value ("tenants[2].max").
 *
 * A getter returns 0 and sets its output, -ENOENT when the key is absent (the output untouched, no
 * message: absent is ordinary), or -EINVAL with a message. `yamldoc_need_…` makes absence an error.
 */
#ifndef WEIR_BASE_YAMLDOC_H
#define WEIR_BASE_YAMLDOC_H

#include "base/units.h"
#include <stdbool.h>

struct yamldoc;
typedef struct yamldoc_node { /* a value; cheap, copied; valid while the document lives */
	const struct yamldoc *doc;
	int id; /* 0: none */
} yamldoc_node;

enum yamldoc_kind { YAMLDOC_NONE, YAMLDOC_SCALAR, YAMLDOC_LIST, YAMLDOC_MAP };

/* `name` is the file's name for messages. Exactly one document; an empty text gives an empty map.
 * Aliases are followed; a cycle of aliases is refused, as is a key that stands twice in a map. */
int yamldoc_parse(const char *text, size_t len, const char *name, struct yamldoc **ret_doc,
	struct weir_err *err);
void yamldoc_free(struct yamldoc *doc);
yamldoc_node yamldoc_root(const struct yamldoc *doc);

enum yamldoc_kind yamldoc_kind(yamldoc_node n);
struct weir_place yamldoc_place(yamldoc_node n);
int yamldoc_error(yamldoc_node n, struct weir_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* message at n's place; returns -EINVAL */

/* Maps. `keys` is NULL-terminated; a key outside it is refused, with the near one suggested. */
int yamldoc_map(yamldoc_node n, const char *const *keys, struct weir_err *err);
yamldoc_node yamldoc_get(yamldoc_node map, const char *key); /* id 0 when absent or not a map */
size_t yamldoc_map_size(yamldoc_node map);
yamldoc_node yamldoc_map_at(yamldoc_node map, size_t i, const char **ret_key); /* document order */

/* Lists. */
int yamldoc_list(yamldoc_node n, struct weir_err *err); /* 0 or "must be a list" */
size_t yamldoc_size(yamldoc_node list);
yamldoc_node yamldoc_at(yamldoc_node list, size_t i);

/* Values of a map's key. Strings are borrowed from the document. */
int yamldoc_string(yamldoc_node map, const char *key, const char **ret, struct weir_err *err);
int yamldoc_bool(yamldoc_node map, const char *key, bool *ret, struct weir_err *err);
int yamldoc_count(yamldoc_node map, const char *key, double *ret, struct weir_err *err);
int yamldoc_int(yamldoc_node map, const char *key, int64_t lo, int64_t hi, int64_t *ret,
	struct weir_err *err);
int yamldoc_time(yamldoc_node map, const char *key, weir_time *ret, struct weir_err *err);
int yamldoc_size_of(yamldoc_node map, const char *key, uint64_t *ret_bytes, struct weir_err *err);
int yamldoc_rate(yamldoc_node map, const char *key, struct weir_rate *ret, struct weir_err *err);
int yamldoc_choice(yamldoc_node map, const char *key, const char *const *words, int *ret_index,
	struct weir_err *err); /* one of `words` (NULL-terminated), near one suggested */

/* The text of a scalar node, or NULL. */
const char *yamldoc_text(yamldoc_node n);

#endif
