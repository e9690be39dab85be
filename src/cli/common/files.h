/* SPDX-License-Identifier: BSD-3-Clause */
/* files: whole files in and out, for the verbs (rooms get bytes). */
#ifndef WEIR_CLI_COMMON_FILES_H
#define WEIR_CLI_COMMON_FILES_H

#include <weir/err.h>
#include <stddef.h>
#include <stdio.h>

/* The most bytes that are read of a file: without an end, a device or a pipe that has none would
 * fill the memory. */
#define FILES_WRITTEN  ((size_t)256 << 20) /* a person's or a script's: a million tenants and more */
#define FILES_RECORDED ((size_t)4 << 30) /* a trace: with its records, what a large machine holds */

/* The whole file ("-": standard input), malloc'ed, with a NUL behind its end that *ret_len does
 * not count. 0, or a negative errno and a message that names the file; -EFBIG: over `most`. */
int files_read(
	const char *path, size_t most, char **ret_text, size_t *ret_len, struct weir_err *err);

/* For a file that another names (a weir_policy_reader): beside that one unless its path is absolute,
 * up to FILES_WRITTEN. */
int files_read_beside(void *arg, const char *from, const char *name, char **ret_text,
	size_t *ret_len, struct weir_err *err);

/* As files_read for a trace, up to FILES_RECORDED; what cannot be one for its kind, a folder or a device, is
 * refused before it is read. */
int files_read_trace(const char *path, char **ret_text, size_t *ret_len, struct weir_err *err);

/* The names of all files in the folder and below it, seen from it, in order, one a line; links to folders are not
 * followed, and what starts with a dot is left out. */
int files_list(const char *folder, char **ret_text, size_t *ret_len, struct weir_err *err);

/* For a scenario (scenario_read): files_list where the path ends in '/', else files_read_trace. */
int files_read_named(const char *path, char **ret_text, size_t *ret_len, struct weir_err *err);

/* Replaces or makes the file, as a whole: it is written beside and renamed, so that where that fails (the disk
 * is full) what was there is still there, and else nothing. (A link or a device is written to.) Not from two
 * threads at a time. */
int files_write(const char *path, const char *text, size_t len, struct weir_err *err);

/* For who writes it in place and piece by piece: files_create, then fprintf and the like, then files_close, which
 * passes on `r`, what else went wrong (0: nothing), or finds that something was not written. */
int files_create(const char *path, FILE **ret_file, struct weir_err *err);
int files_close(FILE *f, const char *path, int r, struct weir_err *err);

/* A new key of a cluster, that nobody else may read. */
int files_write_key(const char *path, struct weir_err *err);

/* The folder and those above it, where they are missing; -EINVAL for no name, -ENOTDIR or -EACCES for
 * one that is there and in which no file can be made. */
int files_make_dir(const char *path, struct weir_err *err);

#endif
