/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * above: the hold buckets of inner nodes, asked when it is somebody's turn below them.
 *
 * METHOD  If such a bucket does not admit the request whose turn it is, the inner node is stopped for the
 *         kinds that the bucket counts, in that class and all after it: below it only children that have
 *         requests of other kinds are next (lane.h), and if there are none its lane leaves the lane above. A timer
 *         releases a kind when the request would be admitted. A request of control stops nothing but control.
 *         In the orders FIFO and EDF all kinds are stopped: the first in line is the first.
 */
#ifndef WEIR_GATE_ABOVE_H
#define WEIR_GATE_ABOVE_H

#include "gate/node.h"

/* Inner node n has hold buckets. */
void above_begin(struct weir_gate *g, uint32_t n);
/* Do all ancestors' buckets admit r now? The first that does not is stopped. */
bool above_admit(
	struct weir_gate *g, uint32_t leaf, const struct weir_req *r, unsigned slot, weir_time now);
/* r, which they admitted, pays. */
void above_charge(struct weir_gate *g, uint32_t leaf, const struct weir_req *r, weir_time now);
/* The window is full, so that nobody is tried; but whom an ancestor's bucket would stop waits for
 * that bucket. It is stopped now, as it would be at the next try. */
void above_probe(struct weir_gate *g, uint32_t leaf, weir_time now);
/* An inner node's timer is due. */
void above_due(struct weir_gate *g, uint32_t n, weir_time now);
/* An inner node's buckets are to be asked again. */
void above_release(struct weir_gate *g, uint32_t n, weir_time now);
/* So are those above n: what stopped them may be gone. */
void above_release_all(struct weir_gate *g, uint32_t n, weir_time now);
/* If inner node n's lane of this slot is not empty it stands in its parent's, unless stopped. */
void above_rejoin(struct weir_gate *g, uint32_t n, unsigned slot);
/* The same for all its lanes. */
void above_rejoin_all(struct weir_gate *g, uint32_t n);

#endif
