/* SPDX-License-Identifier: BSD-3-Clause */
/* note: the messages of a policy change, line by line. */
#pragma once

#include "serve/gateway/impl.h"

/* Add a line; without memory, nothing. n may be NULL. */
void gateway_note_add(struct gateway_note *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Return true if one of the lines is this one. */
bool gateway_note_has(const struct gateway_note *n, const char *line);
/* Log the lines that the old note lacks. */
void gateway_note_news(
	const struct gateway_note *old, const struct gateway_note *now, const char *event);
/* List the differences in `to`: a line for each tenant that is added, removed or changed, for the
 * keys of resources and exports, and for changes that need a restart. At most 100, then the number
 * of others. */
void gateway_note_changes(struct gateway_note *n, const struct weir_policy *from,
	const struct weir_policy *to, bool own);
