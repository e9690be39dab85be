/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folder: the files of the folders that a policy names as `dir` of volumes, kept up to date.
 *
 * A file counts once it was closed after writing, or moved in; a block device when it appears. Other kinds of files never do.
 * Symbolic links are followed in /dev only. At the first look all files of a folder count.
 *
 * No function here waits for another thread; all but folders_fd and folders_soon are for one thread at a time:
 * that which makes drafts (aside).
 */
#ifndef WEIR_SERVE_STORE_FOLDER_H
#define WEIR_SERVE_STORE_FOLDER_H

#include "policy/policy.h"
#include "policy/volume.h"
#include <stdint.h>
#include <sys/types.h>

struct arena;
struct extras;
struct folders;

int folders_new(struct folders **ret); /* 0 or a negative errno */
void folders_free(struct folders *f);  /* NULL is fine */

/* Return a descriptor that is readable when a folder has changed. */
int folders_fd(const struct folders *f);
/* Return true if the folders should be scanned again soon: one of them is not there. Any thread. */
bool folders_soon(const struct folders *f);

/* At the start: the folders of a policy are those that have the files of the kept volumes. One that has none of these files is
 * another folder at its path, as where a file system is not mounted yet. 0 or -ENOMEM. */
int folders_expect(struct folders *f, const struct weir_policy *p, const struct extras *extras);
/* Bring the folders of both policies (`old` may be NULL) up to date, and forget all others. scan: read them whole, as some file
 * systems do not report changes. -ENOMEM; or -EINVAL with a message and its place: a folder of `next` that `old` does not
 * name cannot be read. A folder that vanishes later keeps its files, with another folder at its path, too, unless take is set: then
 * folders_taken must follow. */
int folders_look(struct folders *f, const struct weir_policy *old, const struct weir_policy *next,
	bool scan, bool take, struct weir_err *err);
/* The change that took folders is in force, or was refused: then they are as before. */
void folders_taken(struct folders *f, bool in_force);
size_t folders_count(const struct folders *f);
/* Return why folder i is not there; NULL: it is. */
const char *folders_away(const struct folders *f, size_t i, const char **ret_dir);
const char *folders_why(const struct folders *f, const char *dir); /* the same for a path */
/* Return a number that is another one if any list of files is, or another folder is away. */
uint64_t folders_version(const struct folders *f);
/* A file was made, or deleted: take note before the system reports it. */
int folders_touch(struct folders *f, const char *dir, const char *file);
/* Return true if a back end is a file of one of the folders. */
bool folders_has(const struct folders *f, const char *back);
/* Look for a file by its path, and compare it (ino 0: any). The identity of its folder, without the device, is that of its files while it
 * is away, and 0 if it is not followed. */
enum folder_has {
	FOLDER_AWAY, /* or not followed */
	FOLDER_LACKS,
	FOLDER_OTHER, /* another file has its path */
	FOLDER_HAS,
};
enum folder_has folders_file(const struct folders *f, const char *path,
	const struct policy_file *file, struct policy_file *ret_folder);

/* List the volumes that the folders of a policy have: the files that no resource or volume of the policy or of `extras` is. A file
 * that several entries have is a volume of the first; of several names of a file in one folder the first that came is one.
 * Strings are in `memory`, the list is malloc'ed. skipped: a file with a name that cannot be a volume's, and another name of a
 * file. 0 or -ENOMEM. */
int folders_volumes(const struct folders *f, const struct weir_policy *p,
	const struct extras *extras, struct arena *memory, struct policy_volume **ret_list,
	size_t *ret_n, policy_volume_skipped *skipped, void *arg);

/* Get the identity of a file, with a link not followed; at: as in fstatat(2), path "": the file that is open there. false: there is none. */
bool folder_file_of(int at, const char *path, struct policy_file *ret);
/* Get the identity of the file or device that a back end opens, by links, too. false: there is none. */
bool folder_opened(const char *back, struct policy_file *ret);
/* Return the path in the name of a back end that is, or models, a file; malloc'ed. NULL: it is none. */
char *folder_path_of(const char *back);

#endif
