/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane: the children of one node that wait in one class, in the order of their start tags.
 *
 * SOURCE  Goyal, Vin, Cheng: Start-time Fair Queueing (ToN 1997), as PARDA §3.3 uses it; the
 *         bucket queue after Eiffel (Saeed et al., arXiv 1810.03060).
 * LAW     A child that becomes backlogged starts at S = max(V, F); serving cost c moves its finish
 *         tag to F = S + c/r, which is the next S; V is the S last served; least S goes first.
 *         With credit k, an idle child starts at S = max(V − k/r, F).
 * SYMBOLS tags in cost units per weight; r weight; V virtual time of the lane.
 * METHOD  Up to LANE_HEAP_MAX children: a heap, exact. More: a circle of buckets, each `quantum`
 *         of tag wide, found by bit scan; inside one bucket first come first served (chain.h). A
 *         tag beyond the circle waits in the last bucket and is looked at again there. O(1).
 * DIFFERS On the way of a request an entry is never taken out of the middle. Its tag may grow while
 *         it stands in the lane, or it may cease to wait: both are found when it comes to the
 *         front, which is never later than its due place. Ties and places inside a bucket go by
 *         order of entry, and the gate enters in the order of node numbers, so that the order of
 *         submits does not matter.
 */
#ifndef WEIR_GATE_LANE_H
#define WEIR_GATE_LANE_H

#include "base/heap.h"
#include "gate/chain.h"
#include "gate/pool.h"

#define LANE_NIL      UINT32_MAX
#define LANE_HEAP_MAX 64 /* three levels of a 4-ary heap: as quick as a bucket, and exact */
#define LANE_OF_LANE  0x80000000u

/* What stands in a lane is known by its number: a node's, a leaf; or a lane's | LANE_OF_LANE, which
 * stands for an inner node in its parent's lane of the same class. Its entry is part of the node, or
 * of the lane. */
struct lane_entry {
	double tag;  /* S while inside, F while not */
	uint32_t at; /* LANE_NIL: not inside; else its bucket, or 0 in a heap */
};

struct lane {
	/* what every request touches: a cache line, and a half */
	double now;               /* V */
	uint32_t members;         /* entries inside */
	uint32_t mask;            /* circle: buckets − 1 */
	uint64_t base;            /* circle: number of a bucket before which there is nothing */
	double quantum;           /* circle: width of a bucket, a power of 2 */
	double per_quantum;       /* 1/quantum */
	struct chain *buckets;    /* circle: where the bit is set. Else NULL */
	uint64_t *bits, top;      /* which buckets hold something; which words of bits */
	struct chain_store store; /* circle: blocks of the buckets' chains */
	/* the rest */
	struct heap heap;      /* when buckets is NULL */
	struct lane_entry own; /* its own, in the lane of the same slot of the node above */
	uint32_t number;       /* its own */
	uint32_t node;         /* whose children these are */
	uint32_t offset;       /* bytes from the beginning of a leaf's node to its entry */
	uint8_t slot;          /* which class, 0 first (node.h) */
	bool keyed; /* FIFO or EDF: tags are keys that may fall; a heap that knows places */
};

/* Where the entries are. */
struct lane_home {
	char *nodes; /* the first node; POOL_STRIDE bytes each */
	struct lane **lanes;
};

/* A keyed lane's heap keeps places in `place`, borrowed: twice as long as the numbers of nodes and of
 * lanes go. lane_place when it moves. */
void lane_init(struct lane *l, uint32_t number, uint32_t node, uint8_t slot, uint32_t offset,
	bool keyed, uint32_t *place);
void lane_place(struct lane *l, uint32_t *place);
void lane_free(struct lane *l);

/* Fits the lane to `children` that may stand in it at once, and to steps of up to `step` of tag.
 * Not for the hot path: moves everything inside. 0 or -ENOMEM, then unchanged. */
int lane_fit(struct lane *l, const struct lane_home *h, uint32_t children, double step);
size_t lane_memory(const struct lane *l);

POOL_HOT struct lane_entry *lane_entry(
	const struct lane_home *h, const struct lane *l, uint32_t e)
{
	if (e & LANE_OF_LANE)
		return &h->lanes[e & ~LANE_OF_LANE]->own;
	return (void *)(h->nodes + (size_t)e * POOL_STRIDE + l->offset);
}

POOL_HOT void lane_insert(
	struct lane *l, const struct lane_home *h, uint32_t e); /* not inside yet */
