/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node: what a gate is made of; shared by the files of this room and by nobody else.
 *
 *   gate.c   the calls: submit, next, done, wakeup, cancel
 *   turn.h   whose turn it is, and what a pass changes
 *   stand.h  where a leaf's head stands: in which lanes, or waiting for what
 *   kind.h   reads, writes and the rest of a leaf's requests
 *   pending.h leaves that are idle no more
 *   above.c  the buckets of inner nodes
 *   ahead.c  memory ahead of need
 *   tree.c   nodes come and go, and their lanes with them
 *   room.h   arrays that grow with them
 *   knob.c   knobs
 *   read.c   the tree, knobs and levels, read back
 *   stats.c  what was measured
 *
 * A leaf keeps its requests in a list and stands, while its head may pass, in up to three lanes of
 * its parent: `priority` while it fits its profiles, else `reserved` while it holds an R-token, and
 * `rest` always. A lane that is not empty stands in the lane of the same slot one level up. What passes
 * next is found by going down from the root's first lane that is not empty. (In the orders FIFO and EDF an
 * entry that no longer waits is dropped when it comes to the front.)
 *
 * Everything of a tenant that a request touches is in one block of memory, struct node, in the order
 * in which it is touched: few cache lines, side by side, on one page. Lanes and timers know tenants
 * by number and find their part of the block by themselves.
 */
#ifndef WEIR_GATE_NODE_H
#define WEIR_GATE_NODE_H

#include <weir/gate.h>
#include "gate/lane.h"
#include "gate/limits.h"
#include "gate/pool.h"
#include "gate/profile.h"
#include "gate/timer.h"
#include "gate/window.h"

/* Slots: the classes, in the order in which they pass. */
#define NODE_PRIORITIES  64
#define NODE_RESERVED    64
#define NODE_REST        65
#define NODE_NO_PRIORITY 0xff
#define NODE_NIL         UINT32_MAX
#define NODE_DEPTH_MAX   32 /* levels below the root; a policy of people's making has under ten */

#define NODE_KIND_N 3 /* kinds of requests (kind.h) */

#define NODE_MOST 0x7fffffffu /* node numbers are less: the high bit is LANE_OF_LANE */

enum node_flags {
	NODE_LEAF = 1,    /* takes requests */
	NODE_INNER = 2,   /* has children, or is the root */
	NODE_SPLIT = 4,   /* leaf: writes have a queue apart */
	NODE_STOPPED = 8, /* inner: its hold buckets stop some kinds */
	NODE_HELD = 16,   /* leaf: the head waits for its own hold buckets */
	NODE_TOKENS = 32, /* leaf: it waits for an R- or L-token */
	NODE_APART = 64,  /* has buckets that are not in the node */
	NODE_KINDS = 128, /* leaf: a queue apart holds something */
};
/* What the head waits for, besides the window and its turn. */
#define NODE_STATE (NODE_HELD | NODE_TOKENS)

/* In `may`: the leaf has no buckets but of a profile, or a pair (limits.h) for which the head's costs will
 * do, and the head waits for nothing but the window and its turn. So it is mostly, and there is a short way
 * for it. */
#define NODE_PLAIN 8
/* Also there: the timer is set to when the head fits its profile, so that then nobody has to ask. */
#define NODE_FITS 16

struct node_inner {
	uint32_t children;
	uint8_t stopped[NODE_KIND_N];  /* by kind: 1 + the first slot that is stopped; 0: none is */
	weir_time until[NODE_KIND_N];  /* if so, when the kind is to be tried again */
	struct lane *lane[2];          /* RESERVED and REST; NULL until somebody needs it */
	struct lane **priority;        /* NODE_PRIORITIES of them, or NULL */
	weir_time held;                /* clock: own hold buckets stop a request */
	weir_time above[NODE_KIND_N];  /* clocks: the kind is stopped here or above, as of since */
	weir_time since;               /* when `stopped` last changed */
	weir_time above0[NODE_KIND_N]; /* the parent's above clocks then */
};

/* The areas are sums over requests of a clock at dispatch minus the same clock at submit (stats.c). They
 * are kept modulo 2^72 request·ns, the upper 8 bits apart from the lower 64: 1,000 requests may wait for
 * 74 years. Sums of clocks may wrap; differences do not mind. */
