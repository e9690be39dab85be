/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kind: the requests of a tenant by kind. A limit holds back only the kinds that it counts.
 *
 * LAW     Reads are one kind; writes and trims another; flushes and questions about the state of data, which
 *         move none, the third: control. Order is kept inside a tenant and kind. Of the heads of a tenant's kinds that may pass in a
 *         class, the oldest goes first. A hold or L-bucket that refuses a head refuses every younger head of the
 *         tenant that it counts, so that a stream of small requests does not starve a large one; but control
 *         waits for no data: if data was held since it came, it goes before the data. Where no bucket of a tenant or above it tells reads from writes, these two
 *         keep their order.
 * METHOD  Nearly all tenants need one queue, the node's own. Control has a queue apart; writes have one while the
 *         leaf is split (NODE_SPLIT), since a bucket of its own or above it tells them from reads. While a queue apart
 *         holds something (NODE_KINDS) all heads are looked at together, oldest first, and for every class it
 *         is kept which queues may pass in it. A leaf below an inner node whose buckets begin to tell them
 *         apart is split when it next begins to wait, or when that node first stops it.
 *         A request's age is its number among all that were submitted, kept in `dispatched` while it waits.
 * EXAMPLE max: {writes: 1 iops}; at 0 s a write, a write, a read, a flush. The first write passes, the second is
 *         held until 1 s, the read and the flush pass, in that order.
 */
#ifndef WEIR_GATE_KIND_H
#define WEIR_GATE_KIND_H

#include "gate/stand.h"

enum kind { KIND_READ, KIND_WRITE, KIND_CONTROL };
#define KIND_ALL  LANE_KINDS
#define KIND_DATA (1u << KIND_READ | 1u << KIND_WRITE)

static inline bool kind_is_control(const struct weir_req *r)
{
	return r->op == WEIR_FLUSH || r->op == WEIR_STATUS;
}

static inline unsigned kind_of(const struct weir_req *r)
{
	return r->op == WEIR_READ ? KIND_READ : kind_is_control(r) ? KIND_CONTROL : KIND_WRITE;
}

/* Return true if the request belongs into a queue apart. */
static inline bool kind_is_apart(const struct node *node, const struct weir_req *r)
{
	return r->op != WEIR_READ && (kind_is_control(r) || (node->flags & NODE_SPLIT));
}

/* Return true if a bucket of these operations tells reads from writes. */
static inline bool kind_tells(unsigned ops)
{
	unsigned data = ops & (WEIR_OPS(WEIR_READ) | WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM));

	return data && data != (WEIR_OPS(WEIR_READ) | WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM));
}

/* Appends a request to its queue apart. Return true if that was empty. */
bool kind_append(struct weir_gate *g, struct weir_req *r, weir_time now);
/* Splits the leaf if a bucket of its own or above it tells reads from writes; else makes one queue of both. */
void kind_sort(struct weir_gate *g, uint32_t n, weir_time now);

/* The oldest head of the leaf that may pass in this class and is of one of these kinds; NULL: none. */
struct weir_req *kind_head(const struct weir_gate *g, uint32_t n, unsigned class, unsigned kinds);
/* The oldest head, whatever keeps it, and in *ret_state the leaf's state for it; NULL: none. */
const struct weir_req *kind_oldest(const struct weir_gate *g, uint32_t n, uint8_t *ret_state);
/* Return the kinds that the leaf lacks in a class. */
unsigned kind_without(const struct weir_gate *g, uint32_t n, unsigned class);
/* The queues whose heads may pass, in each class: a bit each. */
static inline unsigned kind_may(const struct weir_gate *g, uint32_t n)
{
	const struct node *node = &g->nodes[n];
	const uint8_t *may = g->apart[n].may;

	if (node->flags & NODE_KINDS)
		return (unsigned)may[0] | (unsigned)may[1] << 3 | (unsigned)may[2] << 6;
	return (node->may & 1u) | (node->may & 2u) << 2 | (node->may & 4u) << 4;
}
/* A head was not admitted above. */
void kind_refused(struct weir_gate *g, uint32_t n, const struct weir_req *r);
/* A head is about to pass: sees to what a charge needs to know of it. */
void kind_before(struct weir_gate *g, uint32_t n, const struct weir_req *r, unsigned slot);
/* Takes a head out of its queue; it ceases to wait. */
void kind_take(struct weir_gate *g, uint32_t n, struct weir_req *r, weir_time now);
/* Where do the heads stand? As stand_look, of a leaf with NODE_KINDS. */
void kind_look(struct stand s, uint32_t n, struct node *node, weir_time seen);

/* Makes one list, in the order of age, of all that waits, and leaves the queues empty; nothing waits for a bucket then.
 * And appends such a list again. */
struct weir_req *kind_gather(struct weir_gate *g, uint32_t n, weir_time now);
void kind_spread(struct weir_gate *g, uint32_t n, struct weir_req *list, weir_time now);

#endif
