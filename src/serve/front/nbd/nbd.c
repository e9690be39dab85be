/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd: an NBD connection after its handshake, from start to end.
 *
 * METHOD  Events only read (serve/front/nbd/read.c) or put a connection on the todo list. The turn, which
 *         follows the resources' turns in the same round, goes through that list: one send each,
 *         connections that may continue do, ended ones are closed. So all replies of a round leave in
 *         one send per connection, and nothing is freed while a caller still uses it.
 *
 * THE END
 *   stopping  NBD_DISC, or the gateway ends: reads no more; closed when everything is answered
 *   gone      the client hung up after NBD_DISC: the socket is closed, and jobs inside finish
 *             without a reply
 *   doomed    lost, broken, refused, too slow: closed in the turn, queued replies are discarded
 *   closed    the socket is closed; the memory is freed with the last job that returns
 */
#include "base/container.h"
#include "serve/front/nbd/impl.h"
#include "serve/loop/log.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define FEW     4              /* most requests of a round after which the loop may poll (loop.h) */
#define SENDS   4              /* most sends of a connection in one round */
#define TICK    (5 * WEIR_SEC) /* interval of checks for slow clients */
#define DEAF    (1 * WEIR_SEC) /* a client that reads no reply for so long is deaf */
#define IN_WAY  (2 * WEIR_SEC) /* … and, if others wait for what it holds, disconnected */
#define STALLED (30 * WEIR_SEC) /* a client that reads no reply for so long is disconnected */
#define SLOW    (30 * WEIR_SEC) /* limit for one piece (256 KiB) of a payload */

/* ---- lists */

void front_nbd_todo(struct front_nbd_conn *c)
{
	struct front_nbd *f = c->front;

	if (c->listed)
		return;
	c->listed = true;
	c->next_todo = NULL;
	*f->todo_end = c;
	f->todo_end = &c->next_todo;
}

void front_nbd_events(struct front_nbd_conn *c)
{
	bool in = !c->stopping && !c->doomed && !c->paused && !c->rest;
	uint32_t events = (in ? EPOLLIN : 0u) | (c->blocked ? EPOLLOUT : 0u);

	if (c->closed || c->gone || events == c->events)
		return;
	c->events = events;
	loop_change(c->front->loop, &c->fd, events);
}

/* ---- finished jobs */

void front_nbd_head_drop(struct front_nbd_job *head)
{
	struct front_nbd_job *p, *next;

	for (p = head->whole ? head->pieces : NULL; p; p = next) {
		next = p->next_piece;
		front_nbd_job_put(p);
	}
	front_nbd_job_put(head);
}

static bool is_unanswered(const struct front_nbd_conn *c)
{
	return c->closed || c->gone;
}

/* End a request whose pieces are all done. */
static void end_head(struct front_nbd_job *head)
{
	struct front_nbd_job *p, *next;

	if (is_unanswered(head->conn)) {
		front_nbd_head_drop(head);
		return;
	}
	for (p = head->whole && head->req.io.error ? head->pieces : NULL; p; p = next) {
		next = p->next_piece;
		front_nbd_job_put(p);
	}
	if (head->req.io.error)
		head->pieces = NULL;
	front_nbd_reply(head);
}

void front_nbd_head_release(struct front_nbd_job *head)
{
	if (--head->left == 0)
		end_head(head);
}

/* Finish a piece of a read whose pieces are answered one by one. */
static void part_done(struct front_nbd_job *j, struct front_nbd_job *head)
{
	bool over = --head->left == 0;

	if (is_unanswered(j->conn) || head->req.io.error) {
		front_nbd_job_put(j);
		if (over)
			end_head(head);
		return;
	}
	j->last = over;
	front_nbd_reply(j);
	if (over)
		front_nbd_job_put(head);
}

void front_nbd_done(struct request *q)
{
	struct front_nbd_job *j = front_nbd_job_of(q), *head = j->head;

	if (!head) {
		if (is_unanswered(j->conn))
			front_nbd_job_put(j);
		else
			front_nbd_reply(j);
		return;
	}
	front_nbd_own(j); /* the others may take longer */
	if (q->io.error && !head->req.io.error)
		head->req.io.error = q->io.error;
	if (head->command == NBD_READ && !head->whole) {
		part_done(j, head);
		return;
	}
	if (!head->whole)
		front_nbd_job_put(j);
	front_nbd_head_release(head);
}

/* ---- the end */

static void doom(struct front_nbd_conn *c)
{
	c->doomed = true;
	front_nbd_todo(c);
}

void front_nbd_broken(struct front_nbd_conn *c, const char *why)
{
	if (c->doomed || c->closed)
		return;
	log_event(LOG_LEVEL_WARNING, "client-broken", "client", c->client.name, "export",
		c->client.export_, "why", why, NULL);
	gateway_count(c->front->worker->gateway, 0, 0, 1);
	doom(c);
}

