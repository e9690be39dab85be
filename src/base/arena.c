/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 4096 - 64 }; /* bytes: with malloc's own and our head, about a page */

struct arena_piece {
	struct arena_piece *next;
	size_t used, room;
	_Alignas(16) uint8_t data[];
};

void *arena_take(struct arena *a, size_t n, size_t size)
{
	struct arena_piece *p = a->pieces;
	bool fits = !size || n <= (SIZE_MAX - sizeof(*p) - 16) / size;
	size_t bytes = fits ? (n * size + 15) / 16 * 16 : 0;

	if (fits && (!p || p->room - p->used < bytes)) {
		size_t room = bytes > PIECE ? bytes : PIECE;

		p = calloc(1, sizeof(*p) + room);
		if (p) {
			p->room = room;
			p->next = a->pieces;
			a->pieces = p;
		}
	}
	if (!fits || !p) {
		a->failed = true;
		return NULL;
	}
	p->used += bytes;
	return p->data + p->used - bytes;
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
