/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap: a 4-ary min-heap with its items inline.
 *
 * METHOD   The children of i are 4i+1 … 4i+4: half the levels of a binary heap, and the four lie in
 *          two cache lines. Items move through a hole, written once where they end. (key, serial)
 *          is compared as one 128-bit number: a subtraction with borrow instead of a jump that
 *          cannot be predicted; the least of four children is found as a tournament.
 */
#include "base/heap.h"
#include "base/array.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

__extension__ typedef __int128 heap_order;
__extension__ typedef unsigned __int128 heap_bits; /* shifting a negative number is undefined */

static inline heap_order order_of(const struct heap_item *item)
{
	return (heap_order)((heap_bits)item->key << 64 | item->serial);
}

static inline bool is_before(const struct heap_item *a, const struct heap_item *b)
{
	return order_of(a) < order_of(b);
}

/* Copy field by field: a copy through a vector register would stall on the narrower stores before
 * it. */
static inline void put_item(
	struct heap_item *items, uint32_t *place, size_t index, const struct heap_item *item)
{
	items[index].key = item->key;
	items[index].serial = item->serial;
	items[index].value = item->value;
	if (place)
		place[item->value] = (uint32_t)index;
}

/* Put the item into the hole at `index` or above it. */
static inline void sift_up(struct heap *h, size_t index, const struct heap_item *from)
{
	const struct heap_item item = {from->key, from->serial, from->value};
	struct heap_item *items = h->items; /* in registers: the stores below may alias the heap */
	uint32_t *place = h->place;

	while (index > 0) {
		size_t parent = (index - 1) / 4;
		if (!is_before(&item, &items[parent]))
			break;
		put_item(items, place, index, &items[parent]);
		index = parent;
	}
	put_item(items, place, index, &item);
}

static inline size_t least_child(const struct heap_item *items, size_t n, size_t first)
{
	const struct heap_item *c = &items[first];
	size_t least = 0;

	if (first + 4 <= n) {
		size_t a = is_before(&c[1], &c[0]), b = 2 + (size_t)is_before(&c[3], &c[2]);
		size_t which = -(size_t)is_before(&c[b], &c[a]);
		return first + ((b & which) | (a & ~which));
	}
	for (size_t i = 1; first + i < n; i++)
		least = is_before(&c[i], &c[least]) ? i : least;
	return first + least;
}

/* Put the item into the hole at `index` or below it. */
static inline void sift_down(struct heap *h, size_t index, const struct heap_item *from)
{
	const struct heap_item item = {from->key, from->serial, from->value};
	struct heap_item *items = h->items;
	uint32_t *place = h->place;
	size_t n = h->n;

	for (size_t first; (first = 4 * index + 1) < n;) {
		size_t child = least_child(items, n, first);
		if (!is_before(&items[child], &item))
			break;
		put_item(items, place, index, &items[child]);
		index = child;
	}
	put_item(items, place, index, &item);
}

/* Fill the hole at `index` with an item from elsewhere. */
static void fill_hole(struct heap *h, size_t index, const struct heap_item *item)
{
	if (index > 0 && is_before(item, &h->items[(index - 1) / 4]))
		sift_up(h, index, item);
	else
		sift_down(h, index, item);
}

void heap_init(struct heap *h, uint32_t *place)
{
	*h = (struct heap){.place = place};
}

void heap_free(struct heap *h)
{
	free(h->items);
	heap_init(h, h->place);
}

int heap_reserve(struct heap *h, size_t room)
{
	if (room <= h->room)
		return 0;
	if ((h->place && room > HEAP_NOWHERE) || array_resize(&h->items, room) < 0)
		return -ENOMEM;
	h->room = room;
	return 0;
}

static int grow_items(struct heap *h)
{
	return heap_reserve(h, h->room ? 2 * h->room : 16);
}

int heap_push(struct heap *h, struct heap_item item)
{
	if (__builtin_expect(h->n == h->room, 0)) {
		int r = grow_items(h);
		if (r < 0)
			return r;
	}
	sift_up(h, h->n++, &item);
	return 0;
}

struct heap_item heap_pop(struct heap *h)
{
	const struct heap_item *top = h->items;
	struct heap_item least = {top->key, top->serial, top->value};

	h->n--;
	if (h->n)
		sift_down(h, 0, &h->items[h->n]);
	if (h->place)
		h->place[least.value] = HEAP_NOWHERE;
	return least;
}

void heap_remove(struct heap *h, size_t index)
{
	uint64_t value = h->items[index].value;

	h->n--;
	if (index < h->n)
		fill_hole(h, index, &h->items[h->n]);
	if (h->place)
		h->place[value] = HEAP_NOWHERE;
}

void heap_move(struct heap *h, size_t index, int64_t key, uint64_t serial)
{
	const struct heap_item item = {key, serial, h->items[index].value};

	fill_hole(h, index, &item);
}
