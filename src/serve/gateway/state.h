/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state: the files that a restart reads again, and one of them: the overrides of `weir set`.
 *
 * That is FOLDER/set.json: {"set": [{"key": "prod/db.max", "value": "5k iops"}, …]}. A file is
 * replaced as a whole: written under another name, synced, renamed, and the folder synced; so after
 * a crash the old or the new one exists. A file that cannot be parsed is renamed
 * (set.json.damaged), logged, and counts as empty: it never keeps the gateway from starting.
 */
#ifndef WEIR_SERVE_GATEWAY_STATE_H
#define WEIR_SERVE_GATEWAY_STATE_H

#include "serve/gateway/impl.h"

/* ---- any file of the folder */

/* Write a file. 0, or a negative errno with the file unchanged. Makes the folder (not its parents).
 * Any thread; one at a time per file. */
int gateway_state_put(const char *folder, const char *name, const char *text, size_t len);
/* Make the folder if it is missing; log if nothing can be stored in it. */
void gateway_state_check(const char *folder);
/* Rename it to NAME.damaged, and log the reason. */
void gateway_state_aside(const char *folder, const char *name, const char *why);

/* Read a file of JSON: call `reader` with its value; the reader returns 0, -ENOMEM, or -EINVAL: it is no list of `what`, which
 * is logged, and the file moved aside. 0, also if there is no file; or -ENOMEM. */
struct json_t;
typedef int gateway_state_reader(struct json_t *root, void *arg);
int gateway_state_load(const char *folder, const char *name, const char *what,
	gateway_state_reader *reader, void *arg, struct weir_err *err);
/* Write a value, which is taken; NULL: there was no memory for it. 0; or -ENOMEM, or -EIO with a message: the file is then
 * unchanged. */
int gateway_state_save(const char *folder, const char *name, const char *what, struct json_t *root,
	struct weir_err *err);

/* ---- what was set */

/* Read the overrides. 0; the list is empty if there is no file, or it was damaged. -ENOMEM. */
int gateway_state_read(const char *folder, struct gateway_override **ret_list, size_t *ret_n,
	struct weir_err *err);
/* Write the overrides. 0; or -ENOMEM, or -EIO with a message: the file is then unchanged. Makes the
 * folder (not its parents). */
int gateway_state_write(
	const char *folder, const struct gateway_override *list, size_t n, struct weir_err *err);

/* Free a list of overrides. */
void gateway_state_free(struct gateway_override *list, size_t n);
/* Copy a list without `except` (NULL: with all), and with key = value at its end (NULL: nothing is
 * added). */
int gateway_state_copy(const struct gateway_override *list, size_t n, const char *except,
	const char *value, struct gateway_override **ret_list, size_t *ret_n);

#endif
