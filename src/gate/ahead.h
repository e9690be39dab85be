/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead: memory ahead of need. What a batch will touch is fetched together, not one after the other.
 *
 * METHOD  A tenant is a chain of cache lines: its place in a lane or a timer, from there its node,
 *         from there its head, its buckets and its other places, from the head the next one. Each
 *         step is asked for for all of a batch before the next step; the first, which is a walk
 *         along lists, during the batch before. Nothing but hints: a wrong guess costs a fetch.
 *         Where few tenants wait it would cost as much as it gains, and is left out.
 */
#ifndef WEIR_GATE_AHEAD_H
#define WEIR_GATE_AHEAD_H

#include "gate/node.h"

#define AHEAD_BATCH 32 /* how many are fetched at once */

struct ahead_batch {
	uint32_t n;
	uint32_t node[AHEAD_BATCH];
};

/* Who will be due, and who will come to the front of a lane, in the next batch: found one by one
 * during this one, and fetched one step deeper every AHEAD_STEP passes. */
struct ahead_walk {
	struct timer_walk timer;
	struct lane_walk lane;
	const struct lane *of; /* the lane that `lane` walks */
	uint32_t n;            /* steps taken; AHEAD_BATCH: enough, or not wanted */
	uint32_t due[AHEAD_BATCH], entry[AHEAD_BATCH], node[AHEAD_BATCH]; /* NODE_NIL: nobody */
};

/* A new batch begins. walk->n is 0 if ahead_step is wanted, else AHEAD_BATCH. */
void ahead_start(const struct weir_gate *g, struct ahead_walk *walk);
/* One step of the walk, after every pass, up to AHEAD_BATCH of them. */
void ahead_step(const struct weir_gate *g, struct ahead_walk *walk);

/* The leaves that are likely to pass next: those at the front of the root's lanes, up to `max`. The
 * walk goes on where this ends. */
void ahead_front(
	const struct weir_gate *g, struct ahead_walk *walk, struct ahead_batch *ret, size_t max);
/* The links of the chain, in this order. */
void ahead_nodes(const struct weir_gate *g, const struct ahead_batch *batch);
void ahead_heads(const struct weir_gate *g, const struct ahead_batch *batch);
void ahead_next(const struct weir_gate *g, const struct ahead_batch *batch);

#endif
