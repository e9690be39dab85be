/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unflushed: data that were acknowledged and not flushed can be written again, whatever an upstream
 * lost; and no more than that is kept.
 */
#include "serve/back/unflushed.h"
#include "base/rng.h"
#include "test.h"

#define BLOCK  512u
#define BLOCKS 64
#define PAGE   8 /* blocks */

static struct chunk_pool *pool;
static struct unflushed *u;

static void begin(size_t keep)
{
	CHECK_INT(chunk_pool_new(8 << 20, &pool), 0);
	CHECK_INT(unflushed_new(keep, pool, &u), 0);
}

static void end(void)
{
	unflushed_free(u);
	CHECK_INT(chunk_held(pool), 0);
	chunk_pool_free(pool);
}

/* Acknowledge `n` blocks of `value`; ZERO and TRIM have no data. Return false if there is no
 * room. */
static bool acknowledged(uint64_t block, uint64_t n, uint8_t op, uint8_t value, bool durable)
{
	struct unflushed_write w = {
		.offset = block * BLOCK, .length = n * BLOCK, .op = op, .durable = durable};
	size_t cost = unflushed_cost(n * BLOCK, op == BACK_WRITE && !durable);

	if (!unflushed_take(u, cost))
		return false;
	if (op == BACK_WRITE) {
		w.chunk = chunk_get(pool, n * BLOCK);
		CHECK(w.chunk);
		memset(w.chunk->data, value, n * BLOCK);
		w.data = w.chunk->data;
	}
	unflushed_add(u, &w, cost);
	return true;
}

static void check_piece(size_t i, uint64_t block, uint64_t n, int value)
{
	const struct unflushed_piece *p = unflushed_piece(u, i);

	CHECK_INT(p->offset, block * BLOCK);
	CHECK_INT(p->length, n * BLOCK);
	if (value < 0) {
		CHECK(!p->data);
		return;
	}
	CHECK_INT(p->op, BACK_WRITE);
	for (uint64_t b = 0; b < p->length; b++)
		CHECK_INT(p->data[b], value);
}

static void last_write_wins(void)
{
	size_t n;

	/* The example of unflushed.c. */
	begin(1 << 20);
	CHECK(acknowledged(0, 8, BACK_WRITE, 'a', false));
	CHECK(acknowledged(4, 8, BACK_WRITE, 'b', false));
	CHECK(acknowledged(6, 1, BACK_WRITE, 'c', false));
	CHECK_INT(unflushed_plan(u, &n), 0);
	CHECK_INT(n, 4);
	check_piece(0, 0, 4, 'a');
	check_piece(1, 4, 2, 'b');
	check_piece(2, 6, 1, 'c');
	check_piece(3, 7, 5, 'b');
	end();
}

static void zeroes_and_trims(void)
{
	size_t n;

	begin(1 << 20);
	CHECK(acknowledged(0, 4, BACK_WRITE, 'a', false));
	CHECK(acknowledged(1, 2, BACK_ZERO, 0, false));
	CHECK(acknowledged(8, 1 << 20, BACK_TRIM, 0, false));
	CHECK_INT(unflushed_plan(u, &n), 0);
	CHECK_INT(n, 4);
	check_piece(0, 0, 1, 'a');
	check_piece(1, 1, 2, -1);
	CHECK_INT(unflushed_piece(u, 1)->op, BACK_ZERO);
	check_piece(2, 3, 1, 'a');
	check_piece(3, 8, 1 << 20, -1);
	end();
}

static void durable_covers(void)
{
	size_t n;

	begin(1 << 20);
	CHECK(acknowledged(0, 4, BACK_WRITE, 'x', true)); /* nothing older: not kept */
	CHECK_INT(unflushed_taken(u), 0);
	CHECK(acknowledged(0, 4, BACK_WRITE, 'a', false));
	CHECK(acknowledged(1, 2, BACK_WRITE, 'b', true));
	CHECK_INT(chunk_held(pool), 4096); /* of a; b has no data */
	CHECK_INT(unflushed_plan(u, &n), 0);
	CHECK_INT(n, 2);
	check_piece(0, 0, 1, 'a');
	check_piece(1, 3, 1, 'a');
	CHECK(acknowledged(9, 1, BACK_WRITE, 'c', false));
	unflushed_flushed(u, 1); /* a is flushed, so b covers nothing */
	CHECK_INT(unflushed_count(u), 1);
	CHECK_INT(unflushed_plan(u, &n), 0);
	CHECK_INT(n, 1);
	check_piece(0, 9, 1, 'c');
	end();
}

