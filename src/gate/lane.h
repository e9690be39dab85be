/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane: the children of one node that wait in one class, and which of them is served next.
 *
 * SOURCE  Bennett, Zhang: WF2Q (INFOCOM 1996). Stoica, Abdel-Wahab: Earliest Eligible Virtual Deadline
 *         First (ODU TR-95-22, 1995). Checconi, Rizzo, Valente: QFQ (IEEE/ACM ToN 2013), for groups of
 *         power-of-two width.
 * LAW     A child's next request has a start tag S and a finish tag F = S + c/r. It is eligible when
 *         S ≤ V; of the eligible the least F is served, and S becomes F. A child that begins to wait
 *         starts at S = max(F, E), where E is V as the last service began, or the least F of the eligible if
 *         that is earlier, but never earlier than it was before; with credit k at max(F, min(E, V − k/r)).
 *         A change of weight keeps a child's lead or lag in cost: S − E changes as 1/r.
 *         When cost c is served, V advances by c/W. A child that begins to wait late takes V back, to the mean, before
 *         the next service. (If V stood still instead, a heavy child just ahead of V would wait for a request of
 *         each late child, however many there are.) A child that ceases to wait while S is ahead of V has had
 *         service in advance: its weight stays in W until V reaches S, or with several such children to the mean
 *         of their S. A child that is late when it ceases to wait does not push V ahead. If no child is eligible V
 *         jumps to the least S. Nothing in V depends on other children that are idle, on weights of the past, or on
 *         the scale of weights.
 * SYMBOLS c cost, r weight; tags and V in cost per weight, as whole numbers of 1/LANE_UNIT, modulo
 *         2^64; W the sum of the weights of the children that wait or are in advance, in 2^-20.
 * METHOD  A child is in a group by its width: the power of two that c/r, or half of S − V if that is more, fits in.
 *         A group is a ring of slots, a quarter of a width each, of lists of children; its tags are those of its
 *         first slot. Only the first slots are compared, and only when one has changed or V has reached another.
 *         Inside a slot the order is first come, first served. A child enters and leaves from anywhere in O(1).
 *         A child may have requests of some kinds only, and sometimes only some kinds are allowed (above.h).
 *         Children that have the same kinds are a bank: groups of their own, by the same V. While no kind of a bank
 *         is allowed the bank is frozen: its weights are not in W, V goes to the mean of the others at once, and as V
 *         moves from there the bank's tags do, too. When it thaws V goes to the mean of all. So a bank that waits for
 *         an ancestor's bucket keeps its distance from that mean, and its children keep their order. A lane has banks from when a child first lacks a kind. Start tags are rounded down and
 *         finish tags up, so that a child that is eligible or due by its exact tags is so by the rounded ones, too.
 *         A width is less than 2·c/r, and with a slot less than 2.5·c/r.
 * DIFFERS QFQ fixes a flow's group and sorts groups by four bitmaps, which presumes that no tag is late by
 *         more than its group's width; here costs vary and a large request makes tags late. WF2Q+ moves V by
 *         all weights that exist. EEVDF keeps V at the mean, which lets a child that leaves push V ahead.
 *         A child whose tag is beyond the ring waits in its last slot and is placed again from there. If its tag is
 *         still beyond the ring, since another child of that width is late, it is far: it is put in a wider group,
 *         before the other children of its slot. A slot that holds a far child counts as finished where it begins, so
 *         that the child goes back to its own width before anything that finishes later is served. A child whose tag
 *         is too early for the ring is put in a narrower group.
 * EXAMPLE Weights 2, 1, 1, costs of 1, all beginning at V = 0: F = 1/2, 1, 1. The first is served: S = 1/2, V = 1/4,
 *         so that it is not eligible. Next the second: V = 1/2. Then the first again, and the third.
 */
#pragma once

#include "base/heap.h"
#include "gate/pool.h"
#include <stdbool.h>
#include <stdint.h>

#define LANE_NIL     UINT32_MAX
#define LANE_OF_LANE 0x80000000u
#define LANE_SLOTS   16 /* slots of a group: four widths */
#define LANE_KEYS    63 /* widths 2^0 … 2^62 */
#define LANE_NONE    UINT8_MAX
#define LANE_KINDS   7u /* all kinds of requests, a bit each (kind.h) */
#define LANE_BANKS   7  /* sets of kinds that a child may lack, by their bits; no child lacks all */

/* An entry of a lane is known by a number: that of a node, if it is a leaf; or that of a lane | LANE_OF_LANE, which
 * represents an inner node in its parent's lane of the same class. The entry is part of the node or of the lane. */
