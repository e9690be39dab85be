/* SPDX-License-Identifier: BSD-3-Clause */
/* note: what a change of the policy has to tell, line by line. */
#ifndef WEIR_SERVE_GATEWAY_NOTE_H
#define WEIR_SERVE_GATEWAY_NOTE_H

#include "serve/gateway/impl.h"

/* One more line; without memory for it, none. n may be NULL. */
void gateway_note_add(struct gateway_note *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* What is different in `to`: a line for each tenant that comes, goes or changes, for the keys of
 * resources and exports, and for what a restart is needed for. At most 100, then how many more. */
void gateway_note_changes(
	struct gateway_note *n, const struct weir_policy *from, const struct weir_policy *to);

#endif