static void a_flush_covers_earlier_writes(void)
{
	uint64_t first, second;
	size_t n;

	begin(1 << 20);
	CHECK(acknowledged(0, 1, BACK_WRITE, 'a', false));
	first = unflushed_mark(u);
	CHECK(acknowledged(1, 1, BACK_WRITE, 'b', false));
	second = unflushed_mark(u);
	CHECK(acknowledged(2, 1, BACK_WRITE, 'c', false));
	unflushed_flushed(u, second); /* they may end in any order */
	CHECK_INT(unflushed_count(u), 1);
	unflushed_flushed(u, first);
	CHECK_INT(unflushed_count(u), 1);
	CHECK_INT(unflushed_plan(u, &n), 0);
	CHECK_INT(n, 1);
	check_piece(0, 2, 1, 'c');
	end();
}

static void bounded(void)
{
	begin(8 * 4096);
	for (int i = 0; i < 8; i++)
		CHECK(acknowledged((uint64_t)i, 1, BACK_WRITE, 'a', false));
	CHECK_INT(unflushed_held(u), 8 * 4096);
	CHECK(!acknowledged(9, 1, BACK_WRITE, 'a', false));
	CHECK(!acknowledged(
		9, 1, BACK_TRIM, 'a', false)); /* without data, but it counts nevertheless */
	unflushed_flushed(u, 1);
	CHECK(unflushed_take(u, 4096));
	CHECK(!unflushed_take(u, 4096)); /* requests in flight count, too */
	CHECK_INT(unflushed_held(u), 7 * 4096);
	CHECK_INT(unflushed_taken(u), 8 * 4096);
	unflushed_give(u, 4096);
	unflushed_flushed(u, unflushed_mark(u));
	CHECK_INT(unflushed_held(u), 0);
	CHECK(acknowledged(
		0, 128, BACK_WRITE, 'a', false)); /* larger than the limit: alone it fits */
	CHECK(!acknowledged(0, 1, BACK_WRITE, 'a', false));
	end();
}

/* Many logs, and nothing can be flushed: half of the memory is left for others, and each accepts
 * a write. */
static void bounded_together(void)
{
	struct unflushed *all[16];

	begin(4 << 20);
	for (int i = 0; i < 16; i++) {
		CHECK_INT(unflushed_new(1 << 20, pool, &all[i]), 0);
		while (unflushed_take(all[i], 256 << 10))
			;
		CHECK(unflushed_taken(all[i]) >= 256 << 10);
	}
	CHECK_INT(unflushed_taken(all[0]), 1 << 20); /* the first ones have reached their limit */
	CHECK_INT(chunk_kept(pool), (4 << 20) + 12 * (256 << 10));
	CHECK(!unflushed_take(all[15], 4096));
	for (int i = 0; i < 16; i++) {
		unflushed_give(all[i], unflushed_taken(all[i]));
		unflushed_free(all[i]);
	}
	CHECK_INT(chunk_kept(pool), 0);
	CHECK(acknowledged(0, 1, BACK_WRITE, 1, false));
	CHECK_INT(chunk_kept(pool), 4096);
	unflushed_flushed(u, unflushed_mark(u));
	CHECK_INT(chunk_kept(pool), 0);
	end();
}

static void costs(void)
{
	CHECK_INT(unflushed_cost(1, true), 4096);
	CHECK_INT(unflushed_cost(4096, true), 4096);
	CHECK_INT(unflushed_cost(4097, true), 16384);
	CHECK_INT(unflushed_cost(65536, true), 65536);
	CHECK_INT(unflushed_cost(CHUNK_MAX, true), CHUNK_MAX);
	CHECK_INT(unflushed_cost(CHUNK_MAX, false), 4096);
}

static void missing_blocks(void)
{
	size_t n;

	begin(1 << 20);
	CHECK(acknowledged(0, 1, BACK_WRITE, 'a', false));
	CHECK(acknowledged(4, 2, BACK_WRITE, 'b', false));
	CHECK_INT(unflushed_plan(u, &n), 0);
	CHECK(!unflushed_missing(u, 0, BLOCKS * BLOCK));
	unflushed_piece(u, 1)->failed = true;
	CHECK(unflushed_missing(u, 5 * BLOCK, 1));
	CHECK(unflushed_missing(u, 0, 4 * BLOCK + 1));
	CHECK(!unflushed_missing(u, 0, 4 * BLOCK));
	CHECK(!unflushed_missing(u, 6 * BLOCK, BLOCK));
	CHECK_INT(unflushed_plan(u, &n), 0); /* the next try starts from the beginning */
	CHECK(!unflushed_missing(u, 0, BLOCKS * BLOCK));
	end();
}

static bool is_near(uint64_t page, uint64_t n)
{
	return unflushed_near(u, page * PAGE * BLOCK, n * PAGE * BLOCK);
}

