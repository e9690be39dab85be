/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folder: `dir` of a resource's volumes: from the name of a file to the name of its volume, and back.
 *
 * EXAMPLE  {dir: /vm, match: "*.raw", name: "vm-{stem}"}: 17.raw is the volume vm-17, and vm-17 is made as 17.raw.
 */
#pragma once

#include "policy/policy.h"

#define POLICY_FOLDER_NAME 256 /* bytes that hold any name */

/* Get the name of the volume that a file of the folder is. 0; -ENOENT: the file is none, since it does not fit the pattern or
 * is hidden; -ENAMETOOLONG. */
int policy_folder_volume(
	const struct weir_folder *f, const char *file, char ret_name[POLICY_FOLDER_NAME]);
/* Get the name of the file that is such a volume: policy_folder_volume() of it is `name`. -ENOENT: the folder has none. */
int policy_folder_file(
	const struct weir_folder *f, const char *name, char ret_file[POLICY_FOLDER_NAME]);
/* Return true if the folder can have a volume whose name fits a pattern (NULL: any). */
bool policy_folder_can(const struct weir_folder *f, const char *pattern);
/* Return why a template of names is bad; NULL: it is not. */
const char *policy_folder_bad(const char *name);
