/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * back-nbd-way: the way of a request to the upstream and back. See back-nbd.h for the invariants.
 *
 *   ready ──► overlaps another? waits for it ──► no room to keep it? `full` ──► a connection's `out`
 *   answered: a write is put into the log of the kept, before its client hears of it
 */
#include "port/back-nbd.h"
#include "port/log.h"
#include <errno.h>
#include <string.h>

#define LOSSES_MOST 8 /* a request under which more connections were lost may be the reason */

/* ---- the end of a request */

void back_nbd_way_finish(struct nbd *n, struct slot *s, int error)
{
	struct back_io *io = s->io;

	if (s->entered) {
		struct overlap_range *r = overlap_leave(&n->overlap, &s->range), *next;
		for (; r; r = next) {
			next = r->next;
			slot_push(&n->ready, (struct slot *)(void *)r);
		}
	}
	if (s->cost)
		unflushed_give(n->kept, s->cost);
	if (s == n->question)
		n->question = NULL;
	back_nbd_slot_free(n, s);
	if (!io)
		return;
	n->inside--;
	n->finished = true;
	io->error = error;
	n->back.done(n->back.done_arg, io);
}

static void fail_queue(struct nbd *n, struct slot_queue *q, int error)
{
	struct slot_queue all = *q;
	struct slot *s;

	*q = (struct slot_queue){0};
	while ((s = slot_pop(&all)))
		back_nbd_way_finish(n, s, error);
}

void back_nbd_way_fail_all(struct nbd *n, int error)
{
	/* The end of one may let another out of `overlap` into `ready`. */
	while (n->ready.n || n->again.n || n->full.n || n->flushes.n) {
		fail_queue(n, &n->again, error);
		fail_queue(n, &n->flushes, error);
		fail_queue(n, &n->full, error);
		fail_queue(n, &n->ready, error);
	}
}

/* ---- out */

static void send_out(struct nbd *n, struct slot *s)
{
	back_nbd_conn_put(n, back_nbd_conn_pick(n), s);
}

static bool is_durable(const struct nbd *n, const struct slot *s)
{
	return (s->flags & BACK_FUA) && n->fua;
}

static bool take_room(struct nbd *n, struct slot *s)
{
	size_t cost = unflushed_cost(s->length, s->op == BACK_WRITE && !is_durable(n, s));

	if (s->op == BACK_WRITE && s->io->chunk && !is_durable(n, s) && cost < s->io->chunk->room)
		cost = s->io->chunk->room;
	if (!unflushed_take(n->kept, cost))
		return false;
	s->cost = cost;
	return true;
}

static void go_write(struct nbd *n, struct slot *s)
{
	if (!s->entered) {
		s->entered = true;
		if (!overlap_enter(&n->overlap, &s->range, s->offset, s->length))
			return; /* hangs on another: its end brings it back to `ready` */
	}
	if (n->kept && !s->cost && (n->full.n || !take_room(n, s)))
		slot_push(&n->full, s);
	else
		send_out(n, s);
}

static void go(struct nbd *n, struct slot *s)
{
	if (s->op == BACK_FLUSH || s->flushing)
		back_nbd_flush_want(n, s);
	else if (slot_writes(s))
		go_write(n, s);
	else if (n->doubt && s->op == BACK_READ && unflushed_missing(n->kept, s->offset, s->length))
		back_nbd_way_finish(n, s, -EIO); /* what was acknowledged there is not in place */
	else
		send_out(n, s);
}

void back_nbd_way_go(struct nbd *n)
{
	struct slot *s;

	if (n->phase != NBD_PHASE_UP)
		return;
	if (n->kept) {
		while ((s = n->full.first) && take_room(n, s)) {
			slot_remove(&n->full, s);
			send_out(n, s);
		}
		back_nbd_flush_own(n);
	}
	do { /* the end of one may let another out of `overlap` */
		while ((s = slot_pop(&n->ready)))
			go(n, s);
		back_nbd_flush_go(n);
	} while (n->phase == NBD_PHASE_UP && n->ready.n);
}

void back_nbd_way_no_room(struct nbd *n)
{
	fail_queue(n, &n->full, -EIO);
}

/* ---- back */

/* Its data in a chunk that is ours too; NULL: there is no memory. */
static struct chunk *keep_data(struct nbd *n, const struct slot *s)
{
	struct chunk *c;

	if (s->io->chunk)
		return chunk_keep(s->io->chunk);
	c = n->pool ? chunk_get(n->pool, s->length) : NULL;
	if (c)
		memcpy(c->data, s->out, s->length);
	return c;
}

