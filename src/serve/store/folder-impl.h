/* SPDX-License-Identifier: BSD-3-Clause */
/* folder-impl: shared by the files folder*.c. */
#ifndef WEIR_SERVE_STORE_FOLDER_IMPL_H
#define WEIR_SERVE_STORE_FOLDER_IMPL_H

#include "serve/store/folder.h"
#include <stdatomic.h>
#include <sys/stat.h>

struct file {
	char *name;
	struct policy_file id;
	uint64_t since; /* in the order in which files came */
	bool open;      /* it was created, and is not closed yet: no volume */
	bool empty;     /* it had no bytes when it was closed: an empty file cannot be served */
	bool seen;      /* by the scan */
};

struct folder {
	char *dir;
	int wd; /* -1: it is not there */
	bool in_dev;
	bool scanned;       /* since it is there */
	char why[64];       /* it is not there; "": it is, or was never looked at */
	bool wanted;        /* by a policy */
	struct file *files; /* by name */
	size_t n, room;
	struct policy_file id; /* the folder that has the files */
	bool kept;             /* id is that of an earlier run, whose volumes are kept */
	struct folder *was;    /* before a change that is not in force yet took another folder */
};

struct folders {
	int fd;
	struct folder **all;
	size_t n, room;
	uint64_t version;
	uint64_t came; /* files */
	bool overflow;
	unsigned unsettled; /* files that the last scan has seen, and that may still be written */
	atomic_uint soon;
};

/* Return the folder with that path, of len bytes, or NULL. */
struct folder *folder_of(const struct folders *f, const char *dir, size_t len);

/* ---- serve/store/folder-file.c */

/* Return the file of that name, or NULL. */
struct file *folder_find(const struct folder *d, const char *name);
/* Enter a file, or bring its entry up to date. 0 or -ENOMEM. */
int folder_enter(
	struct folders *f, struct folder *d, const char *name, const struct statx *x, bool open);
void folder_drop(struct folders *f, struct folder *d, struct file *file);
/* Return true if there is such a file that may be a volume. fd: the folder's, or -1. */
bool folder_stat(const struct folder *d, int fd, const char *name, struct statx *ret);
/* Return true if the entry, which may be NULL, is of that file. */
bool folder_is(const struct file *file, const struct statx *x);
/* Return the file of a path in one of the folders, or NULL; and that folder, or NULL. */
const struct file *folder_at(
	const struct folders *f, const char *path, const struct folder **ret_folder);

#endif
