/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  The document is loaded as a graph: an alias is the same node again. One walk from the
 *         root, O(nodes · log of the largest map), refuses invalid documents and records each
 *         node's first parent, from which paths are built.
 */
#include "base/field.h"
#include "base/no-memory.h"
#include "base/yamldoc.h"
#include "base/yamldoc-impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many more nodes aliases may expand to than are written: enough for any sensible sharing,
 * while a reader that visits each of them ends within a second. */
#define EXPANSION UINT64_C(1000000)

#define FEW 16 /* largest map whose keys are compared pairwise */

enum state { UNSEEN, OPEN, DONE }; /* OPEN: on the path from the root to the visited node */

static const struct yamldoc_value *node_of(yamldoc_node n)
{
	return n.doc && n.id > 0 ? &n.doc->values.of[n.id - 1] : NULL;
}

static size_t n_nodes(const struct yamldoc *doc)
{
	return doc->values.n;
}

static int key_of(const struct yamldoc_value *map, size_t i)
{
	return map->items[2 * i];
}

static int value_of(const struct yamldoc_value *map, size_t i)
{
	return map->items[2 * i + 1];
}

static const char *key_text(const struct yamldoc *doc, const struct yamldoc_value *map, size_t i)
{
	return doc->values.of[key_of(map, i) - 1].text;
}

/* ---- the walk ---- */

struct key {
	const char *text;
	int slot;
};

static int key_order(const void *a, const void *b)
{
	const struct key *x = a, *y = b;
	int by_text = strcmp(x->text, y->text);

	return by_text ? by_text : x->slot - y->slot;
}

static int duplicate_key(yamldoc_node n, size_t a, size_t b, struct weir_err *err)
{
	const struct yamldoc_value *y = node_of(n);
	yamldoc_node first = {n.doc, key_of(y, a)}, again = {n.doc, key_of(y, b)};

	return yamldoc_error(again, err, "key '%.60s' is given twice; first in line %u",
		key_text(n.doc, y, b), yamldoc_place(first).line);
}

