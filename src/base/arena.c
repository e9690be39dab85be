/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct arena_piece {
	struct arena_piece *next;
	_Alignas(16) uint8_t data[];
};

void *arena_take(struct arena *a, size_t n, size_t size)
{
	struct arena_piece *p = NULL;

	if (!size || n <= (SIZE_MAX - sizeof(*p)) / size)
		p = calloc(1, sizeof(*p) + n * size);
	if (!p) {
		a->failed = true;
		return NULL;
	}
	p->next = a->pieces;
	a->pieces = p;
	return p->data;
}

char *arena_text(struct arena *a, const char *text)
{
	size_t n = strlen(text) + 1;
	char *to = arena_take(a, n, 1);

	return to ? memcpy(to, text, n) : NULL;
}

void arena_free(struct arena *a)
{
	struct arena_piece *p, *next;

	for (p = a->pieces; p; p = next) {
		next = p->next;
		free(p);
	}
	*a = (struct arena){0};
}
