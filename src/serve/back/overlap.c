/* SPDX-License-Identifier: BSD-3-Clause */
/* overlap: order overlapping writes. See overlap.h. */
#include "serve/back/overlap.h"
#include <stdlib.h>
#include <string.h>

#define BLOCK_BITS  12  /* 4 KiB: the size of most writes, so neighbours do not collide */
#define BLOCKS_MOST 256 /* 1 MiB: a wider range (TRIM, WRITE_ZEROES) is not counted by block */

void overlap_init(struct overlap *o)
{
	memset(o, 0, sizeof(*o));
	o->ends.older = o->ends.younger = &o->ends;
}

void overlap_free(struct overlap *o)
{
	free(o->count);
}

static uint16_t *counter(struct overlap *o, uint64_t block)
{
	/* Neighbours get neighbouring counters: a large write touches few cache lines. */
	return &o->count[(block ^ block >> 12 ^ block >> 24) % OVERLAP_TABLE];
}

static bool is_wide(const struct overlap_range *r)
{
	return ((r->end - 1) >> BLOCK_BITS) - (r->offset >> BLOCK_BITS) >= BLOCKS_MOST;
}

/* Count r in. Return true if it could overlap another range. */
static bool count_in(struct overlap *o, const struct overlap_range *r)
{
	bool near = o->wide > 0;

	if (!o->count && !o->no_table) {
		o->count = calloc(OVERLAP_TABLE, sizeof(*o->count));
		o->no_table = !o->count;
	}
	if (o->no_table)
		return true;
	if (is_wide(r)) {
		o->wide++;
		return true;
	}
	for (uint64_t b = r->offset >> BLOCK_BITS; b <= (r->end - 1) >> BLOCK_BITS; b++)
		near |= (*counter(o, b))++ > 0;
	return near;
}

static void count_out(struct overlap *o, const struct overlap_range *r)
{
	if (o->no_table)
		return;
	if (is_wide(r)) {
		o->wide--;
		return;
	}
	for (uint64_t b = r->offset >> BLOCK_BITS; b <= (r->end - 1) >> BLOCK_BITS; b++)
		(*counter(o, b))--;
}

/* Return the youngest range before r that overlaps it; NULL: none. */
static struct overlap_range *blocker(const struct overlap *o, const struct overlap_range *r)
{
	for (struct overlap_range *x = r->older; x != &o->ends; x = x->older)
		if (x->offset < r->end && r->offset < x->end)
			return x;
	return NULL;
}

static bool wait_for(struct overlap_range *before, struct overlap_range *r)
{
	r->next = before->waiters;
	before->waiters = r;
	return false;
}

bool overlap_enter(struct overlap *o, struct overlap_range *r, uint64_t offset, uint64_t length)
{
	struct overlap_range *before;

	r->offset = offset;
	r->end = offset + length;
	r->waiters = NULL;
	r->younger = &o->ends;
	r->older = o->ends.older;
	r->older->younger = r;
	o->ends.older = r;
	if (!count_in(o, r))
		return true;
	before = blocker(o, r);
	return before ? wait_for(before, r) : true;
}

struct overlap_range *overlap_leave(struct overlap *o, struct overlap_range *r)
{
	struct overlap_range *may_go = NULL;

	r->older->younger = r->younger;
	r->younger->older = r->older;
	count_out(o, r);
	for (struct overlap_range *w = r->waiters, *next; w; w = next) {
		struct overlap_range *before = blocker(o, w);
		next = w->next;
		if (before) {
			wait_for(before, w);
		} else {
			w->next = may_go;
			may_go = w;
		}
	}
	return may_go;
}