void front_nbd_ended(struct front_nbd_conn *c)
{
	struct pollfd p = {.fd = c->stream.fd};

	/* For a unix socket it is known now whether it is closed altogether; for TCP when data are
	 * sent. */
	if (c->stopping || c->n_head || c->step != FRONT_NBD_HEAD || poll(&p, 1, 0) != 0) {
		front_nbd_lost(c, 0);
		return;
	}
	log_event(LOG_LEVEL_INFO, "client-lost", "client", c->client.name, "export",
		c->client.export_, NULL);
	c->stopping = c->ended = true;
	front_nbd_todo(c);
}

void front_nbd_lost(struct front_nbd_conn *c, int error)
{
	if (c->doomed || c->closed)
		return;
	if (c->gone)
		return;
	if (c->ended) {
		doom(c);
		return;
	}
	if (c->stopping) { /* announced by NBD_DISC */
		c->gone = true;
		c->blocked = false; /* no event will reset it */
		loop_remove(c->front->loop, &c->fd);
		stream_close(&c->stream);
		front_nbd_drop(c);
		front_nbd_todo(c);
		return;
	}
	log_event(LOG_LEVEL_INFO, "client-lost", "client", c->client.name, "export",
		c->client.export_, "why", error ? strerror(-error) : NULL, NULL);
	doom(c);
}

static void on_refused(struct client *client, const char *why)
{
	struct front_nbd_conn *c = container_of(client, struct front_nbd_conn, client);

	log_event(LOG_LEVEL_WARNING, "client-refused", "client", client->name, "export",
		client->export_, "why", why, NULL);
	gateway_count(c->front->worker->gateway, 0, 1, 0);
	doom(c);
}

static void conn_close(struct front_nbd_conn *c)
{
	struct front_nbd *f = c->front;

	front_nbd_unpause(c);
	if (!c->gone)
		loop_remove(f->loop, &c->fd);
	c->closed = true;
	stream_close(&c->stream);
	front_nbd_drop(c);
	resource_leave(c->client.resource, &c->client);
	front_nbd_read_end(c);
}

static void conn_free(struct front_nbd_conn *c)
{
	struct front_nbd *f = c->front;

	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	f->n_conns--;
	free(c);
}

/* ---- the turn */

static void handle_todo(struct front_nbd_conn *c)
{
	for (unsigned i = 0; i < SENDS; i++) {
		if (c->doomed || c->gone || c->blocked)
			break;
		if (!c->out.first && !stream_pending(&c->stream))
			break;
		if (front_nbd_send(c) && i == SENDS - 1)
			front_nbd_todo(c); /* continues in the next round */
	}
	if (c->borrows && !c->doomed)
		front_nbd_own_all(c);
	if (c->unread && !c->doomed)
		front_nbd_read(c);
	if (c->doomed || (c->stopping && c->jobs == 0 && !c->head && !c->blocked))
		conn_close(c);
	else
		front_nbd_events(c);
}

static void handle_all_todo(struct front_nbd *f)
{
	struct front_nbd_conn *c = f->todo, *next;

	f->todo = NULL;
	f->todo_end = &f->todo;
	for (; c; c = next) {
		next = c->next_todo;
		c->listed = false;
		if (!c->closed)
			handle_todo(c);
		if (c->closed && c->jobs == 0 && !c->listed)
			conn_free(c);
	}
}

static bool front_turn(struct loop_turn *t, weir_time now)
{
	struct front_nbd *f = container_of(t, struct front_nbd, turn);
	bool more;

	f->submitted = false;
	if (f->n_submitted > FEW)
		loop_served_many(f->loop);
	f->n_submitted = 0;
	if (f->todo)
		handle_all_todo(f);
	more = front_nbd_wake(f);
	/* The resources have had their turn: requests submitted since must not wait for an event. */
	return more || f->todo || f->submitted;
}

/* ---- slow clients */

static void set_tick(struct front_nbd *f, weir_time at)
{
	f->tick_at = at;
	loop_set(f->loop, &f->tick, at);
}

void front_nbd_blocked(struct front_nbd_conn *c)
{
	struct front_nbd *f = c->front;

	front_nbd_job_blocked(c);
	if (f->tick_at > loop_now(f->loop) + DEAF)
		set_tick(f, loop_now(f->loop) + DEAF);
}

static void check_deaf(struct front_nbd_conn *c, weir_time silent)
{
	if (silent > STALLED)
		front_nbd_broken(c, "read no reply for 30 s");
	else if (silent >= DEAF && !c->deaf && !front_nbd_job_deaf(c) && silent >= IN_WAY &&
		 c->usage->first)
		front_nbd_broken(
			c, "read no reply for 2 s while others of its tenant need the memory");
}

static void on_tick(struct loop_timer *t, weir_time now)
{
	struct front_nbd *f = container_of(t, struct front_nbd, tick);
	bool blocked = false;

	for (struct front_nbd_conn *c = f->conns; c; c = c->next) {
		if (c->closed || c->gone)
			continue;
		blocked |= c->blocked;
		if (c->blocked)
			check_deaf(c, now - c->progress);
		if (c->step == FRONT_NBD_PAYLOAD && !c->paused && !c->rest &&
			now - c->piece_since > SLOW)
			front_nbd_broken(c, "a payload took more than 30 s");
	}
	f->given_back++; /* a new policy may have changed the limits: check all */
	set_tick(f, !f->conns ? WEIR_NEVER : blocked ? now + DEAF / 2 : now + TICK);
}

