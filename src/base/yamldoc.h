/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yamldoc: a YAML document that keeps the place of every value.
 *
 * Loaded from memory through libyaml's events, with the line and column of every node. All readers
 * of configuration (policy, scenario, experiment) use it, so that unknown keys, wrong types,
 * duplicate keys and bare numbers are refused in one way, with file:line:column and the path of the
 * value ("tenants[2].max").
 *
 * A getter returns 0 and sets its output, -ENOENT if the key is absent (the output is untouched and
 * there is no message), or -EINVAL with a message. A plain null (nothing, ~,
 * null) counts as absent. List indices in paths count from 0.
 */
#pragma once

#include <weir/units.h>
#include <errno.h>
#include <stdbool.h>

struct yamldoc;
typedef struct yamldoc_node { /* a value; cheap, copied; valid while the document lives */
	const struct yamldoc *doc;
	int id; /* 0: none */
} yamldoc_node;

enum yamldoc_kind { YAMLDOC_NONE, YAMLDOC_SCALAR, YAMLDOC_LIST, YAMLDOC_MAP };

/* `name` is the file's name for messages, copied. At most one document; an empty text (or a
 * null) gives an empty map. Aliases are followed, `<<` is an ordinary key. Refused: a duplicate
 * key in a map, keys that are not scalars, a cycle of aliases, nesting over YAMLDOC_DEPTH (as
 * expanded), aliases that expand to over a million nodes more than are written (so a reader may
 * safely recurse into every child), over 1000 anchors, custom tags, NUL characters. Return 0,
 * -EINVAL or -ENOMEM. */
#define YAMLDOC_DEPTH 64 /* far above any policy tree, far below any stack */
int yamldoc_parse(const char *text, size_t len, const char *name, struct yamldoc **ret_doc,
	struct weir_err *err);
void yamldoc_free(struct yamldoc *doc);
yamldoc_node yamldoc_root(const struct yamldoc *doc);

enum yamldoc_kind yamldoc_kind(yamldoc_node n);  /* NONE also for a null */
struct weir_place yamldoc_place(yamldoc_node n); /* `file` lives as long as the document */
/* Write a message at n's place, prefixed by its path ("tenants[2].max: "); return -EINVAL. */
int yamldoc_error(yamldoc_node n, struct weir_err *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Write the path of n, "" for the root; cut at the front (…) if longer than len. Return buf. */
char *yamldoc_path(yamldoc_node n, char *buf, size_t len);

/* Check that n is a map with known keys. `keys` is NULL-terminated; an unknown key is refused, with
 * the nearest one suggested. NULL: any key is allowed. */
int yamldoc_map(yamldoc_node n, const char *const *keys, struct weir_err *err);
/* The same from pair *from on; at an unknown key *from is set to the next pair, so that a caller
 * can collect all errors by calling again until 0. Untouched if n is not a map. */
int yamldoc_map_from(yamldoc_node n, const char *const *keys, size_t *from, struct weir_err *err);
yamldoc_node yamldoc_get(yamldoc_node map, const char *key); /* id 0 when absent or not a map */
bool yamldoc_has(yamldoc_node map, const char *key); /* the key is written, even with a null */
size_t yamldoc_map_size(yamldoc_node map);
/* Return the i-th value in document order (id 0 beyond the end). ret_key may be NULL. */
yamldoc_node yamldoc_map_at(yamldoc_node map, size_t i, const char **ret_key);

/* Lists. */
int yamldoc_list(yamldoc_node n, struct weir_err *err); /* 0 or "must be a list" */
size_t yamldoc_size(yamldoc_node list);
yamldoc_node yamldoc_at(yamldoc_node list, size_t i);

/* Values of a map's key. Strings are borrowed from the document. Booleans: true false yes no on off,
 * in any case. Integers may be written 1k, 2M (powers of 1000). */
int yamldoc_string(yamldoc_node map, const char *key, const char **ret, struct weir_err *err);
int yamldoc_bool(yamldoc_node map, const char *key, bool *ret, struct weir_err *err);
int yamldoc_count(yamldoc_node map, const char *key, double *ret, struct weir_err *err);
int yamldoc_int(yamldoc_node map, const char *key, int64_t lo, int64_t hi, int64_t *ret,
	struct weir_err *err);
int yamldoc_time(yamldoc_node map, const char *key, weir_time *ret, struct weir_err *err);
int yamldoc_size_of(yamldoc_node map, const char *key, uint64_t *ret_bytes, struct weir_err *err);
int yamldoc_rate(yamldoc_node map, const char *key, struct weir_rate *ret, struct weir_err *err);
int yamldoc_choice(yamldoc_node map, const char *key, const char *const *words, int *ret_index,
	struct weir_err *err); /* one of `words` (NULL-terminated); suggests the nearest */

/* The same for a node itself, such as a list's item; -ENOENT for none or a null. */
int yamldoc_as_string(yamldoc_node n, const char **ret, struct weir_err *err);
int yamldoc_as_count(yamldoc_node n, double *ret, struct weir_err *err);
int yamldoc_as_time(yamldoc_node n, weir_time *ret, struct weir_err *err);
int yamldoc_as_size(yamldoc_node n, uint64_t *ret_bytes, struct weir_err *err);
int yamldoc_as_rate(yamldoc_node n, struct weir_rate *ret, struct weir_err *err);

/* Map -ENOENT of a getter to 0, for an optional key. */
static inline int yamldoc_optional(int r)
{
	return r == -ENOENT ? 0 : r;
}

/* Make values in the document's memory, of values that are in it. Messages about a made value have the place and the path of
 * `like`. Nodes stay valid. All return 0 or -ENOMEM. */
struct yamldoc_pair {
	const char *key;
	yamldoc_node value;
};
int yamldoc_make_text(
	struct yamldoc *doc, yamldoc_node like, const char *text, yamldoc_node *ret_node);
int yamldoc_make_list(struct yamldoc *doc, yamldoc_node like, const yamldoc_node *items, size_t n,
	yamldoc_node *ret_node);
int yamldoc_make_map(struct yamldoc *doc, yamldoc_node like, const struct yamldoc_pair *pairs,
	size_t n, yamldoc_node *ret_node);
/* Lay `over` over `under`: of two maps each key, and maps in them likewise; else `over` if it is there. */
int yamldoc_make_over(
	struct yamldoc *doc, yamldoc_node under, yamldoc_node over, yamldoc_node *ret_node);

/* Return the text of a scalar node, or NULL (also for a null). */
const char *yamldoc_text(yamldoc_node n);
