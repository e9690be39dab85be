/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node: what a gate is made of; shared by the files of this room and by nobody else.
 *
 *   gate.c   the hot path: submit, next, done, wakeup
 *   ahead.c  memory ahead of need
 *   tree.c   nodes come and go, and their lanes with them
 *   knob.c   knobs
 *   stats.c  what was measured
 *
 * A leaf keeps its requests in a list and stands, while its head may pass, in up to three lanes of
 * its parent: `rest` always, `reserved` while it holds an R-token, `priority` while it fits its
 * profiles. A lane that is not empty stands in the lane of the same slot one level up. What passes
 * next is found by going down from the root's first lane that is not empty. An entry that no longer
 * belongs where it stands is dropped when it comes to the front (lane.h).
 */
#ifndef WEIR_GATE_NODE_H
#define WEIR_GATE_NODE_H

#include "gate/gate.h"
#include "gate/lane.h"
#include "gate/limits.h"
#include "gate/pool.h"
#include "gate/timer.h"
#include "gate/window.h"

/* Slots: the classes, in the order in which they pass. */
#define NODE_PRIORITIES  64
#define NODE_RESERVED    64
#define NODE_REST        65
#define NODE_NO_PRIORITY 0xff
#define NODE_NIL         UINT32_MAX
#define NODE_DEPTH_MAX   32 /* levels below the root; a policy of people's making has under ten */

#define NODE_ORPHAN 0x7fffffffu /* owner of an entry whose node was removed: freed at the front */

/* What the head waits for, besides the window and its turn. */
enum node_state { NODE_OK, NODE_HELD, NODE_TOKENS };

enum node_flags {
	NODE_LEAF = 1,     /* takes requests */
	NODE_INNER = 2,    /* has children, or is the root */
	NODE_ABOVE = 4,    /* some ancestor, the root included, has a hold bucket */
	NODE_CLOCKS = 8,   /* leaf: a clock besides the window's runs or ran: ABOVE, or was held */
	NODE_STOPPED = 16, /* inner: its hold buckets stop those of slot ≥ stopped */
};

/* A clock that runs while something holds, and how much of that time the window was full. */
struct node_clock {
	uint64_t time, full;
};

/* The clocks that tell for whom a node's buckets made it wait. All areas are sums over requests of
 * a clock at dispatch minus the same clock at submit. 64-bit sums may wrap; differences do not
 * mind. */
struct node_clocks {
	uint64_t held;   /* clock: own hold buckets do not admit */
	uint64_t tokens; /* clock: no token, and not held, and nobody above stopped */
	union {
		struct {                 /* a leaf's */
			uint64_t both;   /* clock: held, and somebody above stopped too */
			uint64_t masked; /* clock: the window is full, but a limit comes first */
		};
		struct node_clock above; /* an inner node's: stopped here or above, as of since */
	};
	struct node_clock since;  /* now and the full clock when the state last changed */
	struct node_clock above0; /* the parent's above clock then */
	uint64_t held_area, tokens_area, both_area; /* request·ns */
};

struct node_inner {
	uint32_t children;
	uint32_t lane[2]; /* of the slots RESERVED and REST; NODE_NIL until somebody needs it */
	uint32_t *lane_priority; /* NODE_PRIORITIES of them, or NULL */
	double weight_min;       /* the least that any child ever had: for the quantum */
	uint8_t stopped;         /* with NODE_STOPPED: the first slot that is stopped */
};

struct node {
	/* what every request touches */
	struct weir_req *head, *tail;
	struct node_limits *limits; /* NULL: none */
	double per_weight;          /* 1/r */
	uint32_t queued, in_flight;
	uint32_t parent;
	uint32_t entry[3]; /* leaf: priority, reserved, rest; NODE_NIL: none yet */
	uint8_t flags, state;
	uint8_t may; /* leaf: classes in which the head may pass, as of the last look: a bit each */
	uint8_t priority; /* or NODE_NO_PRIORITY */
	/* counters */
	uint64_t dispatched, bytes;
	uint64_t passed[2];  /* by class: priority, reserved */
	uint64_t wait_area;  /* request·ns by the clocks: now; */
	uint64_t full_area;  /* full, when nothing else comes before the window; */
	uint64_t above_area; /* stopped above */
	uint64_t device_area;
};
_Static_assert(sizeof(struct node) == 128, "two cache lines a node");
_Static_assert(sizeof(struct weir_req) == 64, "a cache line a request");

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

struct weir_gate {
	weir_time now; /* the latest seen */
	/* the window */
	struct window window;
	uint32_t in_flight, queued;
	bool full;           /* in flight ≥ limit, since full_since */
	weir_time full_time; /* total until full_since, or now if not full */
	weir_time full_since;
	/* who waits */
	uint64_t ready_priority; /* root lanes that are not empty: priorities, */
	bool ready_reserved, ready_rest;
	struct node *nodes;        /* [room] */
	struct node_inner **inner; /* [room]; NULL for leaves */
	struct lane_entry *entries;
	struct lane *lanes;
	struct timer timer; /* a timer a node */
	uint64_t *pending
		[3]; /* leaves whose queue was empty before this round: a bit each; then which
	                         words of the level before are not 0 */
	bool any_pending;
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
	double cost_max;     /* largest cost of one request in that unit */
	double cost_cap;     /* more than this is not counted */
	weir_time *deadline; /* [room] if the order is EDF, else NULL */
	/* room and books */
	uint32_t room, n_nodes, free_nodes; /* nodes; n: used so far; free: list by parent */
	uint32_t room_entries, n_entries, free_entries; /* free: list by next */
	uint32_t room_lanes, n_lanes, free_lanes;       /* free: list by node */
	uint32_t *place;                                /* [room_entries] if the order is keyed */
	uint64_t submitted, dispatched, served;
	struct pool pool;    /* the nodes' limits */
	struct stats *stats; /* NULL: no histograms */
};