struct lane_entry {
	uint64_t tag;         /* S while the child waits, then F; keyed: the key */
	uint32_t next, prev;  /* numbers; LANE_NIL: none. prev of the first entry of a list is
	                         undefined */
	uint16_t parts : 9;   /* fraction of the tag below its last bit, in 1/LANE_PARTS */
	uint16_t without : 3; /* kinds of requests that the child lacks now (banks) */
	uint16_t slot : 4;    /* of its group */
	uint8_t group;        /* LANE_NONE: in no group; keyed: 0 while in the heap */
	uint8_t width : 6;    /* log2 of the lead over V at the last service, an upper bound from
	                         then on */
	uint8_t far : 1;   /* the group is wider than 2^width, the request's own width (DIFFERS) */
	uint8_t waits : 1; /* the child is counted in the lane's weights */
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct lane_entry) == 20, "two of them and a timer in a cache line");

struct lane_list {
	uint32_t head, tail; /* numbers */
};

/* Kept apart from the lists, so that the tags of all groups are in few cache lines. */
struct lane_group {
	uint64_t start;  /* start of the first slot */
	uint64_t finish; /* end of the first slot plus the width: no child in it finishes later;
	                    or the start of the first slot of `far`, if that is earlier */
	uint16_t used;   /* slots that are not empty: a bit each */
	uint16_t far;    /* slots of `used` that may hold far children */
	uint8_t first;   /* first slot of `used`, modulo LANE_SLOTS */
	uint8_t shift;   /* log2 of a slot's width */
	uint8_t key;     /* log2 of the group's width */
	uint8_t without; /* kinds that its children lack */
};
_Static_assert(sizeof(struct lane_group) == 24, "few cache lines");

struct lane_ring {
	struct lane_list slot[LANE_SLOTS];
};

/* The children that have exactly the same kinds of requests (METHOD). Their tags are relative to `base`. */
struct lane_bank {
	int64_t weight;  /* sum over the children that wait */
	uint32_t n;      /* number of children that wait */
	uint64_t base;   /* offset to add to an entry's tag */
	uint64_t frozen; /* V when their kinds ceased to be allowed */
	double ahead;    /* sum over the children of weight times their tag's lead over lane.origin,
	                    or if frozen over V */
};

struct lane {
	/* touched by every request */
	uint64_t now;      /* V */
	uint64_t before;   /* V before the last service */
	uint64_t floor;    /* earliest start of a child that begins to wait */
	uint64_t top;      /* the latest V so far */
	double owed;       /* distance by which V is to move, times W; negative: back, before
	                      the next service (lane_settle) */
	int64_t weight;    /* W */
	int64_t past;      /* part of W: children that ceased to wait ahead of V */
	double past_ahead; /* sum over these of weight times their lead over V */
	uint64_t until;  /* `best` is valid while V is before this; equal to `now`: choose again */
	uint32_t waits;  /* number of children that wait */
	uint8_t best;    /* the group that is next */
	uint8_t room;    /* number of groups allocated */
	uint8_t slot;    /* which class, 0 first (node.h) */
	bool keyed;      /* FIFO or EDF: tags are keys that may fall; kept in a heap with places */
	uint32_t offset; /* bytes from the beginning of a leaf's node to its entry */
	uint64_t
		active; /* groups that are not empty: a bit each, by key, or with banks by number */
	struct lane_group *groups; /* [room] */
	struct lane_ring *rings;   /* [room]: their slots */
	uint8_t of[LANE_KEYS];     /* the group of a bit of `active` */
	uint64_t idle;             /* groups that are empty: a bit each */
	/* banks */
	bool banked;     /* some child lacks, or has lacked, a kind */
	uint8_t allowed; /* kinds that may pass now */
	uint64_t origin; /* a past V, relative to which the sums of the banks are kept */
	uint64_t frozen; /* groups of which no kind is allowed: a bit each, not in `active` */
	struct lane_bank bank[LANE_BANKS]; /* by the kinds that its children lack */
	struct heap heap;                  /* if keyed */
	struct lane_entry own; /* this lane's entry in the lane of the same slot of the parent
	                          node */
	double own_cost;       /* cost of the request last served from this lane, or of its first
	                          child's */
	uint32_t number;       /* this lane's number */
	uint32_t node;         /* the node whose children these are */
	uint32_t past_id;      /* lane_entry.next of the children counted in `past` */
};

/* The arrays that hold the entries. */
struct lane_home {
	char *nodes; /* the first node; POOL_STRIDE bytes apart */
	struct lane **lanes;
	double unit; /* tag distance of a cost of 1 at a weight of 1 */
};