/* Counted by pages of 4 KiB: `near` may be true without a write, but is never false with one. */
static void near_writes(void)
{
	uint64_t mark;

	begin(1 << 20);
	CHECK(!is_near(0, 64));
	CHECK(acknowledged(2 * PAGE, PAGE, BACK_WRITE, 'a', true)); /* nothing can be lost */
	CHECK(acknowledged(4 * PAGE + 1, PAGE, BACK_WRITE, 'b', false));
	CHECK(acknowledged(5 * PAGE, 1, BACK_WRITE, 'c', false));
	CHECK(is_near(4, 1) && is_near(5, 1) && is_near(0, 5) && is_near(5, 10));
	CHECK(!is_near(0, 4) && !is_near(6, 1));
	mark = unflushed_mark(u);
	CHECK(acknowledged(
		8 * PAGE, 1024 * PAGE, BACK_TRIM, 0, false)); /* too wide for the counters */
	CHECK(is_near(900, 1) && is_near(4, 1) && !is_near(6, 1));
	unflushed_flushed(u, mark);
	CHECK(is_near(900, 1) && !is_near(4, 2));
	unflushed_flushed(u, unflushed_mark(u));
	CHECK(!is_near(0, 2048));
	end();
}

/*
 * Against an upstream of BLOCKS blocks that loses data: `is` is what a read returns, `sure` what
 * survives its death. The required content is `want`, what was acknowledged last.
 */
static uint8_t is[BLOCKS], sure[BLOCKS], want[BLOCKS];
static bool
	sure_now[BLOCKS]; /* the last write to it is durable: must not change even for a moment */

static void random_write(struct rng *rng, uint8_t value)
{
	uint64_t block = rng_below(rng, BLOCKS), n = 1 + rng_below(rng, 12);
	uint8_t op = rng_below(rng, 5) ? BACK_WRITE : BACK_ZERO;
	bool durable = rng_below(rng, 6) == 0;

	n = n < BLOCKS - block ? n : BLOCKS - block;
	value = op == BACK_ZERO ? 0 : value;
	if (!acknowledged(block, n, op, value, durable)) {
		unflushed_flushed(u, unflushed_mark(u));
		memcpy(sure, is, sizeof(sure));
		memset(sure_now, true, sizeof(sure_now));
		CHECK(acknowledged(block, n, op, value, durable));
	}
	for (uint64_t b = block; b < block + n; b++) {
		is[b] = want[b] = value;
		sure_now[b] = durable;
		if (durable)
			sure[b] = value;
	}
}

/* The upstream dies: each block has its durable content or, by chance, its last content. Then it
 * returns. */
static void die_and_replay(struct rng *rng)
{
	size_t n, order[4 * BLOCKS];

	for (int b = 0; b < BLOCKS; b++)
		if (rng_below(rng, 3))
			is[b] = sure[b];
		else
			sure[b] = is[b];
	CHECK_INT(unflushed_plan(u, &n), 0);
	CHECK(n <= BLOCKS);
	for (size_t i = 0; i < n; i++) { /* any order will do */
		size_t j = rng_below(rng, i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	for (size_t i = 0; i < n; i++) {
		const struct unflushed_piece *p = unflushed_piece(u, order[i]);
		for (uint64_t at = 0; at < p->length; at += BLOCK) {
			uint64_t b = (p->offset + at) / BLOCK;
			CHECK(!sure_now[b]);
			is[b] = p->data ? p->data[at] : 0;
			CHECK_INT(is[b], want[b]);
		}
	}
	CHECK(memcmp(is, want, sizeof(is)) == 0);
}

static void against_an_upstream_that_forgets(void)
{
	struct rng rng;
	uint64_t mark = 0;
	uint8_t then[BLOCKS];
	bool flushing = false;
	int deaths = 0;

	rng_init(&rng, 1, "unflushed");
	begin(40 * 4096);
	for (int step = 0; step < 100000; step++) {
		uint64_t what = rng_below(&rng, 100);

		if (what < 85) {
			random_write(&rng, (uint8_t)(1 + rng_below(&rng, 255)));
		} else if (what < 93 && !flushing) {
			mark = unflushed_mark(u);
			memcpy(then, is, sizeof(then));
			flushing = true;
		} else if (what < 98 && flushing) {
			/* Each durable version is at least as new as at the start of the flush. */
			for (int b = 0; b < BLOCKS; b++)
				if (!sure_now[b])
					sure[b] = rng_below(&rng, 2) ? then[b] : is[b];
			unflushed_flushed(u, mark);
			flushing = false;
		} else if (what >= 98) {
			die_and_replay(&rng);
			flushing = false; /* it died with the upstream */
			deaths++;
		}
	}
	CHECK(deaths > 1000);
	end();
}

int main(void)
{
	RUN(last_write_wins);
	RUN(zeroes_and_trims);
	RUN(durable_covers);
	RUN(a_flush_covers_earlier_writes);
	RUN(bounded);
	RUN(bounded_together);
	RUN(costs);
	RUN(missing_blocks);
	RUN(near_writes);
	RUN(against_an_upstream_that_forgets);
	return 0;
}
