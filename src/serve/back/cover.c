/* SPDX-License-Identifier: BSD-3-Clause */
#include "serve/back/cover.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Return the bits of one word that belong to [at, end). */
static uint64_t mask(uint32_t word, uint32_t at, uint32_t end)
{
	uint64_t m = UINT64_MAX;

	if (at > word * 64)
		m &= UINT64_MAX << (at - word * 64);
	if (end - word * 64 < 64)
		m &= ~(UINT64_MAX << (end - word * 64));
	return m;
}

static bool any(const uint64_t *bits, uint32_t at, uint32_t end)
{
	for (uint32_t w = at / 64; w <= (end - 1) / 64; w++)
		if (bits[w] & mask(w, at, end))
			return true;
	return false;
}

static void set(uint64_t *bits, uint32_t at, uint32_t end)
{
	for (uint32_t w = at / 64; w <= (end - 1) / 64; w++)
		bits[w] |= mask(w, at, end);
}

int cover_add(struct cover *c, uint32_t length, uint32_t at, uint32_t n)
{
	uint32_t end = at + n;

	if (!c->bits) {
		if (at < c->to && end > c->from)
			return -EEXIST;
		if (c->from == c->to || at == c->to || end == c->from) {
			c->from = c->from == c->to || at < c->from ? at : c->from;
			c->to = end > c->to ? end : c->to;
			return 0;
		}
		c->bits = calloc(length / 64 + 1, sizeof(*c->bits));
		if (!c->bits)
			return -ENOMEM;
		set(c->bits, c->from, c->to);
	}
	if (any(c->bits, at, end))
		return -EEXIST;
	set(c->bits, at, end);
	return 0;
}

void cover_clear(struct cover *c)
{
	free(c->bits);
	*c = (struct cover){0};
}