/* lane_home.unit: 2 to the number of a tag's bits after the binary point. The other bits hold the largest cost,
 * 2^32, over the least weight, 2^-10. Costs in bytes and time are hundreds at least, costs in requests mostly 1. */
#define LANE_UNIT_REQUESTS 0x1p34
#define LANE_UNIT          0x1p18
#define LANE_STEP_MAX      0x1p60 /* tags: the longest step */
#define LANE_PARTS                                                                                 \
	512 /* parts of a tag's last bit: keep the rounding error of a step, so that steps add up */
#define LANE_WEIGHT_ONE 1048576.0

/* A keyed lane's heap keeps places in `place`, which is borrowed and twice as long as the highest number of a node
 * or a lane. Call lane_places when the array moves. */
void lane_init(struct lane *l, uint32_t number, uint32_t node, uint8_t slot, uint32_t offset,
	bool keyed, uint32_t *place);
void lane_places(struct lane *l, uint32_t *place);
void lane_free(struct lane *l);
/* Make room for this many numbers. Return 0, or -ENOMEM, then the lane is unchanged. */
int lane_fit(struct lane *l, uint32_t numbers);
size_t lane_memory(const struct lane *l);

POOL_HOT struct lane_entry *lane_entry(const struct lane_home *h, const struct lane *l, uint32_t e)
{
	if (e & LANE_OF_LANE)
		return &h->lanes[e & ~LANE_OF_LANE]->own;
	return (void *)(h->nodes + (size_t)e * POOL_STRIDE + l->offset);
}

/* lane_entry for a leaf. */
POOL_HOT struct lane_entry *lane_leaf(const struct lane_home *h, const struct lane *l, uint32_t e)
{
	return (void *)(h->nodes + (size_t)e * POOL_STRIDE + l->offset);
}

/* Return the tag by which an entry is placed in its group: the entry's tag plus its bank's base. */
POOL_HOT uint64_t lane_at(const struct lane *l, const struct lane_entry *entry)
{
	return __builtin_expect(!entry->without, 1) ? entry->tag
						    : entry->tag + l->bank[entry->without].base;
}

/* Return the entry to serve next, by choosing among groups or by key; LANE_NIL if none waits. */
uint32_t lane_find(struct lane *l, const struct lane_home *h);
/* lane_find, but reuse the last choice of a group while it is valid. `plain`: the lane has no banks, and only leaves
 * wait in it. */
POOL_HOT uint32_t lane_first_of(struct lane *l, const struct lane_home *h, bool plain)
{
	if ((int64_t)(l->now - l->until) >= 0)
		return lane_find(l, h);
	const struct lane_group *q = &l->groups[l->best];
	uint32_t e = l->rings[l->best].slot[q->first].head;
	uint64_t tag = plain ? lane_leaf(h, l, e)->tag : lane_at(l, lane_entry(h, l, e));

	return __builtin_expect((int64_t)(tag - q->start) >> q->shift <= 0, 1) ? e
									       : lane_find(l, h);
}
POOL_HOT uint32_t lane_first(struct lane *l, const struct lane_home *h)
{
	return lane_first_of(l, h, false);
}
/* Return the entry to serve next if these kinds were allowed, or one that is to be placed again before. V does not
 * jump, and nothing is frozen or placed again: how often a lane is peeked at must not change what is served. */
uint32_t lane_peek(struct lane *l, const struct lane_home *h, unsigned kinds);
/* Restrict lane_find to children that have some of these kinds, not 0. Not for keyed lanes. */
void lane_allow(struct lane *l, unsigned kinds);
/* Return the union of the kinds of requests of the children that wait. */
unsigned lane_kinds(const struct lane *l);

/* ---- keyed */

/* Sort an entry by its new tag; insert it if it is not in the heap. */
void lane_key(struct lane *l, const struct lane_home *h, uint32_t e);
/* Remove an entry from the heap, from any place. */
void lane_key_out(struct lane *l, struct lane_entry *entry, uint32_t e);

/* ---- fair */

/* Return the distance by which a cost moves a tag. */
POOL_HOT double lane_step(const struct lane_home *h, double cost, double weight)
{
	double step = cost * h->unit / weight;

	return step < LANE_STEP_MAX ? step : LANE_STEP_MAX;
}

/* Return a weight in the unit of W: a whole number, so that sums of weight times lead agree with W. */
POOL_HOT double lane_each(double weight)
{
	return (double)(int64_t)(weight * LANE_WEIGHT_ONE);
}