static int check_unique(yamldoc_node n, struct weir_err *err)
{
	const struct yamldoc_value *y = node_of(n);
	size_t count = y->n;
	int r = 0;

	if (count <= FEW) {
		for (size_t i = 1; i < count; i++)
			for (size_t k = 0; k < i; k++)
				if (strcmp(key_text(n.doc, y, k), key_text(n.doc, y, i)) == 0)
					return duplicate_key(n, k, i, err);
		return 0;
	}
	struct key *keys = malloc(count * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		keys[i] = (struct key){key_text(n.doc, y, i), (int)i};
	qsort(keys, count, sizeof(*keys), key_order);
	for (size_t i = 1; i < count && r == 0; i++)
		if (strcmp(keys[i - 1].text, keys[i].text) == 0)
			r = duplicate_key(n, (size_t)keys[i - 1].slot, (size_t)keys[i].slot, err);
	free(keys);
	return r;
}

static int visit_node(yamldoc_node n, unsigned depth, struct weir_err *err);

/* Visit one child and add it to its parent's sums. */
static int visit_child(yamldoc_node parent, int slot, int id, unsigned depth, struct weir_err *err)
{
	struct yamldoc_link *links = parent.doc->links;
	struct yamldoc_link *up = &links[parent.id - 1], *down = &links[id - 1];
	yamldoc_node child = {parent.doc, id};

	/* The loader refuses cycles, at the alias; but the walk must not rely on that. */
	if (down->state == OPEN)
		return yamldoc_error(parent, err,
			"this alias refers to the value that contains it (line %u)",
			yamldoc_place(child).line);
	if (down->state == UNSEEN) {
		down->parent = parent.id;
		down->slot = slot;
		int r = visit_node(child, depth + 1, err);
		if (r < 0)
			return r;
	}
	if (depth + 1 + down->height > YAMLDOC_DEPTH)
		return yamldoc_error(parent, err, "nested more than %d deep", YAMLDOC_DEPTH);
	if (down->height + 1 > up->height)
		up->height = (uint8_t)(down->height + 1);
	up->expanded += down->expanded;
	if (up->expanded > n_nodes(parent.doc) + EXPANSION)
		return yamldoc_error(parent, err, "its aliases expand to too many nodes");
	return 0;
}

static int visit_map(yamldoc_node n, unsigned depth, struct weir_err *err)
{
	const struct yamldoc_value *y = node_of(n);

	for (size_t i = 0; i < y->n; i++) {
		yamldoc_node key = {n.doc, key_of(y, i)};
		if (node_of(key)->kind != YAMLDOC_SCALAR)
			return yamldoc_error(
				n, err, "its keys must be plain words, not lists or maps");
		int r = visit_child(n, (int)i, key.id, depth, err);
		if (r < 0)
			return r;
	}
	int r = check_unique(n, err);
	for (size_t i = 0; i < y->n && r == 0; i++)
		r = visit_child(n, (int)i, value_of(y, i), depth, err);
	return r;
}

static int visit_list(yamldoc_node n, unsigned depth, struct weir_err *err)
{
	const struct yamldoc_value *y = node_of(n);
	int r = 0;

	for (size_t i = 0; i < y->n && r == 0; i++)
		r = visit_child(n, (int)i, y->items[i], depth, err);
	return r;
}

/* Visit n and its children, depth first; `depth` is the number of levels above n. */
static int visit_node(yamldoc_node n, unsigned depth, struct weir_err *err)
{
	const struct yamldoc_value *y = node_of(n);
	struct yamldoc_link *l = &n.doc->links[n.id - 1];
	int r = 0;

	if (depth >= YAMLDOC_DEPTH)
		return yamldoc_error(n, err, "nested more than %d deep", YAMLDOC_DEPTH);
	if (n.id == n.doc->values.tagged)
		return yamldoc_error(n, err, "tag \"%.40s\" is not supported", n.doc->values.tag);
	l->state = OPEN;
	l->height = 1;
	l->expanded = 1;
	if (y->kind == YAMLDOC_MAP)
		r = visit_map(n, depth, err);
	else if (y->kind == YAMLDOC_LIST)
		r = visit_list(n, depth, err);
	else if (y->nul)
		r = yamldoc_error(n, err, "must not contain a NUL character");
	l->state = DONE;
	return r;
}

/* ---- parsing ---- */

int yamldoc_parse(const char *text, size_t len, const char *name, struct yamldoc **ret_doc,
	struct weir_err *err)
{
	struct yamldoc *doc = calloc(1, sizeof(*doc));
	int r = -ENOMEM;

	if (doc && (doc->name = strdup(name)))
		r = yamldoc_load(text, len, name, &doc->values, err);
	if (r == 0) {
		doc->links_room = n_nodes(doc);
		doc->links = calloc(n_nodes(doc), sizeof(*doc->links));
		r = doc->links ? visit_node(yamldoc_root(doc), 0, err) : -ENOMEM;
	}
	if (r < 0) {
		yamldoc_free(doc);
		return r == -ENOMEM ? no_memory(err) : r;
	}
	*ret_doc = doc;
	return 0;
}

void yamldoc_free(struct yamldoc *doc)
{
	if (!doc)
		return;
	yamldoc_values_free(&doc->values);
	free(doc->links);
	free(doc->name);
	free(doc);
}

yamldoc_node yamldoc_root(const struct yamldoc *doc)
{
	return (yamldoc_node){doc, 1};
}

/* ---- places and messages ---- */

enum yamldoc_kind yamldoc_kind(yamldoc_node n)
{
	const struct yamldoc_value *y = node_of(n);

	return !y || y->null ? YAMLDOC_NONE : (enum yamldoc_kind)y->kind;
}

struct weir_place yamldoc_place(yamldoc_node n)
{
	const struct yamldoc_value *y = node_of(n);
	struct weir_place at = {n.doc ? n.doc->name : NULL, 0, 0};

	if (y) {
		at.line = y->line;
		at.column = y->column;
	}
	return at;
}

/* Write one step of a path: ".key" (without the dot at the start), "[2]", or nothing for a key,
 * whose map the path names already. */
static void put_step(yamldoc_node n, bool first, char *buf, size_t len)
{
	const struct yamldoc_link *l = &n.doc->links[n.id - 1];
	const struct yamldoc_value *up = node_of((yamldoc_node){n.doc, l->parent});

	buf[0] = '\0';
	if (up->kind == YAMLDOC_LIST)
		snprintf(buf, len, "[%d]", l->slot);
	else if (key_of(up, (size_t)l->slot) != n.id)
		snprintf(buf, len, "%s%.60s", first ? "" : ".",
			key_text(n.doc, up, (size_t)l->slot));
}

/* Build the path from its end, so that the part nearest to n remains if it must be cut. */
char *yamldoc_path(yamldoc_node n, char *buf, size_t len)
{
	static const char cut[] = "…";
	char step[80];
	size_t at = len - 1; /* where the path starts */

	buf[at] = '\0';
	while (n.doc && n.id > 0 && n.doc->links && n.doc->links[n.id - 1].parent) {
		int up = n.doc->links[n.id - 1].parent;
		put_step(n, n.doc->links[up - 1].parent == 0, step, sizeof(step));
		size_t size = strlen(step);
		if (size + sizeof(cut) > at) {
			if (at >= sizeof(cut) - 1)
				memcpy(buf + (at -= sizeof(cut) - 1), cut, sizeof(cut) - 1);
			break;
		}
		memcpy(buf + (at -= size), step, size);
		n.id = up;
	}
	memmove(buf, buf + at, len - at);
	return buf;
}

int yamldoc_error(yamldoc_node n, struct weir_err *err, const char *fmt, ...)
{
	char path[100];
	struct weir_err what;
	va_list args;

	if (!err)
		return -EINVAL;
	va_start(args, fmt);
	vsnprintf(what.text, sizeof(what.text), fmt, args);
	va_end(args);
	yamldoc_path(n, path, sizeof(path));
	return weir_err_at(
		err, -EINVAL, yamldoc_place(n), "%s%s%s", path, *path ? ": " : "", what.text);
}

const char *yamldoc_text(yamldoc_node n)
{
	return yamldoc_kind(n) == YAMLDOC_SCALAR ? node_of(n)->text : NULL;
}

/* ---- maps and lists ---- */

int yamldoc_map_from(yamldoc_node n, const char *const *keys, size_t *from, struct weir_err *err)
{
	const struct yamldoc_value *y = node_of(n);

	if (yamldoc_kind(n) != YAMLDOC_MAP)
		return yamldoc_error(n, err, "must be a map (key: value)");
	for (size_t i = *from; keys && i < y->n; i++) {
		yamldoc_node key = {n.doc, key_of(y, i)};
		const char *near, *text = key_text(n.doc, y, i);
		char list[160];
		if (field_index(keys, text) >= 0)
			continue;
		*from = i + 1;
		near = weir_err_near(text, keys);
		if (near)
			return yamldoc_error(
				key, err, "unknown key '%.60s' (did you mean '%s'?)", text, near);
		return yamldoc_error(key, err, "unknown key '%.60s' (known: %s)", text,
			field_join(keys, list, sizeof(list)));
	}
	return 0;
}

int yamldoc_map(yamldoc_node n, const char *const *keys, struct weir_err *err)
{
	size_t from = 0;

	return yamldoc_map_from(n, keys, &from, err);
}

yamldoc_node yamldoc_get(yamldoc_node map, const char *key)
{
	const struct yamldoc_value *y = node_of(map);
	size_t count = yamldoc_map_size(map);

	for (size_t i = 0; i < count; i++)
		if (strcmp(key_text(map.doc, y, i), key) == 0) {
			yamldoc_node n = {map.doc, value_of(y, i)};
			return node_of(n)->null ? (yamldoc_node){map.doc, 0} : n;
		}
	return (yamldoc_node){map.doc, 0};
}

bool yamldoc_has(yamldoc_node map, const char *key)
{
	size_t count = yamldoc_map_size(map);

	for (size_t i = 0; i < count; i++)
		if (strcmp(key_text(map.doc, node_of(map), i), key) == 0)
			return true;
	return false;
}

size_t yamldoc_map_size(yamldoc_node map)
{
	return yamldoc_kind(map) == YAMLDOC_MAP ? node_of(map)->n : 0;
}

yamldoc_node yamldoc_map_at(yamldoc_node map, size_t i, const char **ret_key)
{
	if (i >= yamldoc_map_size(map))
		return (yamldoc_node){map.doc, 0};
	const struct yamldoc_value *y = node_of(map);
	if (ret_key)
		*ret_key = key_text(map.doc, y, i);
	return (yamldoc_node){map.doc, value_of(y, i)};
}

int yamldoc_choice(yamldoc_node map, const char *key, const char *const *words, int *ret_index,
	struct weir_err *err)
{
	yamldoc_node n = yamldoc_get(map, key);
	struct weir_err why;
	const char *text;
	int r = yamldoc_as_string(n, &text, err);

	if (r == 0 && field_word(text, words, ret_index, &why) < 0)
		r = yamldoc_error(n, err, "%s", why.text);
	return r;
}

int yamldoc_list(yamldoc_node n, struct weir_err *err)
{
	return yamldoc_kind(n) == YAMLDOC_LIST ? 0 : yamldoc_error(n, err, "must be a list");
}

size_t yamldoc_size(yamldoc_node list)
{
	return yamldoc_kind(list) == YAMLDOC_LIST ? node_of(list)->n : 0;
}

yamldoc_node yamldoc_at(yamldoc_node list, size_t i)
{
	if (i >= yamldoc_size(list))
		return (yamldoc_node){list.doc, 0};
	return (yamldoc_node){list.doc, node_of(list)->items[i]};
}
