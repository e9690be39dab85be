/* SPDX-License-Identifier: BSD-3-Clause */
#include "gate/lane.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many go into the ring at once: all of them are looked at, which takes its time. */
#define LANE_FILL 4
/* The circle spans this many of the largest steps, so that tags rarely lie beyond it. */
#define LANE_SPAN 4
/* Buckets a child, and their least and greatest number. Many buckets make the quantum small; few
 * keep the circle in the cache and the memory of a node with few children in proportion. */
#define LANE_PER_CHILD 4
#define LANE_LEAST     256
#define LANE_MOST      4096
_Static_assert(LANE_MOST <= LANE_OUT, "a bucket's number in an entry");

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
		.open = LANE_SHUT,
		.own = {.at = LANE_OUT}};
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

	return (l->buckets ? n * sizeof *l->buckets + n / 8 : 0) + chain_memory(&l->store) +
	       l->heap.room * sizeof *l->heap.items;
}

static void lane_insert_heap(struct lane *l, struct lane_entry *entry, uint32_t e)
{
	entry->at = 0;
	/* Room was made by lane_fit: this cannot fail. */
	(void)heap_push(&l->heap,
		(struct heap_item){
			.key = lane_key(entry->tag), .serial = e, .value = lane_value(e)});
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

/* ---- the circle */

/* The ring, which is empty, is for this bucket from now on; nobody waits in its chain. */
static void lane_ring(struct lane *l, uint64_t number)
{
	l->base = l->ring_number = l->open = number;
	l->start = (double)(int64_t)number * l->quantum;
}

/* At the end of its bucket's chain. */
POOL_HOT void lane_put(struct lane *l, struct lane_entry *entry, uint32_t e, uint64_t number)
{
	if (number - l->base > l->mask)
		number = l->base + l->mask; /* beyond the circle: looked at again there */
	uint32_t at = (uint32_t)number & l->mask;
	uint64_t bit = UINT64_C(1) << (at % 64);

	entry->at = (uint16_t)at;
	l->open |= -(uint64_t)(at == ((uint32_t)l->ring_number & l->mask));
	if (l->bits[at / 64] & bit) {
		chain_append(&l->store, &l->buckets[at], e);
		return;
	}
	chain_begin(&l->buckets[at], e);
	l->bits[at / 64] |= bit;
	l->top |= UINT64_C(1) << (at / 64);
}

void lane_append(struct lane *l, struct lane_entry *entry, uint32_t e, uint64_t number)
{
	lane_put(l, entry, e, number);
}

/* Inserts where it is not just one more in the ring. Was the lane empty? */
bool lane_enter(struct lane *l, struct lane_entry *entry, uint32_t e, uint64_t number)
{
	bool empty = l->members++ == 0;

	if (!l->buckets) {
		lane_insert_heap(l, entry, e);
	} else if (empty) {
		lane_ring(l, number);
		entry->at = (uint16_t)(number & l->mask);
		l->ring[l->tail++ % LANE_RING] = e;
	} else {
		l->base = number < l->base ? number : l->base;
		lane_put(l, entry, e, number);
	}
	return empty;
}

static void lane_mark_empty(struct lane *l, uint32_t at)
{
	l->bits[at / 64] &= ~(UINT64_C(1) << (at % 64));
	if (!l->bits[at / 64])
		l->top &= ~(UINT64_C(1) << (at / 64));
}

/* Takes the first out of the chain of the bucket at base, or out of the heap. */
void lane_behead(struct lane *l)
{
	uint32_t at = (uint32_t)l->base & l->mask;

	if (!l->buckets)
		heap_pop(&l->heap);
	else if (chain_pop(&l->store, &l->buckets[at]))
		lane_mark_empty(l, at);
}

/* The first bucket from `from` on, going round, whose chain holds something. There is one. */
static uint32_t lane_scan(const struct lane *l, uint32_t from)
{
	uint32_t word = from / 64;
	uint64_t bits = l->bits[word] & (~UINT64_C(0) << (from % 64));

	if (bits)
		return word * 64 + (uint32_t)__builtin_ctzll(bits);
	uint64_t after = word == 63 ? 0 : l->top & (~UINT64_C(0) << (word + 1));

	if (!after)
		after = l->top; /* round the end; perhaps back to the low bits of this very word */
	word = (uint32_t)__builtin_ctzll(after);
	return word * 64 + (uint32_t)__builtin_ctzll(l->bits[word]);
}

/* The first in the chain of the bucket at base, if it belongs there; else it goes where it does. */
static uint32_t lane_first_chain(struct lane *l, const struct lane_home *h)
{
	uint32_t at = (uint32_t)l->base & l->mask, e = chain_first(&l->store, &l->buckets[at]);
	struct lane_entry *entry = lane_entry(h, l, e);
	uint64_t number = lane_number(l, entry->tag);

	if (number <= l->base)
		return e;
	lane_behead(l);
	if (l->members == 1)
		lane_ring(l, number);
	lane_append(l, entry, e, number);
	return LANE_NIL;
}

/* The ring is empty, and the chain of the bucket at base is not: takes some out of it. Who does not belong
 * there goes where it does, which is another. */
static void lane_fill_ring(struct lane *l, const struct lane_home *h)
{
	uint32_t at = (uint32_t)l->base & l->mask;
	struct chain *c = &l->buckets[at];
	bool more = true;

	lane_ring(l, l->base);
	while (more && l->tail - l->head < LANE_FILL) {
		uint32_t e = chain_first(&l->store, c);
		struct lane_entry *entry = lane_entry(h, l, e);
		uint64_t number = lane_number(l, entry->tag);

		more = !chain_pop(&l->store, c);
		if (number <= l->base) {
			l->ring[l->tail++ % LANE_RING] = e;
			continue;
		}
		if (!more)
			lane_mark_empty(l, at);
		if (l->members == 1)
			lane_ring(l, number);
		lane_append(l, entry, e, number);
		if (!more)
			return;
	}
	if (more)
		l->open = LANE_SHUT;
	else
		lane_mark_empty(l, at);
}

uint32_t lane_first_circle(struct lane *l, const struct lane_home *h)
{
	while (l->members) {
		if (l->members == l->tail - l->head) {
			l->base = l->ring_number;
			return l->ring[l->head % LANE_RING];
		}
		uint32_t at = lane_scan(l, (uint32_t)l->base & l->mask);
		uint64_t here = l->base + ((at - (uint32_t)l->base) & l->mask);
		bool ring = l->head != l->tail;

		if (ring && l->ring_number <= here) {
			l->base = l->ring_number;
			return l->ring[l->head % LANE_RING];
		}
		l->base = here;
		if (ring) { /* for a bucket that comes later */
			uint32_t e = lane_first_chain(l, h);

			if (e != LANE_NIL)
				return e;
		} else {
			lane_fill_ring(l, h);
			if (lane_from_ring(l))
				return l->ring[l->head % LANE_RING];
		}
	}
	return LANE_NIL;
}

/* The others of its bucket go round once: blocks in the middle of a chain stay full, as the room made
 * for them presumes. */
static void lane_remove_chain(struct lane *l, uint32_t at, uint32_t e)
{
	struct chain *c = &l->buckets[at];
	uint32_t last = LANE_NIL, moved;

	if (chain_first(&l->store, c) == e) {
		if (chain_pop(&l->store, c))
			lane_mark_empty(l, at);
		return;
	}
	/* Ends when what was put in first comes round again. */
	while ((moved = chain_first(&l->store, c)) != last) {
		(void)chain_pop(&l->store, c);
		if (moved == e)
			continue;
		if (last == LANE_NIL)
			last = moved;
		chain_append(&l->store, c, moved);
	}
}

static bool lane_remove_ring(struct lane *l, uint32_t e)
{
	uint32_t i = l->head;

	while (i != l->tail && l->ring[i % LANE_RING] != e)
		i++;
	if (i == l->tail)
		return false;
	for (; i + 1 != l->tail; i++)
		l->ring[i % LANE_RING] = l->ring[(i + 1) % LANE_RING];
	l->tail--;
	return true;
}

void lane_remove(struct lane *l, const struct lane_home *h, uint32_t e)
{
	struct lane_entry *entry = lane_entry(h, l, e);

	if (!l->buckets)
		lane_remove_heap(l, e);
	else if (!lane_remove_ring(l, e))
		lane_remove_chain(l, entry->at, e);
	entry->at = LANE_OUT;
	if (--l->members == 0)
		l->open = LANE_SHUT;
}

uint32_t lane_soon(const struct lane *l, uint32_t *ret, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = l->head; i != l->tail && n < max; i++)
		ret[n++] = l->ring[i % LANE_RING];
	if (n == max || n == l->members || !l->buckets)
		return n;
	uint32_t from = (uint32_t)l->base & l->mask, at = from;

	do {
		uint32_t next = lane_scan(l, at);

		if (((next - from) & l->mask) < ((at - from) & l->mask))
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

	/* (A heap has no ring.) */
	while ((e = l->buckets ? lane_first(l, h) : lane_first_heap(l, h)) != LANE_NIL) {
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
	l->head = l->tail;
	l->open = LANE_SHUT;
	for (uint32_t i = 0; i < n; i++)
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): so many were unloaded */
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
