/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd-state: loss of a connection or of the upstream, and reconnection. The states and their
 * invariants: serve/back/nbd.h.
 *
 * Callbacks only record events (conn.broken, under_way); back_nbd_attend evaluates all of them and
 * changes the state, outside of any loop over a connection's queues.
 */
#include "base/container.h"
#include "base/lesser.h"
#include "serve/back/nbd.h"
#include "serve/loop/dial.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BACK_OFF_LEAST (10 * WEIR_MS)
#define BACK_OFF_MOST  WEIR_SEC
#define EXTRA_MOST     (30 * WEIR_SEC) /* between attempts when there is a connection already */
#define DRAIN_MOST     WEIR_SEC
/* an upstream that was up for longer is retried at once when lost */
#define STEADY         WEIR_SEC
#define STEADY_ANSWERS 16 /* one that answered more requests, after the shortest back-off */
#define WINDOW         64 /* pieces in flight in REPLAY */

/* ---- loss */

static void handle_loss(struct nbd *n, weir_time since, const char *why)
{
	weir_time now = loop_now(n->loop);

	/* Only the first lost connection is logged as a warning. */
	log_event(n->lost_since == WEIR_NEVER ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG,
		"upstream-lost", "back", n->name, "why", why, NULL);
	if (n->lost_since == WEIR_NEVER) {
		n->lost_since = since;
		n->said = false;
		snprintf(n->why, sizeof(n->why), "%s", why);
		if (now - n->up_since > STEADY)
			n->back_off = 0;
		else if (n->answered > STEADY_ANSWERS)
			n->back_off = BACK_OFF_LEAST;
		if (n->back_off > BACK_OFF_MOST)
			n->back_off = BACK_OFF_MOST;
	}
	if (n->back.state == BACK_UP) {
		n->back.state = BACK_LOST;
		n->back.lost++;
	}
	if (n->phase == NBD_PHASE_AWAY || (n->phase == NBD_PHASE_DRAIN && n->broken))
		return;
	n->phase = NBD_PHASE_DRAIN;
	n->broken = true;
	n->drain_until = now + (DRAIN_MOST < n->timeout / 2 ? DRAIN_MOST : n->timeout / 2);
}

/* Take back the requests of a connection, and close it. */
static void give_up(struct nbd *n, struct conn *c)
{
	struct slot_queue flight = c->flight, out = c->out;
	struct slot *s;

	c->flight = c->out = (struct slot_queue){0};
	n->under_way -= flight.n + out.n;
	if (flight.n + out.n && !c->broken)
		c->broken = "the upstream did not reply in time"; /* send no NBD_CMD_DISC */
	back_nbd_conn_close(n, c);
	while ((s = slot_pop(&flight)) || (s = slot_pop(&out))) {
		s->conn = NULL;
		n->syncs -= back_nbd_way_is_sync(n, s);
		back_nbd_way_lost(n, s);
	}
}

/* Many gateways that lost one upstream must not reconnect at the same time. */
static weir_time jitter(struct nbd *n)
{
	return (weir_time)((double)n->back_off * (0.5 + 0.5 * rng_double(&n->rng)));
}

static void attempt_failed(struct nbd *n, const char *why)
{
	weir_time most = n->ready_conns ? EXTRA_MOST : BACK_OFF_MOST;

	n->back_off = n->back_off ? 2 * n->back_off : BACK_OFF_LEAST;
	if (n->back_off > most)
		n->back_off = most;
	n->dial_at = loop_now(n->loop) + jitter(n);
	snprintf(n->why, sizeof(n->why), "%s", why);
	if (!n->said)
		log_event(LOG_LEVEL_WARNING, "upstream-not-reached", "back", n->name, "why", why,
			NULL);
	n->said = true;
}

static void attend_broken(struct nbd *n, struct conn *c)
{
	weir_time now = loop_now(n->loop);

	if (c->link.state == NBD_LINK_READY) {
		bool silent = (c->flight.n || c->out.n) && now - c->heard >= n->timeout;
		handle_loss(n, silent ? c->heard : now, c->broken);
		give_up(n, c);
	} else {
		attempt_failed(n, c->broken);
		back_nbd_conn_close(n, c);
	}
}

