/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * METHOD  A made value is appended to the document's values. Its link is a copy of another value's, so that messages about it
 *         have that value's place and path; the values in it keep theirs.
 */
#include "base/yamldoc-impl.h"
#include "base/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Append a value with the place and the path of `like`. Return its id, or -ENOMEM. */
static int add_value(struct yamldoc *doc, yamldoc_node like, struct yamldoc_value value)
{
	struct yamldoc_values *v = &doc->values;
	size_t room = v->n < v->room && v->room <= doc->links_room ? 0 : 2 * v->n + 64;

	if (room) {
		if (array_resize(&v->of, room) < 0 || array_resize(&doc->links, room) < 0)
			return -ENOMEM;
		v->room = doc->links_room = room;
	}
	value.line = v->of[like.id - 1].line;
	value.column = v->of[like.id - 1].column;
	v->of[v->n] = value;
	doc->links[v->n] = doc->links[like.id - 1];
	return (int)++v->n;
}

static const char *copy_text(struct yamldoc *doc, const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = yamldoc_allocate(&doc->values, len);

	return copy ? memcpy(copy, text, len) : NULL;
}

int yamldoc_make_text(
	struct yamldoc *doc, yamldoc_node like, const char *text, yamldoc_node *ret_node)
{
	const char *copy = copy_text(doc, text);
	int id = copy ? add_value(doc, like,
				(struct yamldoc_value){.kind = YAMLDOC_SCALAR, .text = copy})
		      : -ENOMEM;

	if (id < 0)
		return id;
	*ret_node = (yamldoc_node){doc, id};
	return 0;
}

int yamldoc_make_list(struct yamldoc *doc, yamldoc_node like, const yamldoc_node *items, size_t n,
	yamldoc_node *ret_node)
{
	int *ids = yamldoc_allocate(&doc->values, n * sizeof(*ids));
	int id;

	for (size_t i = 0; ids && i < n; i++)
		ids[i] = items[i].id;
	id = ids ? add_value(doc, like,
			   (struct yamldoc_value){
				   .kind = YAMLDOC_LIST, .items = ids, .n = (unsigned)n})
		 : -ENOMEM;
	if (id < 0)
		return id;
	*ret_node = (yamldoc_node){doc, id};
	return 0;
}

int yamldoc_make_map(struct yamldoc *doc, yamldoc_node like, const struct yamldoc_pair *pairs,
	size_t n, yamldoc_node *ret_node)
{
	int *ids = yamldoc_allocate(&doc->values, 2 * n * sizeof(*ids));
	int id = ids ? 0 : -ENOMEM;

	for (size_t i = 0; ids && i < n; i++) {
		yamldoc_node key;

		id = yamldoc_make_text(doc, pairs[i].value, pairs[i].key, &key);
		if (id < 0)
			return id;
		ids[2 * i] = key.id;
		ids[2 * i + 1] = pairs[i].value.id;
	}
	if (id >= 0)
		id = add_value(doc, like,
			(struct yamldoc_value){
				.kind = YAMLDOC_MAP, .items = ids, .n = (unsigned)n});
	if (id < 0)
		return id;
	*ret_node = (yamldoc_node){doc, id};
	return 0;
}

/* ---- one map over another */

int yamldoc_make_over(
	struct yamldoc *doc, yamldoc_node under, yamldoc_node over, yamldoc_node *ret_node)
{
	size_t n = 0, room = yamldoc_map_size(under) + yamldoc_map_size(over);
	struct yamldoc_pair *pairs;
	int r = 0;

	if (yamldoc_kind(under) != YAMLDOC_MAP || yamldoc_kind(over) != YAMLDOC_MAP) {
		*ret_node = over.id ? over : under;
		return 0;
	}
	pairs = calloc(room + 1, sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < yamldoc_map_size(under); i++) {
		struct yamldoc_pair *p = &pairs[n++];
		yamldoc_node value = yamldoc_map_at(under, i, &p->key);

		r = yamldoc_make_over(doc, value, yamldoc_get(over, p->key), &p->value);
	}
	for (size_t i = 0; r == 0 && i < yamldoc_map_size(over); i++) {
		pairs[n].value = yamldoc_map_at(over, i, &pairs[n].key);
		n += !yamldoc_has(under, pairs[n].key);
	}
	if (r == 0)
		r = yamldoc_make_map(doc, over, pairs, n, ret_node);
	free(pairs);
	return r;
}