struct node {
	/* the queue: all that submit and done touch */
	_Alignas(POOL_LINE) union {
		struct weir_req *head;    /* leaf */
		struct node_inner *inner; /* with NODE_INNER */
	};
	struct weir_req *tail;
	int64_t wait_area;   /* request·ns by the clock `now` */
	int64_t window_area; /* ns in which a request of its was the first behind a full window */
	int64_t device_area; /* request·ns in the device */
	uint32_t queued, in_flight;
	float weight; /* r */
	uint32_t parent;
	uint8_t flags;                 /* enum node_flags; 0: no node */
	int8_t wait_high, device_high; /* of the areas */
	uint8_t may; /* leaf: classes in which the head may pass, as of the last look: a bit each; and
	                NODE_PLAIN, NODE_FITS */
	uint8_t priority; /* or NODE_NO_PRIORITY */
	/* the places: all that a timer's expiry touches */
	_Alignas(POOL_LINE) struct timer_entry timer;
	weir_time reserved; /* leaf: when the head has an R-token, as of the last look */
	struct lane_entry entry_reserved, entry_rest;
	/* what a pass touches besides */
	_Alignas(POOL_LINE) struct bucket own[LIMITS_OWN];
	struct limits limits;
	uint64_t bytes;
	uint64_t passed[3]; /* by class */
	/* what few need */
	_Alignas(POOL_LINE) struct profile *profile; /* NULL: none */
	weir_time held;      /* clock: own hold buckets do not admit; with NODE_HELD, less now */
	int64_t held_area;   /* request·ns by the clocks: now, with NODE_HELD; */
	int64_t tokens_area; /* now without what is above, with NODE_TOKENS; */
	int64_t above_area;  /* stopped above, without NODE_HELD */
	struct lane_entry entry_priority;
	int8_t held_high, tokens_high, above_high;
};
_Static_assert(sizeof(struct node) == POOL_STRIDE, "five cache lines a node");
_Static_assert(offsetof(struct node, timer) == 64 && offsetof(struct node, own) == 128 &&
		       offsetof(struct node, limits) == 192 &&
		       offsetof(struct node, profile) == 256,
	"each part in a cache line");
_Static_assert(sizeof(struct weir_req) == 64, "a cache line a request");

/* What a leaf has besides if requests of some kinds have queues apart (kind.h): of writes, and of control. */
struct node_apart {
	struct weir_req *tail[NODE_KIND_N - 1]; /* the next of a tail is the head; NULL: empty */
	uint32_t n[NODE_KIND_N - 1];
	uint8_t state[NODE_KIND_N -
		      1]; /* NODE_STATE of each: that of the node's own is in its flags */
	uint8_t may[3];   /* with NODE_KINDS, by class: queues whose heads may pass */
	uint8_t held; /* queues of data that were held while control waited: it goes before them */
};

struct hist_pair {
	struct weir_hist wait, device;
};

struct stats_record { /* one done, on its way to the histograms */
	uint32_t node;
	weir_time wait, device;
};
#define STATS_RING  1024 /* records; emptied in one go when full */
#define STATS_SPARE 32   /* histogram pairs kept ready, so that done never allocates */

struct stats {
	uint32_t n;               /* records in the ring */
	uint32_t most, used;      /* pairs that may be, that are given out */
	uint32_t spare;           /* pairs ready */
	uint32_t *of;             /* node → pair, NODE_NIL: none; NULL: no histograms at all */
	struct hist_pair **pairs; /* [most] */
	uint64_t unrecorded;
	struct stats_record ring[STATS_RING];
};

#define AHEAD_BATCH 128 /* how many are fetched at once */
#define AHEAD_NOTED (AHEAD_BATCH + TIMER_CELLS)

struct ahead {                         /* ahead.h */
	uint32_t soon;                 /* those whose timers expire */
	uint32_t step;                 /* how many of these steps have been taken (ahead_soon) */
	weir_time at;                  /* when they were noted */
	int64_t edge;                  /* of the timer, when these were noted: */
	uint32_t slot[2][TIMER_CELLS]; /* those of a slot, and of the one before it (ahead_slot) */
	uint32_t *node; /* [AHEAD_NOTED]; NULL: there are too few nodes for this to be of use */
};