static void close_all(struct nbd *n)
{
	for (uint32_t i = 0; i < BACK_NBD_CONNS; i++)
		if (n->conns[i].link.state != NBD_LINK_NONE)
			give_up(n, &n->conns[i]);
	back_nbd_dial_drop(n);
}

/* ---- reconnection */

static void enter_up(struct nbd *n)
{
	n->phase = NBD_PHASE_UP;
	n->up_since = loop_now(n->loop);
	n->answered = 0;
	n->lost_since = WEIR_NEVER;
	n->mismatch = false;
	if (n->back.state == BACK_STARTING) {
		n->back.state = BACK_UP;
		log_event(LOG_LEVEL_INFO, "upstream-reached", "back", n->name, NULL);
		if (n->back.known)
			n->back.known(n->back.known_arg);
	} else if (n->back.state != BACK_UP) {
		n->back.state = BACK_UP;
		n->reconnects++;
		log_event(LOG_LEVEL_INFO, "upstream-back", "back", n->name, NULL);
	}
}

static void begin_replay(struct nbd *n)
{
	n->plan_at = n->n_plan = 0;
	if (n->kept && unflushed_plan(n->kept, &n->n_plan) < 0)
		return; /* no memory: the timer retries */
	n->phase = NBD_PHASE_REPLAY;
	n->era++;
	n->broken = false;
	n->doubt = false;
	n->resend_at = WEIR_NEVER;
	n->doubt_at = loop_now(n->loop);
	back_nbd_way_reread(n);
}

static bool send_piece(struct nbd *n)
{
	const struct unflushed_piece *p = unflushed_piece(n->kept, n->plan_at);
	struct slot *s = back_nbd_slot(n);

	if (!s)
		return false;
	s->replay = true;
	s->piece = (uint32_t)n->plan_at++;
	s->op = p->op;
	s->flags = p->flags;
	s->call.offset = p->offset;
	s->call.length = (uint32_t)p->length;
	s->out = p->data;
	back_nbd_conn_put(n, back_nbd_conn_pick(n), s);
	return true;
}

static void replay(struct nbd *n)
{
	struct slot *s;

	while (n->plan_at < n->n_plan && n->under_way < WINDOW)
		if (!send_piece(n))
			return; /* no memory: the timer retries */
	if (n->plan_at < n->n_plan || n->under_way)
		return;
	if (!n->again.n)
		enter_up(n);
	while ((s = slot_pop(&n->again))) /* none overlaps another: invariant 1 */
		back_nbd_conn_put(n, back_nbd_conn_pick(n), s);
}

void back_nbd_recheck(struct nbd *n)
{
	n->phase = NBD_PHASE_DRAIN;
	n->broken = false;
	n->drain_until = WEIR_NEVER;
}

/* ---- failure */

/* news: log even if it has failed already. */
static void enter_failed(struct nbd *n, const char *why, bool news)
{
	if (n->back.state == BACK_FAILED && !news)
		return;
	n->back.state = BACK_FAILED;
	log_event(LOG_LEVEL_ERROR, "upstream-failed", "back", n->name, "why", why, NULL);
}

/* ---- connecting */

void back_nbd_dial_drop(struct nbd *n)
{
	dial_drop(n->dial);
	n->dial = NULL;
}

static struct conn *spare_conn(struct nbd *n)
{
	for (uint32_t i = 0; i < n->wanted; i++)
		if (n->conns[i].link.state == NBD_LINK_NONE)
			return &n->conns[i];
	return NULL;
}

/* Return true if another connection is wanted; one at a time while none is up. */
static bool wants_conn(const struct nbd *n)
{
	uint32_t have = 0;

	if (n->phase == NBD_PHASE_DRAIN || n->dial)
		return false;
	for (uint32_t i = 0; i < n->wanted; i++)
		have += n->conns[i].link.state != NBD_LINK_NONE;
	return have < (n->ready_conns ? n->wanted : 1);
}

