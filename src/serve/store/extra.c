/* SPDX-License-Identifier: BSD-3-Clause */
/* extra: a sorted list, and its file. */
#include "base/array.h"
#include "base/same.h"
#include "base/no-memory.h"
#include "serve/store/extra.h"
#include "serve/store/json-text.h"
#include "serve/store/state-file.h"
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "volumes.json"

static void free_one(struct extra *e)
{
	free(e->name);
	free(e->resource);
	free(e->back);
	free(e->class_);
}

void extras_free(struct extras *list)
{
	for (size_t i = 0; i < list->n; i++)
		free_one(&list->all[i]);
	free(list->all);
	*list = (struct extras){0};
}

static int by_name(const void *name, const void *element)
{
	return strcmp(name, ((const struct extra *)element)->name);
}

const struct extra *extras_find(const struct extras *list, const char *name)
{
	size_t at;

	return array_find(list->all, list->n, name, by_name, &at) ? &list->all[at] : NULL;
}

static int copy_one(const struct extra *from, struct extra *ret)
{
	struct extra to = {.name = strdup(from->name),
		.resource = strdup(from->resource),
		.back = strdup(from->back),
		.class_ = from->class_ ? strdup(from->class_) : NULL,
		.kind = from->kind,
		.file = from->file,
		.folder = from->folder};

	if (!to.name || !to.resource || !to.back || (from->class_ && !to.class_)) {
		free_one(&to);
		return -ENOMEM;
	}
	*ret = to;
	return 0;
}

int extras_put(struct extras *list, const struct extra *one)
{
	struct extra copy;
	size_t at;
	int rc = copy_one(one, &copy);

	if (rc < 0)
		return rc;
	if (array_find(list->all, list->n, copy.name, by_name, &at)) {
		free_one(&list->all[at]);
		list->all[at] = copy;
		return 0;
	}
	rc = array_insert(&list->all, &list->n, &list->room, at, &copy);
	if (rc < 0)
		free_one(&copy);
	return rc;
}

void extras_drop(struct extras *list, const char *name)
{
	size_t at;

	if (!array_find(list->all, list->n, name, by_name, &at))
		return;
	free_one(&list->all[at]);
	array_remove(list->all, &list->n, at);
}

int extras_copy(const struct extras *from, struct extras *ret)
{
	struct extras to = {0};
	int rc = array_grow(&to.all, &to.room, from->n);

	for (; rc == 0 && to.n < from->n; to.n++)
		rc = copy_one(&from->all[to.n], &to.all[to.n]);
	if (rc < 0) {
		to.n -= to.n > 0; /* the last was not copied */
		extras_free(&to);
		return rc;
	}
	*ret = to;
	return 0;
}

bool extras_same(const struct extras *a, const struct extras *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++) {
		const struct extra *x = &a->all[i], *y = &b->all[i];

		if (strcmp(x->name, y->name) != 0 || strcmp(x->resource, y->resource) != 0 ||
			strcmp(x->back, y->back) != 0 || !same_text(x->class_, y->class_) ||
			x->kind != y->kind || !policy_file_same(&x->file, &y->file) ||
			!policy_file_same(&x->folder, &y->folder))
			return false;
	}
	return a->n == b->n;
}

/* ---- its file */

static const char *const kinds[] = {"added", "made", "found", "hidden", "gone"};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static int read_one(json_t *from, struct extras *list)
{
	const char *class_ = NULL, *name, *resource, *back, *kind;
	json_int_t inode = 0, born = 0, folder = 0, folder_born = 0;
	size_t k = 0;

	if (json_unpack(from, "{s:s, s:s, s:s, s?s, s:s, s?I, s?I, s?I, s?I}", "name", &name,
		    "resource", &resource, "back", &back, "class", &class_, "kind", &kind, "inode",
		    &inode, "born", &born, "folder", &folder, "folder_born", &folder_born) < 0)
		return -EINVAL;
	while (k < KINDS && strcmp(kinds[k], kind) != 0)
		k++;
	if (k == KINDS)
		return -EINVAL;
	return extras_put(
		list, &(struct extra){(char *)name, (char *)resource, (char *)back, (char *)class_,
			      (enum extra_kind)k, {.ino = (uint64_t)inode, .born = (uint64_t)born},
			      {.ino = (uint64_t)folder, .born = (uint64_t)folder_born}});
}

static int read_list(json_t *root, void *arg)
{
	struct extras *list = arg;
	json_t *all = json_object_get(root, "volumes"), *one;
	int rc = json_is_array(all) ? 0 : -EINVAL;
	size_t i;

	json_array_foreach(all, i, one) if (rc == 0) rc = read_one(one, list);
	if (rc < 0)
		extras_free(list);
	return rc;
}

int extras_read(const char *folder, struct extras *ret, struct weir_err *err)
{
	*ret = (struct extras){0};
	return state_file_load(folder, FILE_NAME, "volumes", read_list, ret, err);
}

static void write_one(const struct extra *e, FILE *to)
{
	fputs("{\"name\": ", to);
	json_text_string(e->name, to);
	fputs(", \"resource\": ", to);
	json_text_string(e->resource, to);
	fputs(", \"back\": ", to);
	json_text_string(e->back, to);
	if (e->class_) {
		fputs(", \"class\": ", to);
		json_text_string(e->class_, to);
	}
	fprintf(to,
		", \"kind\": \"%s\", \"inode\": %" PRIu64 ", \"born\": %" PRIu64
		", \"folder\": %" PRIu64 ", \"folder_born\": %" PRIu64 "}",
		kinds[e->kind], e->file.ino, e->file.born, e->folder.ino, e->folder.born);
}

/* As text at once: an orchestrator waits for each change, and there may be 10,000 volumes. */
int extras_write(const char *folder, const struct extras *list, struct weir_err *err)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	bool whole;
	int rc;

	if (!to)
		return no_memory(err);
	fputs("{\"volumes\": [", to);
	for (size_t i = 0; i < list->n; i++) {
		fputs(i ? ",\n" : "\n", to);
		write_one(&list->all[i], to);
	}
	fputs("\n]}\n", to);
	whole = !ferror(to);
	whole &= fclose(to) == 0;
	rc = whole ? state_file_write(folder, FILE_NAME, "volumes", text, len, err)
		   : no_memory(err);
	free(text);
	return rc;
}
