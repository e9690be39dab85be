/* SPDX-License-Identifier: BSD-3-Clause */
/* extra: a sorted list, and its file. */
#include "base/array.h"
#include "base/no-memory.h"
#include "serve/gateway/extra.h"
#include "serve/gateway/state.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "volumes.json"

static void free_one(struct gateway_extra *e)
{
	free(e->name);
	free(e->resource);
	free(e->back);
	free(e->class_);
}

void gateway_extras_free(struct gateway_extras *list)
{
	for (size_t i = 0; i < list->n; i++)
		free_one(&list->all[i]);
	free(list->all);
	*list = (struct gateway_extras){0};
}

/* Return the place of a name, or where it would be. */
static size_t place_of(const struct gateway_extras *list, const char *name)
{
	size_t from = 0, to = list->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (strcmp(list->all[middle].name, name) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

const struct gateway_extra *gateway_extras_find(const struct gateway_extras *list, const char *name)
{
	size_t at = place_of(list, name);

	return at < list->n && strcmp(list->all[at].name, name) == 0 ? &list->all[at] : NULL;
}

static int copy_one(const struct gateway_extra *from, struct gateway_extra *ret)
{
	struct gateway_extra to = {.name = strdup(from->name),
		.resource = strdup(from->resource),
		.back = strdup(from->back),
		.class_ = from->class_ ? strdup(from->class_) : NULL,
		.kind = from->kind,
		.file = from->file};

	if (!to.name || !to.resource || !to.back || (from->class_ && !to.class_)) {
		free_one(&to);
		return -ENOMEM;
	}
	*ret = to;
	return 0;
}

int gateway_extras_put(struct gateway_extras *list, const struct gateway_extra *one)
{
	struct gateway_extra copy;
	size_t at;

	if (copy_one(one, &copy) < 0)
		return -ENOMEM;
	gateway_extras_drop(list, one->name);
	if (array_grow(&list->all, &list->room, list->n + 1) < 0) {
		free_one(&copy);
		return -ENOMEM;
	}
	at = place_of(list, copy.name);
	memmove(list->all + at + 1, list->all + at, (list->n++ - at) * sizeof(*list->all));
	list->all[at] = copy;
	return 0;
}

void gateway_extras_drop(struct gateway_extras *list, const char *name)
{
	size_t at = place_of(list, name);

	if (!gateway_extras_find(list, name))
		return;
	free_one(&list->all[at]);
	memmove(list->all + at, list->all + at + 1, (--list->n - at) * sizeof(*list->all));
}

int gateway_extras_copy(const struct gateway_extras *from, struct gateway_extras *ret)
{
	struct gateway_extras to = {0};
	int rc = array_grow(&to.all, &to.room, from->n);

	for (; rc == 0 && to.n < from->n; to.n++)
		rc = copy_one(&from->all[to.n], &to.all[to.n]);
	if (rc < 0) {
		to.n -= to.n > 0; /* the last was not copied */
		gateway_extras_free(&to);
		return rc;
	}
	*ret = to;
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool gateway_extras_same(const struct gateway_extras *a, const struct gateway_extras *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++) {
		const struct gateway_extra *x = &a->all[i], *y = &b->all[i];

		if (strcmp(x->name, y->name) != 0 || strcmp(x->resource, y->resource) != 0 ||
			strcmp(x->back, y->back) != 0 || !same_text(x->class_, y->class_) ||
			x->kind != y->kind || !policy_file_same(&x->file, &y->file))
			return false;
	}
	return a->n == b->n;
}

/* ---- its file */

static const char *const kinds[] = {"added", "made", "found", "hidden", "gone"};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static int read_one(json_t *from, struct gateway_extras *list)
{
	const char *class_ = NULL, *name, *resource, *back, *kind;
	json_int_t inode = 0, born = 0;
	size_t k = 0;

	if (json_unpack(from, "{s:s, s:s, s:s, s?s, s:s, s?I, s?I}", "name", &name, "resource",
		    &resource, "back", &back, "class", &class_, "kind", &kind, "inode", &inode,
		    "born", &born) < 0)
		return -EINVAL;
	while (k < KINDS && strcmp(kinds[k], kind) != 0)
		k++;
	if (k == KINDS)
		return -EINVAL;
	return gateway_extras_put(
		list, &(struct gateway_extra){(char *)name, (char *)resource, (char *)back,
			      (char *)class_, (enum gateway_extra_kind)k,
			      {.ino = (uint64_t)inode, .born = (uint64_t)born}});
}

static int read_list(json_t *root, void *arg)
{
	struct gateway_extras *list = arg;
	json_t *all = json_object_get(root, "volumes"), *one;
	int rc = json_is_array(all) ? 0 : -EINVAL;
	size_t i;

	json_array_foreach(all, i, one) if (rc == 0) rc = read_one(one, list);
	if (rc < 0)
		gateway_extras_free(list);
	return rc;
}

int gateway_extras_read(const char *folder, struct gateway_extras *ret, struct weir_err *err)
{
	*ret = (struct gateway_extras){0};
	return gateway_state_load(folder, FILE_NAME, "volumes", read_list, ret, err);
}

static json_t *make_one(const struct gateway_extra *e)
{
	return json_pack("{s:s, s:s, s:s, s:s*, s:s, s:I, s:I}", "name", e->name, "resource",
		e->resource, "back", e->back, "class", e->class_, "kind", kinds[e->kind], "inode",
		(json_int_t)e->file.ino, "born", (json_int_t)e->file.born);
}

int gateway_extras_write(
	const char *folder, const struct gateway_extras *list, struct weir_err *err)
{
	json_t *all = json_array();
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < list->n; i++)
		rc = json_array_append_new(all, make_one(&list->all[i]));
	if (rc < 0) {
		json_decref(all);
		return no_memory(err);
	}
	return gateway_state_save(
		folder, FILE_NAME, "volumes", json_pack("{s:o}", "volumes", all), err);
}
