/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state: the files that a restart reads again, and one of them: what `weir set` changed.
 *
 * That is FOLDER/set.json: {"set": [{"key": "prod/db.max", "value": "5k iops"}, …]}. A file is replaced
 * as a whole: written beside, synced, renamed, and the folder synced; so after a crash there is the old
 * or the new one. A file that cannot be understood is set aside (set.json.damaged), said, and counts as
 * empty: it never keeps the gateway from starting.
 */
#ifndef WEIR_SERVE_GATEWAY_STATE_H
#define WEIR_SERVE_GATEWAY_STATE_H

#include "serve/gateway/impl.h"

/* ---- any file of the folder */

/* 0, or a negative errno; the file is then as it was. Makes the folder (not those above). Any thread; one
 * at a time for a file. */
int gateway_state_put(const char *folder, const char *name, const char *text, size_t len);
/* Makes the folder if it is missing; logs that nothing can be kept in it. */
void gateway_state_check(const char *folder);
/* Renames it to NAME.damaged, and logs why. */
void gateway_state_aside(const char *folder, const char *name, const char *why);

/* ---- what was set */

/* 0; the list is empty when there is no file, or it had to be set aside. -ENOMEM. */
int gateway_state_read(const char *folder, struct gateway_override **ret_list, size_t *ret_n,
	struct weir_err *err);
/* 0; or -ENOMEM, or -EIO and why: the file is then as it was. Makes the folder (not those above). */
int gateway_state_write(
	const char *folder, const struct gateway_override *list, size_t n, struct weir_err *err);

/* A list of overrides; all of it the owner's. */
void gateway_state_free(struct gateway_override *list, size_t n);
/* A copy without `except` (NULL: with all), and with key = value at its end (NULL: nothing is added). */
int gateway_state_copy(const struct gateway_override *list, size_t n, const char *except,
	const char *value, struct gateway_override **ret_list, size_t *ret_n);

#endif
