/* SPDX-License-Identifier: BSD-3-Clause */
/* folder-file: the files of a folder, sorted by name. */
#include "base/array.h"
#include "serve/store/folder-impl.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define WANTED (STATX_BASIC_STATS | STATX_BTIME)

static int by_name(const void *name, const void *element)
{
	return strcmp(name, ((const struct file *)element)->name);
}

struct file *folder_find(const struct folder *d, const char *name)
{
	size_t at;

	return array_find(d->files, d->n, name, by_name, &at) ? &d->files[at] : NULL;
}

void folder_drop(struct folders *f, struct folder *d, struct file *file)
{
	f->version += !file->open;
	free(file->name);
	array_remove(d->files, &d->n, (size_t)(file - d->files));
}

static struct policy_file id_of(const struct statx *x)
{
	uint64_t born = x->stx_mask & STATX_BTIME
				? (uint64_t)x->stx_btime.tv_sec * WEIR_SEC + x->stx_btime.tv_nsec
				: 0;

	return (struct policy_file){makedev(x->stx_dev_major, x->stx_dev_minor), x->stx_ino, born};
}

bool folder_is(const struct file *file, const struct statx *x)
{
	struct policy_file id = id_of(x);

	return file && policy_file_same(&file->id, &id);
}

int folder_enter(
	struct folders *f, struct folder *d, const char *name, const struct statx *x, bool open)
{
	struct file *file = folder_find(d, name);
	struct file now = {.id = id_of(x),
		.since = ++f->came,
		.open = open,
		.empty = S_ISREG(x->stx_mode) && !x->stx_size,
		.seen = true};
	size_t at;
	int rc;

	if (folder_is(file, x) && file->open == open) {
		f->version += file->empty && !now.empty && !open; /* it can be served now */
		file->empty = now.empty;
		file->seen = true;
		return 0;
	}
	if (file) {
		f->version += !open || !file->open;
		now.name = file->name;
		*file = now;
		return 0;
	}
	now.name = strdup(name);
	array_find(d->files, d->n, name, by_name, &at);
	rc = now.name ? array_insert(&d->files, &d->n, &d->room, at, &now) : -ENOMEM;
	if (rc < 0)
		free(now.name);
	f->version += rc == 0 && !open;
	return rc;
}

bool folder_stat(const struct folder *d, int fd, const char *name, struct statx *ret)
{
	char path[4096];

	if (fd < 0 && snprintf(path, sizeof(path), "%s/%s", d->dir, name) >= (int)sizeof(path))
		return false;
	return statx(fd < 0 ? AT_FDCWD : fd, fd < 0 ? path : name,
		       d->in_dev ? 0 : AT_SYMLINK_NOFOLLOW, WANTED, ret) == 0 &&
	       (S_ISREG(ret->stx_mode) || S_ISBLK(ret->stx_mode));
}

bool folder_file_of(int at, const char *path, struct policy_file *ret)
{
	struct statx x;

	if (statx(at, path, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, WANTED, &x) < 0)
		return false;
	*ret = id_of(&x);
	return true;
}

const struct file *folder_at(
	const struct folders *f, const char *path, const struct folder **ret_folder)
{
	const char *slash = strrchr(path, '/');

	*ret_folder = slash ? folder_of(f, path, (size_t)(slash - path)) : NULL;
	return *ret_folder ? folder_find(*ret_folder, slash + 1) : NULL;
}

bool folders_has(const struct folders *f, const char *back)
{
	char *path = folder_path_of(back);
	const struct folder *d;
	bool has = path && folder_at(f, path, &d);

	free(path);
	return has;
}

enum folder_has folders_file(const struct folders *f, const char *path,
	const struct policy_file *file, struct policy_file *ret_folder)
{
	const struct folder *d;
	const struct file *is = folder_at(f, path, &d);

	*ret_folder = d ? (struct policy_file){.ino = d->id.ino, .born = d->id.born}
			: (struct policy_file){0};
	if (!d || d->wd < 0)
		return FOLDER_AWAY;
	if (!is)
		return FOLDER_LACKS;
	return file->ino && !policy_file_same(&is->id, file) ? FOLDER_OTHER : FOLDER_HAS;
}
