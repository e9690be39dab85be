/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * name: the options in the names of back ends: KEY=VALUE, parsed by a table.
 *
 *   memory:64G?most=2G     file:disk.img?direct=yes&threads=yes     model:ssd,channels=4+memory:1G
 */
#pragma once

#include "base/field.h"

/* Parse "key=value" pairs, separated by `separator` (one character), into `to`. A flag without a
 * value is set. *ret_seen (may be NULL) has bit i for fields[i]. Return 0, or -EINVAL with a
 * message that names the key; `to` may then be changed in part. */
int back_options(const char *text, size_t len, char separator, const struct field *fields, void *to,
	uint64_t *ret_seen, struct weir_err *err);

/* Return the start of the options of "WHAT?options": the last '?', or the end of the text. So a
 * file name with a '?' needs one more '?' at its end. */
const char *back_query(const char *rest);