static inline uint32_t *node_lane_of(struct node_inner *in, unsigned slot)
{
	return slot < NODE_PRIORITIES ? &in->lane_priority[slot] : &in->lane[slot - NODE_RESERVED];
}

/* Which of a leaf's entries stands for a slot: its enum weir_class. */
static inline unsigned node_entry_of(unsigned slot)
{
	return slot < NODE_PRIORITIES ? WEIR_CLASS_PRIORITY
				      : slot - NODE_RESERVED + WEIR_CLASS_RESERVED;
}

static inline struct lane *node_lane(const struct weir_gate *g, uint32_t inner, unsigned slot)
{
	return &g->lanes[*node_lane_of(g->inner[inner], slot)];
}

/* The slots that are ready, first to last, from `from` on; NODE_REST + 1: none. */
static inline unsigned node_ready(const struct weir_gate *g, unsigned from)
{
	if (from < NODE_PRIORITIES) {
		uint64_t ready = g->ready_priority & (~UINT64_C(0) << from);

		if (ready)
			return (unsigned)__builtin_ctzll(ready);
	}
	if (from <= NODE_RESERVED && g->ready_reserved)
		return NODE_RESERVED;
	return g->ready_rest && from <= NODE_REST ? NODE_REST : NODE_REST + 1;
}

/* ---- clocks (stats.c) */

/* Time so far with the window full. */
static inline uint64_t stats_full(const struct weir_gate *g, weir_time now)
{
	return (uint64_t)(g->full ? g->full_time + (now - g->full_since) : g->full_time);
}
/* Time so far during which node n or one above it was stopped. */
struct node_clock stats_above(const struct weir_gate *g, uint32_t n, weir_time now);
/* Sets a node's new clocks going. */
void stats_start(struct weir_gate *g, uint32_t n, weir_time now);
/* Before a leaf's state or an inner node's NODE_STOPPED changes: brings its clocks up to now. */
void stats_turn(struct weir_gate *g, uint32_t n, weir_time now);
/* A request of leaf n, which has NODE_CLOCKS, starts (sign −1) or ends (+1) to wait. */
void stats_wait_slow(struct weir_gate *g, uint32_t n, weir_time now, int64_t sign);
static inline void stats_wait(struct weir_gate *g, uint32_t n, weir_time now, int64_t sign)
{
	struct node *node = &g->nodes[n];
	struct node_clocks *c;

	if ((node->flags & NODE_ABOVE) || node->state != NODE_OK || !node->limits) {
		stats_wait_slow(g, n, now, sign);
		return;
	}
	c = limits_clocks(
		node->limits); /* all of them stand; what stands at 0 leaves its area alone */
	node->full_area -= (uint64_t)sign * (c->masked - c->above0.full);
	c->held_area += (uint64_t)sign * c->held;
	if (c->tokens | c->both) {
		c->tokens_area += (uint64_t)sign * c->tokens;
		c->both_area += (uint64_t)sign * c->both;
	}
}
void stats_record(struct weir_gate *g, const struct weir_req *r, weir_time now);

/* ---- gate.c, for knob.c */

/* Looks at the leaf's head again: where does it stand now? */
void gate_update(struct weir_gate *g, uint32_t n, weir_time now);
/* An inner node's buckets are to be asked again. */
void gate_release(struct weir_gate *g, uint32_t n, weir_time now);
/* So are those above n: what stopped them may be gone. */
void gate_release_above(struct weir_gate *g, uint32_t n, weir_time now);
/* Limit or in_flight changed: keeps the clock of the full window. */
void gate_window(struct weir_gate *g, weir_time now);

/* ---- tree.c, for knob.c */

/* Makes sure that leaf n may stand in `slot`: an entry, and a lane at every node above. */
int tree_slot(struct weir_gate *g, uint32_t n, unsigned slot);
/* Fits the lanes of inner node n to its children and their least weight. */
int tree_fit(struct weir_gate *g, uint32_t n);
void tree_entry_free(struct weir_gate *g, uint32_t e);
/* Lets go of entry e: freed now, or when it comes to the front of the lane it stands in. */
void tree_orphan(struct weir_gate *g, uint32_t e);
/* Room for that many buckets, and clocks; all zero. NULL: no memory. */
struct node_limits *tree_limits(struct weir_gate *g, uint32_t buckets);
void tree_limits_free(struct weir_gate *g, struct node_limits *l); /* l->n: as it was given */
/* Sets NODE_ABOVE anew on every node. */
void tree_flags(struct weir_gate *g);

#endif
