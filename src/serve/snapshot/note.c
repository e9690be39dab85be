/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/snapshot/note.h"
#include "base/array.h"
#include "serve/loop/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gateway_note_add(struct gateway_note *n, const char *fmt, ...)
{
	char *line;
	va_list args;
	int len;

	if (!n)
		return;
	va_start(args, fmt);
	len = vasprintf(&line, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	if (array_resize(&n->lines, n->n + 1) == 0)
		n->lines[n->n++] = line;
	else
		free(line);
}

void gateway_note_free(struct gateway_note *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->lines[i]);
	free(n->lines);
	*n = (struct gateway_note){0};
}

bool gateway_note_has(const struct gateway_note *n, const char *line)
{
	for (size_t i = 0; i < n->n; i++)
		if (strcmp(n->lines[i], line) == 0)
			return true;
	return false;
}

void gateway_note_news(
	const struct gateway_note *old, const struct gateway_note *now, const char *event)
{
	for (size_t i = 0; i < now->n; i++)
		if (!gateway_note_has(old, now->lines[i]))
			log_event(LOG_LEVEL_ERROR, event, "why", now->lines[i], NULL);
}
