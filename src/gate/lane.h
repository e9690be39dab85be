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
 *         tag beyond the circle waits in the last bucket and is looked at again there. Those of
 *         the bucket at the front wait in a ring, as far as they fit: who is next is there, and
 *         who comes to be served at once is put there and taken away with a few instructions. O(1).
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
#define LANE_HEAP_MAX 64         /* three levels of a 4-ary heap: as quick as a bucket, and exact */
#define LANE_RING     64         /* a batch or two; a power of 2 */
#define LANE_SHUT     UINT64_MAX /* all bits, which can be set without a branch */
#define LANE_OF_LANE  0x80000000u
#define LANE_OUT      UINT16_MAX

/* What stands in a lane is known by its number: a node's, a leaf; or a lane's | LANE_OF_LANE, which
 * stands for an inner node in its parent's lane of the same class. Its entry is part of the node, or
 * of the lane. */
struct lane_entry {
	double tag;                    /* S while inside, F while not */
	uint16_t at;                   /* LANE_OUT: not inside; else its bucket, or 0 in a heap */
} __attribute__((packed, aligned(2))); /* so that a node's three share a cache line */

struct lane {
	/* what every request touches */
	double now;           /* V */
	double start;         /* circle: where the ring's bucket begins */
	uint64_t base;        /* circle: number of a bucket before which there is nothing */
	uint64_t ring_number; /* circle: that of the ring's bucket */
	uint64_t
		open; /* the same while the ring takes who comes, else LANE_SHUT: there is no room in it,
	                  some of its bucket wait in the chain, or the lane is empty */
	uint32_t members;    /* entries inside */
	uint32_t mask;       /* circle: buckets − 1 */
	uint32_t head, tail; /* of the ring, modulo its length; what is between waits there */
	bool keyed;         /* FIFO or EDF: tags are keys that may fall; a heap that knows places */
	uint8_t slot;       /* which class, 0 first (node.h) */
	uint32_t offset;    /* bytes from the beginning of a leaf's node to its entry */
	double quantum;     /* circle: width of a bucket, a power of 2 */
	double per_quantum; /* 1/quantum */
	struct chain *buckets;    /* circle: where the bit is set. Else NULL */
	uint64_t *bits, top;      /* which buckets' chains are not empty; which words of bits */
	struct chain_store store; /* circle: blocks of the buckets' chains */
	/* the rest */
	struct heap heap;      /* when buckets is NULL */
	struct lane_entry own; /* its own, in the lane of the same slot of the node above */
	uint32_t number;       /* its own */
	uint32_t node;         /* whose children these are */
	uint32_t ring[LANE_RING];
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

POOL_HOT struct lane_entry *lane_entry(const struct lane_home *h, const struct lane *l, uint32_t e)
{
	if (e & LANE_OF_LANE)
		return &h->lanes[e & ~LANE_OF_LANE]->own;
	return (void *)(h->nodes + (size_t)e * POOL_STRIDE + l->offset);
}

/* Not inside yet. Was the lane empty? */
POOL_HOT bool lane_insert(struct lane *l, const struct lane_home *h, uint32_t e);
/* The one that is first by its present tag; LANE_NIL when the lane is empty. */
POOL_HOT uint32_t lane_first(struct lane *l, const struct lane_home *h);
/* The same if tags do not grow while they wait; and does it stand in the ring? */
POOL_HOT uint32_t lane_first_of(struct lane *l, const struct lane_home *h, bool *ret_ring);
POOL_HOT void lane_pop(
	struct lane *l, const struct lane_home *h, uint32_t e); /* what lane_first gave */
/* Takes out one that stands anywhere. Not for the hot path: O(its bucket), or the heap. */
void lane_remove(struct lane *l, const struct lane_home *h, uint32_t e);
void lane_lower(struct lane *l, const struct lane_home *h, uint32_t e); /* keyed: its tag fell */
/* Up to `max` that come to the front soon, roughly in order; how many. For fetching them into the
 * cache: nothing but hints, and of a circle only, since a heap is small. There is to be room for
 * max + CHAIN_CELLS. */
uint32_t lane_soon(const struct lane *l, uint32_t *ret, uint32_t max);

/* ---- inside: here, so that the hot path has no call */

bool lane_enter(struct lane *l, struct lane_entry *entry, uint32_t e, uint64_t number);
uint32_t lane_first_heap(struct lane *l, const struct lane_home *h);
uint32_t lane_first_circle(struct lane *l, const struct lane_home *h);
void lane_append(struct lane *l, struct lane_entry *entry, uint32_t e, uint64_t number);
void lane_behead(struct lane *l);

POOL_HOT uint64_t lane_number(const struct lane *l, double tag)
{
	return (uint64_t)(int64_t)(tag * l->per_quantum); /* signed: one instruction */
}

/* Is who is first in the ring? (Else the ring is empty, or somebody came who goes before it.) */
POOL_HOT bool lane_from_ring(const struct lane *l)
{
	return l->head != l->tail && l->base == l->ring_number;
}

POOL_HOT bool lane_insert_entry(struct lane *l, struct lane_entry *entry, uint32_t e)
{
	uint64_t number = lane_number(l, entry->tag);

	if (number != l->open)
		return lane_enter(l, entry, e, number);
	entry->at = (uint16_t)(number & l->mask);
	l->ring[l->tail++ % LANE_RING] = e;
	if (l->tail - l->head == LANE_RING)
		l->open = LANE_SHUT;
	l->members++;
	return false;
}

POOL_HOT bool lane_insert(struct lane *l, const struct lane_home *h, uint32_t e)
{
	return lane_insert_entry(l, lane_entry(h, l, e), e);
}

POOL_HOT uint32_t lane_first_of(struct lane *l, const struct lane_home *h, bool *ret_ring)
{
	*ret_ring = lane_from_ring(l);
	if (*ret_ring)
		return l->ring[l->head % LANE_RING];
	uint32_t e = l->buckets ? lane_first_circle(l, h) : lane_first_heap(l, h);

	*ret_ring = lane_from_ring(l);
	return e;
}

POOL_HOT uint32_t lane_first(struct lane *l, const struct lane_home *h)
{
	for (;;) {
		bool ring;
		uint32_t e = lane_first_of(l, h, &ring);

		if (!ring)
			return e;
		struct lane_entry *entry = lane_entry(h, l, e);
		uint64_t number = lane_number(l, entry->tag);

		if (number <= l->base)
			return e;
		l->head++;
		lane_append(l, entry, e, number);
	}
}

/* What lane_first gave, which has this tag, is served: virtual time reaches it. In a circle, the
 * beginning of its bucket, so that nobody who was just served finds itself behind the times within
 * the bucket. `ring`: lane_from_ring. */
POOL_HOT void lane_serve(struct lane *l, double tag, bool ring)
{
	if (ring)
		tag = l->start;
	else if (l->buckets)
		tag = (double)(int64_t)l->base * l->quantum;
	l->now = tag > l->now ? tag : l->now;
}

POOL_HOT void lane_pop_entry(struct lane *l, struct lane_entry *entry, bool ring)
{
	entry->at = LANE_OUT;
	if (ring)
		l->head++;
	else
		lane_behead(l);
	/* (No branch: nobody can predict it.) */
	l->open |= -(uint64_t)(--l->members == 0);
}

POOL_HOT void lane_pop(struct lane *l, const struct lane_home *h, uint32_t e)
{
	lane_pop_entry(l, lane_entry(h, l, e), lane_from_ring(l));
}

#endif
