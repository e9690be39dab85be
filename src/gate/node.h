/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node: the data structures of a gate, shared by the files of this folder only.
 *
 *   gate.c   the calls: next, done, wakeup, cancel
 *   submit.c the call submit
 *   turn.h   the choice of the next request, and its dispatch
 *   stand.h  the lanes in which a leaf's head waits, or the timer that it waits for
 *   kind.h   separate queues for a leaf's reads, writes and control requests
 *   pending.h leaves that have ceased to be idle
 *   above.c  the buckets of inner nodes
 *   ahead.c  prefetching
 *   tree.c   adding and removing nodes and their lanes
 *   room.h   arrays that grow with the number of nodes
 *   knob.c   setting knobs
 *   read.c   reading back the tree, knobs and levels
 *   stats.c  counters, waiting times and histograms
 *
 * A leaf keeps its requests in a list. While its head may pass, the leaf has an entry in up to three lanes of its
 * parent: `priority` while it fits its profiles, else `reserved` while it holds an R-token, and `rest` always. A
 * lane that is not empty has an entry in the lane of the same slot one level up. The next request is found by going
 * down from the root's first lane that is not empty. (In the orders FIFO and EDF an entry that no longer waits is
 * dropped when it comes to the front.)
 *
 * All state of a tenant that a request touches is in one block of memory, struct node, in the order in which it is
 * touched: few adjacent cache lines on one page. Lanes and timers refer to tenants by number and compute the address
 * of their part of the block.
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
#define NODE_DEPTH_MAX   32 /* levels below the root; a handwritten policy has under ten */

#define NODE_KIND_N 3 /* kinds of requests (kind.h) */

#define NODE_MOST 0x7fffffffu /* node numbers are less: the high bit is LANE_OF_LANE */

enum node_flags {
	NODE_LEAF = 1,    /* takes requests */
	NODE_INNER = 2,   /* has children, or is the root */
	NODE_SPLIT = 4,   /* leaf: writes have a separate queue */
	NODE_STOPPED = 8, /* inner: its hold buckets stop some kinds */
	NODE_HELD = 16,   /* leaf: the head waits for the leaf's own hold buckets */
	NODE_TOKENS = 32, /* leaf: the head waits for an R- or L-token */
	NODE_APART = 64,  /* its buckets are not stored in the node */
	NODE_KINDS = 128, /* leaf: a separate queue is not empty */
};
/* Reasons for which a head waits, besides the window and its turn. */
#define NODE_STATE (NODE_HELD | NODE_TOKENS)

/* In `may`: the leaf has no buckets except a profile, or a pair (limits.h) that suits the head's costs, and the head
 * waits only for the window and its turn. This is the common case, which has a fast path. */
#define NODE_PLAIN 8
/* In `may`: the timer is set to when the head fits its profile, which then need not be checked. */
#define NODE_FITS 16

struct node_inner {
	uint32_t children;
	uint8_t stopped[NODE_KIND_N];  /* by kind: 1 + the first slot that is stopped; 0: none */
	weir_time until[NODE_KIND_N];  /* if stopped: when to try the kind again */
	struct lane *lane[2];          /* RESERVED and REST; NULL until needed */
	struct lane **priority;        /* NODE_PRIORITIES of them, or NULL */
	weir_time held;                /* clock: the node's own hold buckets stop a request */
	weir_time above[NODE_KIND_N];  /* clocks: the kind is stopped here or above, as of
	                                  `since` */
	weir_time since;               /* when `stopped` last changed */
	weir_time above0[NODE_KIND_N]; /* the parent's `above` clocks at `since` */
};

/* The areas are sums over requests of a clock at dispatch minus the same clock at submit (stats.c). They are kept
 * modulo 2^72 request·ns, the upper 8 bits apart from the lower 64: 1,000 requests may wait for 74 years. Sums of
 * clocks may wrap: their differences are still right. */
