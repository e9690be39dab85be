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
 *         of tag wide, found by bit scan; inside one bucket first come first served. A tag beyond
 *         the circle waits in the last bucket and is looked at again there. O(1).
 * DIFFERS An entry is never taken out of the middle. Its tag may grow while it stands in the lane,
 *         or it may cease to wait: both are found when it comes to the front, which is never later
 *         than its due place. Ties and places inside a bucket go by order of entry, and the gate
 *         enters in the order of node numbers, so that the order of submits does not matter.
 */
#ifndef WEIR_GATE_LANE_H
#define WEIR_GATE_LANE_H

#include "base/heap.h"
#include <stdbool.h>
#include <stdint.h>

#define LANE_NIL      UINT32_MAX
#define LANE_HEAP_MAX 64 /* three levels of a 4-ary heap: as quick as a bucket, and exact */
#define LANE_OF_LANE  0x80000000u

/* Something that stands in a lane: a leaf in one class, or a lane in its parent's. */
struct lane_entry {
	double tag;     /* S while inside, F while not */
	uint32_t next;  /* LANE_NIL: not inside */
	uint32_t owner; /* node, or lane | LANE_OF_LANE */
};

struct lane {
	/* what every request touches: a cache line */
	double now;         /* V */
	uint32_t members;   /* entries inside */
	uint32_t mask;      /* circle: buckets − 1 */
	uint64_t base;      /* circle: number of a bucket before which there is nothing */
	double quantum;     /* circle: width of a bucket, a power of 2 */
	double per_quantum; /* 1/quantum */
	uint32_t *tail; /* circle: last entry of each bucket; its next is the first. Else NULL */
	uint64_t *bits, top; /* which buckets hold something; which words of bits */
	/* the rest */
	struct heap heap; /* when tail is NULL */
	uint32_t entry;   /* its own entry, in the lane of the same slot of the node above */
	uint32_t node;    /* whose children these are */
	uint8_t slot;     /* which class, 0 first (node.h) */
	bool keyed;       /* FIFO or EDF: tags are keys that may fall; a heap that knows places */
};

/* A keyed lane's heap keeps the entries' places in `place`, an array as long as the entries,
 * borrowed; lane_place when it moves. */
void lane_init(
	struct lane *l, uint32_t node, uint8_t slot, uint32_t entry, bool keyed, uint32_t *place);
void lane_place(struct lane *l, uint32_t *place);
void lane_free(struct lane *l);

/* Fits the lane to `children` that may stand in it at once, and to steps of up to `step` of tag.
 * Not for the hot path: moves everything inside. 0 or -ENOMEM, then unchanged. */
int lane_fit(struct lane *l, struct lane_entry *entries, uint32_t children, double step);
size_t lane_memory(const struct lane *l);

static inline void lane_insert(
	struct lane *l, struct lane_entry *entries, uint32_t e); /* not inside yet */
/* The entry that is first by its present tag; LANE_NIL when the lane is empty. */
static inline uint32_t lane_first(struct lane *l, struct lane_entry *entries);
static inline void lane_pop(
	struct lane *l, struct lane_entry *entries); /* removes what lane_first gave */
/* A walk over what comes to the front soon, roughly in order, for fetching it into the cache: nothing
 * but hints, and of a circle only, since a heap is small. Returns entry after entry; LANE_NIL: enough. */
struct lane_walk {
	uint32_t at, bucket; /* entry, LANE_NIL: none; its bucket, or the one to begin with */
};
static inline struct lane_walk lane_walk_from_front(const struct lane *l);
static inline uint32_t lane_walk(
	const struct lane *l, const struct lane_entry *entries, struct lane_walk *w);
void lane_lower(struct lane *l, struct lane_entry *entries, uint32_t e); /* keyed: its tag fell */

/* ---- inside: here, so that the hot path has no call */

void lane_insert_heap(struct lane *l, struct lane_entry *entries, uint32_t e);
uint32_t lane_first_heap(struct lane *l, struct lane_entry *entries);
void lane_pop_heap(struct lane *l, struct lane_entry *entries);

