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

void lane_init(
	struct lane *l, uint32_t node, uint8_t slot, uint32_t entry, bool keyed, uint32_t *place)
{
	*l = (struct lane){.node = node, .slot = slot, .entry = entry, .keyed = keyed};
	heap_init(&l->heap, place);
}

void lane_place(struct lane *l, uint32_t *place)
{
	l->heap.place = place;
}

void lane_free(struct lane *l)
{
	free(l->tail);
	free(l->bits);
	heap_free(&l->heap);
}

size_t lane_memory(const struct lane *l)
{
	size_t circle = l->tail ? ((size_t)l->mask + 1) * 4 + ((size_t)l->mask + 1) / 8 : 0;

	return circle + l->heap.room * sizeof *l->heap.items;
}

void lane_insert_heap(struct lane *l, struct lane_entry *entries, uint32_t e)
{
	entries[e].next = e;
	/* Room was made by lane_fit: this cannot fail. */
	(void)heap_push(&l->heap,
		(struct heap_item){.key = lane_key(entries[e].tag), .serial = e, .value = e});
	l->members++;
}

void lane_pop_heap(struct lane *l, struct lane_entry *entries)
{
	entries[heap_pop(&l->heap).value].next = LANE_NIL;
	l->members--;
}

uint32_t lane_first_heap(struct lane *l, struct lane_entry *entries)
{
	for (;;) {
		const struct heap_item *item = heap_min(&l->heap);

		if (!item)
			return LANE_NIL;
		uint32_t e = (uint32_t)item->value;
		int64_t key = lane_key(entries[e].tag);

		if (key <= item->key)
			return e;
		heap_move(&l->heap, 0, key, e);
	}
}

void lane_lower(struct lane *l, struct lane_entry *entries, uint32_t e)
{
	heap_move(&l->heap, l->heap.place[e], lane_key(entries[e].tag), e);
}

/* ---- fitting */

static uint32_t lane_buckets(uint32_t children)
{
	uint32_t n = LANE_LEAST;

	while (n < LANE_MOST && n < (uint64_t)children * LANE_PER_CHILD)
		n *= 2;
	return n;
}

/* Chains everything inside, first to last, by `next`; the lane is empty afterwards. */
static uint32_t lane_unload(struct lane *l, struct lane_entry *entries)
{
	uint32_t first = LANE_NIL, last = LANE_NIL, e;

	while ((e = lane_first(l, entries)) != LANE_NIL) {
		lane_pop(l, entries);
		if (first == LANE_NIL)
			first = e;
		else
			entries[last].next = e;
		last = e;
	}
	return first;
}

static void lane_load(struct lane *l, struct lane_entry *entries, uint32_t e)
{
	while (e != LANE_NIL) {
		uint32_t next = entries[e].next;

		lane_insert(l, entries, e);
		e = next;
	}
}

static int lane_fit_circle(
	struct lane *l, struct lane_entry *entries, uint32_t buckets, double quantum)
{
	if (l->tail && l->mask + 1 == buckets && l->quantum == quantum)
		return 0;
	uint32_t *tail = calloc(buckets, sizeof *tail);
	uint64_t *bits = calloc(buckets / 64, sizeof *bits);

	if (!tail || !bits) {
		free(tail);
		free(bits);
		return -ENOMEM;
	}
	uint32_t chain = lane_unload(l, entries);

	free(l->tail);
	free(l->bits);
	heap_free(&l->heap);
	heap_init(&l->heap, NULL);
	l->tail = tail;
	l->bits = bits;
	l->top = 0;
	l->mask = buckets - 1;
	l->quantum = quantum;
	l->per_quantum = 1 / quantum;
	lane_load(l, entries, chain);
	return 0;
}

int lane_fit(struct lane *l, struct lane_entry *entries, uint32_t children, double step)
{
	if (children <= LANE_HEAP_MAX || l->keyed) {
		/* Once a circle, always a circle: going back would only save memory. */
		return l->tail ? 0 : heap_reserve(&l->heap, children);
	}
	uint32_t buckets = lane_buckets(children);
	double quantum = exp2(ceil(log2(step * LANE_SPAN / buckets)));

	if (l->tail && buckets < l->mask + 1)
		buckets = l->mask + 1;
	if (l->tail && quantum < l->quantum && quantum > l->quantum / 16)
		quantum = l->quantum;
	return lane_fit_circle(l, entries, buckets, quantum);
}
