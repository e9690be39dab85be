/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn: a connection after its handshake, from start to end.
 *
 * METHOD  Events only read (serve/front/receive.c) or put a connection on the todo list. The turn,
 *         which follows the resources' turns in the same round, goes through that list: one send
 *         each, connections that may continue do, ended ones are closed. So all replies of a round
 *         leave in one send per connection, and nothing is freed while a caller still uses it.
 *
 * THE END
 *   stopping  a farewell (front_leave), or the gateway ends: reads no more; closed when everything
 *             is answered
 *   gone      the client hung up after its farewell: the socket is closed, its reads that wait are
 *             dropped, and the other jobs finish without a reply
 *   doomed    lost, broken, refused, too slow: closed in the turn, queued replies are discarded
 *   closed    the socket is closed; the memory is freed with the last job that returns
 */
#include "base/container.h"
#include "base/list.h"
#include "serve/front/impl.h"
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

void front_todo(struct front_conn *c)
{
	struct front *f = c->front;

	if (c->listed)
		return;
	c->listed = true;
	c->next_todo = NULL;
	*f->todo_end = c;
	f->todo_end = &c->next_todo;
}

void front_events(struct front_conn *c)
{
	bool in = !c->stopping && !c->doomed && !c->paused && !c->rest && !c->front->frozen;
	uint32_t events = (in ? EPOLLIN : 0u) | (c->blocked ? EPOLLOUT : 0u);

	if (c->closed || c->gone || events == c->events)
		return;
	c->events = events;
	loop_change(c->front->loop, &c->fd, events);
}

/* ---- finished jobs */

static void drop_pieces(struct front_job *head)
{
	struct front_job *p, *next;

	for (p = head->whole ? head->pieces : NULL; p; p = next) {
		next = p->next_piece;
		front_job_put(p);
	}
	head->pieces = NULL;
}

void front_head_drop(struct front_job *head)
{
	drop_pieces(head);
	front_job_put(head);
}

static bool is_unanswered(const struct front_conn *c)
{
	return c->closed || c->gone;
}

/* End a request whose pieces are all done. */
static void end_head(struct front_job *head)
{
	if (is_unanswered(head->conn)) {
		front_head_drop(head);
		return;
	}
	if (head->req.io.error)
		drop_pieces(head);
	front_reply(head);
}

void front_head_release(struct front_job *head)
{
	if (--head->left == 0)
		end_head(head);
}

/* Finish a piece of a read whose pieces are answered one by one. */
static void part_done(struct front_job *j, struct front_job *head)
{
	bool over = --head->left == 0;

	if (is_unanswered(j->conn) || head->req.io.error) {
		front_job_put(j);
		if (over)
			end_head(head);
		return;
	}
	j->last = over;
	front_reply(j);
	if (over)
		front_job_put(head);
}

void front_done(struct request *q)
{
	struct front_job *j = front_job_of(q), *head = j->head;

	if (!head) {
		if (is_unanswered(j->conn))
			front_job_put(j);
		else
			front_reply(j);
		return;
	}
	front_own(j); /* the others may take longer */
	if (q->io.error && !head->req.io.error)
		head->req.io.error = q->io.error;
	if (head->parts) {
		part_done(j, head);
		return;
	}
	if (!head->whole)
		front_job_put(j);
	front_head_release(head);
}

/* ---- the end */

static void doom(struct front_conn *c)
{
	c->doomed = true;
	front_todo(c);
}

static void count(const struct front_conn *c, int refused, int broken)
{
	c->front->site->count(c->front->gateway, 0, refused, broken);
}

void front_leave(struct front_conn *c)
{
	c->stopping = true;
	front_todo(c);
}

void front_broken(struct front_conn *c, const char *why)
{
	if (c->doomed || c->closed)
		return;
	log_event(LOG_LEVEL_WARNING, "client-broken", "client", c->client.name, "export",
		c->client.export_, "why", why, NULL);
	count(c, 0, 1);
	doom(c);
}

/* The request that was begun will never be complete. */
static void drop_begun(struct front_conn *c)
{
	if (c->head)
		c->head->req.io.error = -ESHUTDOWN;
	front_read_end(c);
	c->step = FRONT_HEAD;
}

void front_ended(struct front_conn *c)
{
	struct pollfd p = {.fd = c->stream.fd};

	/* For a unix socket it is known now whether it is closed altogether; for TCP when data are
	 * sent. */
	if (c->stopping || poll(&p, 1, 0) != 0) {
		front_lost(c, 0);
		return;
	}
	log_event(LOG_LEVEL_INFO, "client-lost", "client", c->client.name, "export",
		c->client.export_, NULL);
	c->stopping = c->ended = true;
	drop_begun(c);
	front_todo(c);
}

