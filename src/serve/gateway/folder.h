/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folder: the files of the folders that a policy names as `dir` of volumes, kept up to date.
 *
 * A file counts once it was closed after writing, or moved in; a block device when it appears. Other kinds of files never do.
 * Symbolic links are followed in /dev only. At the first look all files of a folder count.
 *
 * No function here waits for another thread; all but gateway_folders_fd and gateway_folders_soon are for one thread at a time:
 * that which makes drafts (aside).
 */
#ifndef WEIR_SERVE_GATEWAY_FOLDER_H
#define WEIR_SERVE_GATEWAY_FOLDER_H

#include "policy/policy.h"
#include "policy/volume.h"
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct gateway_extras;
struct gateway_folders;
struct gateway_note;

int gateway_folders_new(struct gateway_folders **ret); /* 0 or a negative errno */
void gateway_folders_free(struct gateway_folders *f);  /* NULL is fine */

/* Return a descriptor that is readable when a folder has changed. */
int gateway_folders_fd(const struct gateway_folders *f);
/* Return true if the folders should be scanned again soon: one of them is not there. Any thread. */
bool gateway_folders_soon(const struct gateway_folders *f);

/* Bring the folders of both policies (`old` may be NULL) up to date, and forget all others. scan: read them whole, as some file
 * systems do not report changes. -ENOMEM; or -EINVAL with a message and its place: a folder of `next` that `old` does not
 * name cannot be read. A folder that vanishes later keeps its files. */
int gateway_folders_look(struct gateway_folders *f, const struct weir_policy *old,
	const struct weir_policy *next, bool scan, struct weir_err *err);
/* Add a line for each folder that is not there. */
void gateway_folders_remark(const struct gateway_folders *f, struct gateway_note *to);
/* Return a number that is another one if any list of files is, or another folder is away. */
uint64_t gateway_folders_version(const struct gateway_folders *f);
/* A file was made, or deleted: take note before the system reports it. */
int gateway_folders_touch(struct gateway_folders *f, const char *dir, const char *file);
/* Return true if the folder of a path is watched and there, and has no such file; file: or another one. */
bool gateway_folders_lacks(
	const struct gateway_folders *f, const char *path, const struct policy_file *file);

/* List the volumes that the folders of a policy have: the files that no volume of the policy or of `extras` is. Strings and
 * the list are in `memory`. skipped: a file with a name that cannot be a volume's. 0 or -ENOMEM. */
int gateway_folders_volumes(const struct gateway_folders *f, const struct weir_policy *p,
	const struct gateway_extras *extras, struct arena *memory, struct policy_volume **ret_list,
	size_t *ret_n, policy_volume_skipped *skipped, void *arg);

/* Get the identity of a file, with a link not followed; at: as in fstatat(2). false: there is none. */
bool gateway_file_of(int at, const char *path, struct policy_file *ret);
/* Return the path in the name of a back end that is, or models, a file; malloc'ed. NULL: it is none. */
char *gateway_path_of(const char *back);

#endif
