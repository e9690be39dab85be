/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlap: send overlapping writes one after the other, in the order in which they arrived.
 *
 * A range enters before its write is sent and leaves when it is done. A range that overlaps an
 * earlier one waits for it; others pass.
 *
 * METHOD  All ranges, sent or waiting, are in one list by age. A table of counters over blocks of
 *         4 KiB, found by hash, shows quickly that no other range is near; only otherwise is the
 *         list searched, from the youngest on. A waiting range hangs on the youngest one before it
 *         that it overlaps, and is checked again when that one leaves.
 * COST    O(1) without overlap (a range counts its blocks: 64 for 256 KiB); else O(ranges).
 */
#ifndef WEIR_SERVE_BACK_OVERLAP_H
#define WEIR_SERVE_BACK_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

#define OVERLAP_TABLE 4096 /* counters: with 128 blocks inside, 3 % of all searches find nothing */

struct overlap_range { /* in the user's memory from enter to leave */
	uint64_t offset, end;
	struct overlap_range *older, *younger;
	struct overlap_range *waiters; /* that wait for this one */
	struct overlap_range *next;    /* among the waiters of another, or in the result of leave */
};

struct overlap {
	struct overlap_range ends; /* older: the youngest; younger: the oldest */
	uint32_t wide;             /* ranges of too many blocks to count */
	uint16_t *count;           /* OVERLAP_TABLE; NULL before the first range */
	bool no_table;             /* there was no memory for it: the list is always searched */
};

void overlap_init(struct overlap *o);
void overlap_free(struct overlap *o);
/* Return true if the write may be sent; false: it waits until a leave returns it. length > 0; at
 * most 65,535 ranges. */
bool overlap_enter(struct overlap *o, struct overlap_range *r, uint64_t offset, uint64_t length);
/* End a range that does not wait. Return those that may be sent now, linked by next. */
struct overlap_range *overlap_leave(struct overlap *o, struct overlap_range *r);

#endif
