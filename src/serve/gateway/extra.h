/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extra: volumes that came through the API, kept across a restart.
 *
 * They are in FOLDER/volumes.json: {"volumes": [{"name": "vm-17", "resource": "nvme0", "back": "file:/vm/17.raw",
 * "class": "silver", "kind": "made", "inode": 17, "born": 1700000000000000000}, …]}, written and read as state.h says. A list is sorted by name.
 */
#ifndef WEIR_SERVE_GATEWAY_EXTRA_H
#define WEIR_SERVE_GATEWAY_EXTRA_H

#include "policy/policy.h"
#include <weir/err.h>
#include <stdbool.h>
#include <stddef.h>

enum gateway_extra_kind {
	EXTRA_ADDED,  /* its storage was there before */
	EXTRA_MADE,   /* its file was created with it, and is deleted with it */
	EXTRA_FOUND,  /* no volume of its own: the class of one that a folder has */
	EXTRA_HIDDEN, /* no volume: a file of a folder that shall be none */
	EXTRA_GONE,   /* no volume: its file is to be deleted */
};

struct gateway_extra {
	char *name, *resource, *back;
	char *class_; /* NULL: none of its own */
	enum gateway_extra_kind kind;
	struct policy_file file; /* made, gone: that was created; dev is 0. ino 0: not known */
};

struct gateway_extras {
	struct gateway_extra *all;
	size_t n, room;
};

void gateway_extras_free(struct gateway_extras *list);
int gateway_extras_copy(
	const struct gateway_extras *from, struct gateway_extras *ret); /* 0 or -ENOMEM */
bool gateway_extras_same(const struct gateway_extras *a, const struct gateway_extras *b);
const struct gateway_extra *gateway_extras_find(
	const struct gateway_extras *list, const char *name);
/* Copy `one` into the list, in place of the one of that name. 0 or -ENOMEM. */
int gateway_extras_put(struct gateway_extras *list, const struct gateway_extra *one);
void gateway_extras_drop(struct gateway_extras *list, const char *name);

/* 0; the list is empty if there is no file, or it was damaged. -ENOMEM. */
int gateway_extras_read(const char *folder, struct gateway_extras *ret, struct weir_err *err);
/* 0; or -ENOMEM, or -EIO with a message: the file is then unchanged. */
int gateway_extras_write(
	const char *folder, const struct gateway_extras *list, struct weir_err *err);

#endif