void front_lost(struct front_conn *c, int error)
{
	if (c->doomed || c->closed || c->gone)
		return;
	if (c->ended) {
		doom(c);
		return;
	}
	if (c->stopping) { /* it said farewell */
		c->gone = true;
		c->blocked = false; /* no event will reset it */
		loop_remove(c->front->loop, &c->fd);
		stream_close(&c->stream);
		front_drop(c);
		c->gate->unread(c->client.resource, &c->client);
		front_todo(c);
		return;
	}
	log_event(LOG_LEVEL_INFO, "client-lost", "client", c->client.name, "export",
		c->client.export_, "why", error ? strerror(-error) : NULL, NULL);
	doom(c);
}

static void on_refused(struct client *client, const char *why)
{
	struct front_conn *c = container_of(client, struct front_conn, client);

	log_event(LOG_LEVEL_WARNING, "client-refused", "client", client->name, "export",
		client->export_, "why", why, NULL);
	count(c, 1, 0);
	doom(c);
}

static void conn_close(struct front_conn *c)
{
	struct front *f = c->front;

	front_unpause(c);
	if (!c->gone)
		loop_remove(f->loop, &c->fd);
	c->closed = true;
	stream_close(&c->stream);
	front_drop(c);
	c->gate->leave(c->client.resource, &c->client);
	front_read_end(c);
}

static void conn_free(struct front_conn *c)
{
	struct front *f = c->front;

	list_remove(c);
	f->n_conns--;
	free(c);
}

/* ---- the turn */

static void handle_todo(struct front_conn *c)
{
	for (unsigned i = 0; i < SENDS; i++) {
		if (c->doomed || c->gone || c->blocked || c->front->kept)
			break;
		if (!c->out.first && !stream_pending(&c->stream))
			break;
		if (front_send(c) && i == SENDS - 1)
			front_todo(c); /* continues in the next round */
	}
	if (c->borrows && !c->doomed)
		front_own_all(c);
	if (c->unread && !c->doomed)
		front_read(c);
	if (c->doomed || (c->stopping && c->jobs == 0 && !c->head && !c->blocked))
		conn_close(c);
	else
		front_events(c);
}

static void handle_all_todo(struct front *f)
{
	struct front_conn *c = f->todo, *next;

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
	struct front *f = container_of(t, struct front, turn);
	bool more;

	f->submitted = false;
	if (f->n_submitted > FEW)
		loop_served_many(f->loop);
	f->n_submitted = 0;
	if (f->todo)
		handle_all_todo(f);
	more = !f->frozen && front_wake(f);
	/* The resources have had their turn: requests submitted since must not wait for an
	 * event. */
	return more || f->todo || (f->submitted && !f->frozen);
}

/* ---- slow clients */

static void set_tick(struct front *f, weir_time at)
{
	f->tick_at = at;
	loop_set(f->loop, &f->tick, at);
}

void front_blocked(struct front_conn *c)
{
	struct front *f = c->front;

	front_job_blocked(c);
	if (f->tick_at > loop_now(f->loop) + DEAF)
		set_tick(f, loop_now(f->loop) + DEAF);
}

static void check_deaf(struct front_conn *c, weir_time silent)
{
	if (silent > STALLED)
		front_broken(c, "read no reply for 30 s");
	else if (silent >= DEAF && !c->deaf && !front_job_deaf(c) && silent >= IN_WAY &&
		 c->usage->first)
		front_broken(c, "read no reply for 2 s while others of its tenant need the memory");
}

static void on_tick(struct loop_timer *t, weir_time now)
{
	struct front *f = container_of(t, struct front, tick);
	bool blocked = false;

	for (struct front_conn *c = f->conns; c; c = c->next) {
		if (c->closed || c->gone)
			continue;
		blocked |= c->blocked;
		if (c->blocked)
			check_deaf(c, now - c->progress);
		if (c->step == FRONT_PAYLOAD && !c->paused && !c->rest &&
			now - c->piece_since > SLOW)
			front_broken(c, "a payload took more than 30 s");
	}
	f->given_back++; /* a new policy may have changed the limits: check all */
	set_tick(f, !f->conns ? WEIR_NEVER : blocked ? now + DEAF / 2 : now + TICK);
}

/* ---- the start */

int front_new(const struct front_site *site, struct gateway *g, struct loop *loop,
	struct chunk_pool *pool, struct front **ret_front)
{
	struct front *f = calloc(1, sizeof(*f));
	uint8_t *scratch = aligned_alloc(4096, FRONT_SCRATCH);

	if (!f || !scratch) {
		free(f);
		free(scratch);
		return -ENOMEM;
	}
	f->site = site;
	f->gateway = g;
	f->loop = loop;
	f->pool = pool;
	f->scratch = scratch;
	f->todo_end = &f->todo;
	front_wait_init(f);
	f->tick_at = WEIR_NEVER;
	f->tick.due = on_tick;
	*ret_front = f;
	return 0;
}