struct weir_gate {
	weir_time now; /* the latest seen */
	/* the window */
	struct window window;
	uint32_t in_flight, queued;
	uint64_t inside;       /* bytes in flight */
	uint64_t window_bytes; /* the most of them; 0: no such window */
	uint32_t
		too_large; /* bytes of the request whose turn it was at the last weir_gate_next, and
	                          which did not fit into window_bytes; 0: there was none */
	bool full;         /* in flight ≥ limit, or gate_bytes_full, since full_since */
	weir_time full_time; /* total until full_since, or now if not full */
	weir_time full_since;
	weir_time full_until; /* when it was last so for some time, and then not */
	uint32_t first; /* leaf whose head would pass with one more slot; NODE_NIL: not known */
	uint64_t first_since; /* the full clock when that was found */
	/* who waits */
	uint64_t ready_priority;  /* priorities whose root lanes are not empty */
	struct node *nodes;       /* [room] */
	struct node_apart *apart; /* [room] */
	struct lane **lanes;      /* [room_lanes] */
	struct lane_home home;    /* both, for the lanes */
	struct timer timer;       /* a timer a node */
	uint64_t *pending[3];  /* leaves whose queue was empty before this round: a bit each; then
	                          which words of the level before are not 0 */
	uint32_t n_pending;    /* how many they are */
	uint32_t pending_from; /* where the next call goes on with them */
	uint32_t pending_last; /* the one that came last; it may be none of them any more */
	bool above;     /* some inner node has a hold bucket, or once had: clocks above may run */
	bool ranked;    /* some leaf has a priority, or once had */
	bool tells;     /* one of those tells reads from writes, or once did */
	uint64_t age;   /* of the next request: its number */
	uint32_t looks; /* leaves that the last weir_gate_next looked at */
	uint32_t
		tries; /* requests that it may yet find not to be admitted above; 0: others were not tried */
	struct ahead ahead; /* who is likely to pass next */
	/* the run */
	uint32_t run_node, run_left;
	uint8_t run_slot;
	uint64_t run_end; /* offset at which the last one of the run ended */
	/* knobs of the whole gate */
	uint32_t run;
	uint64_t run_distance;
	double credit;
	enum weir_unit cost;
	enum weir_order order;
	weir_time *deadline; /* [room] if the order is EDF, else NULL */
	/* room and books */
	uint32_t room, n_nodes, free_nodes;       /* nodes; n: used so far; free: list by parent */
	uint32_t n_inner;                         /* inner nodes, the root included */
	uint32_t room_lanes, n_lanes, free_lanes; /* free: list by node */
	uint32_t *place[3]; /* by class, if the order is keyed: of nodes and of lanes in turns */
	uint32_t room_place;
	uint64_t submitted, dispatched, served, full_served;
	struct pool pool;    /* buckets that are too many for their node */
	struct stats *stats; /* NULL: no histograms */
};

/* Where inner node n keeps its lane of a slot. */
static inline struct lane **node_lane_of(struct node_inner *in, unsigned slot)
{
	return slot < NODE_PRIORITIES ? &in->priority[slot] : &in->lane[slot - NODE_RESERVED];
}

/* Which of a leaf's entries stands for a slot: its enum weir_class. */
static inline unsigned node_class(unsigned slot)
{
	return slot < NODE_PRIORITIES ? WEIR_CLASS_PRIORITY
				      : slot - NODE_RESERVED + WEIR_CLASS_RESERVED;
}

static inline struct lane_entry *node_entry(struct node *node, unsigned class)
{
	return class == WEIR_CLASS_REST       ? &node->entry_rest
	       : class == WEIR_CLASS_RESERVED ? &node->entry_reserved
					      : &node->entry_priority;
}

static inline bool node_may(const struct node *node, unsigned slot)
{
	return node->may >> node_class(slot) & 1;
}

static inline struct lane *node_lane(const struct weir_gate *g, uint32_t inner, unsigned slot)
{
	return *node_lane_of(g->nodes[inner].inner, slot);
}

/* The kinds for which inner node n is stopped in this slot. */
static inline unsigned node_stopped(const struct weir_gate *g, uint32_t n, unsigned slot)
{
	unsigned kinds = 0;

	if (!(g->nodes[n].flags & NODE_STOPPED))
		return 0;
	for (unsigned k = 0; k < NODE_KIND_N; k++) {
		unsigned first = g->nodes[n].inner->stopped[k];

		kinds |= (unsigned)(first && slot + 1 >= first) << k;
	}
	return kinds;
}

/* What the head of a leaf's queue waits for: of its own, or of one apart. */
static inline uint8_t node_state(const struct weir_gate *g, uint32_t n, unsigned queue)
{
	return queue ? g->apart[n].state[queue - 1] : g->nodes[n].flags & NODE_STATE;
}

/* Return true if something waits in the root's lane of RESERVED or REST. */
static inline bool node_waits(const struct weir_gate *g, unsigned slot)
{
	const struct lane *lane = node_lane(g, WEIR_ROOT, slot);

	return lane && lane->waits;
}

/* The slots that are ready, first to last, from `from` on; NODE_REST + 1: none. */
static inline unsigned node_ready(const struct weir_gate *g, unsigned from)
{
	if (from < NODE_PRIORITIES) {
		uint64_t ready = g->ready_priority & (~UINT64_C(0) << from);

		if (ready)
			return (unsigned)__builtin_ctzll(ready);
	}
	if (from <= NODE_RESERVED && node_waits(g, NODE_RESERVED))
		return NODE_RESERVED;
	return from <= NODE_REST && node_waits(g, NODE_REST) ? NODE_REST : NODE_REST + 1;
}

