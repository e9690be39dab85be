/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folder-list: the volumes that the files of folders are.
 *
 * METHOD  Each entry of the policy lists the files that fit its pattern, but for those that a volume with a name, or a resource, is. Of the
 *         listed ones with the same file the first stays: that of the first entry, and there the name that came first. So one file
 *         is one volume, and a second name for it takes no client from the first. The list is in the order in which the files came:
 *         of two files that make the same name, the first keeps it, whatever entries they are of.
 */
#include "base/arena.h"
#include "base/array.h"
#include "policy/folder.h"
#include "serve/store/extra.h"
#include "serve/store/folder-impl.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct found {
	struct policy_volume volume;
	size_t entry;     /* of the policy's folders */
	uint64_t since;   /* of its file */
	const char *file; /* borrowed */
};

struct listing {
	const struct folders *folders;
	const struct weir_policy *policy;
	const struct extras *extras;
	struct policy_file *served; /* by resources and volumes with a name; sorted */
	size_t n_served, served_room;
	struct found *all;
	size_t n, room;
	struct arena *memory;
	policy_volume_skipped *skipped;
	void *arg;
};

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By device and inode. */
static int by_file(const void *a, const void *b)
{
	const struct policy_file *x = a, *y = b;
	int is = order(x->dev, y->dev);

	return is ? is : order(x->ino, y->ino);
}

/* ---- files that resources and volumes with a name are */

char *folder_path_of(const char *back)
{
	const char *file = strncmp(back, "file:", 5) == 0 ? back : strstr(back, "+file:");

	if (!file)
		return NULL;
	file = strchr(file, ':') + 1;
	return strndup(file, strcspn(file, "?"));
}

bool folder_opened(const char *back, struct policy_file *ret)
{
	char *path = folder_path_of(back);
	struct stat st;
	bool is = path && stat(path, &st) == 0;

	free(path);
	if (!is)
		return false;
	*ret = S_ISBLK(st.st_mode) ? (struct policy_file){.dev = ~0ull, .ino = st.st_rdev}
				   : (struct policy_file){.dev = st.st_dev, .ino = st.st_ino};
	return true;
}

static int add_id(struct listing *l, struct policy_file id)
{
	return array_insert(&l->served, &l->n_served, &l->served_room, l->n_served, &id);
}

/* A file of a folder that the API made a volume of, or none. */
static int add_kept(struct listing *l, const char *back)
{
	char *path = folder_path_of(back);
	const struct folder *d;
	const struct file *file = path ? folder_at(l->folders, path, &d) : NULL;
	int rc = file ? add_id(l, file->id) : 0;

	free(path);
	return rc;
}

/* The file of a path, wherever that is, by links, too; while its folder is away the one that it was there. */
static int add_served(struct listing *l, const char *back)
{
	char *path = folder_path_of(back);
	struct stat st;
	bool is = path && stat(path, &st) == 0;

	free(path);
	if (is)
		return add_id(l, (struct policy_file){.dev = st.st_dev, .ino = st.st_ino});
	return add_kept(l, back);
}

static int list_served(struct listing *l)
{
	const struct weir_policy *p = l->policy;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < p->n_resources; i++)
		if (p->resources[i].back)
			rc = add_served(l, p->resources[i].back);
	for (size_t i = 0; rc == 0 && i < p->n_exports; i++)
		if (p->exports[i].back && p->exports[i].from == POLICY_EXPORT_FILE)
			rc = add_served(l, p->exports[i].back);
	for (size_t i = 0; rc == 0 && i < l->extras->n; i++) {
		const struct extra *e = &l->extras->all[i];

		if (e->kind != EXTRA_FOUND)
			rc = e->kind == EXTRA_ADDED ? add_served(l, e->back) : add_kept(l, e->back);
	}
	if (l->n_served)
		qsort(l->served, l->n_served, sizeof(*l->served), by_file);
	return rc;
}

/* ---- files of folders */

