/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-flush: FLUSHes to the upstream, and their failures.
 *
 * METHOD  One FLUSH is in flight at a time. It answers every request that waited when it was sent
 *         (`covered`); later ones wait for the next (`flushes`).
 *
 *         The state after a failed FLUSH is unknown, and a server reports lost writes only once:
 *         the next FLUSH may succeed without them. So after a failure all kept writes are resent
 *         (REPLAY), and then the FLUSH; only its success counts. The same holds for a FLUSH in
 *         flight with a failed FUA write, which may have got the report: a success counts only when
 *         the FUA writes in flight with it have succeeded, too.
 *
 *         After TRIES failures in a row the clients get an error for each request with a write
 *         still kept in its range, and success for the others, whose writes are all durable. The
 *         next FLUSH is tried after QUIET: until then requests without a kept write are answered at
 *         once, and the others wait.
 *
 *         Writes of an earlier process are not kept. They are flushed at the start; until a FLUSH
 *         has succeeded a failure is passed on to the clients.
 */
#include "serve/back/nbd.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <string.h>

#define TRIES 5
#define QUIET (200 * WEIR_MS)

/* ---- requests that wait for a FLUSH */

/* Return true if the upstream may have lost a write that waits for a FLUSH and is not kept: it must
 * be resent. */
static bool must_rewrite(const struct nbd *n, const struct slot *s)
{
	return s->flushing && !s->kept && s->era != n->era;
}

static void cover_waiting(struct nbd *n)
{
	struct slot_queue all = n->flushes;
	struct slot *s;

	n->flushes = (struct slot_queue){0};
	while ((s = slot_pop(&all))) {
		if (must_rewrite(n, s)) {
			s->flushing = false;
			back_nbd_conn_put(n, back_nbd_conn_pick(n), s);
		} else {
			slot_push(&n->covered, s);
		}
	}
}

/* Return the requests covered by a failed FLUSH to the head of the queue. */
static void uncover(struct nbd *n)
{
	struct slot *s;

	while ((s = n->covered.last)) {
		slot_remove(&n->covered, s);
		slot_push_front(&n->flushes, s);
	}
}

/* ---- giving up */

/* Return the result of a request that waits for a FLUSH when none succeeds. */
static int result_of(const struct nbd *n, const struct slot *s, int error)
{
	if (!n->kept || !n->history_safe || (s->flushing && !s->kept))
		return error;
	return unflushed_any(n->kept, s->mark, s->call.offset, s->io->length) ? error : 0;
}

static void answer_one(struct nbd *n, struct slot *s, int error)
{
	if (error) {
		n->back.trouble = "a FLUSH failed: data may be lost";
		back_flush_failed(&n->back, n->name, error, loop_now(n->loop));
	}
	back_nbd_way_finish(n, s, error);
}

static void give_up(struct nbd *n, int error)
{
	weir_time now = loop_now(n->loop);
	struct slot_queue all;
	struct slot *s;

	uncover(n);
	all = n->flushes;
	n->flushes = (struct slot_queue){0};
	while ((s = slot_pop(&all)))
		answer_one(n, s, result_of(n, s, error));
	n->tries = 0;
	if (now >= n->quiet_until) /* requests that arrive meanwhile do not prolong it */
		n->quiet_until = now + QUIET;
	n->own_after = n->quiet_until;
	if (!n->own_flush)
		return;
	/* No room to keep more writes, and none in sight. */
	n->own_flush = false;
	back_nbd_way_no_room(n);
	back_nbd_timer(n);
}

/* Return true if FLUSHes failed often enough, and not long ago. */
static bool is_quiet(const struct nbd *n)
{
	return n->kept && n->history_safe && loop_now(n->loop) < n->quiet_until;
}

void back_nbd_flush_want(struct nbd *n, struct slot *s)
{
	if (!(n->export_.flags & NBD_SEND_FLUSH)) {
		back_nbd_way_finish(n, s, -ENOTSUP);
		return;
	}
	s->mark = n->kept ? unflushed_mark(n->kept) : 0;
	if (is_quiet(n) && result_of(n, s, -EIO) == 0)
		back_nbd_way_finish(n, s, 0);
	else
		slot_push(&n->flushes, s);
}

/* ---- sending */

/* Return true if a FLUSH may be sent. Else the kept writes are resent first, or it was tried often
 * enough. */
static bool check_may_send(struct nbd *n)
{
	if (is_quiet(n)) {
		back_nbd_timer(n); /* own_after wakes it */
		return false;
	}
	if (!n->doubt)
		return true;
	if (loop_now(n->loop) < n->quiet_until || n->tries >= TRIES) {
		give_up(n, -EIO);
	} else {
		n->tries++;
		back_nbd_recheck(n);
	}
	return false;
}

