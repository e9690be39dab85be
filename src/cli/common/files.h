/* SPDX-License-Identifier: BSD-3-Clause */
/* files: read and write whole files, for the verbs (rooms get bytes). */
#pragma once

#include "serve/member/token.h"
#include <weir/err.h>
#include <stddef.h>
#include <stdio.h>

/*
 * The largest files that are read: without a limit, an endless device or pipe would fill the
 * memory.
 */
#define FILES_WRITTEN                                                                              \
	((size_t)256 << 20) /* written by people or scripts: a million tenants and more */
#define FILES_RECORDED                                                                             \
	((size_t)4 << 30) /* a trace: with its records, as much as a large machine holds */

/*
 * Read the whole file ("-": standard input) into malloc'ed memory, with a NUL at its end that
 * *ret_len does not count. Return 0, or a negative errno and a message that names the file; -EFBIG:
 * over `most`.
 */
int files_read(
	const char *path, size_t most, char **ret_text, size_t *ret_len, struct weir_err *err);

/*
 * Read a file that another file names (a weir_policy_reader), relative to that one unless its path
 * is absolute, up to FILES_WRITTEN.
 */
int files_read_beside(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err);

/* Read a trace, up to FILES_RECORDED; a folder or a device is refused before it is read. */
int files_read_trace(const char *path, char **ret_text, size_t *ret_len, struct weir_err *err);

/*
 * For a scenario (scenario_read): where the path ends in '/', the names of all files in the folder and
 * below it, relative to it, in order, one per line (links to folders are not followed, and names that
 * start with a dot are left out); else files_read_trace.
 */
int files_read_named(const char *path, char **ret_text, size_t *ret_len, struct weir_err *err);

/*
 * Replace or create the file as a whole: it is written under another name and renamed, so that
 * after a failure (the disk is full) the old file is still there. (A link or a device is written
 * directly.) Not from two threads at a time.
 */
int files_write(const char *path, const char *text, size_t len, struct weir_err *err);

/*
 * Write a file in place and piece by piece: files_create, then fprintf etc., then files_close,
 * which returns `r`, the caller's own error (0: none), or an error if something was not written.
 */
int files_create(const char *path, FILE **ret_file, struct weir_err *err);
int files_close(FILE *f, const char *path, int r, struct weir_err *err);

/* Write n bytes as a YAML text in double quotes. */
void files_put_quoted(FILE *f, const char *text, size_t n);

/* Read the token of a cluster. 0, -ENOMEM, or -EINVAL with a message. */
int files_read_token(const char *path, struct token *ret, struct weir_err *err);

/* Write a new key of a cluster to a file that only its owner may read. */
int files_write_key(const char *path, struct weir_err *err);

/*
 * Create the folder and its parents where they are missing. Return 0 or a negative errno: -EINVAL
 * for an empty name, -ENOTDIR or -EACCES if the path exists and no file can be created in it.
 */
int files_make_dir(const char *path, struct weir_err *err);

/* Make a new folder /tmp/weir-USE-XXXXXX, for sockets and files of child processes. */
#define FILES_SCRATCH 32 /* bytes of its name */
int files_make_scratch(const char *use, char ret[FILES_SCRATCH], struct weir_err *err);
void files_remove_scratch(const char *dir); /* with its files; "": none */
