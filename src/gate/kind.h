/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kind: the requests of a tenant by kind. A limit holds back only the kinds that it counts.
 *
 * LAW     Reads are one kind; writes and trims another; flushes and status requests, which move no data, the third:
 * control. Order is kept inside a tenant and kind. Of the heads of a tenant's kinds that may pass in a
 *         class, the oldest goes first. A hold or L-bucket that refuses a head refuses every younger head of the
 *         tenant that it counts, so that a stream of small requests does not starve a large one. But control does
 *         not wait for held data: if data was held since a control request came, that goes before the data. It does
 *         so once: before the next control request goes the data, if it may pass, and a bucket of the tenant that
 *         refuses the data refuses that control request, too. So flushes starve no data. If no bucket of a tenant
 *         or above it distinguishes reads from writes, these two keep their order.
 * METHOD  Nearly all tenants need one queue, the node's own. Control has a separate queue; writes have one while the
 *         leaf is split (NODE_SPLIT), because a bucket of its own or above it distinguishes them from reads. While a
 *         separate queue is not empty, or control has just gone before the head of data, (NODE_KINDS) all heads are checked together, oldest first, and the leaf keeps
 *         for every class the set of queues that may pass in it. A leaf below an inner node whose buckets begin to
 *         distinguish them is split when it next begins to wait, or when that node first stops it. A request's age
 *         is its number in the order of all submits, kept in `dispatched` while it waits.
 * EXAMPLE max: {writes: 1 iops}; at 0 s a write, a write, a read, a flush. The first write passes, the second is
 *         held until 1 s, the read and the flush pass, in that order.
 */
#pragma once

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

/* Return true if the request belongs into a separate queue. */
static inline bool kind_is_apart(const struct node *node, const struct weir_req *r)
{
	return r->op != WEIR_READ && (kind_is_control(r) || (node->flags & NODE_SPLIT));
}

/* Return true if a bucket for these operations distinguishes reads from writes. */
static inline bool kind_tells(unsigned ops)
{
	unsigned data = ops & (WEIR_OPS(WEIR_READ) | WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM));

	return data && data != (WEIR_OPS(WEIR_READ) | WEIR_OPS(WEIR_WRITE) | WEIR_OPS(WEIR_TRIM));
}

/* Append a request to its separate queue. Return true if that was empty. */
bool kind_append(struct weir_gate *g, struct weir_req *r, weir_time now);
/* Split the leaf if a bucket of its own or above it distinguishes reads from writes; else merge both into one
 * queue. */
void kind_sort(struct weir_gate *g, uint32_t n, weir_time now);

/* Return the oldest head of the leaf that may pass in this class and is of one of these kinds; NULL if there is
 * none. */
struct weir_req *kind_head(const struct weir_gate *g, uint32_t n, unsigned class, unsigned kinds);
/* Return the oldest head, whether or not it may pass, and in *ret_state the state of its queue; NULL if there is
 * none. */
const struct weir_req *kind_oldest(const struct weir_gate *g, uint32_t n, uint8_t *ret_state);
/* Return the kinds that the leaf lacks in a class. */
unsigned kind_without(const struct weir_gate *g, uint32_t n, unsigned class);
/* Return the queues whose heads may pass, in each class: a bit each. */
static inline unsigned kind_may(const struct weir_gate *g, uint32_t n)
{
	const struct node *node = &g->nodes[n];
	const uint8_t *may = g->apart[n].may;

	if (node->flags & NODE_KINDS)
		return (unsigned)may[0] | (unsigned)may[1] << 3 | (unsigned)may[2] << 6;
	return (node->may & 1u) | (node->may & 2u) << 2 | (node->may & 4u) << 4;
}
/* Note that a head was not admitted above. */
void kind_refused(struct weir_gate *g, uint32_t n, const struct weir_req *r);
/* Prepare the charge of a head that is about to pass. */
void kind_before(struct weir_gate *g, uint32_t n, const struct weir_req *r, unsigned slot);
/* Take a head out of its queue; it ceases to wait. */
void kind_take(struct weir_gate *g, uint32_t n, struct weir_req *r, weir_time now);
/* Check the heads of a leaf with NODE_KINDS and put them where they belong, as stand_look does for other leaves. */
void kind_look(struct stand s, uint32_t n, struct node *node, weir_time seen);

/* Gather all waiting requests in one list, in the order of age, and leave the queues empty, waiting for no bucket.
 * kind_spread appends such a list again. */
struct weir_req *kind_gather(struct weir_gate *g, uint32_t n, weir_time now);
void kind_spread(struct weir_gate *g, uint32_t n, struct weir_req *list, weir_time now);