struct node {
	/* the queue: all that submit and done touch */
	_Alignas(POOL_LINE) union {
		struct weir_req *head;    /* leaf */
		struct node_inner *inner; /* with NODE_INNER */
	};
	struct weir_req *tail;
	int64_t wait_area;   /* request·ns by the clock `now` */
	int64_t window_area; /* ns in which a request of this leaf was the first behind a full
	                        window */
	int64_t device_area; /* request·ns in the device */
	uint32_t queued, in_flight;
	float weight; /* r */
	uint32_t parent;
	int32_t behind;     /* hint: lines from the head to the request behind it (ahead.h) */
	uint8_t flags;      /* enum node_flags; 0: no node */
	int8_t device_high; /* upper 8 bits of the area */
	uint8_t may;        /* leaf: classes in which the head may pass, as of the last check: a bit
	                     each; and NODE_PLAIN, NODE_FITS */
	uint8_t priority;   /* or NODE_NO_PRIORITY */
	/* touched when the timer expires */
	_Alignas(POOL_LINE) struct timer_entry timer;
	weir_time reserved; /* leaf: time at which the head has an R-token, as of the last check */
	struct lane_entry entry_reserved, entry_rest;
	/* touched by a dispatch */
	_Alignas(POOL_LINE) struct bucket own[LIMITS_OWN];
	struct limits limits;
	uint64_t bytes;
	uint64_t passed[3]; /* by class */
	/* used by few nodes */
	_Alignas(POOL_LINE) struct profile *profile; /* NULL: none */
	weir_time held;      /* clock: own hold buckets do not admit; with NODE_HELD, minus now */
	int64_t held_area;   /* request·ns by the clocks: now, with NODE_HELD; */
	int64_t tokens_area; /* now minus the time stopped above, with NODE_TOKENS; */
	int64_t above_area;  /* stopped above, without NODE_HELD */
	struct lane_entry entry_priority;
	int8_t wait_high, held_high, tokens_high, above_high;
};
_Static_assert(sizeof(struct node) == POOL_STRIDE, "five cache lines a node");
_Static_assert(offsetof(struct node, timer) == 64 && offsetof(struct node, own) == 128 &&
		       offsetof(struct node, limits) == 192 &&
		       offsetof(struct node, profile) == 256,
	"each part in a cache line");
_Static_assert(sizeof(struct weir_req) == 64, "a cache line a request");

/* The separate queues of a leaf (kind.h): of writes, and of control. */
struct node_apart {
	struct weir_req *tail[NODE_KIND_N - 1]; /* the next of a tail is the head; NULL: empty */
	uint32_t n[NODE_KIND_N - 1];
	uint8_t state[NODE_KIND_N -
		      1]; /* NODE_STATE of each; the state of the node's own queue is in its
		             flags */
	uint8_t may[3];   /* with NODE_KINDS, by class: queues whose heads may pass */
	uint8_t held;     /* data queues that were held while control waited: control goes before
	                     them */
	uint8_t passed;   /* data queues whose heads control went before while they were held */
};

struct hist_pair {
	struct weir_hist wait, device;
};

struct stats_record { /* one finished request, on its way to the histograms */
	uint32_t node;
	weir_time wait, device;
};
#define STATS_RING  1024 /* records; drained when full */
#define STATS_SPARE 32   /* histogram pairs kept ready, so that done never allocates */

struct stats {
	uint32_t n;               /* records in the ring */
	uint32_t most, used;      /* pairs that there may be, pairs in use */
	uint32_t spare;           /* pairs that are ready */
	uint32_t *of;             /* node → pair, NODE_NIL: none; NULL: no histograms at all */
	struct hist_pair **pairs; /* [most] */
	uint64_t unrecorded;
	struct stats_record ring[STATS_RING];
};

#define AHEAD_BATCH 128 /* nodes prefetched at once */
#define AHEAD_NOTED (AHEAD_BATCH + TIMER_CELLS)

struct ahead {                      /* ahead.h */
	uint32_t soon;              /* number of nodes whose timers expire soon */
	uint32_t step;              /* steps of prefetching done for them (ahead_soon) */
	weir_time at;               /* when the nodes were noted */
	int64_t edge;               /* the timer's edge when these were noted: */
	uint32_t slot[TIMER_CELLS]; /* nodes of a slot (ahead_slot) */
	uint32_t *node;             /* [AHEAD_NOTED]; NULL: too few nodes for prefetching to pay */
};