/* The one that is first by its present tag; LANE_NIL when the lane is empty. */
POOL_HOT uint32_t lane_first(struct lane *l, const struct lane_home *h);
POOL_HOT void lane_pop(
	struct lane *l, const struct lane_home *h, uint32_t e); /* what lane_first gave */
/* Takes out one that stands anywhere. Not for the hot path: O(its bucket), or the heap. */
void lane_remove(struct lane *l, const struct lane_home *h, uint32_t e);
void lane_lower(struct lane *l, const struct lane_home *h, uint32_t e); /* keyed: its tag fell */
/* Up to `max` that come to the front soon, roughly in order; how many. For fetching them into the
 * cache: nothing but hints, and of a circle only, since a heap is small. */
uint32_t lane_soon(const struct lane *l, uint32_t *ret, uint32_t max);

/* ---- inside: here, so that the hot path has no call */

void lane_insert_heap(struct lane *l, struct lane_entry *entry, uint32_t e);
uint32_t lane_first_heap(struct lane *l, const struct lane_home *h);
void lane_pop_heap(struct lane *l);

POOL_HOT uint64_t lane_number(const struct lane *l, double tag)
{
	return (uint64_t)(int64_t)(tag * l->per_quantum); /* signed: one instruction */
}

POOL_HOT void lane_append(
	struct lane *l, struct lane_entry *entry, uint32_t e, uint64_t number)
{
	if (number - l->base > l->mask)
		number = l->base + l->mask; /* beyond the circle: looked at again there */
	uint32_t at = (uint32_t)number & l->mask;
	uint64_t bit = UINT64_C(1) << (at % 64), bits = l->bits[at / 64];

	entry->at = at;
	if (bits & bit) {
		chain_append(&l->store, &l->buckets[at], e);
		return;
	}
	chain_begin(&l->store, &l->buckets[at], e, 0);
	l->bits[at / 64] = bits | bit;
	l->top |= UINT64_C(1) << (at / 64);
}

/* Takes the first out of bucket `at`. */
POOL_HOT void lane_behead(struct lane *l, uint32_t at)
{
	if (!chain_pop(&l->store, &l->buckets[at]))
		return;
	l->bits[at / 64] &= ~(UINT64_C(1) << (at % 64));
	if (!l->bits[at / 64])
		l->top &= ~(UINT64_C(1) << (at / 64));
}

POOL_HOT void lane_insert_entry(struct lane *l, struct lane_entry *entry, uint32_t e)
{
	if (!l->buckets) {
		lane_insert_heap(l, entry, e);
		return;
	}
	uint64_t number = lane_number(l, entry->tag);

	if (l->members == 0 || number < l->base)
		l->base = number;
	lane_append(l, entry, e, number);
	l->members++;
}

POOL_HOT void lane_insert(struct lane *l, const struct lane_home *h, uint32_t e)
{
	lane_insert_entry(l, lane_entry(h, l, e), e);
}

/* The first bucket from `from` on, going round, that holds something. There is one. */
POOL_HOT uint32_t lane_scan(const struct lane *l, uint32_t from)
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

POOL_HOT uint32_t lane_first(struct lane *l, const struct lane_home *h)
{
	if (!l->buckets)
		return lane_first_heap(l, h);
	while (l->members) {
		uint32_t at = lane_scan(l, (uint32_t)l->base & l->mask);
		uint32_t e = chain_first(&l->store, &l->buckets[at]);
		struct lane_entry *entry = lane_entry(h, l, e);
		uint64_t here = l->base + ((at - (uint32_t)l->base) & l->mask);
		uint64_t number = lane_number(l, entry->tag);

		l->base = here;
		if (number <= here)
			return e;
		lane_behead(l, at);
		if (l->members == 1)
			l->base = number;
		lane_append(l, entry, e, number);
	}
	return LANE_NIL;
}

/* What lane_first gave, which has this tag, is served: virtual time reaches it. In a circle, the
 * beginning of its bucket, so that nobody who was just served finds itself behind the times within
 * the bucket. */
POOL_HOT void lane_serve(struct lane *l, double tag)
{
	if (l->buckets)
		tag = (double)(int64_t)l->base * l->quantum;
	if (tag > l->now)
		l->now = tag;
}

POOL_HOT void lane_pop_entry(struct lane *l, struct lane_entry *entry)
{
	entry->at = LANE_NIL;
	if (l->buckets) {
		lane_behead(l, (uint32_t)l->base & l->mask);
		l->members--;
	} else {
		lane_pop_heap(l);
	}
}

POOL_HOT void lane_pop(struct lane *l, const struct lane_home *h, uint32_t e)
{
	lane_pop_entry(l, lane_entry(h, l, e));
}

#endif
