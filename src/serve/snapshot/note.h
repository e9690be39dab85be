/* SPDX-License-Identifier: BSD-3-Clause */
/* note: messages of a policy change, line by line. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct gateway_note { /* zero it */
	char **lines;
	size_t n;
};

/* Add a line; without memory, nothing. n may be NULL. */
void gateway_note_add(struct gateway_note *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Return true if one of the lines is this one. */
bool gateway_note_has(const struct gateway_note *n, const char *line);
/* Log the lines that the old note lacks. */
void gateway_note_news(
	const struct gateway_note *old, const struct gateway_note *now, const char *event);
void gateway_note_free(struct gateway_note *n);