struct weir_gate {
	weir_time now; /* latest time seen */
	/* the window */
	struct window window;
	uint32_t in_flight, queued;
	uint64_t inside;       /* bytes in flight */
	uint64_t window_bytes; /* limit of `inside`; 0: no such window */
	uint32_t too_large;    /* bytes of the request whose turn it was at the last weir_gate_next
	                          but which did not fit into window_bytes; 0: none */
	bool full;             /* in flight ≥ limit, or gate_bytes_full, since full_since */
	weir_time full_time;   /* total until full_since, or now if not full */
	weir_time full_since;
	weir_time full_until; /* end of the last time span for which it was full */
	uint32_t first; /* leaf whose head would pass next if the window had room; NODE_NIL: not
	                   known */
	uint64_t first_since; /* the full clock when that was found */
	/* waiting leaves */
	uint64_t ready_priority;  /* priorities whose root lanes are not empty */
	struct node *nodes;       /* [room] */
	struct node_apart *apart; /* [room] */
	struct lane **lanes;      /* [room_lanes] */
	struct lane_home home;    /* nodes and lanes, for the lanes' functions */
	struct timer timer;       /* one entry per node */
	uint64_t *pending[3];     /* leaves whose queue was empty before this round: a bit each;
	                             above it two levels of summary: words that are not 0 */
	uint32_t n_pending;       /* number of pending leaves */
	uint32_t pending_from;    /* leaf at which the next call continues */
	uint32_t pending_last;    /* leaf added last; it may have been removed since */
	bool above;   /* some inner node has, or had, a hold bucket: `above` clocks may run */
	bool simple;  /* the order is FAIR, and there are no runs, window in bytes or `above`: a
	                   head waits only for its leaf's buckets and for heads before it; */
	bool flat;    /* and there is no inner node but the root (tree_shape) */
	bool ranked;  /* some leaf has, or had, a priority */
	bool tells;   /* some inner node's hold bucket distinguishes, or did, reads from writes */
	uint64_t age; /* number of the next request, in the order of arrival */
	uint32_t due[AHEAD_BATCH]; /* nodes whose timers have expired and which are not checked yet,
	                              in the order of time: due[due_from] to due[n_due − 1] */
	uint32_t due_from, n_due;
	uint32_t looks; /* leaves that the last weir_gate_next checked */
	uint32_t tries; /* requests that weir_gate_next may yet find refused above; 0: it gave up
	                   before trying all */
	struct ahead ahead; /* leaves that are likely to pass next */
	/* the run */
	uint32_t run_node, run_left;
	uint8_t run_slot;
	uint64_t run_end; /* offset at which the run's last request ended */
	/* knobs of the whole gate */
	uint32_t run;
	uint64_t run_distance;
	double credit;
	enum weir_unit cost;
	enum weir_order order;
	weir_time *deadline; /* [room] if the order is EDF, else NULL */
	/* allocation */
	uint32_t room, n_nodes, free_nodes;       /* nodes; n: used so far; free: list linked by
	                                             parent */
	uint32_t n_inner;                         /* inner nodes, the root included */
	uint32_t room_lanes, n_lanes, free_lanes; /* free: list linked by node */
	uint32_t *place[3]; /* by class, if the order is keyed: places of nodes and lanes,
	                       interleaved */
	uint32_t room_place;
	uint64_t submitted, dispatched, served, full_served;
	struct pool pool;    /* buckets that do not fit in their node */
	struct stats *stats; /* NULL: no histograms */
};

/* Return where an inner node keeps its lane of a slot. */
static inline struct lane **node_lane_of(struct node_inner *in, unsigned slot)
{
	return slot < NODE_PRIORITIES ? &in->priority[slot] : &in->lane[slot - NODE_RESERVED];
}

/* Return which of a leaf's entries belongs to a slot: its enum weir_class. */
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

/* Return the kinds for which inner node n is stopped in this slot. */
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

/* Return the state of one of a leaf's queues: its own (0) or a separate one. */
static inline uint8_t node_state(const struct weir_gate *g, uint32_t n, unsigned queue)
{
	return queue ? g->apart[n].state[queue - 1] : g->nodes[n].flags & NODE_STATE;
}

/* Return true if the root's lane of RESERVED or REST is not empty. */
static inline bool node_waits(const struct weir_gate *g, unsigned slot)
{
	const struct lane *lane = node_lane(g, WEIR_ROOT, slot);

	return lane && lane->waits;
}

/* Return the first slot from `from` on whose root lane is not empty; NODE_REST + 1 if there is none. */
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

/* Note that the root's lane of a slot is not empty, or is. (Needed for priorities only: RESERVED and REST are read
 * from the lane.) */
static inline void node_set_ready(struct weir_gate *g, unsigned slot, bool ready)
{
	if (slot >= NODE_PRIORITIES)
		return;
	if (ready)
		g->ready_priority |= UINT64_C(1) << slot;
	else
		g->ready_priority &= ~(UINT64_C(1) << slot);
}

/* Note the time of a call, and return it, or the latest time seen if that is later. */
POOL_HOT weir_time gate_time(struct weir_gate *g, weir_time now)
{
	if (now > g->now)
		g->now = now;
	return g->now;
}

