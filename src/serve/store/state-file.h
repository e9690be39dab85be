/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state-file: the files of the state folder, which a restart reads again.
 *
 * A file is replaced as a whole: written under another name, synced, renamed, and the folder synced; so after a crash the old or
 * the new one exists. A file that cannot be parsed is renamed (set.json.damaged), logged, and counts as empty: it never keeps
 * the gateway from starting.
 */
#ifndef WEIR_SERVE_STORE_STATE_FILE_H
#define WEIR_SERVE_STORE_STATE_FILE_H

#include <weir/err.h>
#include <stddef.h>

/* Write a file, which keeps its owner, group and mode; a new one is readable by its owner only, which is the folder's if root makes
 * it. 0, or a negative errno with the file unchanged. Makes the folder (not its parents). Any thread; one at a time per file. */
int state_file_put(const char *folder, const char *name, const char *text, size_t len);
/* Make the folder if it is missing; log if nothing can be stored in it. */
void state_file_check(const char *folder);
/* Rename it to NAME.damaged, and log the reason. */
void state_file_aside(const char *folder, const char *name, const char *why);

/* Open a file to read: its descriptor; or -1: there is none, or it is not readable or not regular, which is logged. */
int state_file_open(const char *folder, const char *name);
/* Read a file of JSON: call `reader` with its value; the reader returns 0, -ENOMEM, or -EINVAL: it is no list of `what`, which
 * is logged, and the file moved aside. 0, also if there is no file; or -ENOMEM. */
struct json_t;
typedef int state_file_reader(struct json_t *root, void *arg);
int state_file_load(const char *folder, const char *name, const char *what,
	state_file_reader *reader, void *arg, struct weir_err *err);
/* Write a value, which is taken; NULL: there was no memory for it. 0; or -ENOMEM, or -EIO with a message: the file is then
 * unchanged. */
int state_file_save(const char *folder, const char *name, const char *what, struct json_t *root,
	struct weir_err *err);
/* The same for a text. */
int state_file_write(const char *folder, const char *name, const char *what, const char *text,
	size_t len, struct weir_err *err);

#endif
