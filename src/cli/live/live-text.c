/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live-text: write parts of a scenario's policies, as text, into a gateway's policy. No value is
 * parsed, rounded and written again.
 */
#include "base/array.h"
#include "cli/live/live-impl.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void live_text_node(FILE *f, yamldoc_node n)
{
	const char *key;

	switch (yamldoc_kind(n)) {
	case YAMLDOC_SCALAR:
		files_put_quoted(f, yamldoc_text(n), strlen(yamldoc_text(n)));
		return;
	case YAMLDOC_LIST:
		fputc('[', f);
		for (size_t i = 0; i < yamldoc_size(n); i++) {
			fputs(i ? ", " : "", f);
			live_text_node(f, yamldoc_at(n, i));
		}
		fputc(']', f);
		return;
	case YAMLDOC_MAP:
		fputc('{', f);
		for (size_t i = 0; i < yamldoc_map_size(n); i++) {
			yamldoc_node value = yamldoc_map_at(n, i, &key);

			fprintf(f, "%s%s: ", i ? ", " : "", key);
			live_text_node(f, value);
		}
		fputc('}', f);
		return;
	default:
		fputc('~', f);
	}
}

void live_text_keys(FILE *f, yamldoc_node map, const char *const * not )
{
	for (size_t i = 0; i < yamldoc_map_size(map); i++) {
		const char *key, *const *k = not ;
		yamldoc_node value = yamldoc_map_at(map, i, &key);

		while (*k && strcmp(*k, key) != 0)
			k++;
		if (*k)
			continue;
		fprintf(f, "%s: ", key);
		live_text_node(f, value);
		fputs(", ", f);
	}
}

yamldoc_node live_text_device(const struct scenario *s, uint32_t device)
{
	return yamldoc_at(yamldoc_get(yamldoc_root(s->doc), "devices"), device);
}

const char *live_text(struct live *l, const char *fmt, ...)
{
	char *text, *kept;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	kept = n < 0 ? NULL : arena_text(&l->memory, text);
	l->memory.failed |= !kept;
	if (n >= 0)
		free(text);
	return kept ? kept : "";
}

void live_words_add(struct live_words *w, const char *fmt, ...)
{
	va_list ap;

	if (array_grow(&w->word, &w->room, w->n + 2) < 0) {
		w->failed = true;
		return;
	}
	va_start(ap, fmt);
	if (vasprintf(&w->word[w->n], fmt, ap) < 0)
		w->failed = true;
	else
		w->n++;
	va_end(ap);
	w->word[w->n] = NULL;
}

void live_words_free(struct live_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->word[i]);
	free(w->word);
}
