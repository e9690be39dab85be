/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state: the overrides of `weir set`, kept across a restart.
 *
 * They are in FOLDER/set.json: {"set": [{"key": "prod/db.max", "value": "5k iops"}, …]}, written and read as
 * serve/store/state-file.h says.
 */
#pragma once

#include <stddef.h>

struct weir_err;

struct gateway_override { /* a value changed by `set` */
	char *key, *value;
};

/* Read the overrides. 0; the list is empty if there is no file, or it was damaged. -ENOMEM. */
int state_read(const char *folder, struct gateway_override **ret_list, size_t *ret_n,
	struct weir_err *err);
/* Write the overrides. 0; or -ENOMEM, or -EIO with a message: the file is then unchanged. Makes the
 * folder (not its parents). */
int state_write(
	const char *folder, const struct gateway_override *list, size_t n, struct weir_err *err);

/* Free a list of overrides. */
void state_free(struct gateway_override *list, size_t n);
/* Copy a list without `except` (NULL: with all), and with key = value at its end (NULL: nothing is
 * added). */
int state_copy(const struct gateway_override *list, size_t n, const char *except, const char *value,
	struct gateway_override **ret_list, size_t *ret_n);