/* ---- the start */

static int front_make(struct worker *w)
{
	struct front_nbd *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->worker = w;
	f->loop = worker_loop(w);
	f->pool = worker_pool(w);
	f->scratch = worker_scratch(w, &f->scratch_room);
	f->todo_end = &f->todo;
	front_nbd_wait_init(f);
	f->tick_at = WEIR_NEVER;
	f->turn.turn = front_turn;
	f->tick.due = on_tick;
	loop_turn_add(f->loop, &f->turn);
	w->fronts = f;
	return 0;
}

static void on_ready(struct loop_fd *fd, uint32_t events)
{
	struct front_nbd_conn *c = (struct front_nbd_conn *)(void *)fd;

	if (events & EPOLLOUT) {
		c->blocked = false;
		front_nbd_todo(c);
	}
	if (events & EPOLLIN && c->events & EPOLLIN)
		front_nbd_read(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		front_nbd_lost(c, -ECONNRESET);
}

static void free_unstarted(struct front_nbd_conn *c)
{
	stream_close(&c->stream);
	free(c->rest);
	free(c);
}

static void start_conn(struct loop_task *t)
{
	struct front_nbd_conn *c = container_of(t, struct front_nbd_conn, task);
	struct worker *w = c->worker;
	struct front_nbd *f;
	int rc = w->fronts ? 0 : front_make(w);

	f = c->front = w->fronts;
	if (rc == 0 && !f->finishing)
		rc = front_nbd_job_join(c);
	if (rc == 0 && !f->finishing)
		rc = loop_add(worker_loop(w), &c->fd, EPOLLIN);
	if (rc < 0 || f->finishing) {
		free_unstarted(c);
		return;
	}
	c->events = EPOLLIN;
	c->client.since = loop_now(f->loop);
	c->received = c->client.since; /* of bytes that came with the handshake */
	c->next = f->conns;
	c->link = &f->conns;
	if (c->next)
		c->next->link = &c->next;
	f->conns = c;
	f->rest_bytes += c->rest_n;
	if (f->n_conns++ == 0)
		set_tick(f, loop_now(f->loop) + TICK);
	resource_join(c->client.resource, &c->client);
	if (c->rest || c->stream.tls)
		front_nbd_resume(c);
}

static void init_conn(struct front_nbd_conn *c, const struct front_nbd_start *s)
{
	const struct back_info *info = resource_info(s->place.resource);

	c->fd = (struct loop_fd){.fd = s->stream.fd, .ready = on_ready};
	c->stream = s->stream;
	c->client = s->client;
	c->client.requests = c->client.bytes = 0;
	c->client.resource = s->place.resource;
	c->client.refused = on_refused;
	c->offset = s->place.offset;
	c->size = s->place.size;
	c->flags = front_nbd_flags(info, s->place.read_only);
	c->block_min = info->block_min;
	c->context_id = s->context_id;
	c->structured = s->structured;
	c->base_allocation = s->base_allocation;
	c->tells_held = s->held;
	c->held_id = s->held_id;
	request_list_clear(&c->out);
}

int front_nbd_start(struct gateway *g, const struct front_nbd_start *s)
{
	struct front_nbd_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (s->n_early) {
		c->rest = malloc(s->n_early);
		if (!c->rest) {
			free(c);
			return -ENOMEM;
		}
		memcpy(c->rest, s->early, s->n_early);
		c->rest_n = s->n_early;
	}
	init_conn(c, s);
	c->worker = s->place.worker;
	c->task.run = start_conn;
	loop_post(worker_loop(s->place.worker), &c->task);
	return 0;
}

/* ---- end of the gateway */

void front_nbd_finish(struct worker *w, bool now)
{
	struct front_nbd *f = w->fronts;

	if (!f && (front_make(w) < 0 || !(f = w->fronts)))
		return;
	f->finishing = true;
	for (struct front_nbd_conn *c = f->conns; c; c = c->next) {
		if (c->closed)
			continue;
		c->stopping = true;
		c->doomed = c->doomed || now;
		front_nbd_unpause(c);
		if (c->head) /* begun, but never complete */
			c->head->req.io.error = -ESHUTDOWN;
		front_nbd_read_end(c);
		front_nbd_todo(c);
	}
}

size_t front_nbd_count(const struct worker *w)
{
	return w->fronts ? w->fronts->n_conns : 0;
}

void front_nbd_free(struct worker *w)
{
	struct front_nbd *f = w->fronts;

	if (!f)
		return;
	loop_turn_remove(f->loop, &f->turn);
	set_tick(f, WEIR_NEVER);
	front_nbd_jobs_free(f);
	free(f);
	w->fronts = NULL;
}