static inline uint64_t lane_number(const struct lane *l, double tag)
{
	return (uint64_t)(int64_t)(tag * l->per_quantum); /* signed: one instruction */
}

static inline void lane_append(
	struct lane *l, struct lane_entry *entries, uint32_t e, uint64_t number)
{
	if (number - l->base > l->mask)
		number = l->base + l->mask; /* beyond the circle: looked at again there */
	uint32_t at = (uint32_t)number & l->mask;
	uint64_t bit = UINT64_C(1) << (at % 64);

	if (l->bits[at / 64] & bit) {
		uint32_t last = l->tail[at];

		entries[e].next = entries[last].next;
		entries[last].next = e;
	} else {
		entries[e].next = e;
		l->bits[at / 64] |= bit;
		l->top |= UINT64_C(1) << (at / 64);
	}
	l->tail[at] = e;
}

/* Takes the first entry out of bucket `at`. */
static inline uint32_t lane_behead(struct lane *l, struct lane_entry *entries, uint32_t at)
{
	uint32_t last = l->tail[at], e = entries[last].next;

	if (e == last) {
		l->bits[at / 64] &= ~(UINT64_C(1) << (at % 64));
		if (!l->bits[at / 64])
			l->top &= ~(UINT64_C(1) << (at / 64));
	} else {
		entries[last].next = entries[e].next;
	}
	entries[e].next = LANE_NIL;
	return e;
}

static inline void lane_insert(struct lane *l, struct lane_entry *entries, uint32_t e)
{
	if (!l->tail) {
		lane_insert_heap(l, entries, e);
		return;
	}
	uint64_t number = lane_number(l, entries[e].tag);

	if (l->members == 0 || number < l->base)
		l->base = number;
	lane_append(l, entries, e, number);
	l->members++;
}

/* The first bucket from `from` on, going round, that holds something. There is one. */
static inline uint32_t lane_scan(const struct lane *l, uint32_t from)
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

static inline uint32_t lane_first(struct lane *l, struct lane_entry *entries)
{
	if (!l->tail)
		return lane_first_heap(l, entries);
	while (l->members) {
		uint32_t at = lane_scan(l, (uint32_t)l->base & l->mask);
		uint32_t e = entries[l->tail[at]].next;
		uint64_t here = l->base + ((at - (uint32_t)l->base) & l->mask);
		uint64_t number = lane_number(l, entries[e].tag);

		l->base = here;
		if (number <= here)
			return e;
		lane_behead(l, entries, at);
		if (l->members == 1)
			l->base = number;
		lane_append(l, entries, e, number);
	}
	return LANE_NIL;
}

static inline struct lane_walk lane_walk_from_front(const struct lane *l)
{
	return (struct lane_walk){.at = LANE_NIL, .bucket = (uint32_t)l->base & l->mask};
}

static inline uint32_t lane_walk(
	const struct lane *l, const struct lane_entry *entries, struct lane_walk *w)
{
	if (w->at != LANE_NIL && w->at != l->tail[w->bucket]) {
		w->at = entries[w->at].next; /* LANE_NIL: it has left meanwhile */
		return w->at;
	}
	if (!l->tail || !l->members)
		return LANE_NIL;
	if (w->at != LANE_NIL)
		w->bucket = (w->bucket + 1) & l->mask;
	w->bucket = lane_scan(l, w->bucket);
	w->at = entries[l->tail[w->bucket]].next;
	return w->at;
}

/* What lane_first gave, which has this tag, is served: virtual time reaches it. In a circle, the
 * beginning of its bucket, so that nobody who was just served finds itself behind the times within
 * the bucket. */
static inline void lane_serve(struct lane *l, double tag)
{
	if (l->tail)
		tag = (double)(int64_t)l->base * l->quantum;
	if (tag > l->now)
		l->now = tag;
}

static inline void lane_pop(struct lane *l, struct lane_entry *entries)
{
	if (!l->tail) {
		lane_pop_heap(l, entries);
		return;
	}
	lane_behead(l, entries, (uint32_t)l->base & l->mask);
	l->members--;
}

#endif
