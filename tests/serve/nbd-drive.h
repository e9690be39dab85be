/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-drive: drive a back end from a test and check the results.
 *
 * A disk of blocks of 4 KiB. Each has a version, which a write raises; a block's content follows
 * from its number and version. No two requests for a block are inside at once, so the expected
 * result of a read is known; a FLUSH must cover every version acknowledged before it was submitted.
 */
#ifndef WEIR_TESTS_NBD_DRIVE_H
#define WEIR_TESTS_NBD_DRIVE_H

#include "base/container.h"
#include "base/rng.h"
#include "serve/back/back.h"
#include "test.h"

#define DRIVE_BLOCK  4096u
#define DRIVE_BLOCKS 256
#define DRIVE_DEPTH  64
#define DRIVE_SPAN                                                                                 \
	32 /* most blocks of one request: 128 KiB, above and below the limit of copying */

struct drive_io {
	struct back_io io; /* first */
	struct drive *d;
	bool busy;
	struct chunk *hold;             /* its data; the back end is not always given the chunk */
	uint32_t version;               /* WRITE, ZERO */
	uint32_t covered[DRIVE_BLOCKS]; /* FLUSH: versions acknowledged before */
};

struct drive {
	struct loop *loop;
	struct chunk_pool *pool;
	struct back *back;
	struct loop_turn turn;
	struct loop_timer guard, tick;
	struct rng rng;
	uint32_t inside, done, want; /* requests; want: submit until so many are done */
	uint32_t errors;             /* of finished requests: allowed only where a test says so */
	uint32_t flushes;            /* successful ones */
	bool running;
	bool blind; /* reads are not checked */
	bool no_fua;
	bool awaiting; /* the loop stops at a state, not when all is done */
	enum back_state awaited;
	int last_error;
	uint32_t acked[DRIVE_BLOCKS]; /* version; 0: zeroes */
	uint32_t sent[DRIVE_BLOCKS];  /* the newest version sent */
	bool zero[DRIVE_BLOCKS];      /* the acknowledged version is zeroes */
	bool unsure[DRIVE_BLOCKS];    /* a write to it failed: any content is allowed */
	bool busy[DRIVE_BLOCKS];
	uint32_t sure[DRIVE_BLOCKS]; /* versions covered by a FLUSH */
	struct drive_io ios[DRIVE_DEPTH];
	struct { /* borrowed in this round: must not change until it is over */
		const uint8_t *data;
		uint64_t length, sum;
	} lent[DRIVE_DEPTH];
	uint32_t n_lent, reads, borrowed; /* in this round; submitted; in total */
	uint32_t headed;                  /* borrowed, with room for a head */
	/* Called once per round: may kill, revive, stop. */
	void (*step)(struct drive *d);
	void *arg;
};

static inline void drive_fill(uint8_t *p, uint64_t block, uint32_t version)
{
	uint32_t *w = (uint32_t *)(void *)p;

	for (uint32_t i = 0; i < DRIVE_BLOCK / 4; i++)
		w[i] = version ? version ^ (uint32_t)block << 20 ^ i << 8 : 0;
}

/* Return the version of a block by its content; fail if it is invalid or torn. */
static inline uint32_t drive_version(const uint8_t *p, uint64_t block)
{
	uint8_t want[DRIVE_BLOCK] __attribute__((aligned(8)));
	uint32_t first;

	memcpy(&first, p, 4);
	first = first ? first ^ (uint32_t)block << 20 : 0;
	drive_fill(want, block, first);
	if (memcmp(p, want, DRIVE_BLOCK) != 0)
		FAIL("block %llu is torn", (unsigned long long)block);
	return first;
}

static inline void drive_check_read(struct drive *d, const struct drive_io *x)
{
	for (uint64_t i = 0; i < x->io.length / DRIVE_BLOCK; i++) {
		uint64_t b = x->io.offset / DRIVE_BLOCK + i;
		uint32_t want = d->zero[b] ? 0 : d->acked[b];
		if (d->unsure[b])
			continue;
		if (drive_version(x->io.data + i * DRIVE_BLOCK, b) != want)
			FAIL("block %llu has version %u, not %u", (unsigned long long)b,
				drive_version(x->io.data + i * DRIVE_BLOCK, b), want);
	}
}

static inline uint64_t drive_sum(const uint8_t *p, uint64_t n)
{
	uint64_t sum = n;

	for (uint64_t i = 0; i < n; i++)
		sum = sum * 31 + p[i];
	return sum;
}