/* Return a cost in the unit of lane.owed, no more than corresponds to `step`, the cost's lane_step. */
POOL_HOT double lane_cost(const struct lane_home *h, double cost, double weight, double step)
{
	return (step < LANE_STEP_MAX ? cost * h->unit : step * weight) * LANE_WEIGHT_ONE;
}

/* Return log2 of the least power of two that this cost's distance fits in. (No division: subtracting the bits of two
 * doubles subtracts the exponents, and the digits after them.) */
POOL_HOT unsigned lane_width(const struct lane_home *h, double cost, double weight)
{
	const unsigned digits = 52, most = 60;
	int64_t width;
	union {
		double number;
		int64_t bits;
	} c = {cost * h->unit}, w = {weight};

	width = (c.bits - w.bits + (INT64_C(1) << digits) - 1) >> digits;
	return width < 0 ? 0 : width < most ? (unsigned)width : most;
}

/* Return log2 of the least power of two that a span fits in; 0 for a span of 1 or less. */
POOL_HOT unsigned lane_log(int64_t span)
{
	return 63 - (unsigned)__builtin_clzll(2 * (uint64_t)(span > 1 ? span : 1) - 1);
}

/* Let a child that does not wait begin to wait for a request of this width; its entry says which kinds it lacks.
 * `credit` is the distance by which it may start before the others. Return true if no other child was waiting. */
bool lane_join(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, double credit);
/* Place an entry that waits and is in no group by its tag, with a request of this width. */
void lane_put(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	unsigned width);
/* Remove an entry from its group, from any place. */
void lane_take(struct lane *l, const struct lane_home *h, struct lane_entry *entry);
/* Let a child cease to wait, after lane_take. */
void lane_leave(struct lane *l, struct lane_entry *entry, double weight);
/* lane_leave for the only child that waits. */
POOL_HOT void lane_leave_last(struct lane *l, struct lane_entry *entry)
{
	int64_t ahead = (int64_t)(entry->tag - l->now);

	l->weight = l->past = 0;
	l->owed = l->past_ahead = 0;
	l->past_id++;
	l->waits = 0;
	entry->waits = false;
	entry->next = LANE_NIL;
	entry->width = lane_log(ahead) & 0x3f;
}
/* Change a child's weight: the service that it has had in advance, or that it is late by, stays the same. A child
 * that waits is in no group afterwards. */
void lane_reweigh(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double before, double weight);
/* Take V back to the mean, if late children have begun to wait (LAW), but not before the floor. The tags of frozen
 * banks go with it, as they do when V advances over the same distance again. */
void lane_settle_back(struct lane *l);
POOL_HOT void lane_settle(struct lane *l)
{
	if (l->owed < 0)
		lane_settle_back(l);
}
/* Raise the floor before a child is served, which moves its tag by `step`. If the lane chose the child (a run does
 * not ask) no waiting child finishes earlier, and from now on no child starts earlier than that. */
POOL_HOT void lane_raise(struct lane *l, const struct lane_entry *entry, double step)
{
	uint64_t finish = l->groups[entry->group].finish,
		 own = lane_at(l, entry) + (uint64_t)(int64_t)step;
	bool chosen = entry->group == l->best && (int64_t)(l->now - l->until) < 0;

	lane_settle(l);
	finish = (int64_t)(own - finish) < 0 ? own : finish; /* (its group may be too wide) */
	finish = (int64_t)(finish - l->now) < 0 ? finish : l->now;
	if (chosen && (int64_t)(finish - l->floor) > 0)
		l->floor = finish;
}
/* Charge a child that waits and is in no group with a cost (lane_cost), which moves its tag by `step`. */
void lane_serve(struct lane *l, struct lane_entry *entry, double cost, double step);
/* Change the kinds that a child lacks. `width` is that of its next request. */
void lane_change(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, unsigned without);

/* ---- the same in one step, with a plain cost, for lanes without banks in which only leaves wait */

/* lane_join for leaves. */
bool lane_join_leaf(struct lane *l, const struct lane_home *h, struct lane_entry *entry, uint32_t e,
	double weight, unsigned width, double credit);
/* Let a child begin to wait in an empty lane and serve it. Then it waits and is in no group, */
void lane_serve_alone(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double credit);
/* or it does not wait any more. */
void lane_serve_by(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double credit);
/* Serve the child that lane_first has just returned; `step` is the lane_step of the cost, which the caller need not
 * wait for. Then the child waits and is in no group. (lane-impl.h has other ends of a service.) */
void lane_serve_first(struct lane *l, const struct lane_home *h, struct lane_entry *entry,
	double weight, double cost, double step);
