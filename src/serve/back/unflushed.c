/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unflushed: a ring of writes, and the plan to resend them. See unflushed.h.
 *
 * METHOD  plan: a sweep over the offsets. Writes enter a heap at their start, the newest on top; at
 *         every start and at the end of the top one, the piece so far belongs to the write that was
 *         on top. A write that has ended leaves when it comes to the top.
 * EXAMPLE log [0,8) a, [4,12) b, [6,7) c  →  pieces a [0,4), b [4,6), c [6,7), b [7,12)
 */
#include "serve/back/unflushed.h"
#include "base/heap.h"
#include <errno.h>
#include <stdlib.h>

#define BLOCK_BITS  12  /* 4 KiB */
#define BLOCKS_MOST 256 /* 1 MiB: a wider write (TRIM, WRITE_ZEROES) is not counted by block */

struct unflushed {
	struct chunk_pool *pool;
	size_t keep, held, taken; /* bytes */
	uint64_t first, end;      /* of the log: serials, from 0 on */
	uint64_t mask;            /* the ring's size less 1 */
	struct entry *ring;
	/* by hash of a block: writes to it that are not durable; twice the ring's size */
	uint32_t *count;
	uint64_t wide; /* such writes that are in no counter */
	struct unflushed_piece *pieces;
	size_t n_pieces;
};

struct entry {
	struct unflushed_write w;
	size_t cost; /* bytes */
};

static struct entry *at(const struct unflushed *u, uint64_t serial)
{
	return &u->ring[serial & u->mask];
}

int unflushed_new(size_t keep, struct chunk_pool *pool, struct unflushed **ret)
{
	struct unflushed *u = calloc(1, sizeof(*u));
	size_t room = 1;

	if (!u)
		return -ENOMEM;
	while (room < keep / UNFLUSHED_LEAST + 1)
		room *= 2;
	u->ring = calloc(room, sizeof(*u->ring));
	u->count = calloc(2 * room, sizeof(*u->count));
	if (!u->ring || !u->count) {
		free(u->ring);
		free(u->count);
		free(u);
		return -ENOMEM;
	}
	u->mask = room - 1;
	u->keep = keep;
	u->pool = pool;
	*ret = u;
	return 0;
}

/* ---- where writes are */

static uint32_t *counter(const struct unflushed *u, uint64_t block)
{
	return &u->count[(block ^ block >> 16) & (2 * u->mask + 1)];
}

static uint64_t first_block(uint64_t offset)
{
	return offset >> BLOCK_BITS;
}

static uint64_t last_block(uint64_t offset, uint64_t length)
{
	return (offset + length - 1) >> BLOCK_BITS;
}

/* by: 1 or -1. */
static void count(struct unflushed *u, const struct unflushed_write *w, int by)
{
	uint64_t first = first_block(w->offset), last = last_block(w->offset, w->length);

	if (w->durable)
		return;
	if (last - first >= BLOCKS_MOST)
		u->wide += (uint64_t)by;
	else
		for (uint64_t b = first; b <= last; b++)
			*counter(u, b) += (uint32_t)by;
}

bool unflushed_near(const struct unflushed *u, uint64_t offset, uint64_t length)
{
	if (u->wide)
		return unflushed_any(u, u->end, offset, length);
	for (uint64_t b = first_block(offset); b <= last_block(offset, length); b++)
		if (*counter(u, b))
			return true;
	return false;
}

/* ---- the log */

static void drop_first(struct unflushed *u)
{
	struct entry *e = at(u, u->first++);

	count(u, &e->w, -1);
	if (e->w.chunk)
		chunk_put(u->pool, e->w.chunk);
	u->held -= e->cost;
	unflushed_give(u, e->cost);
}

void unflushed_free(struct unflushed *u)
{
	if (!u)
		return;
	while (u->first < u->end)
		drop_first(u);
	free(u->pieces);
	free(u->ring);
	free(u->count);
	free(u);
}

size_t unflushed_cost(size_t length, bool data)
{
	size_t room = UNFLUSHED_LEAST;

	while (data && room < length)
		room *= 4; /* the sizes of chunks */
	return room;
}

static bool pool_has_room(const struct unflushed *u, size_t cost)
{
	return !u->pool || chunk_kept(u->pool) + cost <= chunk_budget(u->pool) / 2;
}

bool unflushed_take(struct unflushed *u, size_t cost)
{
	if (u->taken && (u->taken + cost > u->keep || !pool_has_room(u, cost)))
		return false;
	u->taken += cost;
	if (u->pool)
		chunk_keeps(u->pool, cost);
	return true;
}

void unflushed_give(struct unflushed *u, size_t cost)
{
	u->taken -= cost;
	if (u->pool)
		chunk_keeps_no_more(u->pool, cost);
}

void unflushed_add(struct unflushed *u, const struct unflushed_write *w, size_t cost)
{
	struct entry *e;

	/* A durable write has nothing older to cover. */
	if (w->durable && u->first == u->end) {
		if (w->chunk)
			chunk_put(u->pool, w->chunk);
		unflushed_give(u, cost);
		return;
	}
	e = at(u, u->end++);
	e->w = *w;
	e->cost = cost;
	u->held += cost;
	count(u, w, 1);
	if (w->durable && w->chunk) {
		chunk_put(u->pool, w->chunk);
		e->w.chunk = NULL;
	}
}