static int list_file(struct listing *l, size_t entry, const struct file *file)
{
	const struct weir_folder *spec = &l->policy->folders[entry];
	char back[4096 + 8], name[POLICY_FOLDER_NAME];
	const struct extra *extra;
	const char *bad;
	struct policy_volume v = {.resource = l->policy->resources[spec->resource].name,
		.back = back,
		.class_ = spec->class_,
		.read_only = spec->read_only,
		.found = true,
		.file = file->id};
	int rc = policy_folder_volume(spec, file->name, name);
	size_t at;

	if (file->open || rc == -ENOENT ||
		array_find(l->served, l->n_served, &file->id, by_file, &at))
		return 0;
	snprintf(back, sizeof(back), "file:%s/%s", spec->dir, file->name);
	v.name = rc == 0 ? name : file->name;
	bad = rc < 0              ? "the name is too long"
	      : strchr(back, '?') ? "a path with '?'"
				  : policy_volume_name_bad(file->name);
	if (bad) {
		l->skipped(l->arg, &v, bad);
		return 0;
	}
	extra = extras_find(l->extras, name);
	if (extra && strcmp(extra->back, back) == 0)
		v.class_ = extra->class_;
	v.name = arena_text(l->memory, name);
	v.back = arena_text(l->memory, back);
	if (l->memory->failed)
		return -ENOMEM;
	return array_insert(&l->all, &l->n, &l->room, l->n,
		&((struct found){v, entry, file->since, file->name}));
}

static int by_right(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	int is = by_file(&x->volume.file, &y->volume.file);

	is = is ? is : order(x->entry, y->entry);
	return is ? is : order(x->since, y->since);
}

static int by_arrival(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return order(x->since, y->since);
}

/* Keep the first of those with the same file, and name the others, unless an entry finds the same name again. */
static void keep_first(struct listing *l)
{
	struct found *first = l->all;
	size_t kept = 0;

	if (l->n)
		qsort(l->all, l->n, sizeof(*l->all), by_right);
	for (size_t i = 0; i < l->n; i++) {
		struct found *one = &l->all[i];

		if (i == 0 || by_file(&first->volume.file, &one->volume.file) != 0) {
			l->all[kept] = *one;
			first = &l->all[kept++];
		} else if (strcmp(first->file, one->file) != 0) {
			char why[POLICY_FOLDER_NAME + 64];

			snprintf(why, sizeof(why), "it is another name of the file of volume '%s'",
				first->volume.name);
			l->skipped(l->arg, &one->volume, why);
		}
	}
	l->n = kept;
	if (kept)
		qsort(l->all, kept, sizeof(*l->all), by_arrival);
}

static int list_all(struct listing *l, struct policy_volume **ret_list)
{
	const struct weir_policy *p = l->policy;
	struct policy_volume *list;
	int rc = p->n_folders ? list_served(l) : 0;

	for (size_t i = 0; rc == 0 && i < p->n_folders; i++) {
		const char *dir = p->folders[i].dir;
		const struct folder *d = folder_of(l->folders, dir, strlen(dir));

		for (size_t k = 0; d && rc == 0 && k < d->n; k++)
			rc = list_file(l, i, &d->files[k]);
	}
	list = rc == 0 ? calloc(l->n + 1, sizeof(*list)) : NULL;
	if (!list)
		return -ENOMEM;
	keep_first(l);
	for (size_t i = 0; i < l->n; i++)
		list[i] = l->all[i].volume;
	*ret_list = list;
	return 0;
}

int folders_volumes(const struct folders *f, const struct weir_policy *p,
	const struct extras *extras, struct arena *memory, struct policy_volume **ret_list,
	size_t *ret_n, policy_volume_skipped *skipped, void *arg)
{
	struct listing l = {.folders = f,
		.policy = p,
		.extras = extras,
		.memory = memory,
		.skipped = skipped,
		.arg = arg};
	int rc = list_all(&l, ret_list);

	if (rc == 0)
		*ret_n = l.n;
	free(l.served);
	free(l.all);
	return rc;
}