static void on_dialled(void *arg, int fd, const struct weir_err *err)
{
	struct nbd *n = arg;
	struct conn *c = spare_conn(n);
	int r;

	n->dial = NULL;
	if (fd < 0) {
		attempt_failed(n, err->text);
	} else if (!c) {
		close(fd);
	} else {
		back_nbd_conn_begin(n, c, fd);
		c->fd = (struct loop_fd){.fd = fd, .ready = back_nbd_ready};
		r = loop_add(n->loop, &c->fd, EPOLLIN);
		c->watched = r == 0;
		if (r)
			back_nbd_conn_fault(c, r);
	}
	back_nbd_attend(n);
}

/* For a connection beside others: check that those are still alive, now that it is up. Return false
 * if out of memory. */
static bool ask_others(struct nbd *n, struct conn *c)
{
	struct slot *s;

	if (n->phase == NBD_PHASE_DRAIN && n->broken)
		return true; /* all of them are about to be closed */
	s = back_nbd_slot(n);
	if (!s)
		return false;
	s->op = BACK_READ;
	s->call.length = n->export_.block_min ? n->export_.block_min : 1;
	s->call.in = n->sink;
	s->joins = c;
	back_nbd_conn_put(n, back_nbd_conn_pick(n), s);
	return true;
}

/* Return what changed since the first handshake, or NULL. */
static const char *changed_since(const struct nbd *n, const struct nbd_greet *g)
{
	/* Features offered to our clients. */
	const uint16_t offered = NBD_SEND_FLUSH | NBD_SEND_FUA | NBD_SEND_TRIM |
				 NBD_SEND_WRITE_ZEROES | NBD_SEND_CACHE | NBD_SEND_FAST_ZERO;

	if (g->export_.size < n->export_.size)
		return "the upstream came back smaller";
	if ((g->export_.flags & NBD_READ_ONLY) && !n->back.info.read_only)
		return "the upstream came back read-only";
	if (n->export_.flags & ~g->export_.flags & offered)
		return "the upstream came back without a feature that it had";
	if (g->export_.block_min > n->export_.block_min || g->export_.block_max < CHUNK_MAX)
		return "the upstream came back with another block size";
	if (n->status && !g->base_allocation)
		return "the upstream came back without base:allocation";
	return NULL;
}

/* Return NULL, or why this connection is unusable. */
static const char *check_conn(struct nbd *n, struct conn *c)
{
	struct weir_err err = {""};

	if (n->known)
		return changed_since(n, &c->link.greet);
	if (back_nbd_learn(n, &c->link.greet, &err) == 0)
		return NULL;
	snprintf(c->link.why, sizeof(c->link.why), "%s", err.text);
	return c->link.why;
}

static void handle_greeted(struct nbd *n, struct conn *c)
{
	const char *changed = check_conn(n, c);

	if (!changed && n->ready_conns && !(c->link.greet.export_.flags & NBD_MULTI_CONN))
		changed = "the upstream no longer allows several connections";
	loop_change(n->loop, &c->fd, EPOLLIN);
	c->joined = !n->ready_conns;
	if (!changed && !c->joined && !ask_others(n, c))
		changed = "no memory";
	if (changed) {
		c->link.state = NBD_LINK_GREET; /* it never carried requests */
		back_nbd_conn_break(c, changed);
		if (!n->ready_conns && n->known) {
			enter_failed(n, changed, !n->mismatch);
			n->mismatch = true;
		}
		return;
	}
	c->heard = loop_now(n->loop);
	n->ready_conns++;
	n->wanted = c->link.greet.export_.flags & NBD_MULTI_CONN ? n->most : 1;
	n->attend = true;
}

void back_nbd_ready(struct loop_fd *f, uint32_t events)
{
	struct conn *c = container_of(f, struct conn, fd);
	struct nbd *n = c->nbd;

	if (c->link.state == NBD_LINK_READY) {
		if (events & ~(uint32_t)EPOLLOUT)
			back_nbd_conn_recv(n, c);
		if (events & EPOLLOUT)
			back_nbd_conn_send(n, c);
	} else {
		uint32_t want;
		int r = nbd_link_greet(&c->link, &n->uri, n->tls, &want);

		if (r == -EAGAIN)
			loop_change(n->loop, &c->fd, want);
		else if (r)
			back_nbd_conn_break(c, c->link.why);
		else
			handle_greeted(n, c);
	}
	if (n->attend)
		back_nbd_attend(n);
}

