/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unflushed: the writes that an upstream acknowledged since its last completed FLUSH.
 *
 * An upstream that crashes may lose them. So they are kept, with their data, until a FLUSH that was
 * sent after their acknowledgement has succeeded; when the upstream is back they are resent.
 *
 * One log, in the order of the acknowledgements. Its user ensures that overlapping writes are never
 * in flight together (overlap.h); then that order is the order of their effects, for every byte,
 * and replaying the log gives the same content. A FLUSH covers a prefix of the log.
 *
 * A plan made from the log is replayed, not the log itself: for every byte only the last write to
 * it, in pieces that do not overlap, by rising offset. So they may be sent in any order, all at
 * once, and a write that is durable already (FUA) is never undone by an older one, not even for a
 * moment: such a write is in the log without its data, only to cover older ones.
 *
 * COST    add, flushed: O(1) a write (it counts its blocks: 64 for 256 KiB), no allocation. plan:
 *         O(n log n), 5 ms for 16,384 writes; allocates.
 * LIMITS  Bytes are counted by the room of the chunks held, each write as UNFLUSHED_LEAST at least.
 *         So `keep` bounds the memory and the number of writes. All logs of one pool take half of
 *         its budget at most, and one write each: upstreams that are all away leave room for
 *         others.
 */
#pragma once

#include "serve/back/back.h"
#include "serve/loop/chunk.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNFLUSHED_LEAST 4096u /* bytes that a write counts at least: the smallest chunk */

struct unflushed;

struct unflushed_write {
	uint64_t offset, length; /* bytes */
	const uint8_t *data;     /* WRITE: in the chunk */
	struct chunk *chunk;     /* WRITE: one reference, the log's from add on; else NULL */
	uint8_t op, flags;       /* BACK_WRITE, BACK_TRIM, BACK_ZERO; enum back_flags */
	bool durable;            /* it was FUA: no data are kept, only its range */
};

struct unflushed_piece {
	uint64_t offset, length;
	const uint8_t *data; /* WRITE: valid until the next call of unflushed_flushed */
	uint8_t op, flags;
	bool failed; /* for the user: it could not be resent */
};

/* keep: bytes, ≥ UNFLUSHED_LEAST. -ENOMEM. */
int unflushed_new(size_t keep, struct chunk_pool *pool, struct unflushed **ret);
void unflushed_free(struct unflushed *u); /* gives the chunks back; NULL is fine */

/* Reserve room before a write is sent, since an acknowledged write must be kept. `cost`: of a write
 * of `length` bytes with data or without. Return false if full (a single write always fits). */
size_t unflushed_cost(size_t length, bool data);
bool unflushed_take(struct unflushed *u, size_t cost);
void unflushed_give(struct unflushed *u, size_t cost); /* it failed: release the reservation */

/* Add an acknowledged write. `cost` was reserved for it; the surplus is released. */
void unflushed_add(struct unflushed *u, const struct unflushed_write *w, size_t cost);

/* FLUSH: get the mark up to which a FLUSH sent now covers the log; and record its success. */
uint64_t unflushed_mark(const struct unflushed *u);
void unflushed_flushed(struct unflushed *u, uint64_t mark);

/* Return true if a write before that mark touches the range and is not durable by itself. length 0:
 * any range. O(n). */
bool unflushed_any(const struct unflushed *u, uint64_t mark, uint64_t offset, uint64_t length);

/* The same without a mark, in O(1) unless a write of more than 1 MiB is in the log; may return true
 * because of a hash collision. length > 0. */
bool unflushed_near(const struct unflushed *u, uint64_t offset, uint64_t length);

size_t unflushed_held(const struct unflushed *u);  /* bytes in the log */
size_t unflushed_taken(const struct unflushed *u); /* bytes: the same, and reserved ones */
size_t unflushed_keep(const struct unflushed *u);
size_t unflushed_count(const struct unflushed *u);
/* Return the acknowledged bytes whose content only the log has: each once, however often it was
 * written. O(n log n); without memory the bytes held, which are not fewer. */
uint64_t unflushed_bytes(struct unflushed *u);

/* Make the plan: n pieces, until the next plan. -ENOMEM: no plan. */
int unflushed_plan(struct unflushed *u, size_t *ret_n);
struct unflushed_piece *unflushed_piece(struct unflushed *u, size_t i);
/* Return true if a failed piece of the last plan overlaps this range. */
bool unflushed_missing(const struct unflushed *u, uint64_t offset, uint64_t length);
