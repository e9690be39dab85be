/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extra: volumes that came through the API, kept across a restart.
 *
 * They are in FOLDER/volumes.json: {"volumes": [{"name": "vm-17", "resource": "nvme0", "back": "file:/vm/17.raw",
 * "class": "silver", "kind": "made", "inode": 17, "born": 1700000000000000000, "folder": 2, "folder_born": …}, …]}, written and read as
 * store.h says. A list is sorted by name.
 */
#ifndef WEIR_SERVE_STORE_EXTRA_H
#define WEIR_SERVE_STORE_EXTRA_H

#include "policy/policy.h"
#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>

enum extra_kind {
	EXTRA_ADDED,  /* its storage was there before */
	EXTRA_MADE,   /* its file was created with it, and is deleted with it */
	EXTRA_FOUND,  /* no volume of its own: the class of one that a folder has */
	EXTRA_HIDDEN, /* no volume: a file of a folder that shall be none */
	EXTRA_GONE,   /* no volume: its file is to be deleted */
};

struct extra {
	char *name, *resource, *back;
	char *class_; /* NULL: none of its own */
	enum extra_kind kind;
	struct policy_file file;   /* made, hidden, gone: which file; dev is 0. ino 0: not known */
	struct policy_file folder; /* all but added: the folder of its file, in the same way */
};

struct extras {
	struct extra *all;
	size_t n, room;
};

void extras_free(struct extras *list);
int extras_copy(const struct extras *from, struct extras *ret); /* 0 or -ENOMEM */
bool extras_same(const struct extras *a, const struct extras *b);
const struct extra *extras_find(const struct extras *list, const char *name);
/* Copy `one` into the list, in place of the one of that name. 0 or -ENOMEM. */
int extras_put(struct extras *list, const struct extra *one);
void extras_drop(struct extras *list, const char *name);

/* 0; the list is empty if there is no file, or it was damaged. -ENOMEM. */
int extras_read(const char *folder, struct extras *ret, struct weir_err *err);
/* 0; or -ENOMEM, or -EIO with a message: the file is then unchanged. */
int extras_write(const char *folder, const struct extras *list, struct weir_err *err);

#endif
