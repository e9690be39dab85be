/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlap: writes that overlap go one after the other, in the order in which they came.
 *
 * A range enters before its write is sent and leaves when it is done. One that overlaps an earlier one
 * waits for it; the others pass.
 *
 * METHOD  All ranges, sent or waiting, stand in one list by age. A table of counters over blocks of
 *         4 KiB, found by hash, says quickly that nobody else is near; only when it cannot is the list
 *         looked through, from the youngest on. A range that waits hangs on the youngest one before it
 *         that it overlaps, and is looked at again when that one leaves.
 * COST    O(1) where nothing overlaps (a range counts its blocks: 64 for 256 KiB); else O(ranges).
 */
#ifndef WEIR_SERVE_BACK_OVERLAP_H
#define WEIR_SERVE_BACK_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#define OVERLAP_TABLE 4096 /* counters: with 128 blocks inside, 3 % of all looks are in vain */

struct overlap_range { /* in the user's memory from enter to leave */
	uint64_t offset, end;
	struct overlap_range *older, *younger;
	struct overlap_range *waiters; /* that wait for this one */
	struct overlap_range *next;    /* among the waiters of another, or in what leave returns */
};

struct overlap {
	struct overlap_range ends; /* older: the youngest; younger: the oldest */
	uint32_t wide;             /* ranges of too many blocks to count */
	uint16_t count[OVERLAP_TABLE];
};

void overlap_init(struct overlap *o);
/* True: go. False: it waits, until a leave returns it. length > 0; at most 65,535 ranges. */
bool overlap_enter(struct overlap *o, struct overlap_range *r, uint64_t offset, uint64_t length);
/* One that does not wait is done. Returns those that may go now, linked by next. */
struct overlap_range *overlap_leave(struct overlap *o, struct overlap_range *r);

#endif