static inline void drive_lent(struct drive *d, const struct drive_io *x)
{
	CHECK(x->io.flags & BACK_BORROW && d->n_lent < DRIVE_DEPTH);
	memset(x->io.data - x->io.room, 0xee, x->io.room); /* allowed */
	d->headed += x->io.room > 0;
	d->lent[d->n_lent].data = x->io.data;
	d->lent[d->n_lent].length = x->io.length;
	d->lent[d->n_lent++].sum = drive_sum(x->io.data, x->io.length);
	d->borrowed++;
}

static inline void drive_ended(struct drive *d, struct drive_io *x)
{
	uint64_t from = x->io.offset / DRIVE_BLOCK, n = x->io.length / DRIVE_BLOCK;

	if (x->io.op == BACK_FLUSH) {
		for (int b = 0; b < DRIVE_BLOCKS && !x->io.error; b++)
			if (d->sure[b] < x->covered[b])
				d->sure[b] = x->covered[b];
		d->flushes += !x->io.error;
		return;
	}
	if (x->io.op == BACK_READ && !x->io.error && !d->blind)
		drive_check_read(d, x);
	if (x->io.op == BACK_READ && !x->io.error && x->hold && x->io.data != x->hold->data)
		drive_lent(d, x);
	for (uint64_t b = from; b < from + n; b++) {
		d->busy[b] = false;
		if (x->io.op == BACK_READ)
			continue;
		d->unsure[b] = x->io.error != 0;
		if (!x->io.error) {
			d->acked[b] = x->version;
			d->zero[b] = x->io.op == BACK_ZERO;
			if (x->io.flags & BACK_FUA)
				d->sure[b] = x->version;
		}
	}
}

static inline void drive_done(void *arg, struct back_io *io)
{
	struct drive_io *x = (struct drive_io *)(void *)io;
	struct drive *d = arg;

	CHECK(x->busy);
	x->busy = false;
	d->inside--;
	d->done++;
	if (io->error) {
		d->errors++;
		d->last_error = io->error;
	}
	drive_ended(d, x);
	chunk_put(d->pool, x->hold);
	/* After this turn no other event may wake the loop. */
	if (d->running && !d->awaiting && d->done >= d->want && !d->inside)
		loop_stop(d->loop);
}

/* Put a request into a free slot; NULL: all are in use. */
static inline struct drive_io *drive_io(struct drive *d, uint8_t op)
{
	for (int i = 0; i < DRIVE_DEPTH; i++) {
		struct drive_io *x = &d->ios[i];
		if (x->busy)
			continue;
		x->io = (struct back_io){.op = op};
		x->hold = NULL;
		x->version = 0;
		x->busy = true;
		x->d = d;
		d->inside++;
		return x;
	}
	return NULL;
}

static inline void drive_flush(struct drive *d)
{
	struct drive_io *x = drive_io(d, BACK_FLUSH);

	if (!x)
		return;
	memcpy(x->covered, d->acked, sizeof(x->covered));
	back_submit(d->back, &x->io);
}

/* Find unused blocks. 0: none. */
static inline uint64_t drive_range(struct drive *d, uint64_t from)
{
	uint64_t most = 1 + rng_below(&d->rng, rng_below(&d->rng, 4) ? 2 : DRIVE_SPAN), n = 0;

	while (n < most && from + n < DRIVE_BLOCKS && !d->busy[from + n])
		n++;
	return n;
}

static inline void drive_transfer(struct drive *d, uint8_t op, uint64_t from, uint64_t n)
{
	struct drive_io *x = drive_io(d, op);

	if (!x)
		return;
	x->io.offset = from * DRIVE_BLOCK;
	x->io.length = n * DRIVE_BLOCK;
	for (uint64_t b = from; b < from + n; b++) {
		d->busy[b] = true;
		if (op != BACK_READ && x->version <= d->sent[b])
			x->version = d->sent[b] + 1;
	}
	for (uint64_t b = from; b < from + n && op != BACK_READ; b++)
		d->sent[b] = x->version;
	if (op != BACK_ZERO) {
		x->hold = chunk_get(d->pool, n * DRIVE_BLOCK);
		CHECK(x->hold);
		x->io.data = x->hold->data;
		/* Without a chunk the back end must copy the data that it keeps. */
		x->io.chunk = rng_below(&d->rng, 4) ? x->hold : NULL;
	}
	for (uint64_t i = 0; i < n && op == BACK_WRITE; i++)
		drive_fill(x->io.data + i * DRIVE_BLOCK, from + i, x->version);
	if (op != BACK_READ && !d->no_fua && rng_below(&d->rng, 10) == 0)
		x->io.flags = BACK_FUA;
	if (op == BACK_READ && d->reads++ % 4)
		x->io.flags = BACK_BORROW;
	back_submit(d->back, &x->io);
}