/* The root's lane of a slot is empty, or no longer. (Of the others than priorities the lane itself tells.) */
static inline void node_set_ready(struct weir_gate *g, unsigned slot, bool ready)
{
	if (slot >= NODE_PRIORITIES)
		return;
	if (ready)
		g->ready_priority |= UINT64_C(1) << slot;
	else
		g->ready_priority &= ~(UINT64_C(1) << slot);
}

/* ---- areas and clocks (stats.c) */

__extension__ typedef __int128 node_area;

static inline node_area node_area_of(int64_t low, int8_t high)
{
	return (node_area)high * ((node_area)1 << 64) + low;
}
/* Adds so many request·ns to an area. */
static inline void node_area_add(int64_t *low, int8_t *high, node_area amount)
{
	node_area sum = node_area_of(*low, *high) + amount;

	*low = (int64_t)sum;
	*high = (int8_t)((sum - *low) >> 64);
}
/* The same for one request that begins to be counted (its clock is subtracted) or ceases to be. The upper
 * part hardly ever changes: a branch costs less than a carry. */
POOL_HOT void node_area_begin(int64_t *low, int8_t *high, uint64_t clock)
{
	if (__builtin_expect(__builtin_sub_overflow(*low, (int64_t)clock, low), 0))
		--*high;
}
POOL_HOT void node_area_end(int64_t *low, int8_t *high, uint64_t clock)
{
	if (__builtin_expect(__builtin_add_overflow(*low, (int64_t)clock, low), 0))
		++*high;
}

/* Time so far with the window full. */
static inline uint64_t stats_full(const struct weir_gate *g, weir_time now)
{
	return (uint64_t)(g->full ? g->full_time + (now - g->full_since) : g->full_time);
}
/* Before an inner node's NODE_STOPPED changes: brings its clocks up to now. */
void stats_turn(struct weir_gate *g, struct node *node, weir_time now);
/* The state of one of a leaf's queues becomes another: its requests sign off the clocks of the one and on those
 * of the other. */
void stats_state(struct weir_gate *g, uint32_t n, unsigned queue, uint8_t state, weir_time now);
/* `times` requests of a leaf's queue sign on (negative) or off the clocks that tell why they wait. */
void stats_sign(const struct weir_gate *g, struct node *node, unsigned queue, uint8_t state,
	weir_time now, int64_t times);
/* One request of a queue begins to wait (-1), or ceases to (1). */
void stats_wait(struct weir_gate *g, uint32_t n, unsigned queue, weir_time now, int times);
/* The same for a leaf's own queue. */
POOL_HOT void stats_wait_begin(const struct weir_gate *g, struct node *node, weir_time now)
{
	node_area_begin(&node->wait_area, &node->wait_high, (uint64_t)now);
	if (g->above || (node->flags & NODE_STATE))
		stats_sign(g, node, 0, node->flags & NODE_STATE, now, -1);
}
POOL_HOT void stats_wait_end(const struct weir_gate *g, struct node *node, weir_time now)
{
	node_area_end(&node->wait_area, &node->wait_high, (uint64_t)now);
	if (g->above || (node->flags & NODE_STATE))
		stats_sign(g, node, 0, node->flags & NODE_STATE, now, 1);
}
/* While the window is full, the request that would pass next waits for the window: `first` is its leaf. Each
 * call that may change which request that is ends its account here, and weir_gate_next opens the next one. */
void stats_first_close(struct weir_gate *g, weir_time now);
POOL_HOT void stats_first_end(struct weir_gate *g, weir_time now)
{
	if (g->first != NODE_NIL)
		stats_first_close(g, now);
}
/* Requests are done. */
void stats_record(struct weir_gate *g, struct weir_req *const *reqs, size_t n, weir_time now);

/* ---- gate.c, for knob.c and tree.c */

/* Limits or what is in flight changed: keeps the clock of the full window. */
void gate_window(struct weir_gate *g, weir_time now);

/* ---- tree.c, for knob.c */

/* Makes sure that leaf n may stand in `slot`: a lane at every node above. */
int tree_slot(struct weir_gate *g, uint32_t n, unsigned slot);
/* Room for that many buckets, all zero. NULL: no memory. */
struct bucket *tree_buckets(struct weir_gate *g, uint32_t n);
/* Frees them, if they are not the node's own, and the profile, if there is one. */
void tree_limits_free(struct weir_gate *g, struct limits *l, struct profile *p);

#endif
