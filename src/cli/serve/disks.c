/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disks: notice resources on one disk, between which weights do not act: each gate sees its own requests only.
 *
 * METHOD  The storage behind a back end has a name: of a file or block device the whole disk, found by its device number
 *         in /sys/dev/block through partitions and mapped devices; of an NBD server its host. A file system without a
 *         device, as NFS, is named by its number. Memory and models share nothing.
 */
#include "cli/serve/serve.h"
#include "base/array.h"
#include "policy/folder.h"
#include "serve/back/name.h"
#include "serve/back/nbd-uri.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DISK SERVE_DISK /* bytes of a name */

/* Replace the folder of a mapped device in /sys by that of the device below it, if that is only one. */
static bool descend(char *path)
{
	char slaves[PATH_MAX], below[PATH_MAX] = "";
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(slaves, sizeof(slaves), "%.*s/slaves", PATH_MAX - 16, path);
	d = opendir(slaves);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && n++ == 0)
			snprintf(below, sizeof(below), "/sys/class/block/%s", e->d_name);
	if (d)
		closedir(d);
	return n == 1 && realpath(below, path);
}

void serve_disk_of(dev_t device, char ret[SERVE_DISK])
{
	char link[64], path[PATH_MAX], partition[PATH_MAX];

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(device), minor(device));
	if (!realpath(link, path)) {
		snprintf(ret, DISK, "file system %u:%u", major(device), minor(device));
		return;
	}
	do {
		snprintf(partition, sizeof(partition), "%.*s/partition", PATH_MAX - 16, path);
		if (access(partition, F_OK) == 0)
			*strrchr(path, '/') = '\0';
	} while (descend(path));
	snprintf(ret, DISK, "disk %.255s", strrchr(path, '/') + 1);
}

struct storage {
	char *name;
	size_t resource; /* index */
	struct weir_place at;
};
struct storages {
	struct storage *list;
	size_t n, room;
};

/* Memory that is short costs a hint, and nothing else. */
static void add(struct storages *s, const char *name, size_t resource, struct weir_place at)
{
	const struct storage *last = s->n ? &s->list[s->n - 1] : NULL;
	char *copy;

	if (last && last->resource == resource && strcmp(last->name, name) == 0)
		return; /* thousands of volumes are on one disk */
	copy = strdup(name);
	if (!copy || array_grow(&s->list, &s->room, s->n + 1) < 0) {
		free(copy);
		return;
	}
	s->list[s->n++] = (struct storage){.name = copy, .resource = resource, .at = at};
}

static void add_path(struct storages *s, const char *path, size_t resource, struct weir_place at)
{
	struct stat st;
	char name[DISK];

	if (stat(path, &st) < 0)
		return;
	serve_disk_of(S_ISBLK(st.st_mode) ? st.st_rdev : st.st_dev, name);
	add(s, name, resource, at);
}

static void add_back(struct storages *s, const char *back, size_t resource, struct weir_place at)
{
	struct nbd_uri uri;
	struct weir_err ignored;
	char path[PATH_MAX];

	if (strncmp(back, "nbd", 3) == 0 && nbd_uri_parse(back, &uri, &ignored) == 0) {
		snprintf(path, DISK, "server %s", *uri.host ? uri.host : uri.address);
		add(s, path, resource, at);
	} else if (strncmp(back, "file:", 5) == 0) {
		back += 5;
		snprintf(path, sizeof(path), "%.*s", (int)(back_query(back) - back), back);
		add_path(s, path, resource, at);
	}
}

/* Images are on the folder's file system; each device of a folder in /dev may be on another disk. */
static void add_folder(struct storages *s, const struct weir_folder *f)
{
	bool devices = strncmp(f->dir, "/dev/", 5) == 0 || strcmp(f->dir, "/dev") == 0;
	char volume[POLICY_FOLDER_NAME], path[PATH_MAX];
	DIR *d = devices ? opendir(f->dir) : NULL;
	struct dirent *e;

	if (!devices)
		add_path(s, f->dir, (size_t)f->resource, f->at);
	while (d && (e = readdir(d))) {
		if (policy_folder_volume(f, e->d_name, volume) < 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", f->dir, e->d_name);
		add_path(s, path, (size_t)f->resource, f->at);
	}
	if (d)
		closedir(d);
}

static void add_all(struct storages *s, const struct weir_policy *p)
{
	for (size_t i = 0; i < p->n_resources; i++)
		if (p->resources[i].back)
			add_back(s, p->resources[i].back, i, p->resources[i].back_at);
	for (size_t i = 0; i < p->n_exports; i++)
		if (p->exports[i].back)
			add_back(s, p->exports[i].back, (size_t)p->exports[i].resource,
				p->exports[i].at);
	for (size_t i = 0; i < p->n_folders; i++)
		add_folder(s, &p->folders[i]);
}

static int by_name(const void *a, const void *b)
{
	const struct storage *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : (x->resource > y->resource) - (x->resource < y->resource);
}

struct pair {
	const struct storage *first, *own; /* NULL: none */
};

/* Find the storage that each resource shares with one before it. */
static void find_pairs(const struct storages *s, struct pair *pairs)
{
	const struct storage *first = s->list;

	for (const struct storage *own = s->list; own < s->list + s->n; own++) {
		if (strcmp(own->name, first->name) != 0)
			first = own;
		if (own->resource != first->resource && !pairs[own->resource].own)
			pairs[own->resource] = (struct pair){first, own};
	}
}

void serve_disks_hint(const struct weir_policy *p, FILE *to)
{
	struct storages s = {0};
	struct pair *pairs = calloc(p->n_resources + 1, sizeof(*pairs));
	struct weir_err err;

	if (pairs && p->n_tenants > 1 && p->n_resources > 1)
		add_all(&s, p);
	if (s.n) {
		qsort(s.list, s.n, sizeof(*s.list), by_name);
		find_pairs(&s, pairs);
	}
	for (size_t i = 0; s.n && i < p->n_resources; i++) {
		if (!pairs[i].own)
			continue;
		weir_err_at(&err, 0, pairs[i].own->at,
			"'%s' and '%s' are on one %s, and weights do not act between two "
			"resources: make them one resource with volumes (hint)",
			p->resources[pairs[i].first->resource].name, p->resources[i].name,
			pairs[i].own->name);
		fprintf(to, "%s\n", err.text);
	}
	for (size_t i = 0; i < s.n; i++)
		free(s.list[i].name);
	free(s.list);
	free(pairs);
}
