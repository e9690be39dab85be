/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-way: the way of a request to the upstream and back. See serve/back/nbd.h for the invariants.
 *
 *   ready ──► overlaps another? wait for it ──► no room to keep it? `full` ──► a connection's `out`
 *   answered: a write enters the log of kept writes before its client gets the reply
 */
#include "base/container.h"
#include "serve/back/nbd.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <string.h>

#define LOSSES_MOST 8 /* a request that lost more connections may be the cause */

#define NOT_YET UINT64_MAX /* mark of a read that waits for REPLAY, not for a sync */

/* ---- the end of a request */

void back_nbd_way_finish(struct nbd *n, struct slot *s, int error)
{
	struct back_io *io = s->io;

	if (s->entered) {
		struct overlap_range *r = overlap_leave(&n->overlap, &s->range), *next;
		for (; r; r = next) {
			next = r->next;
			slot_push(&n->ready, container_of(r, struct slot, range));
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
	/* The end of one request may move another from `overlap` to `ready`. */
	while (n->ready.n || n->again.n || n->full.n || n->flushes.n || n->unsure.n) {
		fail_queue(n, &n->again, error);
		fail_queue(n, &n->flushes, error);
		fail_queue(n, &n->full, error);
		fail_queue(n, &n->unsure, error);
		fail_queue(n, &n->ready, error);
	}
}

/* ---- sending */

static void send_out(struct nbd *n, struct slot *s)
{
	back_nbd_conn_put(n, back_nbd_conn_pick(n), s);
}

static bool is_durable(const struct nbd *n, const struct slot *s)
{
	return (s->flags & BACK_FUA) && n->fua;
}

static bool reserve_room(struct nbd *n, struct slot *s)
{
	size_t cost = unflushed_cost(s->call.length, s->op == BACK_WRITE && !is_durable(n, s));

	if (s->op == BACK_WRITE && s->io->chunk && !is_durable(n, s) && cost < s->io->chunk->room)
		cost = s->io->chunk->room;
	if (!unflushed_take(n->kept, cost))
		return false;
	s->cost = cost;
	return true;
}

static void start_write(struct nbd *n, struct slot *s)
{
	if (!s->entered) {
		s->entered = true;
		if (!overlap_enter(&n->overlap, &s->range, s->call.offset, s->call.length))
			return; /* waits for another one, whose end moves it to `ready` */
	}
	if (n->kept && !s->cost && (n->full.n || !reserve_room(n, s)))
		slot_push(&n->full, s);
	else
		send_out(n, s);
}

static bool reads_near_kept(const struct nbd *n, const struct slot *s)
{
	return n->kept && s->op == BACK_READ && s->io &&
	       unflushed_near(n->kept, s->call.offset, s->call.length);
}

/* Return true if a read has to wait because kept writes are about to be resent. */
static bool must_wait(struct nbd *n, struct slot *s)
{
	if (!n->doubt || n->resend_at == WEIR_NEVER || !reads_near_kept(n, s))
		return false;
	s->mark = NOT_YET;
	slot_push(&n->unsure, s);
	return true;
}

static void start_request(struct nbd *n, struct slot *s)
{
	if (s->op == BACK_FLUSH || s->flushing)
		back_nbd_flush_want(n, s);
	else if (slot_writes(s))
		start_write(n, s);
	else if (n->doubt && s->op == BACK_READ &&
		 unflushed_missing(n->kept, s->call.offset, s->call.length))
		back_nbd_way_finish(n, s, -EIO); /* acknowledged writes there are not in place */
	else if (!must_wait(n, s))
		send_out(n, s);
}

void back_nbd_way_go(struct nbd *n)
{
	struct slot *s;

	if (n->phase != NBD_PHASE_UP)
		return;
	if (n->kept) {
		while ((s = n->full.first) && reserve_room(n, s)) {
			slot_remove(&n->full, s);
			send_out(n, s);
		}
		back_nbd_flush_own(n);
	}
	do { /* the end of one may release another from `overlap` */
		while ((s = slot_pop(&n->ready)))
			start_request(n, s);
		back_nbd_flush_go(n);
	} while (n->phase == NBD_PHASE_UP && n->ready.n);
}

void back_nbd_way_no_room(struct nbd *n)
{
	fail_queue(n, &n->full, -EIO);
}

/* ---- replies */

/* Return a chunk with the write's data, shared or copied; NULL: no memory. */
static struct chunk *keep_data(struct nbd *n, const struct slot *s)
{
	struct chunk *c;

	if (s->io->chunk)
		return chunk_keep(s->io->chunk);
	c = n->pool ? chunk_get(n->pool, s->call.length) : NULL;
	if (c)
		memcpy(c->data, s->out, s->call.length);
	return c;
}

static void answer_write(struct nbd *n, struct slot *s, int error)
{
	struct unflushed_write w = {.offset = s->call.offset,
		.length = s->call.length,
		.op = s->op,
		/* The write was acknowledged, so writes are supported; a repetition may take its time. */
		.flags = s->flags & (uint8_t)~BACK_FAST_ZERO,
		.durable = is_durable(n, s)};

	if (is_durable(n, s))
		back_nbd_flush_fua_answer(n, error);
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
	s->call.got = 0;
	cover_clear(&s->call.cover);
	s->call.error = 0;
	s->call.lent = NULL;
	if (s->op == BACK_READ && s->io)
		s->io->data = s->call.in;
}

/* Return true if kept writes are about to be resent, and a read near them may have seen the old
 * data. */
static bool read_too_early(const struct nbd *n, struct slot *s, int error)
{
	if (error || !n->doubt || !(n->resend_at != WEIR_NEVER || n->phase == NBD_PHASE_DRAIN) ||
		!reads_near_kept(n, s))
		return false;
	start_over(s);
	return true;
}

/* ---- reads that may have seen old data */

bool back_nbd_way_is_sync(const struct nbd *n, const struct slot *s)
{
	return s == n->flush || (slot_writes(s) && is_durable(n, s));
}

static uint64_t oldest_in(const struct nbd *n, const struct slot_queue *q, uint64_t oldest)
{
	for (const struct slot *s = q->first; s; s = s->next)
		if (s->born < oldest && back_nbd_way_is_sync(n, s))
			oldest = s->born;
	return oldest;
}

/* Return `born` of the oldest sync in flight. */
static uint64_t oldest_sync(const struct nbd *n)
{
	uint64_t oldest = NOT_YET - 1;

	for (uint32_t i = 0; n->syncs && i < BACK_NBD_CONNS; i++) {
		oldest = oldest_in(n, &n->conns[i].flight, oldest);
		oldest = oldest_in(n, &n->conns[i].out, oldest);
	}
	return oldest;
}

/* Hold back the reply of a read: a sync in flight may fail and have undone the writes it should
 * see. Return true if held. */
static bool make_unsure(struct nbd *n, struct slot *s, int error)
{
	if (error || !n->syncs || !reads_near_kept(n, s))
		return false;
	if (s->io->data != s->call.in) { /* borrowed: valid in this round only */
		memcpy(s->call.in, s->io->data, s->call.length);
		s->io->data = s->call.in;
	}
	s->mark = n->born;
	slot_push(&n->unsure, s);
	return true;
}

void back_nbd_way_settle(struct nbd *n)
{
	uint64_t oldest = n->unsure.n || n->flush_answered ? oldest_sync(n) : 0;
	struct slot *s;

	back_nbd_flush_settle(n, oldest);
	while ((s = n->unsure.first) && s->mark <= oldest) {
		slot_remove(&n->unsure, s);
		back_nbd_way_finish(n, s, 0);
	}
}

void back_nbd_way_reread(struct nbd *n)
{
	struct slot *s;

	back_nbd_flush_doubt(n);
	while ((s = slot_pop(&n->unsure))) {
		start_over(s);
		slot_push(&n->ready, s);
	}
}

/* ---- all answers */

void back_nbd_way_answer(struct nbd *n, struct slot *s, int error)
{
	if (s->joins)
		s->joins->joined = true; /* any reply proves that the upstream is alive */
	if (s->replay)
		answer_piece(n, s, error);
	else if (s == n->flush)
		back_nbd_flush_answer(n, error);
	else if (slot_writes(s))
		answer_write(n, s, error);
	else if (read_too_early(n, s, error))
		slot_push(&n->ready, s);
	else if (!make_unsure(n, s, error))
		back_nbd_way_finish(n, s, error);
}

void back_nbd_way_lost(struct nbd *n, struct slot *s)
{
	if (back_nbd_way_is_sync(n, s))
		back_nbd_way_reread(n);
	if (s == n->flush) {
		back_nbd_flush_lost(n);
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