static inline void drive_random(struct drive *d)
{
	uint64_t from = rng_below(&d->rng, DRIVE_BLOCKS), n = drive_range(d, from);
	uint64_t what = rng_below(&d->rng, 100);

	if (what < 2)
		drive_flush(d);
	else if (n)
		drive_transfer(d,
			what < 40   ? BACK_READ
			: what < 94 ? BACK_WRITE
				    : BACK_ZERO,
			from, n);
}

static inline bool drive_turn(struct loop_turn *t, weir_time now)
{
	struct drive *d = container_of(t, struct drive, turn);

	for (; d->n_lent; d->n_lent--)
		CHECK(drive_sum(d->lent[d->n_lent - 1].data, d->lent[d->n_lent - 1].length) ==
			d->lent[d->n_lent - 1].sum);
	if (d->step)
		d->step(d);
	for (int i = 0; i < 8 && d->inside < DRIVE_DEPTH && d->done + d->inside < d->want; i++)
		drive_random(d);
	if (d->awaiting ? d->back->state == d->awaited : d->done >= d->want && !d->inside)
		loop_stop(d->loop);
	if (d->awaiting) /* a state may change after this turn without another event */
		loop_set(d->loop, &d->tick, now + WEIR_MS);
	return false;
}

static inline void drive_tick(struct loop_timer *t, weir_time now)
{
	(void)t;
	(void)now;
}

static inline void drive_late(struct loop_timer *t, weir_time now)
{
	struct drive *d = container_of(t, struct drive, guard);
	char text[160] = "";

	(void)now;
	if (d->back->ops->say)
		d->back->ops->say(d->back, text, sizeof(text));
	FAIL("hangs: %u of %u done, %u inside; %s", d->done, d->want, d->inside, text);
}

static inline void drive_open(struct drive *d, const char *uri, struct back_config *c)
{
	struct weir_err err = {""};

	memset(d, 0, sizeof(*d));
	CHECK_INT(loop_new(&d->loop), 0);
	CHECK_INT(chunk_pool_new(64 << 20, &d->pool), 0);
	c->loop = d->loop;
	c->pool = d->pool;
	if (back_open(uri, c, &d->back, &err) < 0)
		FAIL("%s", err.text);
	d->back->done = drive_done;
	d->back->done_arg = d;
	d->turn.turn = drive_turn;
	d->guard.due = drive_late;
	d->tick.due = drive_tick;
	rng_init(&d->rng, 1, "drive");
	loop_turn_add(d->loop, &d->turn);
	CHECK_INT(d->back->ops->start(d->back), 0);
}

static inline void drive_close(struct drive *d)
{
	back_free(d->back);
	CHECK_INT(chunk_held(d->pool), 0);
	chunk_pool_free(d->pool);
	loop_free(d->loop);
}

/* Submit random requests until `n` more are done, and none is inside. 60 s: it hangs. */
static inline void drive_run(struct drive *d, uint32_t n)
{
	d->want = d->done + n;
	CHECK_INT(loop_set(d->loop, &d->guard, loop_clock() + 60 * WEIR_SEC), 0);
	d->running = true;
	CHECK_INT(loop_run(d->loop), 0);
	d->running = false;
	loop_set(d->loop, &d->guard, WEIR_NEVER);
}

/* Submit nothing until the back end is in that state. */
static inline void drive_await(struct drive *d, enum back_state state)
{
	d->awaiting = true;
	d->awaited = state;
	drive_run(d, 0);
	d->awaiting = false;
}

/* Submit only a FLUSH, and return its result. */
static inline int drive_run_flush(struct drive *d)
{
	d->last_error = 0;
	d->want = d->done + d->inside;
	drive_flush(d);
	drive_run(d, 0);
	return d->last_error;
}

/* Read everything back and check it. */
static inline void drive_verify(struct drive *d)
{
	uint32_t errors = d->errors;

	for (uint64_t b = 0; b < DRIVE_BLOCKS; b += DRIVE_SPAN)
		drive_transfer(d, BACK_READ, b, DRIVE_SPAN);
	drive_run(d, 0);
	CHECK_INT(d->errors, errors);
}

#endif
