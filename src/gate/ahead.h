/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead: memory ahead of need. What a batch will touch is fetched together, not one after the other.
 *
 * METHOD  Who is likely to pass in the next batch is read off the chains of the lanes, and of the
 *         timer if very many wait, at the end of this one, and their nodes are asked for; they come
 *         while the caller does something else. When the next batch begins, their heads are asked
 *         for, and before the first passes, those behind the heads. With fewer, who is due is
 *         asked for when he is due. Nothing but hints: a wrong guess costs a fetch. Where few
 *         tenants wait it would cost as much as it gains, and is left out.
 */
#ifndef WEIR_GATE_AHEAD_H
#define WEIR_GATE_AHEAD_H

#include "gate/node.h"

/* A batch of `passed` has ended, before which `due` timers had expired: their like is fetched. */
void ahead_nodes(struct weir_gate *g, size_t passed, size_t due);
/* The next begins: their heads, and their buckets if those are not in the nodes; then who is behind
 * the heads. */
void ahead_heads(const struct weir_gate *g);
void ahead_next(const struct weir_gate *g);

/* The timers of n nodes have expired, so that their places have come already: the other lines; then heads
 * and buckets; and, when those have come, who is behind the heads. */
void ahead_due(const struct weir_gate *g, const uint32_t *due, uint32_t n);
void ahead_due_heads(const struct weir_gate *g, const uint32_t *due, uint32_t n);
void ahead_due_next(const struct weir_gate *g, const uint32_t *due, uint32_t n);

#endif