void back_nbd_flush_go(struct nbd *n)
{
	struct slot *s;

	if (n->resend_at <= loop_now(n->loop) && n->phase == NBD_PHASE_UP)
		back_nbd_recheck(n);
	if (n->phase != NBD_PHASE_UP || n->flush || !(n->flushes.n || n->own_flush) ||
		!check_may_send(n))
		return;
	cover_waiting(n);
	if (!n->covered.n && !n->own_flush)
		return;
	s = back_nbd_slot(n);
	if (!s) { /* no memory: the next turn retries */
		uncover(n);
		return;
	}
	s->op = BACK_FLUSH;
	s->mark = n->kept ? unflushed_mark(n->kept) : 0;
	n->flush = s;
	back_nbd_conn_put(n, back_nbd_conn_pick(n), s);
}

/* ---- replies */

static void handle_success(struct nbd *n, uint64_t mark)
{
	/* The first success after a failure that concerned writes of an earlier process and that no
	 * client was told of. */
	int error = n->history_lost && n->covered.n ? -EIO : 0;
	struct slot_queue all = n->covered;
	struct slot *s;

	if (n->kept)
		unflushed_flushed(n->kept, mark);
	n->tries = 0;
	n->quiet_until = 0;
	n->back.trouble = NULL;
	n->own_flush = false;
	n->covered = (struct slot_queue){0};
	while ((s = slot_pop(&all)))
		answer_one(n, s, error);
	if (error)
		n->history_lost = false;
	n->history_safe = !n->history_lost;
}

static void handle_failure(struct nbd *n, int error)
{
	char waiting[24];

	log_event(LOG_LEVEL_WARNING, "upstream-flush-failed", "back", n->name, "why",
		strerror(-error), "waiting", log_number(waiting, n->covered.n), NULL);
	n->tries++;
	if (!n->history_safe)
		n->history_lost = !n->covered.n;
	if (n->kept) { /* even if nothing is kept yet: writes in flight may have been undone */
		n->doubt = true;
		n->resend_at = loop_now(n->loop);
		back_nbd_way_reread(n);
	}
	for (struct slot *s = n->covered.first; s; s = s->next)
		if (s->flushing && !s->kept)
			s->era = n->era - 1;
	if (!n->kept || !n->history_safe || n->tries >= TRIES)
		give_up(n, error);
	else
		uncover(n);
}

/* End the FLUSH in flight. Return its mark. */
static uint64_t end_flush(struct nbd *n)
{
	uint64_t mark = n->flush->mark;

	back_nbd_way_finish(n, n->flush, 0);
	n->flush = NULL;
	n->flush_answered = 0;
	return mark;
}

void back_nbd_flush_answer(struct nbd *n, int error)
{
	if (error) {
		end_flush(n);
		handle_failure(n, error);
	} else if (n->doubt) {
		end_flush(n);
		uncover(n);
	} else {
		n->flush_answered = n->born;
	}
	back_nbd_way_settle(n);
}

void back_nbd_flush_settle(struct nbd *n, uint64_t oldest)
{
	if (n->flush_answered && n->flush_answered <= oldest)
		handle_success(n, end_flush(n));
}

void back_nbd_flush_lost(struct nbd *n)
{
	end_flush(n);
	uncover(n);
}

void back_nbd_flush_doubt(struct nbd *n)
{
	if (!n->flush_answered)
		return;
	end_flush(n);
	uncover(n);
}

void back_nbd_flush_fua_answer(struct nbd *n, int error)
{
	weir_time now = loop_now(n->loop);

	if (error == -EIO)
		back_flush_failed(&n->back, n->name, error, now);
	if (error == -EIO && n->kept) {
		/* At once, since reads may return old data; but not for each of many failures. */
		if (!n->doubt || n->resend_at == WEIR_NEVER)
			n->resend_at = now - n->doubt_at >= QUIET ? now : n->doubt_at + QUIET;
		n->doubt = true;
		back_nbd_way_reread(n);
		back_nbd_timer(n);
	}
	back_nbd_way_settle(n);
}

/* ---- the back end's own FLUSHes */

/* Return true if memory for payloads is low, or the logs of several upstreams use most of their
 * share. */
static bool memory_low(const struct nbd *n)
{
	return n->pool && (chunk_held(n->pool) > chunk_budget(n->pool) / 4 * 3 ||
				  chunk_kept(n->pool) > chunk_budget(n->pool) / 4);
}

/* Want a FLUSH if half of `keep` is in use, or a sixteenth if memory is low. */
void back_nbd_flush_own(struct nbd *n)
{
	size_t held = unflushed_held(n->kept);

	if (!held || n->own_flush)
		return;
	if (!n->full.n && held <= unflushed_keep(n->kept) / (memory_low(n) ? 16 : 2))
		return;
	if (loop_now(n->loop) < n->own_after)
		back_nbd_timer(n);
	else
		n->own_flush = true;
}