/* ---- areas and clocks (stats.c) */

__extension__ typedef __int128 node_area;

static inline node_area node_area_of(int64_t low, int8_t high)
{
	return (node_area)high * ((node_area)1 << 64) + low;
}
/* Add an amount of request·ns to an area. */
static inline void node_area_add(int64_t *low, int8_t *high, node_area amount)
{
	node_area sum = node_area_of(*low, *high) + amount;

	*low = (int64_t)sum;
	*high = (int8_t)((sum - *low) >> 64);
}
/* Add one request that begins to be counted (its clock is subtracted) or ceases to be. The upper part hardly ever
 * changes: a branch costs less than a carry. */
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

/* Return the time so far with the window full. */
static inline uint64_t stats_full(const struct weir_gate *g, weir_time now)
{
	return (uint64_t)(g->full ? g->full_time + (now - g->full_since) : g->full_time);
}
/* Bring an inner node's clocks up to now, before its NODE_STOPPED changes. */
void stats_turn(struct weir_gate *g, struct node *node, weir_time now);
/* Change the state of one of a leaf's queues: its requests leave the clocks of the old state and join those of the
 * new one. */
void stats_state(struct weir_gate *g, uint32_t n, unsigned queue, uint8_t state, weir_time now);
/* Let `times` requests of a leaf's queue join (negative) or leave the clocks of the reason why they wait. */
void stats_sign(const struct weir_gate *g, struct node *node, unsigned queue, uint8_t state,
	weir_time now, int64_t times);
/* Let one request of a queue begin (-1) or cease (1) to wait. */
void stats_wait(struct weir_gate *g, uint32_t n, unsigned queue, weir_time now, int times);
/* The same for a leaf's own queue, if there are no buckets above and no NODE_TOKENS, */
POOL_HOT void stats_wait_begin_own(struct node *node, weir_time now)
{
	node_area_begin(&node->wait_area, &node->wait_high, (uint64_t)now);
	if (node->flags & NODE_HELD)
		node_area_begin(&node->held_area, &node->held_high, (uint64_t)now);
}
/* and for any leaf's own queue. */
POOL_HOT void stats_wait_begin(const struct weir_gate *g, struct node *node, weir_time now)
{
	stats_wait_begin_own(node, now);
	if (!(node->flags & NODE_HELD) && (g->above || (node->flags & NODE_TOKENS)))
		stats_sign(g, node, 0, node->flags & NODE_STATE, now, -1);
}
POOL_HOT void stats_wait_end(const struct weir_gate *g, struct node *node, weir_time now)
{
	node_area_end(&node->wait_area, &node->wait_high, (uint64_t)now);
	if (node->flags & NODE_HELD)
		node_area_end(&node->held_area, &node->held_high, (uint64_t)now);
	else if (g->above || (node->flags & NODE_TOKENS))
		stats_sign(g, node, 0, node->flags & NODE_STATE, now, 1);
}
/* While the window is full, the request that would pass next waits for the window: `first` is its leaf. Each call
 * that may change which request that is ends its account here, and weir_gate_next opens the next one. */
void stats_first_close(struct weir_gate *g, weir_time now);
POOL_HOT void stats_first_end(struct weir_gate *g, weir_time now)
{
	if (g->first != NODE_NIL)
		stats_first_close(g, now);
}
/* Record finished requests. */
void stats_record(struct weir_gate *g, struct weir_req *const *reqs, size_t n, weir_time now);

/* ---- gate.c, for knob.c and tree.c */

/* Update the clock of the full window, after the limit or the requests in flight have changed. */
void gate_window(struct weir_gate *g, weir_time now);
/* Before a leaf is checked out of turn: check those whose timers are due, as many as a weir_gate_next checks at least,
 * so that the order of time is kept. */
void gate_catch_up(struct weir_gate *g, weir_time now);

/* ---- tree.c, for knob.c and above.c */

/* Update `simple` and `flat` after one of the fields that they depend on has changed. */
void tree_shape(struct weir_gate *g);

/* Make sure that leaf n can wait in `slot`: create a lane at every node above. Return 0 or -ENOMEM. */
int tree_slot(struct weir_gate *g, uint32_t n, unsigned slot);
/* Return this many zeroed buckets, or NULL without memory. */
struct bucket *tree_buckets(struct weir_gate *g, uint32_t n);
/* Free the buckets, if they are not stored in the node, and the profile, if there is one. */
void tree_limits_free(struct weir_gate *g, struct limits *l, struct profile *p);

#endif