/* ---- end of the process */

bool back_nbd_given_up(const struct nbd *n)
{
	return n->leaving &&
	       (n->phase == NBD_PHASE_AWAY || (n->phase == NBD_PHASE_DRAIN && n->broken));
}

bool back_nbd_abandon(struct back *b)
{
	struct nbd *n = nbd_of(b);

	n->leaving = true;
	back_nbd_attend(n);
	return back_nbd_given_up(n);
}

/* ---- all events */

static void look_at_conns(struct nbd *n, weir_time now)
{
	for (uint32_t i = 0; i < BACK_NBD_CONNS; i++) {
		struct conn *c = &n->conns[i];

		if (c->link.state == NBD_LINK_NONE)
			continue;
		if (c->link.state != NBD_LINK_READY && now >= c->deadline)
			back_nbd_conn_break(c, "the handshake took too long");
		else if (c->link.state == NBD_LINK_READY && (c->flight.n || c->out.n) &&
			 now - c->heard >= n->timeout)
			back_nbd_conn_break(c, "the upstream does not reply");
		if (c->broken)
			attend_broken(n, c);
	}
}

static void change_phase(struct nbd *n, weir_time now)
{
	if (n->phase == NBD_PHASE_DRAIN &&
		(!n->under_way || now >= n->drain_until || back_nbd_given_up(n))) {
		if (n->broken) {
			close_all(n);
			n->phase = NBD_PHASE_AWAY;
			n->dial_at = now + jitter(n);
		} else {
			begin_replay(n);
		}
	}
	if (n->phase == NBD_PHASE_AWAY && n->ready_conns)
		begin_replay(n);
	if (n->phase == NBD_PHASE_REPLAY)
		replay(n);
}

void back_nbd_attend(struct nbd *n)
{
	weir_time now = loop_now(n->loop);

	n->attend = false;
	look_at_conns(n, now);
	change_phase(n, now);
	if (n->back.state == BACK_LOST && now - n->lost_since >= n->timeout)
		enter_failed(n, "the upstream was away for longer than the time-out", false);
	if (n->back.state == BACK_FAILED || n->back.state == BACK_STARTING)
		back_nbd_way_fail_all(n, -EIO);
	else if (back_nbd_given_up(n))
		back_nbd_way_fail_all(n, -ESHUTDOWN);
	if (wants_conn(n) && now >= n->dial_at &&
		dial_start(n->loop, n->uri.address, BACK_NBD_DIAL, on_dialled, n, &n->dial) < 0)
		attempt_failed(n, "cannot start a thread to connect");
	back_nbd_timer(n);
}

void back_nbd_timer(struct nbd *n)
{
	weir_time now = loop_now(n->loop);
	/* Check for silence at this interval. */
	weir_time at = now + (n->timeout < 4 * WEIR_MS ? WEIR_MS : n->timeout / 4);

	if (wants_conn(n))
		at = lesser(at, n->dial_at);
	if (n->phase == NBD_PHASE_DRAIN)
		at = lesser(at, n->drain_until);
	if (n->phase != NBD_PHASE_UP) /* retry after a lack of memory */
		at = lesser(at, now + 100 * WEIR_MS);
	if (n->back.state == BACK_LOST)
		at = lesser(at, n->lost_since + n->timeout);
	if (n->own_after > now)
		at = lesser(at, n->own_after);
	if (n->resend_at > now)
		at = lesser(at, n->resend_at);
	for (uint32_t i = 0; i < BACK_NBD_CONNS; i++)
		if (n->conns[i].link.state == NBD_LINK_GREET ||
			n->conns[i].link.state == NBD_LINK_TLS)
			at = lesser(at, n->conns[i].deadline);
	loop_set(n->loop, &n->timer, at);
}

void back_nbd_due(struct loop_timer *t, weir_time now)
{
	struct nbd *n = container_of(t, struct nbd, timer);

	(void)now;
	back_nbd_attend(n);
}