static void on_ready(struct loop_fd *fd, uint32_t events)
{
	struct front_conn *c = container_of(fd, struct front_conn, fd);

	if (events & EPOLLOUT) {
		c->blocked = false;
		front_todo(c);
	}
	if (events & EPOLLIN && c->events & EPOLLIN)
		front_read(c);
	else if (events & (EPOLLHUP | EPOLLERR))
		front_lost(c, -ECONNRESET);
}

void front_conn_unstarted(struct front_conn *c)
{
	stream_close(&c->stream);
	free(c->rest);
	free(c);
}

int front_conn_enter(struct front_conn *c)
{
	struct front *f = c->front;
	int rc = c->gone ? 0 : loop_add(f->loop, &c->fd, EPOLLIN);

	if (rc < 0)
		return rc;
	if (!f->turn.turn) { /* after the turns of the resources, which exist by now */
		f->turn.turn = front_turn;
		loop_turn_add(f->loop, &f->turn);
	}
	c->events = EPOLLIN;
	list_push(f->conns, c);
	f->rest_bytes += c->rest_n;
	if (f->n_conns++ == 0)
		set_tick(f, loop_now(f->loop) + TICK);
	c->gate->join(c->client.resource, &c->client);
	return 0;
}

static void start_conn(struct loop_task *t)
{
	struct front_conn *c = container_of(t, struct front_conn, task);
	struct front *f = c->front;
	int rc = f->finishing ? -ESHUTDOWN : front_job_join(c);

	c->client.since = loop_now(f->loop);
	c->received = c->client.since; /* of bytes that came with the handshake */
	if (rc == 0)
		rc = front_conn_enter(c);
	if (rc < 0)
		front_conn_unstarted(c);
	else if (c->rest || c->stream.tls)
		front_resume(c);
}

static void init_conn(struct front_conn *c, const struct front_start *s)
{
	c->fd = (struct loop_fd){.fd = s->stream.fd, .ready = on_ready};
	c->ops = s->ops;
	c->front = s->place.front;
	c->task.run = start_conn;
	c->stream = s->stream;
	c->client = s->client;
	c->client.requests = c->client.bytes = 0;
	c->client.resource = s->place.resource;
	c->client.offset = s->place.offset;
	c->client.refused = on_refused;
	c->client.waiting = front_jobs_waiting;
	c->gate = s->place.gate;
	c->info = s->place.info;
	c->offset = s->place.offset;
	c->size = s->place.size;
	c->storage = s->place.storage;
	c->read_only = s->place.read_only || c->info->read_only;
	c->part = (uint8_t *)c + s->ops->conn_size;
	request_list_clear(&c->out);
}

struct front_conn *front_conn_new(const struct front_start *s)
{
	struct front_conn *c = calloc(1, s->ops->conn_size + s->ops->head_max);

	if (!c)
		return NULL;
	if (s->n_early) {
		c->rest = malloc(s->n_early);
		if (!c->rest) {
			free(c);
			return NULL;
		}
		memcpy(c->rest, s->early, s->n_early);
		c->rest_n = s->n_early;
	}
	init_conn(c, s);
	return c;
}

void front_conn_start(struct front_conn *c)
{
	loop_post(c->front->loop, &c->task);
}

/* ---- end of the gateway */

void front_finish(struct front *f, bool now)
{
	f->finishing = true;
	for (struct front_conn *c = f->conns; c; c = c->next) {
		if (c->closed)
			continue;
		c->stopping = true;
		c->doomed = c->doomed || now;
		front_unpause(c);
		drop_begun(c);
		front_todo(c);
	}
}

void front_freeze(struct front *f, bool on)
{
	f->frozen = on;
	f->kept = false;
	for (struct front_conn *c = f->conns; c; c = c->next) {
		front_events(c);
		if (!on && !c->closed)
			front_todo(c);
	}
	f->given_back++; /* those that waited for memory may go on */
}

size_t front_drain(struct front *f)
{
	size_t n = 0;

	for (struct front_conn *c = f->conns; c; c = c->next) {
		if (c->closed || front_kept(c))
			continue;
		n++;
		if (c->stopping)
			continue;
		c->stopping = true;
		front_unpause(c);
		drop_begun(c);
		front_todo(c);
	}
	return n;
}

void front_turn_last(struct front *f)
{
	if (!f->turn.turn)
		return;
	loop_turn_remove(f->loop, &f->turn);
	loop_turn_add(f->loop, &f->turn);
}

size_t front_count(const struct front *f)
{
	return f->n_conns;
}

void front_free(struct front *f)
{
	if (!f)
		return;
	if (f->turn.turn)
		loop_turn_remove(f->loop, &f->turn);
	set_tick(f, WEIR_NEVER);
	front_jobs_free(f);
	free(f->scratch);
	free(f);
}
