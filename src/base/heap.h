/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap: a 4-ary min-heap of (key, serial, value), keys and serials inline.
 *
 * Ordered by key, then by serial: equal keys leave in the order of their serials, so that a
 * simulation is repeatable. To move or remove items by value, pass `place`: an array indexed by
 * value that the heap keeps up to date.
 *
 * COST    push: O(log₄ n) compares at worst, one on average when keys rise, as times do; pop:
 *         O(4 log₄ n) compares without branches. 24 bytes an item.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HEAP_NOWHERE UINT32_MAX /* the place of a value that has left the heap */

struct heap_item {
	int64_t key;
	uint64_t serial;
	uint64_t value; /* the caller's: an index or a pointer */
};

struct heap {
	struct heap_item *items;
	size_t n, room;
	uint32_t *place; /* place[value] = index in items, when wanted; else NULL */
};

/* `place` is borrowed, and long enough for every pushed value; NULL: no places are kept. The heap
 * writes place[v] when v moves and HEAP_NOWHERE when v leaves; it never reads it. */
void heap_init(struct heap *h, uint32_t *place);
void heap_free(struct heap *h);                /* empty afterwards, and usable again */
int heap_reserve(struct heap *h, size_t room); /* 0 or -ENOMEM; then push cannot fail up to room */
int heap_push(struct heap *h, struct heap_item item); /* 0 or -ENOMEM */
struct heap_item heap_pop(struct heap *h);            /* n > 0 */
void heap_remove(struct heap *h, size_t index);
void heap_move(
	struct heap *h, size_t index, int64_t key, uint64_t serial); /* raise or lower its key */

static inline const struct heap_item *heap_min(const struct heap *h)
{
	return h->n ? &h->items[0] : NULL;
}