static void answer_write(struct nbd *n, struct slot *s, int error)
{
	struct unflushed_write w = {.offset = s->offset,
		.length = s->length,
		.op = s->op,
		/* Was acknowledged, so it can be done; and then may take its time. */
		.flags = s->flags & (uint8_t)~BACK_FAST_ZERO,
		.durable = is_durable(n, s)};

	if (error && s->flags & BACK_FUA)
		back_nbd_flush_fua_failed(n, error);
	if (error || !n->kept) {
		back_nbd_way_finish(n, s, error);
		return;
	}
	if (s->op == BACK_WRITE && !w.durable) {
		w.chunk = keep_data(n, s);
		if (!w.chunk) { /* cannot be kept: must be made durable */
			s->flushing = true;
			s->era = n->era;
			slot_push(&n->ready, s);
			return;
		}
		w.data = s->io->chunk ? s->out : w.chunk->data;
	}
	unflushed_add(n->kept, &w, s->cost);
	s->cost = 0;
	if ((s->flags & BACK_FUA) && !w.durable) {
		s->flushing = s->kept = true;
		slot_push(&n->ready, s);
	} else {
		back_nbd_way_finish(n, s, 0);
	}
}

static void answer_piece(struct nbd *n, struct slot *s, int error)
{
	if (n->phase == NBD_PHASE_REPLAY) {
		unflushed_piece(n->kept, s->piece)->failed = error != 0;
		n->replayed++;
		if (error) {
			n->doubt = true;
			log_event(LOG_LEVEL_ERROR, "upstream-write-lost", "back", n->name, "why",
				strerror(-error), NULL);
		}
	}
	back_nbd_way_finish(n, s, error);
}

static void start_over(struct slot *s)
{
	s->got = 0;
	cover_clear(&s->cover);
	s->error = 0;
	if (s->op == BACK_READ && s->io)
		s->io->data = s->in;
}

/* Kept writes are about to be sent again, and a read of theirs may have seen what was there before. */
static bool read_too_early(const struct nbd *n, struct slot *s, int error)
{
	if (s->op != BACK_READ || !s->io || error || !n->doubt ||
		!(n->resend || n->phase == NBD_PHASE_DRAIN) ||
		!unflushed_any(n->kept, unflushed_mark(n->kept), s->offset, s->length))
		return false;
	start_over(s);
	return true;
}

/* A FLUSH is under way, and may fail and have undone what this read should have seen. */
static bool is_unsure(const struct nbd *n, const struct slot *s, int error)
{
	return n->flush && n->kept && s->op == BACK_READ && s->io && !error &&
	       unflushed_near(n->kept, s->offset, s->length);
}

static void make_unsure(struct nbd *n, struct slot *s)
{
	if (s->io->data != s->in) { /* borrowed: for this round only */
		memcpy(s->in, s->io->data, s->length);
		s->io->data = s->in;
	}
	slot_push(&n->unsure, s);
}

void back_nbd_way_settle(struct nbd *n, bool good)
{
	struct slot_queue all = n->unsure;
	struct slot *s;

	n->unsure = (struct slot_queue){0};
	while ((s = slot_pop(&all))) {
		if (good) {
			back_nbd_way_finish(n, s, 0);
		} else {
			start_over(s);
			slot_push(&n->ready, s);
		}
	}
}

void back_nbd_way_answer(struct nbd *n, struct slot *s, int error)
{
	if (s->joins)
		s->joins->joined = true; /* whatever the answer is, somebody gave it */
	if (s->replay)
		answer_piece(n, s, error);
	else if (s == n->flush)
		back_nbd_flush_answer(n, s, error);
	else if (slot_writes(s))
		answer_write(n, s, error);
	else if (read_too_early(n, s, error))
		slot_push(&n->ready, s);
	else if (is_unsure(n, s, error))
		make_unsure(n, s);
	else
		back_nbd_way_finish(n, s, error);
}

void back_nbd_way_lost(struct nbd *n, struct slot *s)
{
	if (s == n->flush) {
		back_nbd_flush_lost(n, s);
		return;
	}
	if (s->losses < UINT8_MAX)
		s->losses++;
	start_over(s);
	if (!s->io || (s->losses >= LOSSES_MOST && loop_now(n->loop) - s->since >= n->timeout))
		back_nbd_way_finish(n, s, -EIO);
	else
		slot_push(slot_writes(s) ? &n->again : &n->ready, s);
}