uint64_t unflushed_mark(const struct unflushed *u)
{
	return u->end;
}

void unflushed_flushed(struct unflushed *u, uint64_t mark)
{
	while (u->first < mark)
		drop_first(u);
	while (u->first < u->end && at(u, u->first)->w.durable)
		drop_first(u); /* it covers nothing any more */
}

bool unflushed_any(const struct unflushed *u, uint64_t mark, uint64_t offset, uint64_t length)
{
	for (uint64_t i = u->first; i < u->end && i < mark; i++) {
		const struct unflushed_write *w = &at(u, i)->w;

		if (!w->durable && (!length || (w->offset < offset + length &&
						       offset < w->offset + w->length)))
			return true;
	}
	return false;
}

size_t unflushed_held(const struct unflushed *u)
{
	return u->held;
}

size_t unflushed_taken(const struct unflushed *u)
{
	return u->taken;
}

size_t unflushed_keep(const struct unflushed *u)
{
	return u->keep;
}

size_t unflushed_count(const struct unflushed *u)
{
	return u->end - u->first;
}

/* ---- the plan */

struct start { /* of a write */
	uint64_t offset;
	uint64_t serial;
};

static int compare(const void *a, const void *b)
{
	const struct start *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static uint64_t end_of(const struct unflushed *u, uint64_t serial)
{
	const struct unflushed_write *w = &at(u, serial)->w;

	return w->offset + w->length;
}

/* Add the piece [from, to) of the write; extend the last piece if that belongs to the same
 * write. */
static void emit(
	struct unflushed *u, uint64_t serial, uint64_t *last_serial, uint64_t from, uint64_t to)
{
	const struct unflushed_write *w = &at(u, serial)->w;
	struct unflushed_piece *last = u->n_pieces ? &u->pieces[u->n_pieces - 1] : NULL;

	if (w->durable)
		return;
	if (last && *last_serial == serial && last->offset + last->length == from) {
		last->length = to - last->offset;
		return;
	}
	*last_serial = serial;
	u->pieces[u->n_pieces++] = (struct unflushed_piece){
		.offset = from,
		.length = to - from,
		.data = w->data ? w->data + (from - w->offset) : NULL,
		.op = w->op,
		.flags = w->flags,
	};
}

static void sweep(struct unflushed *u, const struct start *starts, size_t n, struct heap *live)
{
	uint64_t pos = 0, last_serial = 0;
	size_t next = 0;

	while (next < n || live->n) {
		const struct heap_item *top;
		uint64_t to;

		if (!live->n)
			pos = starts[next].offset;
		/* Cannot fail: there is room for all. The newest has the least key. */
		while (next < n && starts[next].offset <= pos) {
			heap_push(live, (struct heap_item){.key = -(int64_t)starts[next].serial,
						.value = starts[next].serial});
			next++;
		}
		while ((top = heap_min(live)) && end_of(u, top->value) <= pos)
			heap_pop(live);
		if (!top)
			continue;
		to = end_of(u, top->value);
		if (next < n && starts[next].offset < to)
			to = starts[next].offset;
		emit(u, top->value, &last_serial, pos, to);
		pos = to;
	}
}

int unflushed_plan(struct unflushed *u, size_t *ret_n)
{
	size_t n = unflushed_count(u);
	struct start *starts = malloc((n + 1) * sizeof(*starts));
	struct heap live;

	free(u->pieces);
	u->n_pieces = 0;
	/* A piece begins where a write begins, or where the one above it ends. */
	u->pieces = malloc((2 * n + 1) * sizeof(*u->pieces));
	heap_init(&live, NULL);
	if (!starts || !u->pieces || heap_reserve(&live, n + 1) < 0) {
		free(starts);
		heap_free(&live);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		starts[i] = (struct start){at(u, u->first + i)->w.offset, u->first + i};
	qsort(starts, n, sizeof(*starts), compare);
	sweep(u, starts, n, &live);
	heap_free(&live);
	free(starts);
	*ret_n = u->n_pieces;
	return 0;
}

struct unflushed_piece *unflushed_piece(struct unflushed *u, size_t i)
{
	return &u->pieces[i];
}

uint64_t unflushed_bytes(struct unflushed *u)
{
	struct unflushed_piece *pieces = u->pieces; /* the old plan may be in use */
	size_t n_pieces = u->n_pieces, n;
	uint64_t bytes = 0;

	u->pieces = NULL;
	if (unflushed_plan(u, &n) < 0)
		bytes = u->held;
	else
		for (size_t i = 0; i < n; i++)
			bytes += u->pieces[i].length;
	free(u->pieces);
	u->pieces = pieces;
	u->n_pieces = n_pieces;
	return bytes;
}

bool unflushed_missing(const struct unflushed *u, uint64_t offset, uint64_t length)
{
	for (size_t i = 0; i < u->n_pieces; i++) {
		const struct unflushed_piece *p = &u->pieces[i];
		if (p->failed && p->offset < offset + length && offset < p->offset + p->length)
			return true;
	}
	return false;
}
