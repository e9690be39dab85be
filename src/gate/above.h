/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * above: the hold buckets of inner nodes, checked when it is the turn of a request below them.
 *
 * METHOD  If such a bucket does not admit the request whose turn it is, the inner node is stopped for the
 *         kinds that the bucket counts, in that class and all after it: below it only children that have requests of
 *         other kinds may be next (lane.h), and if there are none its lane leaves the lane above. A timer releases a
 *         kind when the request would be admitted. A request of control stops nothing but control. In the orders
 *         FIFO and EDF all kinds are stopped, so that the order is kept. While the window is full it is no request's
 *         turn, and nothing is stopped: how often weir_gate_next is called meanwhile must not change what passes.
 */
#pragma once

#include "gate/node.h"

/* Note that inner node n has hold buckets. */
void above_begin(struct weir_gate *g, uint32_t n);
/* Return true if inner node n's own buckets admit r now. Else, if `stop`, stop it. */
bool above_ask(struct weir_gate *g, uint32_t n, const struct weir_req *r, unsigned slot, bool stop,
	weir_time now);
/* The same for the buckets of all ancestors of a leaf; the first whose buckets do not admit r is stopped. */
bool above_admit(struct weir_gate *g, uint32_t leaf, const struct weir_req *r, unsigned slot,
	bool stop, weir_time now);
/* Return the kinds for which inner node n is stopped in this slot at `now`: without those whose time has come,
 * even if no weir_gate_next has released them yet. */
unsigned above_stopped(const struct weir_gate *g, uint32_t n, unsigned slot, weir_time now);
/* Charge r, which was admitted, to the ancestors' buckets. */
void above_charge(struct weir_gate *g, uint32_t leaf, const struct weir_req *r, weir_time now);
/* Handle the expiry of an inner node's timer, which was set to `due`. */
void above_due(struct weir_gate *g, uint32_t n, weir_time due, weir_time now);
/* Let an inner node's buckets be checked again. */
void above_release(struct weir_gate *g, uint32_t n, weir_time now);
/* The same for all ancestors of n: the reason why they are stopped may be gone. */
void above_release_all(struct weir_gate *g, uint32_t n, weir_time now);
/* If inner node n's lane of this slot is not empty let it wait in its parent's lane, unless stopped. */
void above_rejoin(struct weir_gate *g, uint32_t n, unsigned slot);
/* The same for all its lanes. */
void above_rejoin_all(struct weir_gate *g, uint32_t n);
