/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The circle spans this many of the largest steps, so that tags rarely lie beyond it. */
#define LANE_SPAN 4
/* Buckets a child, and their least and greatest number. Many buckets make the quantum small; few
 * keep the circle in the cache and the memory of a node with few children in proportion. */
#define LANE_PER_CHILD 4
#define LANE_LEAST     256
#define LANE_MOST      4096

/* A heap orders by integers; non-negative doubles order as their bits do. */
static int64_t lane_key(double tag)
{
	int64_t key;

	memcpy(&key, &tag, sizeof key);
	return key;
}

/* A place has an index: the numbers of nodes and of lanes in turns. */
static uint64_t lane_value(uint32_t e)
{
	return e << 1 | e >> 31;
}

static uint32_t lane_of_value(uint64_t value)
{
	return (uint32_t)value >> 1 | (uint32_t)value << 31;
}

void lane_init(struct lane *l, uint32_t number, uint32_t node, uint8_t slot, uint32_t offset,
	bool keyed, uint32_t *place)
{
	*l = (struct lane){.number = number,
		.node = node,
		.slot = slot,
		.offset = offset,
		.keyed = keyed,
		.own = {.at = LANE_NIL}};
	heap_init(&l->heap, place);
	chain_init(&l->store);
}

void lane_place(struct lane *l, uint32_t *place)
{
	l->heap.place = place;
}

void lane_free(struct lane *l)
{
	free(l->buckets);
	free(l->bits);
	chain_free(&l->store);
	heap_free(&l->heap);
}

size_t lane_memory(const struct lane *l)
{
	size_t n = (size_t)l->mask + 1;

	return (l->buckets ? n * sizeof *l->buckets + n / 8 : 0) +
	       l->store.room * sizeof *l->store.blocks + l->heap.room * sizeof *l->heap.items;
}

void lane_insert_heap(struct lane *l, struct lane_entry *entry, uint32_t e)
{
	entry->at = 0;
	/* Room was made by lane_fit: this cannot fail. */
	(void)heap_push(&l->heap,
		(struct heap_item){
			.key = lane_key(entry->tag), .serial = e, .value = lane_value(e)});
	l->members++;
}

void lane_pop_heap(struct lane *l)
{
	heap_pop(&l->heap);
	l->members--;
}

uint32_t lane_first_heap(struct lane *l, const struct lane_home *h)
{
	for (;;) {
		const struct heap_item *item = heap_min(&l->heap);

		if (!item)
			return LANE_NIL;
		uint32_t e = lane_of_value(item->value);
		int64_t key = lane_key(lane_entry(h, l, e)->tag);

		if (key <= item->key)
			return e;
		heap_move(&l->heap, 0, key, e);
	}
}

void lane_lower(struct lane *l, const struct lane_home *h, uint32_t e)
{
	heap_move(&l->heap, l->heap.place[lane_value(e)], lane_key(lane_entry(h, l, e)->tag), e);
}

static void lane_remove_heap(struct lane *l, uint32_t e)
{
	size_t i = 0;

	if (l->keyed)
		i = l->heap.place[lane_value(e)];
	else
		while (l->heap.items[i].value != lane_value(e))
			i++;
	heap_remove(&l->heap, i);
}

/* The others of its bucket go round once: blocks in the middle of a chain stay full, as the room made
 * for them presumes. */
static void lane_remove_circle(struct lane *l, uint32_t at, uint32_t e)
{
	struct chain *c = &l->buckets[at];
	uint32_t last = CHAIN_NIL, moved;

	if (chain_first(&l->store, c) == e) {
		lane_behead(l, at);
		return;
	}
	/* Ends when what was put in first comes round again. */
	while ((moved = chain_first(&l->store, c)) != last) {
		(void)chain_pop(&l->store, c);
		if (moved == e)
			continue;
		if (last == CHAIN_NIL)
			last = moved;
		chain_append(&l->store, c, moved);
	}
}

void lane_remove(struct lane *l, const struct lane_home *h, uint32_t e)
{
	struct lane_entry *entry = lane_entry(h, l, e);

	if (l->buckets)
		lane_remove_circle(l, entry->at, e);
	else
		lane_remove_heap(l, e);
	entry->at = LANE_NIL;
	l->members--;
}

uint32_t lane_soon(const struct lane *l, uint32_t *ret, uint32_t max)
{
	uint32_t n = 0, from = (uint32_t)l->base & l->mask, at = from;

	if (!l->buckets || !l->members)
		return 0;
	do {
		uint32_t next = lane_scan(l, at);

		if (n && ((next - from) & l->mask) < ((at - from) & l->mask))
			break; /* once round */
		n += chain_peek(&l->store, &l->buckets[next], ret + n, max - n);
		at = (next + 1) & l->mask;
	} while (n < max && at != from);
	return n;
}

/* ---- fitting */

static uint32_t lane_buckets(uint32_t children)
{
	uint32_t n = LANE_LEAST;

	while (n < LANE_MOST && n < (uint64_t)children * LANE_PER_CHILD)
		n *= 2;
	return n;
}

/* Puts everything inside, first to last, into `out`, and leaves the lane empty. */
static void lane_unload(struct lane *l, const struct lane_home *h, uint32_t *out)
{
	uint32_t n = 0, e;

	while ((e = lane_first(l, h)) != LANE_NIL) {
		lane_pop(l, h, e);
		out[n++] = e;
	}
}

/* Blocks that the chains need at the most (chain.h). */
static uint32_t lane_blocks(uint32_t children, uint32_t buckets)
{
	uint64_t most = 2 * (uint64_t)buckets + children / CHAIN_CELLS + 1;

	return most < children ? (uint32_t)most : children;
}

static int lane_fit_circle(struct lane *l, const struct lane_home *h, uint32_t children,
	uint32_t buckets, double quantum)
{
	/* Room for half as many more: children come one by one. */
	if (lane_blocks(children, buckets) > l->store.room &&
		chain_room(&l->store, lane_blocks(children + children / 2, buckets)))
		return -ENOMEM;
	if (l->buckets && l->mask + 1 == buckets && l->quantum == quantum)
		return 0;
	struct chain *chains = calloc(buckets, sizeof *chains);
	uint64_t *bits = calloc(buckets / 64, sizeof *bits);
	uint32_t n = l->members, *inside = malloc((n ? n : 1) * sizeof *inside);

	if (!chains || !bits || !inside) {
		free(chains);
		free(bits);
		free(inside);
		return -ENOMEM;
	}
	lane_unload(l, h, inside);
	free(l->buckets);
	free(l->bits);
	heap_free(&l->heap);
	heap_init(&l->heap, NULL);
	l->buckets = chains;
	l->bits = bits;
	l->top = 0;
	l->mask = buckets - 1;
	l->quantum = quantum;
	l->per_quantum = 1 / quantum;
	for (uint32_t i = 0; i < n; i++)
		lane_insert(l, h, inside[i]);
	free(inside);
	return 0;
}

int lane_fit(struct lane *l, const struct lane_home *h, uint32_t children, double step)
{
	if (children <= LANE_HEAP_MAX || l->keyed) {
		/* Once a circle, always a circle: going back would only save memory. */
		return l->buckets ? 0 : heap_reserve(&l->heap, children);
	}
	uint32_t buckets = lane_buckets(children);
	double quantum = exp2(ceil(log2(step * LANE_SPAN / buckets)));

	if (l->buckets && buckets < l->mask + 1)
		buckets = l->mask + 1;
	if (l->buckets && quantum < l->quantum && quantum > l->quantum / 16)
		quantum = l->quantum;
	return lane_fit_circle(l, h, children, buckets, quantum);
}
